"""Shortens labels that are listed together; of many, few are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from evalstore.core.display import columns_of, first_difference
from evalstore.files.temporary_list import SortedValues, TemporaryList
from evalstore.results.edits.distinct_labels import (
    SharedWords,
    file_of,
    one_line,
    shorten_between,
    shorten_label,
)


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
