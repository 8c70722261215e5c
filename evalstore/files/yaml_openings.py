"""Finds the bracket or quotation mark that was opened and never closed in text that is not YAML.

The parser stops where it cannot go on, often lines below; a person looks for what was opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_QUOTES = ("'", '"')
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SIGNS = {
    "FlowSequenceStartToken": "[",
    "FlowMappingStartToken": "{",
    "FlowSequenceEndToken": "]",
    "FlowMappingEndToken": "}",
}


class Opening(NamedTuple):
    """A bracket or a quotation mark, and its place from 0."""

    sign: str
    line: int
    column: int


def find_unclosed(text: str, tokens: Iterable[Any], error: Any) -> Opening | None:
    """Return what is open where the parser stopped, if it was opened on a line above.

    `tokens` are those of the text, and `error` is what PyYAML raised. None if the line at which
    the parser stopped belongs to what is open, by its indentation: then that line is at fault.
    """
    context, stopped = error.context or "", error.problem_mark
    lines = _BREAK.split(text)
    if context == "while scanning a quoted scalar" and "end of stream" in error.problem:
        line, column = error.context_mark.line, error.context_mark.column
        sign = "".join(lines[line : line + 1])[column : column + 1]
        return Opening(sign if sign in _QUOTES else "quotation mark", line, column)
    if not context.startswith("while parsing") or stopped is None:
        return None
    opened: list[Opening] = []
    for token in tokens:
        start, end = token.start_mark, token.end_mark
        if (start.line, start.column) >= (stopped.line, stopped.column):
            break
        sign = _SIGNS.get(type(token).__name__) or getattr(token, "style", None) or ""
        opening = Opening(sign, start.line, start.column)
        if sign in _QUOTES:
            # It may have been closed by the first mark of another text.
            if start.line < end.line == stopped.line and _is_left(lines, opening, stopped.line):
                return opening
        elif sign in ("[", "{"):
            opened.append(opening)
        elif sign in ("]", "}") and opened:
            opened.pop()
    last = opened[-1] if opened else None
    return last if last and _is_left(lines, last, stopped.line) else None


def _is_left(lines: list[str], opening: Opening, number: int) -> bool:
    """Return whether a line is below an opening, and not indented more than the line of that."""
    return number > opening.line and _indent(lines, number) <= _indent(lines, opening.line)


def _indent(lines: list[str], number: int) -> int:
    """Return the indentation of a line; 0 behind the last one, and where a line is blank."""
    line = lines[number] if number < len(lines) else ""
    return len(line) - len(line.lstrip()) if line.strip() else 0
