"""Shortens labels that are listed below each other, so that they can still be distinguished.

Labels such as `tests/geography.md [question=What is the capital of France?]` often begin alike.
What a label shares with another one is left out before what is its own.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter

from evalstore.core.display import clip, columns_of, first_difference, safe
from evalstore.files.temporary_list import SortedValues, TemporaryList

_SHARE = 4
"""One column of so many is for the start that labels share."""
_WORD = re.compile(r"\w+|\W")
_START = re.compile(r"[^\[(]*")
"""Matches the file at the start of a label."""


def file_of(label: str) -> str:
    """Return the file at the start of a label; all of a text that does not name a case."""
    start = _START.match(label)
    return start[0] if start else ""


class SharedWords:
    """The words that the labels of each file share."""

    def __init__(self, labels: Iterable[str], files: Collection[str]) -> None:
        """`labels` are sorted; those of a file, as `file_of` returns it, are all that begin so."""
        self._words: dict[str, set[str]] = {}
        """Without those of files whose labels share the words of the file alone."""
        waiting = sorted(files, reverse=True)
        current: list[tuple[str, set[str]]] = []
        """Files that the label begins with, each of which begins with the one before it."""
        for label in labels:
            while current and not label.startswith(current[-1][0]):
                self._add(*current.pop())
            own = set(_WORD.findall(label)) if current or waiting else set()
            for _, words in current:
                words &= own
            while waiting and label.startswith(waiting[-1]):
                current.append((waiting.pop(), set(own)))
        for file, words in current:
            self._add(file, words)

    def _add(self, file: str, words: set[str]) -> None:
        if words != set(_WORD.findall(file)):
            self._words[file] = words

    def of(self, label: str) -> Collection[str]:
        """Return the words that the labels of the file of a label share."""
        file = file_of(label)
        words = self._words.get(file)
        return set(_WORD.findall(file)) if words is None else words


def shorten_between(label: str, shared: Collection[str], columns: int) -> str:
    """Return a label with the words that are not shared, in at most these columns.

    What is shared is left out first, and of it the end is kept at the start.
    """
    parts = _joined(
        ("".join(words), is_shared)
        for is_shared, words in groupby(_WORD.findall(label), lambda word: word in shared)
    )
    first = parts.pop(0)[0] if parts[0][1] else ""
    own = max(1, sum(not is_shared for _, is_shared in parts))
    most = max(1, (columns - len(parts)) // own)
    rest = "".join("…" if same and len(text) > 1 else text for text, same in parts)
    if columns_of(rest) > columns - columns // _SHARE:
        rest = "".join("…" if same else clip(text, most) for text, same in parts)
    rest = re.sub("…+", "…", rest)
    start = clip(first, columns - columns_of(rest)) if columns_of(rest) < columns else ""
    return clip(start + rest, columns)


def _joined(parts: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return the parts of a label; own words with a single shared sign between them are one."""
    joined: list[tuple[str, bool]] = []
    for text, is_shared in parts:
        before = joined[-2:]
        if not is_shared and len(before) == 2 and not before[0][1] and len(before[1][0]) == 1:
            joined[-2:] = [(before[0][0] + before[1][0] + text, False)]
        else:
            joined.append((text, is_shared))
    return joined


def shared_starts(labels: Iterable[str]) -> dict[str, int]:
    """Return for each label how many characters it shares with the most similar other label."""
    ordered = sorted(set(labels))
    starts = dict.fromkeys(ordered, 0)
    for before, after in pairwise(ordered):
        count = first_difference(before, after)
        starts[before] = max(starts[before], count)
        starts[after] = max(starts[after], count)
    return starts


def shorten_label(label: str, columns: int, shared: int = 0) -> str:
    """Return a label as one line of at most this many columns.

    `shared` is how many characters at its start other labels have as well. If they are more
    than a few, they are cut, and the end of the label is kept.
    """
    label = one_line(label)
    if columns_of(label) <= columns:
        return label
    if columns_of(label[:shared]) <= columns // _SHARE:
        return clip(label, columns)
    own = _word_start(label, shared, columns // _SHARE)
    room = max(1, columns // _SHARE, min(columns // 2, columns - columns_of(label[own:])))
    start = clip(label[:own], room)
    left = columns - columns_of(start)
    return start + (
        _end(label, left) if columns_of(label[own:]) < left else clip(label[own:], left)
    )


def one_line(label: str) -> str:
    """Return a label in one line, without characters that a terminal obeys."""
    return safe(" ".join(label.split()))


def _end(text: str, columns: int) -> str:
    """Return the end of a text in at most this many columns."""
    start = len(text)
    while start and (columns := columns - columns_of(text[start - 1])) >= 0:
        start -= 1
    return text[start:].lstrip()


def _word_start(text: str, at: int, most: int) -> int:
    """Return where the word at this position starts; `at` if that is more than `most` before."""
    at = min(at, len(text) - 1)
    for start in range(at, max(at - most, 0), -1):
        if not text[start - 1].isalnum():
            return start
    return at


# --- shortens labels that are listed together; of many, few are in memory


def shorten_labels(labels: Iterable[str], columns: int) -> Collection[str]:
    """Return the labels, each as one line of at most this many columns."""
    kept = TemporaryList(map(one_line, labels))
    if all(columns_of(label) <= columns for label in kept):
        return kept
    return TemporaryList(_shorten(kept, columns))


def _shorten(labels: TemporaryList, columns: int) -> Iterator[str]:
    ordered = SortedValues()
    ordered.add([label, number] for number, label in enumerate(labels))
    ranks, starts = _compare(ordered, len(labels))
    short = TemporaryList(
        shorten_label(label, columns, start) for label, start in zip(labels, starts, strict=True)
    )
    alike = _find_alike(short, ranks)
    files = {file_of(label) for label, is_alike in zip(labels, alike, strict=True) if is_alike}
    words = SharedWords((label for label, _ in ordered), files)
    for label, text, is_alike in zip(labels, short, alike, strict=True):
        yield shorten_between(label, words.of(label), columns) if is_alike else text


def _compare(ordered: SortedValues, count: int) -> tuple[array[int], array[int]]:
    """Return for each label its rank, and how many characters it shares with its neighbours.

    Equal labels have the same rank. The neighbours are those in the order of the texts: no other
    label shares more with it.
    """
    ranks, starts = array("L", [0]) * count, array("L", [0]) * count
    before, shared_before = "", 0
    numbers = array("L")
    for rank, (label, same) in enumerate(groupby(ordered, itemgetter(0))):
        shared = first_difference(before, label) if rank else 0
        for number in numbers:
            starts[number] = max(shared_before, shared)
        numbers = array("L", (number for _, number in same))
        for number in numbers:
            ranks[number], starts[number] = rank, shared
        before, shared_before = label, shared
    return ranks, starts


def _find_alike(short: TemporaryList, ranks: array[int]) -> bytearray:
    """Return for each short label whether another label was shortened to the same text."""
    ordered = SortedValues()
    ordered.add([text, number] for number, text in enumerate(short))
    alike = bytearray(len(short))
    for _, same in groupby(ordered, itemgetter(0)):
        numbers = array("L", (number for _, number in same))
        if any(ranks[number] != ranks[numbers[0]] for number in numbers):
            for number in numbers:
                alike[number] = True
    return alike
