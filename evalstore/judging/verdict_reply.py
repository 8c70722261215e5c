"""What a judge is asked for, and its reply to a verdict."""

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
"""What a judge that can be held to a schema must answer: first the reasons, then the verdict."""

_AGAIN = "Answer with one JSON object and nothing else: {"
_VERDICT = '"pass": true or false, "feedback": "if it fails, what is wrong; else an empty text"}'
AGAIN = _AGAIN + _VERDICT
"""What a judge whose reply holds no verdict is asked for."""


def ask_for_code(code: str) -> str:
    """What a judge is told that is not held to a schema, behind the form that its prompt names."""
    return (
        f'Put "code": "{code}" into the JSON object that you answer with, beside "pass". An object '
        "without this code does not count as your verdict."
    )


def ask_again_with(code: str) -> str:
    """What such a judge is asked for whose reply holds no verdict."""
    return f'{_AGAIN}"code": "{code}", {_VERDICT}'


_LONGEST = 20_000
"""Characters of a judge's text that are kept."""
LONGEST_LABEL = 200


class JudgeReply(NamedTuple):
    """What a judge said, read from its reply."""

    verdict: Verdict
    feedback: str = ""
    score: float | None = None
    label: str | None = None
    reasoning: str = ""


def read_opinion(reply: Reply, code: str | None = None) -> JudgeReply:
    """The verdict in a judge's reply; raises `Unreadable`.

    `code` is what the verdict must have beside `pass`; None for a judge that its server holds
    to the schema: then the whole reply must be the verdict. A score of 0 contradicts a pass,
    and one of 1 a fail: on no scale where more is better can both be meant.
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
        feedback=kept(verdict.get("feedback")),
        score=None if score is None else float(score),
        label=kept(verdict.get("label"))[:LONGEST_LABEL] or None,
        reasoning=kept(verdict.get("reasoning")),
    )


def _is_share(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _shown(value: Json) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return kept(json.dumps(value, ensure_ascii=False))[:40]


def kept(value: Json) -> str:
    """A text as it can be stored, and empty for anything else."""
    return storable(value.strip()[:_LONGEST]) if isinstance(value, str) else ""


def unreadable_opinion(reply: Reply, reason: str) -> JudgeReply:
    """What is kept of a judge that cannot be read: no verdict, why, and what it wrote."""
    return JudgeReply("undecided", feedback=reason, reasoning=kept(reply.text))


def ask_again(request: Request, reply: Reply, reason: str, instruction: str = AGAIN) -> Request:
    """The request that shows a judge its unreadable reply, what is wrong, and what is wanted."""
    wrong_reply = kept(reply.text) or kept(reply.refusal) or "(no text)"
    turns = (
        OutgoingMessage("assistant", (Text(wrong_reply),)),
        OutgoingMessage("user", (Text(f"That cannot be read: {reason}. {instruction}"),)),
    )
    return replace(request, messages=(*request.messages, *turns))
