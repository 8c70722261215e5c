"""Adds up the results of a run by several groupings; the results are in a temporary file.

Of the sums, which know each case and each answer, those of one grouping are in memory at a time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from evalstore.files.temporary_list import TemporaryList
from evalstore.reports.group_totals import GroupTotals, ResultGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.reports.group_totals import MeasuredResult

Key = tuple[str | None, ...]
By = tuple[str, ...]
_Place = tuple[str, str | None, tuple[str, ...], str]
"""All that results are grouped by: a candidate, a system prompt, tags and a file."""


class ResultGroups:
    """Groups of results, which are read once for each grouping that differs from the others."""

    def __init__(self) -> None:
        self._places: dict[_Place, int] = {}
        self._results = TemporaryList()
        """The number of the place of each result, the digest of its row, and its facts."""
        self._known: dict[tuple[int, ...], ResultGroup] = {}
        """What was added up: the group of the results of these places."""

    def add(self, measured: MeasuredResult, tags: tuple[str, ...]) -> None:
        """Add a result of a case with these tags."""
        result = measured.result
        place = result.model, result.prompt, tags, result.file
        number = self._places.setdefault(place, len(self._places))
        self._results.append((number, hash(result.row), *measured[1:]))

    def total(self, name: str) -> ResultGroup:
        """Return the group of all results, with this name."""
        found = self.find(()).get(())
        return replace(found, name=name) if found else GroupTotals().group((), name)

    def find(self, by: By) -> dict[Key, ResultGroup]:
        """Return the groups of a grouping, which have no names yet."""
        places: dict[Key, list[int]] = {}
        for place, number in self._places.items():
            for key in keys_with(by, *place):
                places.setdefault(key, []).append(number)
        if any(tuple(numbers) not in self._known for numbers in places.values()):
            for key, totals in self._add_up(by).items():
                self._known[tuple(places[key])] = totals.group((), "")
        return {key: self._known[tuple(numbers)] for key, numbers in places.items()}

    def _add_up(self, by: By) -> dict[Key, GroupTotals]:
        """Return the sums of the results by a grouping."""
        sums: dict[Key, GroupTotals] = {}
        of_place = [
            [sums.setdefault(key, GroupTotals()) for key in keys_with(by, *place)]
            for place in self._places
        ]
        files = [file for *_, file in self._places]
        for number, row, *facts in self._results:
            case = files[number], row
            for totals in of_place[number]:
                totals.add_result(case, *facts)
        return sums


def keys_with(
    by: By, model: str, prompt: str | None, tags: tuple[str, ...], file: str
) -> Sequence[Key]:
    """Return the groups of a result with a candidate, a prompt and the tags of a case."""
    parts = {"model": (model,), "prompt": (prompt,), "tag": tags or (None,), "file": (file,)}
    return [*product(*(parts[name] for name in by))]
