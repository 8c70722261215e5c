"""Parses the answer as JSON, and formats values of JSON for a feedback."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from evalstore.display import shorten, shorten_to_line
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.checks.base import CheckInput

_SHOWN = 120
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(.*)\Z")


class NotJsonError(Exception):
    """The answer is not JSON; the message explains why."""


def parse_answer(subject: CheckInput, *, fenced: bool = False) -> Json:
    """Return the answer parsed as JSON, or the value of `actual`; raises `NotJsonError`.

    With `fenced`, JSON in the only block of fenced code of the answer is accepted as well.
    """
    text = subject.actual
    if text is not None and not isinstance(text, str):
        return text
    text = text or ""
    try:
        return json.loads(text)
    except ValueError as error:
        blocks = fenced_blocks(text) if fenced else []
        if len(blocks) > 1:
            words = f"expected one block of fenced code, found {len(blocks)}"
            raise NotJsonError(f"the answer is not JSON: {words}") from None
        if not blocks:
            words = f"the answer is not JSON: {error}, found {shorten_to_line(text)}"
            raise NotJsonError(words) from None
    try:
        return json.loads(blocks[0])
    except ValueError as error:
        words = f"the fenced code is not JSON: {error}, found {shorten_to_line(blocks[0])}"
        raise NotJsonError(words) from None


def fenced_blocks(text: str) -> list[str]:
    """Return the contents of the closed blocks of fenced code in a text."""
    blocks: list[str] = []
    mark = ""
    block: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if mark and fence and fence[1].startswith(mark) and not fence[2].strip():
            blocks.append("\n".join(block))
            mark = ""
        elif mark:
            block.append(line)
        elif fence and not (fence[1][0] == "`" and "`" in fence[2]):
            mark, block = fence[1], []
    return blocks


def shown(value: Json) -> str:
    """Return a value for a feedback, shortened: a text in quotes, anything else as JSON."""
    if isinstance(value, str):
        return shorten(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
