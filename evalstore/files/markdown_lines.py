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
from typing import Literal, NamedTuple

SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that trimming removes: white space of ECMAScript (not U+001C and U+0085)."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(.*)$")


_MARK = re.compile(r"(?<!\\)`+|<!--")
_TICKS = re.compile("`+")
_ENDS_PARAGRAPH = re.compile(r" {0,3}(?:`{3}|~{3}|#|---[ \t]*$)")
Comments = Literal["removed", "kept", "text"]
"""How HTML comments are read; if they are `kept` or `removed`, what is in them begins nothing."""
_LONG_TEXT = 2_000
"""Characters; in longer texts it is faster to find all line ends at once."""


@lru_cache(maxsize=16)
def _line_ends(text: str) -> list[int]:
    """Return the offsets of the line ends of a text."""
    return [match.start() for match in re.finditer("\n", text)]


class SourceLine(NamedTuple):
    """A line as it is read."""

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


def scan_lines(body: str, first: int, comments: Comments = "removed") -> Iterator[SourceLine]:
    """Yield the lines of a body without HTML comments, except for those in code.

    A line that held nothing but a comment is dropped, and one of the two blank lines
    around it, so a comment can be put anywhere without changing the text.
    """
    lines = body.split("\n")
    if "<!--" not in body and "```" not in body and "~~~" not in body:
        for number, raw in enumerate(lines, first):
            yield SourceLine(number, raw, False)
        return
    fence = ""
    comment = indented = False
    pending = ""
    pending_number = 0
    blank_before = dropped = False
    span_end = (-1, 0)
    last_close = max((index for index, raw in enumerate(lines) if "-->" in raw), default=0)
    for index, raw in enumerate(lines):
        number = first + index
        if fence:
            if _closes(raw, fence):
                fence = ""
            yield SourceLine(number, raw, fenced=True)
            blank_before = dropped = False
            continue
        text, start, at, touched = raw, number, 0, comment
        if comment:
            end = text.find("-->")
            if end < 0:
                if comments == "kept":
                    yield SourceLine(number, raw, fenced=False)
                continue
            comment, at = False, end + 3
            if comments == "removed":
                text, start = _rejoin(pending, text[at:]), pending_number
                at = len(pending.rstrip(" \t"))
        elif index <= span_end[0]:
            at = span_end[1] if index == span_end[0] else len(text)
        elif opened := _opening(text):
            fence, indented = opened[1], False
            yield SourceLine(number, raw, fenced=True)
            blank_before = dropped = False
            continue
        elif indented := (
            (indented or blank_before or not index)
            and text.startswith(("    ", "\t"))
            and not text.isspace()
        ):
            at = len(text)
        while comments != "text" and (mark := _MARK.search(text, at)):
            if mark[0] != "<!--":
                span_end = _end_of_span(lines, index, mark)
                at = span_end[1] if span_end[0] == index else len(text)
                continue
            begin, end = mark.start(), text.find("-->", mark.end())
            if end < 0:
                comment = index < last_close
                pending, pending_number = text[:begin], start
                break
            at = end + 3
            if comments == "removed":
                text, touched = _rejoin(text[:begin], text[at:]), True
                at = len(text[:begin].rstrip(" \t"))
        if comment and comments == "removed":
            continue
        blank = not text.strip()
        if touched and blank and comments == "removed":
            dropped = True
            continue
        if dropped and blank and blank_before:
            dropped = False
            continue
        yield SourceLine(start, text, fenced=False)
        blank_before, dropped = blank, False


def _end_of_span(lines: list[str], index: int, mark: re.Match[str]) -> tuple[int, int]:
    """Return the index of the line and the offset at which code between backticks ends.

    It begins in the line of this index, and ends in the same paragraph; else the backticks are
    text, and it ends with them.
    """
    line, at = mark.string, mark.end()
    for number in range(index, len(lines)):
        if number > index:
            line, at = lines[number], 0
            if not line.strip() or _ENDS_PARAGRAPH.match(line):
                break
        for ticks in _TICKS.finditer(line, at):
            if ticks[0] == mark[0]:
                return number, ticks.end()
    return index, mark.end()


def _rejoin(before: str, after: str) -> str:
    """Join the two halves of a line from which a comment was removed."""
    if not before.strip():
        return before + after.lstrip(" \t")
    if not after or after[0] in " \t":
        return before.rstrip(" \t") + after
    return before + after


def _opening(text: str) -> re.Match[str] | None:
    """Return the fence that a line outside fenced code opens."""
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
    """Return whether a line is exactly `---`, outside fenced code."""
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
