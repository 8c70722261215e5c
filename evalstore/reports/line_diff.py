"""Two texts as one, word by word: what both have, what only the old one has, what only the new one.

Texts of a megabyte are compared by lines first, and words only where lines differ, so that
the time stays short; a stretch that is too long for that counts as replaced.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

_MOST_LINES = 2_000
"""Of one side of a stretch: the time grows with the square."""
_MOST_WORDS = 1_500
_EFFORT = 5_000_000
"""Pairs of words that are looked at in all stretches together."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

Kind = Literal["same", "old", "new"]


class Stretch(NamedTuple):
    """A part of the text of one side, or of both."""

    kind: Kind
    text: str


def compare_words(was: str, now: str) -> list[Stretch]:
    """The stretches of both texts in reading order, the old one of a change first.

    Those that are `same` or `old` are the old text; those that are `same` or `new` the new one.
    """
    found: list[Stretch] = []
    effort = 0
    old, new = was.splitlines(keepends=True), now.splitlines(keepends=True)
    for one in _compare(old, new, _MOST_LINES):
        if one[0] == "same":
            found.append(Stretch("same", "".join(one[1])))
            continue
        before, after = (_WORD.findall("".join(side)) for side in one[1:])
        effort += len(before) * len(after)
        found += _in_lines(before, after, _MOST_WORDS if effort <= _EFFORT else 0)
    return list(_joined(found))


def _in_lines(was: Sequence[str], now: Sequence[str], most: int) -> Iterator[Stretch]:
    for kind, old, new in _compare(was, now, most):
        if kind == "same":
            yield Stretch("same", "".join(old))
            continue
        if old:
            yield Stretch("old", "".join(old))
        if new:
            yield Stretch("new", "".join(new))


_Change = tuple[Literal["same", "changed"], Sequence[str], Sequence[str]]


def shared_ends(was: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """How many elements two lists share at their start, and behind that at their end."""
    shortest = min(len(was), len(now))
    start = 0
    while start < shortest and was[start] == now[start]:
        start += 1
    end = 0
    while end < shortest - start and was[-1 - end] == now[-1 - end]:
        end += 1
    return start, end


def _compare(was: Sequence[str], now: Sequence[str], most: int) -> Iterator[_Change]:
    """Where two lists are the same and where not; what both begin and end with costs nothing."""
    start, end = shared_ends(was, now)
    old, new = was[start : len(was) - end], now[start : len(now) - end]
    if start:
        yield "same", was[:start], now[:start]
    if max(len(old), len(new)) > most:
        yield "changed", old, new
    else:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for kind, low, high, new_low, new_high in matcher.get_opcodes():
            yield ("same" if kind == "equal" else "changed"), old[low:high], new[new_low:new_high]
    if end:
        yield "same", was[len(was) - end :], now[len(now) - end :]


def _joined(stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Stretches of one kind that follow each other as one.

    A single blank between two changes belongs to them: words that change together are read
    together.
    """
    waiting: dict[Kind, list[str]] = {"old": [], "new": []}
    same: list[str] = []

    def flush() -> Iterator[Stretch]:
        for kind in ("old", "new"):
            if waiting[kind]:
                yield Stretch(kind, "".join(waiting[kind]))
                waiting[kind].clear()

    for number, (kind, text) in enumerate(stretches):
        if kind != "same":
            if same:
                yield Stretch("same", "".join(same))
                same.clear()
            waiting[kind].append(text)
        elif text == " " and all(waiting.values()) and _changes(stretches, number + 1):
            for one in waiting.values():
                one.append(text)
        else:
            yield from flush()
            same.append(text)
    yield from flush()
    if same:
        yield Stretch("same", "".join(same))


def _changes(stretches: Sequence[Stretch], number: int) -> bool:
    return number < len(stretches) and stretches[number].kind != "same"
