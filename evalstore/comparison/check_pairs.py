"""Pairs the checks of two versions of an evaluation by content, as edits move and insert them."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from evalstore.core.values import Json

_MOST_COMPARED = 50
"""Of more checks without an equal one, those of one type are paired in their order."""
_LENGTH_COMPARED = 2_000
"""The characters of a check that are compared."""


def pair_checks(was: Sequence[Json], now: Sequence[Json]) -> dict[int, int]:
    """Return the number of the old check for each new one that has a partner; both from 0.

    Equal checks are partners; of the rest those of one type, the most similar first; then those
    that stand in the same place between partners, as one check that replaces another.
    """
    before, after = ([json.dumps(check, sort_keys=True) for check in each] for each in (was, now))
    pairs: dict[int, int] = {}
    _pair_equal(before, after, pairs)
    _pair_types(was, now, before, after, pairs)
    old, new = _left(before, pairs.values()), _left(after, pairs)
    places_old, places_new = sorted(pairs.values()), sorted(pairs)
    waiting: dict[int, list[int]] = {}
    for number in old:
        waiting.setdefault(bisect_left(places_old, number), []).append(number)
    for number in new:
        if others := waiting.get(bisect_left(places_new, number)):
            pairs[number] = others.pop(0)
    return pairs


def _left(checks: Sequence[object], paired: Iterable[int]) -> list[int]:
    """Return the numbers of the checks that are not paired."""
    taken = set(paired)
    return [number for number in range(len(checks)) if number not in taken]


def _pair_equal(before: Sequence[str], after: Sequence[str], pairs: dict[int, int]) -> None:
    """Pair equal checks that stand in other places."""
    by_text: dict[str, list[int]] = {}
    for number in _left(before, pairs.values()):
        by_text.setdefault(before[number], []).append(number)
    for number in _left(after, pairs):
        if others := by_text.get(after[number]):
            pairs[number] = others.pop(0)


def _pair_types(
    was: Sequence[Json],
    now: Sequence[Json],
    before: Sequence[str],
    after: Sequence[str],
    pairs: dict[int, int],
) -> None:
    """Pair checks of one type, the most similar first."""
    by_type: dict[str, tuple[list[int], list[int]]] = {}
    for side, checks, left in (
        (0, was, _left(before, pairs.values())),
        (1, now, _left(after, pairs)),
    ):
        for number in left:
            by_type.setdefault(checks[number]["type"], ([], []))[side].append(number)
    for old, new in by_type.values():
        if len(old) * len(new) == 1 or len(old) * len(new) > _MOST_COMPARED**2:
            pairs.update(zip(new, old, strict=False))
        elif old and new:
            pairs.update(_most_similar(old, new, before, after))


def _most_similar(
    old: Sequence[int], new: Sequence[int], before: Sequence[str], after: Sequence[str]
) -> dict[int, int]:
    """Return the pairs of new and old checks of one type, the most similar first."""
    from rapidfuzz.distance import Indel  # takes a moment, and most edits do not need it

    def likeness(pair: tuple[int, int]) -> float:
        texts = (text[:_LENGTH_COMPARED] for text in (before[pair[0]], after[pair[1]]))
        return Indel.normalized_similarity(*texts)

    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for i, n in sorted(((i, n) for n in new for i in old), key=likeness, reverse=True):
        if i not in taken and n not in pairs:
            pairs[n] = i
            taken.add(i)
    return pairs
