"""The request for a verdict, and the reply of a judge as a verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

from evalstore.judging.reply_parser import Unreadable, find_verdict, finished_text, storable
from evalstore.values import Json, OutgoingMessage, Reply, Request, Text, Verdict

VERDICT_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "description": "what leads to the verdict"},
        "pass": {"type": "boolean", "description": "whether the instructions are met"},
        "feedback": {"type": "string", "description": "what is wrong, or an empty text"},
        "score": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "only if a score is asked for",
        },
        "label": {"type": "string", "description": "only if a label is asked for"},
    },
    "required": ["pass", "feedback"],
    "additionalProperties": False,
}
"""The JSON Schema of a verdict: first the reasoning, then the result."""

_AGAIN = "Answer with one JSON object and nothing else: {"
_VERDICT = '"pass": true or false, "feedback": "if it fails, what is wrong; else an empty text"}'
AGAIN = _AGAIN + _VERDICT
"""The request after a reply without a verdict."""


def ask_for_code(code: str) -> str:
    """Return the instructions for a judge without structured output, after those of its prompt."""
    return (
        f'Put "code": "{code}" into the JSON object that you answer with, beside "pass". An object '
        "without this code does not count as your verdict."
    )


def ask_again_with(code: str) -> str:
    """Return the request after a reply without a verdict, with the code."""
    return f'{_AGAIN}"code": "{code}", {_VERDICT}'


_LONGEST = 20_000
"""The most characters of a judge's text that are stored."""
LONGEST_LABEL = 200


class JudgeReply(NamedTuple):
    """The parsed reply of a judge."""

    verdict: Verdict
    feedback: str = ""
    score: float | None = None
    label: str | None = None
    reasoning: str = ""


def read_verdict(reply: Reply, code: str | None = None) -> JudgeReply:
    """Read the verdict in a judge's reply; raises `Unreadable`.

    The verdict must contain `code`; without one (structured output) the whole reply must be the
    verdict. A score of 0 contradicts a pass, and one of 1 a fail.
    """
    verdict = find_verdict(finished_text(reply), code)
    passed = verdict["pass"]
    if not isinstance(passed, bool):
        raise Unreadable(f"the judge's 'pass' is {_shown(passed)}, not true or false")
    score = verdict.get("score")
    if score is not None and not _is_share(score):
        raise Unreadable(f"the judge's 'score' is {_shown(score)}, not a number from 0 to 1")
    if score == (0 if passed else 1):
        words = f"the judge's 'score' is {_shown(score)}, and its 'pass' is {_shown(passed)}"
        raise Unreadable(f"{words}: one contradicts the other")
    return JudgeReply(
        "pass" if passed else "fail",
        feedback=storable_text(verdict.get("feedback")),
        score=None if score is None else float(score),
        label=storable_text(verdict.get("label"))[:LONGEST_LABEL] or None,
        reasoning=storable_text(verdict.get("reasoning")),
    )


def _is_share(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _shown(value: Json) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return storable_text(json.dumps(value, ensure_ascii=False))[:40]


def storable_text(value: Json) -> str:
    """Return a text shortened so that it can be stored; empty for any other value."""
    return storable(value.strip()[:_LONGEST]) if isinstance(value, str) else ""


def undecided_reply(reply: Reply, reason: str) -> JudgeReply:
    """Return the result of an unreadable reply: undecided, with the reason and the text."""
    return JudgeReply("undecided", feedback=reason, reasoning=storable_text(reply.text))


def ask_again(request: Request, reply: Reply, reason: str, instruction: str = AGAIN) -> Request:
    """Return the request with the unreadable reply, the reason and the instruction appended."""
    wrong_reply = storable_text(reply.text) or storable_text(reply.refusal) or "(no text)"
    turns = (
        OutgoingMessage("assistant", (Text(wrong_reply),)),
        OutgoingMessage("user", (Text(f"That cannot be read: {reason}. {instruction}"),)),
    )
    return replace(request, messages=(*request.messages, *turns))
