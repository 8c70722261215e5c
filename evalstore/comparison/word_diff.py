"""Compares two texts word by word: as one text, side by side, or as hunks of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

_MAX_PAIRS = 400_000_000
"""Tokens (or lines) of one text times those of the other: 50 MB and 0.05 seconds."""
_IDEOGRAPHS = r"\u2e80-\u9fff\uac00-\ud7af"
_PUNCTUATION = r"!-/:-@\[-\^`{-~\u00a1-\u00bf\u2010-\u206f"
_TOKEN = rf"\n|[^\S\n]+|[{_IDEOGRAPHS}]|[{_PUNCTUATION}]|[^\s{_IDEOGRAPHS}{_PUNCTUATION}]+"
"""A line end, blanks, an ideograph, a punctuation mark or a word; every character is in a token."""

Kind = Literal["same", "old", "new"]


class Stretch(NamedTuple):
    """A part of the text of one side, or of both."""

    kind: Kind
    text: str


class TextPiece(NamedTuple):
    """A part of a line, and whether the other text does not have it."""

    text: str
    differs: bool = False


Pieces = tuple[TextPiece, ...]


class ChangedLine(NamedTuple):
    """A line of a difference: ` ` is in both, `-` in the old text, `+` in the new one."""

    sign: str
    pieces: Pieces


class _Opcode(NamedTuple):
    """A range of the old sequence and the range of the new one that is equal or replaces it."""

    same: bool
    old: slice
    new: slice


def _tokens(text: str) -> list[str]:
    """Split a text; the pattern is compiled here, for many commands never need it."""
    return re.findall(_TOKEN, text)


def compare_words(was: str, now: str) -> list[Stretch]:
    """Return the stretches of both texts in reading order, the old one of a change first.

    Those that are `same` or `old` are the old text; those that are `same` or `new` the new one.
    What is too long between the ends that both share counts as replaced.
    """
    return list(_join(_compare_tokens(_tokens(was), _tokens(now))))


def compare_side_by_side(was: str, now: str) -> tuple[list[Pieces], list[Pieces]]:
    """Return the lines of both texts, with the words that differ."""
    stretches = compare_words(was, now)
    return _lines(stretches, "old"), _lines(stretches, "new")


def diff_lines(was: str, now: str, context: int = 3) -> list[list[ChangedLine]]:
    """Return the hunks in which two texts differ, each with some lines around it.

    Lines that replace others have the words that differ marked.
    """
    old, new = was.split("\n") if was else [], now.split("\n") if now else []
    opcodes = _opcodes(old, new)
    hunks: list[list[ChangedLine]] = []
    hunk: list[ChangedLine] = []
    for number, opcode in enumerate(opcodes):
        if not opcode.same:
            hunk += _changed_lines(old[opcode.old], new[opcode.new])
            continue
        same = [ChangedLine(" ", (TextPiece(line),)) for line in new[opcode.new]]
        if not hunk:
            same = same[max(0, len(same) - context) :]
        elif number + 1 == len(opcodes):
            same = same[:context]
        elif len(same) > 2 * context:
            hunks.append([*hunk, *same[:context]])
            hunk, same = [], same[len(same) - context :]
        hunk += same
    if any(line.sign != " " for line in hunk):
        hunks.append(hunk)
    return hunks


def changed_ranges(was: Sequence[str], now: Sequence[str]) -> Iterator[tuple[slice, slice]]:
    """Yield the ranges of two lists of lines that differ: the old one and what replaces it."""
    for opcode in _opcodes(was, now):
        if not opcode.same:
            yield opcode.old, opcode.new


def shared_ends(was: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """Return how many elements two lists share at their start, and behind that at their end."""
    shortest = min(len(was), len(now))
    start = 0
    while start < shortest and was[start] == now[start]:
        start += 1
    end = 0
    while end < shortest - start and was[-1 - end] == now[-1 - end]:
        end += 1
    return start, end


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> list[ChangedLine]:
    if old and new:
        before, after = compare_side_by_side("\n".join(old), "\n".join(new))
    else:
        before = [(TextPiece(line, True),) for line in old]
        after = [(TextPiece(line, True),) for line in new]
    return [
        *(ChangedLine("-", line) for line in before),
        *(ChangedLine("+", line) for line in after),
    ]


def _compare_tokens(old: Sequence[str], new: Sequence[str]) -> Iterator[Stretch]:
    for opcode in _opcodes(old, new):
        if opcode.same:
            yield Stretch("same", "".join(old[opcode.old]))
        else:
            yield Stretch("old", "".join(old[opcode.old]))
            yield Stretch("new", "".join(new[opcode.new]))


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """Return the ranges that are the same and those that differ, in turns.

    What is between the shared ends counts as one range that differs when it has more pairs.
    """
    start, end = shared_ends(old, new)
    middle = _Opcode(False, slice(start, len(old) - end), slice(start, len(new) - end))
    opcodes = [_Opcode(True, slice(0, start), slice(0, start))] if start else []
    old_count, new_count = len(old) - start - end, len(new) - start - end
    if old_count * new_count > _MAX_PAIRS or (old_count + new_count and old_count * new_count < 2):
        opcodes.append(middle)
    elif old_count or new_count:
        opcodes += _match(old[middle.old], new[middle.new], start)
    if end:
        opcodes.append(
            _Opcode(True, slice(len(old) - end, len(old)), slice(len(new) - end, len(new)))
        )
    return opcodes


def _match(old: Sequence[str], new: Sequence[str], offset: int) -> Iterator[_Opcode]:
    from rapidfuzz.distance import Indel  # takes a moment, and most pages do not need it

    a = b = offset
    for block in Indel.opcodes(old, new).as_matching_blocks():
        start_old, start_new = block.a + offset, block.b + offset
        if (a, b) != (start_old, start_new):
            yield _Opcode(False, slice(a, start_old), slice(b, start_new))
        a, b = start_old + block.size, start_new + block.size
        if block.size:
            yield _Opcode(True, slice(start_old, a), slice(start_new, b))


def _join(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Join stretches of one kind that follow each other, and leave out empty ones.

    A single blank between two replacements belongs to them: words that change together are
    read together.
    """
    parts = [stretch for stretch in stretches if stretch.text]
    changed: dict[Kind, list[str]] = {"old": [], "new": []}
    same: list[str] = []

    def flush() -> Iterator[Stretch]:
        for kind, texts in changed.items():
            if texts:
                yield Stretch(kind, "".join(texts))
                texts.clear()

    following = [*(part.kind for part in parts[1:]), "same"]
    for (kind, text), after in zip(parts, following, strict=False):
        if kind != "same":
            if same:
                yield Stretch("same", "".join(same))
                same.clear()
            changed[kind].append(text)
        elif text == " " and all(changed.values()) and after != "same":
            for texts in changed.values():
                texts.append(text)
        else:
            yield from flush()
            same.append(text)
    yield from flush()
    if same:
        yield Stretch("same", "".join(same))


def _lines(stretches: Iterable[Stretch], side: Kind) -> list[Pieces]:
    """Return the lines of the text of one side."""
    lines: list[list[TextPiece]] = [[]]
    for kind, text in stretches:
        if kind not in ("same", side):
            continue
        first, *others = text.split("\n")
        if first:
            lines[-1].append(TextPiece(first, kind != "same"))
        lines += [[TextPiece(line, kind != "same")] if line else [] for line in others]
    return [tuple(line) for line in lines]
