"""Compares values of JSON, and finds their first difference."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.checks.json_values import shown
from evalstore.core.display import difference_at, first_difference
from evalstore.core.values import Json

_KEY_SHOWN = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class JsonDifference(NamedTuple):
    """The first difference of a value from an expected one."""

    place: str
    """Where it is, as JMESPath writes it; empty: the whole value."""
    expected: str
    actual: str
    texts: tuple[str, str] | None = None
    """Both texts, whole and in the case in which they are written, if two texts differ."""
    at: int = 0
    """Where the compared texts differ first."""

    def __str__(self) -> str:
        place = f"at {self.place}: " if self.place else ""
        if self.texts:
            return place + difference_at(*self.texts, self.at)
        return f"{place}expected {self.expected}, found {self.actual}"


@dataclass(frozen=True, slots=True)
class JsonComparison:
    """The rules by which a value agrees with an expected one.

    1 equals 1.0, true does not equal 1, and null equals only null.
    """

    prepare: Callable[[str], str] = lambda text: text
    """Normalizes texts before they are compared; keys are not changed."""
    subset: bool = False
    """Whether additional keys and elements of lists are allowed."""
    any_order: bool = False
    """Whether the order of lists is ignored."""
    quote: Callable[[str], str] = lambda text: text
    """Normalizes texts that a difference quotes: as `prepare`, but without changes of case."""

    def agrees(self, expected: Json, actual: Json) -> bool:
        """Return whether a value is as expected."""
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and (self.subset or len(expected) == len(actual))
                and all(
                    key in actual and self.agrees(value, actual[key])
                    for key, value in expected.items()
                )
            )
        if isinstance(expected, list):
            return isinstance(actual, list) and self._lists_agree(expected, actual)
        if isinstance(expected, str):
            return isinstance(actual, str) and self._key(expected) == self._key(actual)
        if isinstance(expected, bool) or expected is None:
            return actual is expected
        is_number = isinstance(actual, int | float) and not isinstance(actual, bool)
        return is_number and bool(expected == actual)

    def difference(self, expected: Json, actual: Json, place: str = "") -> JsonDifference | None:
        """Return the first difference, or None. `place` is that of the values."""
        if isinstance(expected, dict) and isinstance(actual, dict):
            return self._of_mappings(expected, actual, place)
        if isinstance(expected, list) and isinstance(actual, list):
            return self._of_lists(expected, actual, place)
        if self.agrees(expected, actual):
            return None
        values = shown(expected), shown(actual)
        if not (isinstance(expected, str) and isinstance(actual, str)):
            return JsonDifference(place, *values)
        at = first_difference(self.prepare(expected), self.prepare(actual))
        return JsonDifference(place, *values, (self.quote(expected), self.quote(actual)), at)

    def _of_mappings(
        self, expected: dict[str, Json], actual: Json, place: str
    ) -> JsonDifference | None:
        for key, value in expected.items():
            inside = step(place, key)
            if key not in actual:
                return JsonDifference(inside, shown(value), "no such key")
            if first := self.difference(value, actual[key], inside):
                return first
        more = None if self.subset else next((key for key in actual if key not in expected), None)
        if more is None:
            return None
        return JsonDifference(step(place, more), "no such key", shown(actual[more]))

    def _of_lists(
        self, expected: list[Json], actual: list[Json], place: str
    ) -> JsonDifference | None:
        if not self.subset and not self.any_order:
            for number, (inner, other) in enumerate(zip(expected, actual, strict=False)):
                if first := self.difference(inner, other, step(place, number)):
                    return first
        if self._lists_agree(expected, actual):
            return None
        if not self.subset and len(expected) != len(actual):
            many = "1 element" if len(expected) == 1 else f"{len(expected)} elements"
            return JsonDifference(place, many, str(len(actual)))
        missing = shown(expected[self._first_missing(expected, actual)])
        order = "" if self.any_order else ", in this order"
        return JsonDifference(place, f"the element {missing}{order}", shown(actual))

    def _lists_agree(self, expected: list[Json], actual: list[Json]) -> bool:
        if self.subset:
            return self._first_missing(expected, actual) == len(expected)
        if len(expected) != len(actual):
            return False
        if self.any_order:
            return Counter(map(self._key, expected)) == Counter(map(self._key, actual))
        return all(map(self.agrees, expected, actual))

    def _first_missing(self, expected: list[Json], actual: list[Json]) -> int:
        """Return the index of the first expected element without a match; else their number."""
        if not self.any_order:
            rest = iter(actual)
            for number, element in enumerate(expected):
                if not any(self.agrees(element, other) for other in rest):
                    return number
            return len(expected)
        if not self.subset:
            counts = Counter(map(self._key, actual))
            for number, key in enumerate(map(self._key, expected)):
                if not counts[key]:
                    return number
                counts[key] -= 1
            return len(expected)
        partners = match(
            [
                [at for at, other in enumerate(actual) if self.agrees(element, other)]
                for element in expected
            ]
        )
        return partners.index(None) if None in partners else len(expected)

    def _key(self, value: Json) -> Hashable:
        """Return a key that is equal for values that are equal in any order, and only for them."""
        if isinstance(value, dict):
            return "d", frozenset((key, self._key(inner)) for key, inner in value.items())
        if isinstance(value, list):
            return "l", frozenset(Counter(map(self._key, value)).items())
        if isinstance(value, str):
            # A text of which nothing would be left does not equal the empty one.
            return "s", self.prepare(value) or value.strip()
        return "b" if isinstance(value, bool) else "n", value


def match(options: Sequence[Sequence[int]]) -> list[int | None]:
    """Assign one of its options to each row, none twice, for as many rows as possible.

    A maximum bipartite matching by augmenting paths.
    """
    chosen: list[int | None] = [None] * len(options)
    owner: dict[int, int] = {}
    for start in range(len(options)):
        reached: dict[int, int] = {}
        waiting = deque([start])
        free: int | None = None
        while waiting and free is None:
            row = waiting.popleft()
            for option in options[row]:
                if option in reached:
                    continue
                reached[option] = row
                if option not in owner:
                    free = option
                    break
                waiting.append(owner[option])
        while free is not None:
            row = reached[free]
            owner[free] = row
            chosen[row], free = free, chosen[row]
    return chosen


def step(place: str, key: str | int) -> str:
    """Return the place of a key or an element inside a place, in JMESPath; "" is the top."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    if not _PLAIN_KEY.match(key) or len(key) > _KEY_SHOWN:
        cut = key if len(key) <= _KEY_SHOWN else key[:_KEY_SHOWN] + "…"
        key = json.dumps(cut, ensure_ascii=False)
    return f"{place}.{key}" if place else key
