"""Splitting of Jinja and Nunjucks templates into their parts, in one pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

_ENDS = {"{{": "}}", "{%": "%}", "{#": "#}"}


class Part(NamedTuple):
    """An expression, statement or comment of a template, with its offsets."""

    text: str
    start: int
    end: int


def find_parts(template: str, other: str = "<!--") -> Iterator[Part]:
    """Yield the expressions, statements and comments of a template, and matches of `other`.

    An unclosed part is text. One regular expression for all would take quadratic time on those.
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
    """Return the template with each part replaced."""
    pieces: list[str] = []
    at = 0
    for part in find_parts(template, other):
        pieces += [template[at : part.start], replace(part.text)]
        at = part.end
    return "".join([*pieces, template[at:]])


def expression_in(part: str) -> str | None:
    """Return the content of a lone `{{ … }}`; None if the text is anything else."""
    text = part.strip()
    if not (text.startswith("{{") and text.endswith("}}") and len(text) > 4):
        return None
    inner = text[2:-2]
    return None if "}}" in inner else inner.removeprefix("-").removesuffix("-").strip() or None


def without_filter(expression: str, name: re.Pattern[str]) -> str | None:
    """Return an expression without its last filter; None if that does not have this name."""
    value, bar, last = expression.rpartition("|")
    return value.strip() or None if bar and name.fullmatch(last.strip()) else None


@cache
def _beginning(other: str) -> re.Pattern[str]:
    return re.compile(rf"\{{\{{|\{{%|\{{#|{other}", re.DOTALL)
