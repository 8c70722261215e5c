"""Splits the body of a file into lines and sections; finds fenced code and comments.

This happens before templates are filled, so data cannot change the structure. Every text keeps
the line numbers of its lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that trimming removes: white space of ECMAScript (not U+001C and U+0085)."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(.*)$")


_LONG_TEXT = 2_000
"""Characters; in longer texts it is faster to find all line ends at once."""


@lru_cache(maxsize=16)
def _line_ends(text: str) -> list[int]:
    """Return the offsets of the line ends of a text."""
    return [match.start() for match in re.finditer("\n", text)]


class SourceLine(NamedTuple):
    """A line without comments."""

    number: int
    text: str
    fenced: bool
    """Whether it belongs to a block of fenced code, its fences included."""


@dataclass(frozen=True, slots=True)
class Section:
    """A trimmed text with the line of each of its lines."""

    text: str
    lines: tuple[int, ...]
    first: int
    """The line of the marker."""

    def line_at(self, offset: int) -> int:
        """Return the line of the file at an offset into the text."""
        if len(self.text) > _LONG_TEXT:
            index = bisect_left(_line_ends(self.text), offset)
        else:
            index = self.text.count("\n", 0, offset)
        return self.lines[index] if index < len(self.lines) else self.first


class Fence(NamedTuple):
    """A block of fenced code."""

    opened: int
    """Its first line."""
    info: str
    """The text after the opening fence."""
    closed: bool


def scan_lines(body: str, first: int) -> Iterator[SourceLine]:
    """Yield the lines of a body without HTML comments; fenced code is unchanged.

    A line that held nothing but a comment is dropped, and one of the two blank lines
    around it, so a comment can be put anywhere without changing the text.
    """
    lines = body.split("\n")
    if "<!--" not in body and "```" not in body and "~~~" not in body:
        for number, raw in enumerate(lines, first):
            yield SourceLine(number, raw, False)
        return
    fence = ""
    comment = False
    pending = ""
    pending_number = 0
    blank_before = dropped = False
    last_close = max((number for number, raw in enumerate(lines, first) if "-->" in raw), default=0)
    for number, raw in enumerate(lines, first):
        if fence:
            if _closes(raw, fence):
                fence = ""
            yield SourceLine(number, raw, fenced=True)
            blank_before = dropped = False
            continue
        text, start, touched = raw, number, comment
        if comment:
            end = text.find("-->")
            if end < 0:
                continue
            text, start, comment = _rejoin(pending, text[end + 3 :]), pending_number, False
        else:
            opened = _opening(text)
            if opened:
                fence = opened[1]
                yield SourceLine(number, raw, fenced=True)
                blank_before = dropped = False
                continue
        while (begin := text.find("<!--")) >= 0:
            end = text.find("-->", begin + 4)
            if end >= 0:
                text, touched = _rejoin(text[:begin], text[end + 3 :]), True
                continue
            if number < last_close:
                pending, pending_number, comment = text[:begin], start, True
            break
        if comment:
            continue
        blank = not text.strip()
        if touched and blank:
            dropped = True
            continue
        if dropped and blank and blank_before:
            dropped = False
            continue
        yield SourceLine(start, text, fenced=False)
        blank_before, dropped = blank, False


def _rejoin(before: str, after: str) -> str:
    """Join the two halves of a line from which a comment was removed."""
    if not before.strip():
        return before + after.lstrip(" \t")
    if not after or after[0] in " \t":
        return before.rstrip(" \t") + after
    return before + after


def _opening(text: str) -> re.Match[str] | None:
    """Return the fence that a line outside of fenced code opens."""
    match = _FENCE.match(text)
    return None if match and match[1][0] == "`" and "`" in match[2] else match


def _closes(text: str, fence: str) -> bool:
    match = _FENCE.match(text)
    return bool(match and match[1].startswith(fence) and not match[2].strip())


def fences(lines: Iterable[SourceLine]) -> list[Fence]:
    """Return the blocks of fenced code."""
    blocks: list[Fence] = []
    mark = ""
    for line in lines:
        if not line.fenced:
            continue
        if mark and _closes(line.text, mark):
            blocks[-1] = blocks[-1]._replace(closed=True)
            mark = ""
        elif not mark and (opened := _opening(line.text)):
            blocks.append(Fence(line.number, opened[2].strip(), closed=False))
            mark = opened[1]
    return blocks


def is_rule(line: SourceLine) -> bool:
    """Return whether a line is exactly `---`, outside of fenced code."""
    return not line.fenced and line.text.startswith("---") and line.text.rstrip(" \t") == "---"


def cut(lines: list[SourceLine]) -> tuple[list[SourceLine], list[SourceLine], int | None]:
    """Split lines at the last `---`; returns those above, those below, and its line."""
    for index in range(len(lines) - 1, -1, -1):
        if is_rule(lines[index]):
            return lines[:index], lines[index + 1 :], lines[index].number
    return lines, [], None


def section(lines: list[SourceLine], first: int) -> Section:
    """Join lines to a trimmed text."""
    start, end = 0, len(lines)
    while start < end and not lines[start].text.strip(SPACE):
        start += 1
    while end > start and not lines[end - 1].text.strip(SPACE):
        end -= 1
    trimmed = lines[start:end]
    text = "\n".join([line.text for line in trimmed]).strip(SPACE)
    return Section(text, tuple([line.number for line in trimmed]), first)
