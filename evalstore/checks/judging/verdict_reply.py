"""The request for a verdict, and the reply of a judge as a verdict."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from evalstore.checks.judging.reply_parser import Unreadable, finished_text, read_object
from evalstore.core.display import storable
from evalstore.core.values import Json, OutgoingMessage, Reply, Request, Text, Verdict

_ASKED: Mapping[str, Json] = {
    "reasoning": {"type": "string", "description": "what leads to the verdict"},
    "pass": {"type": "boolean", "description": "whether the instructions are met"},
    "feedback": {"type": "string", "description": "what is wrong, or an empty text"},
}
"""The keys that are always asked for: first the reasoning, then the result."""
_IF_ASKED: Mapping[str, Json] = {
    "score": {"type": "number", "minimum": 0, "maximum": 1},
    "label": {"type": "string"},
}
"""The keys that are asked for by prompts that name them."""

_VERDICT = '"pass": true or false, "feedback": "if it fails, what is wrong; else an empty text"}'
AGAIN = "Answer with one JSON object and nothing else: {" + _VERDICT
"""The request after a reply without a verdict."""


def verdict_schema(asked: Collection[str] = ()) -> Json:
    """Return the JSON Schema of a verdict; `asked` are the keys that the prompt names."""
    return object_schema(
        {**_ASKED, **{name: value for name, value in _IF_ASKED.items() if name in asked}},
        required=("pass", "feedback"),
    )


def object_schema(properties: Mapping[str, Json], required: Iterable[str]) -> Json:
    """Return the JSON Schema of an object with these properties and no other."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def ask_for_code(code: str) -> str:
    """Return the instructions for a judge without structured output, after those of its prompt."""
    return (
        f'Answer with one JSON object and nothing else. Put "code": "{code}" into it; an object '
        "without this code does not count. Reasons belong inside of the object."
    )


def ask_again_with(code: str) -> str:
    """Return the request after a reply without a verdict, with the code."""
    return AGAIN.replace("{", f'{{"code": "{code}", ', 1)


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


def read_verdict(reply: Reply, code: str | None = None, asked: Collection[str] = ()) -> JudgeReply:
    """Read the verdict that is a judge's whole reply; raises `Unreadable`.

    It must have `code`, if there is one, and no keys beside those of a verdict and `asked`, which
    are those that the prompt names. A score of 0 contradicts a pass, and one of 1 a fail.
    """
    verdict = read_object(finished_text(reply), {*_ASKED, *asked}, code)
    if "pass" not in verdict:
        raise Unreadable("the judge's object has no 'pass'", is_structured=False)
    passed = verdict["pass"]
    if not isinstance(passed, bool):
        raise Unreadable(f"the judge's 'pass' is {_shown(passed)}, not true or false")
    score = verdict.get("score")
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (is_number and 0 <= score <= 1):
        raise Unreadable(f"the judge's 'score' is {_shown(score)}, not a number from 0 to 1")
    if score == (0 if passed else 1):
        words = f"the judge's 'score' is {_shown(score)}, and its 'pass' is {_shown(passed)}"
        raise Unreadable(f"{words}: one contradicts the other")
    return JudgeReply(
        "pass" if passed else "fail",
        feedback=read_text(verdict, "feedback"),
        score=None if score is None else float(score),
        label=read_text(verdict, "label")[:LONGEST_LABEL] or None,
        reasoning=read_text(verdict, "reasoning"),
    )


def read_text(members: Mapping[str, Json], name: str) -> str:
    """Return a text of an object, empty without one.

    Raises `Unreadable` for an object or a list, which could say the opposite of the verdict.
    """
    text = members.get(name)
    if isinstance(text, dict | list):
        raise Unreadable(f"the judge's '{name}' is {_shown(text)}, not a text", is_structured=False)
    return storable_text(text)


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
