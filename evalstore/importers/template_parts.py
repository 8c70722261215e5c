"""The parts of a template of Jinja or Nunjucks, found in one pass over its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

_ENDS = {"{{": "}}", "{%": "%}", "{#": "#}"}


class Part(NamedTuple):
    """Something that means more than the characters it consists of."""

    text: str
    start: int
    end: int


def find_parts(template: str, other: str = "<!--") -> Iterator[Part]:
    """The expressions, statements and comments of a template, and what matches `other`.

    What has no end is text. A pattern would look for the missing end from each beginning anew.
    """
    unclosed: set[str] = set()
    at = 0
    while match := _beginning(other).search(template, at):
        start, mark = match.start(), match[0]
        end = match.end()
        if mark in _ENDS:
            closing = -1 if mark in unclosed else template.find(_ENDS[mark], end)
            if closing < 0:
                unclosed.add(mark)
                at = start + 1
                continue
            end = closing + 2
        yield Part(template[start:end], start, end)
        at = end


def replace_parts(template: str, replace: Callable[[str], str], other: str = "<!--") -> str:
    """The template with other texts in the places of its parts."""
    pieces: list[str] = []
    at = 0
    for part in find_parts(template, other):
        pieces += [template[at : part.start], replace(part.text)]
        at = part.end
    return "".join([*pieces, template[at:]])


def expression_in(part: str) -> str | None:
    """What stands in the braces of an expression; None if the text is anything else."""
    text = part.strip()
    if not (text.startswith("{{") and text.endswith("}}") and len(text) > 4):
        return None
    inner = text[2:-2]
    return None if "}}" in inner else inner.removeprefix("-").removesuffix("-").strip() or None


def without_filter(expression: str, name: re.Pattern[str]) -> str | None:
    """An expression without the filter at its end; None if it has no filter of this name there."""
    value, bar, last = expression.rpartition("|")
    return value.strip() or None if bar and name.fullmatch(last.strip()) else None


@cache
def _beginning(other: str) -> re.Pattern[str]:
    return re.compile(rf"\{{\{{|\{{%|\{{#|{other}", re.DOTALL)
