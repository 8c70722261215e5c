"""Reads the JSON object that is a judge's reply.

A reply can contain text of the candidate, in any language and with any words around it. So a
verdict counts only when the reply is it: the whole reply is one object, with the keys that were
asked for and no other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from evalstore.core.display import shorten, storable
from evalstore.core.values import Evaluator, Json, Reply, Text
from evalstore.files.yaml12 import parse_json

READING = 2
"""The revision of how replies are read; a part of the id of each model that judges."""
_UNFINISHED = re.compile(
    "length|max_(output_)?tokens|model_length|content_filter|safety|recitation|refusal|error"
    "|incomplete|cancelled|abort",
    re.IGNORECASE,
)
"""Finish reasons of incomplete replies."""
_BLANKS = " \t\r\n\ufeff"
_FENCE = re.compile(r"(`{3,})(?:json\b)?(.*)\1", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)</\1>", re.DOTALL)
_KEY = re.compile(r"`(\w+)`|([\"'])(\w+)\2\s*:")


class Unreadable(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A judge's reply from which no verdict can be read.

    `is_structured` is false when the reply says something and is not the object that a server
    gives which holds its model to a schema.
    """

    def __init__(self, reason: str, *, is_structured: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_structured = is_structured


def model_that_judges(model: str, prompt: str, temperature: float | None) -> Evaluator:
    """Return a model with an evaluator prompt, whose replies are read as this module reads them."""
    return Evaluator(model, prompt, temperature, reading=READING)


def finished_text(reply: Reply) -> str:
    """Return the text of a complete reply; raises `Unreadable` for a refused or incomplete one."""
    if reply.refusal:
        raise Unreadable(f"the judge refused: {storable(reply.refusal)}")
    if reply.is_cut:
        raise Unreadable("the judge's reply was cut off by the token limit")
    if match := _UNFINISHED.fullmatch(reply.finish_reason or ""):
        raise Unreadable(f"the judge's reply was cut off: its finish reason is '{match[0]}'")
    return reply.text or ""


def without_thinking(text: str) -> str:
    """Remove the block of thoughts that a text begins with, such as `<think>…</think>`.

    A block that seems to end twice is left in its place: one of the ends may be quoted.
    """
    block = _THINKING.match(text)
    if block is None or f"</{block[1]}>" in text[block.end() :]:
        return text
    return text[block.end() :]


def keys_in(parts: Iterable[object]) -> frozenset[str]:
    """Return the keys that texts ask for, as in `"score": …`; also words in backticks."""
    texts = (part.text for part in parts if isinstance(part, Text))
    return frozenset(match[1] or match[3] for text in texts for match in _KEY.finditer(text))


def read_object(text: str, keys: Collection[str], code: str | None = None) -> dict[str, Json]:
    """Return the object that is the whole text; raises `Unreadable`.

    Blanks and one block of code may stand around it; with a code, a finished block of thoughts
    before it. It has no keys but these and `code`, which it must have if there is one.
    """
    bare = (text if code is None else without_thinking(text)).strip(_BLANKS)
    fenced = _FENCE.fullmatch(bare)
    try:
        value = parse_json(fenced[2] if fenced else bare, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        words = "the judge's reply is not one JSON object and nothing else"
        raise Unreadable(words, is_structured=not text.strip())
    if code is not None and str(value.pop("code", None)) != code:
        raise Unreadable("the judge's object does not have the code that was asked for")
    if unknown := [name for name in value if name != "code" and name not in keys]:
        words = f"the judge's object has {shorten(storable(unknown[0]))}, which was not asked for"
        raise Unreadable(words, is_structured=False)
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Build an object of these members; raises ValueError when a name is there twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name appears twice")
    return members
