"""Two texts word by word and line by line: what of each is not in the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_MOST = 400_000_000
"""Words (or lines) of one text times those of the other; a bit of memory each."""
_TOKEN = re.compile(r"\n|[\u2e80-\u9fff\uac00-\ud7af]|[^\s\u2e80-\u9fff\uac00-\ud7af]+[^\S\n]*|\s")
"""A word with the blanks behind it; scripts without blanks by character."""


class TextPiece(NamedTuple):
    """A stretch of a line, and whether the other text does not have it."""

    text: str
    differs: bool = False


Pieces = tuple[TextPiece, ...]


class ChangedLine(NamedTuple):
    """A line of a difference: ` ` is in both, `-` in the old text, `+` in the new one."""

    sign: str
    pieces: Pieces


class Opcode(NamedTuple):
    """What became of a stretch of the old text in the new one."""

    same: bool
    first: int
    last: int
    begin: int
    end: int


def words_apart(was: str, now: str) -> tuple[list[Pieces], list[Pieces]] | None:
    """The lines of both texts with the words that differ; None when they are too long for it."""
    old, new = _TOKEN.findall(was), _TOKEN.findall(now)
    found = _opcodes([_key(one) for one in old], [_key(one) for one in new])
    if found is None:
        return None
    is_old, is_new = [False] * len(old), [False] * len(new)
    for same, first, last, begin, end in found:
        if not same:
            is_old[first:last] = [True] * (last - first)
            is_new[begin:end] = [True] * (end - begin)
    return _lines(old, is_old), _lines(new, is_new)


def lines_apart(was: str, now: str, context: int = 3) -> list[list[ChangedLine]]:
    """The parts in which two texts differ, each with some lines around it.

    In lines that took the place of others it is told which words differ.
    """
    old, new = was.split("\n") if was else [], now.split("\n") if now else []
    found = _opcodes(old, new)
    if found is None:
        found = [Opcode(False, 0, len(old), 0, len(new))]
    hunks: list[list[ChangedLine]] = []
    hunk: list[ChangedLine] = []
    for number, one in enumerate(found):
        if not one.same:
            hunk += _changed(old[one.first : one.last], new[one.begin : one.end])
            continue
        same = [ChangedLine(" ", (TextPiece(line),)) for line in new[one.begin : one.end]]
        if not hunk:
            same = same[max(0, len(same) - context) :]
        elif number + 1 == len(found):
            same = same[:context]
        elif len(same) > 2 * context:
            hunks.append([*hunk, *same[:context]])
            hunk, same = [], same[len(same) - context :]
        hunk += same
    if any(line.sign != " " for line in hunk):
        hunks.append(hunk)
    return hunks


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterable[ChangedLine]:
    apart = words_apart("\n".join(old), "\n".join(new)) if old and new else None
    before, after = apart or (
        [(TextPiece(line, True),) for line in old],
        [(TextPiece(line, True),) for line in new],
    )
    return [*(ChangedLine("-", one) for one in before), *(ChangedLine("+", one) for one in after)]


def _key(token: str) -> str:
    return token if token == "\n" else token.rstrip() or " "


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode] | None:
    if len(old) * len(new) > _MOST:
        return None
    from rapidfuzz.distance import Indel  # takes a moment, and most pages do not need it

    found: list[Opcode] = []
    for opcode in Indel.opcodes(old, new):
        code = Opcode(
            opcode.tag == "equal",
            opcode.src_start,
            opcode.src_end,
            opcode.dest_start,
            opcode.dest_end,
        )
        if found and not found[-1].same and not code.same:  # gone here and new here: replaced
            before = found.pop()
            code = Opcode(False, before.first, code.last, before.begin, code.end)
        found.append(code)
    return found


def _lines(tokens: Sequence[str], differs: Sequence[bool]) -> list[Pieces]:
    """Tokens as lines; neighbours that differ, or do not, are one piece."""
    lines: list[Pieces] = []
    row: list[TextPiece] = []
    some: list[str] = []
    flag = False
    for token, one in zip(tokens, differs, strict=True):
        if some and (one != flag or token == "\n"):
            row.append(TextPiece("".join(some), flag))
            some = []
        if token == "\n":
            lines.append(tuple(row))
            row = []
            continue
        some.append(token)
        flag = one
    if some:
        row.append(TextPiece("".join(some), flag))
    lines.append(tuple(row))
    return lines
