"""What a judge is asked for, and its reply to a verdict."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import NamedTuple

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

AGAIN = (
    "Answer with one JSON object and nothing else: "
    '{"pass": true or false, "feedback": "if it fails, what is wrong; else an empty text"}'
)
"""What a judge whose reply holds no verdict is asked for."""

_LONGEST = 20_000
"""Characters of a judge's text that are kept."""
LONGEST_LABEL = 200
_MOST_STARTS = 5_000
"""Braces, counted from the end of a reply, at which its verdict may begin."""


class Opinion(NamedTuple):
    """What a judge said, read from its reply."""

    verdict: Verdict
    feedback: str = ""
    score: float | None = None
    label: str | None = None
    reasoning: str = ""


class Unreadable(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A judge's reply that holds no verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_opinion(reply: Reply) -> Opinion:
    """The verdict in a judge's reply; raises `Unreadable`.

    However the reply was asked for, it is read the same way: what a server promised of its
    form counts for nothing.
    """
    text, unfinished = said_in(reply)
    found = _find_object(text, unfinished=unfinished)
    if found is None:
        why = "the judge's reply holds no JSON object with 'pass'"
        raise Unreadable(f"{why}: it was cut off" if unfinished else why)
    passed = found.get("pass")
    if not isinstance(passed, bool):
        raise Unreadable(f"the judge's 'pass' is {_shown(passed)}, not true or false")
    score = found.get("score")
    if score is not None and not _is_share(score):
        raise Unreadable(f"the judge's 'score' is {_shown(score)}, not a number from 0 to 1")
    return Opinion(
        "pass" if passed else "fail",
        feedback=kept(found.get("feedback")),
        score=None if score is None else float(score),
        label=kept(found.get("label"))[:LONGEST_LABEL] or None,
        reasoning=kept(found.get("reasoning")),
    )


def said_in(reply: Reply) -> tuple[str, bool]:
    """What a judge said, and whether it was kept from ending it; raises `Unreadable`."""
    if reply.refusal and not reply.text:
        raise Unreadable(f"the judge refused: {kept(reply.refusal)}")
    return reply.text or "", reply.is_cut or reply.finish_reason == "content_filter"


def _is_share(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _shown(value: Json) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return kept(json.dumps(value, ensure_ascii=False))[:40]


def kept(value: Json) -> str:
    """A text as it can be stored; an escape in JSON can be half a surrogate pair."""
    if not isinstance(value, str):
        return ""
    text: str = value.strip()[:_LONGEST]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unreadable_opinion(reply: Reply, reason: str) -> Opinion:
    """What is kept of a judge that cannot be read: no verdict, why, and what it wrote."""
    return Opinion("undecided", feedback=reason, reasoning=kept(reply.text))


def ask_again(request: Request, reply: Reply, reason: str, wanted: str = AGAIN) -> Request:
    """The request that shows a judge its unreadable reply, what is wrong, and what is wanted."""
    said = kept(reply.text) or kept(reply.refusal) or "(no text)"
    turns = (
        OutgoingMessage("assistant", (Text(said),)),
        OutgoingMessage("user", (Text(f"That cannot be read: {reason}. {wanted}"),)),
    )
    return replace(request, messages=(*request.messages, *turns))


def _find_object(text: str, *, unfinished: bool) -> dict[str, Json] | None:
    """The JSON object with `pass`: the whole text, or the last one in it, fenced or not.

    The last one: before it, a judge may quote what the candidate wrote. One that says true
    must end the text, for what follows may take it back: so it does not count in a text that
    is unfinished, or inside of an object that is no JSON. An object that says `pass` twice
    says nothing.
    """
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value if "pass" in value else None
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    found = None
    end = -1
    for start in [match.start() for match in re.finditer(r"\{", text)][-_MOST_STARTS:]:
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "pass" in value:
            ends_it = not unfinished and not text[end:].strip("`] \t\r\n.")
            found = value if ends_it or value["pass"] is not True else None
    return found


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object of these members; raises ValueError when `pass` is there twice."""
    if [name for name, _ in pairs].count("pass") > 1:
        raise ValueError("'pass' appears twice")
    return dict(pairs)
