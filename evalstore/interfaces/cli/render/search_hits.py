"""Prints what `grep` has matched: grouped by file, with the matches in bold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.interfaces.cli import output

if TYPE_CHECKING:
    from evalstore.results.search.grep import SearchHit

NOUNS = {
    "answers": "answer",
    "feedback": "feedback",
    "tests": "test",
    "instructions": "instructions",
}
"""How a kind of text is called."""
_INDENT = 4
_WORD = re.compile(r"\S+")


def print_hits(hits: Iterable[SearchHit]) -> None:
    """Print the texts below the name of their file; no word is broken."""
    for number, (file, listed) in enumerate(groupby(hits, key=lambda hit: hit.file)):
        if number:
            output.line()
        output.line(output.paint(output.safe(file or "in no recent run"), bold=True))
        for hit in listed:
            _print(hit)


def _print(hit: SearchHit) -> None:
    session = "" if hit.file else f"answer {output.short((*hit.sessions, hit.id)[0])}"
    source = f"{NOUNS[hit.kind]} {output.short(hit.id)}"
    parts = [
        output.safe(f"[{hit.row}]" if hit.row else session),
        output.safe(", ".join(hit.models)),
    ]
    columns = output.width() - _INDENT // 2
    if not output.wide:
        parts = [output.clip(part, columns - _INDENT // 2) for part in parts]
    first, *others = _pack([source, *filter(None, parts)], columns)
    margin = " " * (_INDENT // 2)
    output.line(margin + output.faint(source) + first.removeprefix(source))
    for text in others:
        output.line(margin + text)
    for begin, end in _wrap(hit.context, output.width() - _INDENT):
        output.line(" " * _INDENT + _mark(hit, begin, end))


def _pack(parts: list[str], columns: int) -> Iterator[str]:
    """Yield lines, each of as many parts as fit on it."""
    packed = parts[0]
    for part in parts[1:]:
        if output.columns_of(f"{packed}  {part}") > columns:
            yield packed
            packed = f"  {part}"
        else:
            packed += f"  {part}"
    yield packed


def _wrap(text: str, columns: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line of a text; words wider than a line have their own."""
    begin = end = width = 0
    for word in _WORD.finditer(text):
        size = output.columns_of(output.safe(word[0]))
        between = word.start() - end
        if width and width + between + size > columns:
            yield begin, end
            width = 0
        begin, width = (begin, width + between + size) if width else (word.start(), size)
        end = word.end()
    if width:
        yield begin, end


def _mark(hit: SearchHit, begin: int, end: int) -> str:
    """Style the matches in a part of the text in bold."""
    parts, at = "", begin
    for first, last in hit.matches:
        first, last = max(first, at), min(last, end)
        if first < last:
            parts += output.safe(hit.context[at:first])
            parts += output.paint(output.safe(hit.context[first:last]), "match", bold=True)
            at = last
    return parts + output.safe(hit.context[at:end])
