"""Adds up the results of a part of a long file by groupings, all at once and not one by one."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, fields
from itertools import chain, compress
from typing import TYPE_CHECKING

from evalstore.operations.part_sums import PartSums, keys_with, plain_grouping
from evalstore.reports.group_totals import sum_results
from evalstore.workspace.digest_set import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from evalstore.operations.part_sums import By, Key
    from evalstore.reports.group_totals import Spending
    from evalstore.values import Verdict


class ResultPlaces:
    """Numbers for results: those that are in the same groups have the same number, their place."""

    def __init__(self, groupings: Iterable[By]) -> None:
        self.groups: dict[By, dict[Key, set[int]]] = {plain_grouping(by): {} for by in groupings}
        """The places of each group, by grouping."""
        self._known: dict[tuple[object, ...], int] = {}
        self._last: tuple[object, ...] = ()
        self._place = 0
        """The last one that was found."""

    def __len__(self) -> int:
        return len(self._known)

    def find(self, model: str, prompt: str | None, tags: tuple[str, ...]) -> int:
        """Return the place of results with a candidate, a prompt and the tags of a case."""
        alike = model, prompt, tags
        if alike != self._last:
            if alike not in self._known:
                self._known[alike] = len(self._known)
                for by, groups in self.groups.items():
                    for key in keys_with(by, *alike):
                        groups.setdefault(key, set()).add(self._known[alike])
            self._last, self._place = alike, self._known[alike]
        return self._place


@dataclass(slots=True)
class PartTable:
    """The results of a part, in columns."""

    places: list[int] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    verdicts: list[Verdict | None] = field(default_factory=list)
    sessions: list[Sequence[str]] = field(default_factory=list)
    judgements: list[Sequence[str]] = field(default_factory=list)
    attempts: list[Sequence[Verdict]] = field(default_factory=list)
    """The verdicts on the attempts of each result, if there are several."""

    def add_up(
        self,
        places: ResultPlaces,
        answers: Mapping[str, Spending],
        judgements: Mapping[str, Spending],
    ) -> PartSums:
        """Return the sums; the spending of calls is by id, and those without do not count."""
        known: dict[frozenset[int], list[Any]] = {}
        groups: dict[By, dict[Key, list[Any]]] = {}
        for by, members in places.groups.items():
            groups[by] = {}
            for key, listed in members.items():
                chosen = frozenset(listed)
                if chosen not in known:
                    table = self if len(chosen) == len(places) else self._only(chosen)
                    known[chosen] = table._sum(answers, judgements)
                groups[by][key] = known[chosen]
        sessions = dict.fromkeys(chain.from_iterable(self.sessions))
        return PartSums(array("Q", {*map(digest_of, sessions)}), groups)

    def _only(self, places: frozenset[int]) -> PartTable:
        """Return the results at these places."""
        chosen = [place in places for place in self.places]
        columns = (getattr(self, each.name) for each in fields(self))
        return PartTable(*([*compress(column, chosen)] for column in columns))

    def _sum(
        self, answers: Mapping[str, Spending], judgements: Mapping[str, Spending]
    ) -> list[Any]:
        """Return the sums of the results."""
        sessions = dict.fromkeys(chain.from_iterable(self.sessions))
        judged = dict.fromkeys(chain.from_iterable(self.judgements))
        return sum_results(
            self.rows,
            self.verdicts,
            self.attempts,
            [answers[id] for id in sessions if id in answers],
            [judgements[id] for id in judged if id in judgements],
        )
