"""Finds the labels of people that changed verdicts on a test file from one run to the next."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from evalstore.comparison.comparison import Pair
from evalstore.comparison.version_diff import Difference
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.results.judgement_changes import judgement_changes
from evalstore.store.results import iterate_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from evalstore.core.results import Result
    from evalstore.store import Store

Place = tuple[str, int, str]
"""The row, the number of the system prompt, and the candidate of a result of a file."""


class LoggedLabels:
    """Compares the labels on the results of a file in two runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _is_any(self) -> bool:
        return bool(self._store.find_labels())

    def between(
        self, was: Iterable[str], now: Iterable[str], rows: Collection[str] = ()
    ) -> tuple[Difference, ...]:
        """Return `labelled by Ada` or `label of Ada removed`, for verdicts that are other ones.

        `was` and `now` are leaves of results, or the parts of long ones that the other side has
        not. With `rows`, the labels of a single row, whatever it is called.
        """
        if not self._is_any:
            return ()
        before, after = (self._read(parts, rows) for parts in (was, now))
        pairs = [
            Pair(before[place], result)
            for place, result in after.items()
            if place in before and before[place].verdict != result.verdict
        ]
        words = judgement_changes(self._store, VersionReader(self._store), pairs).values()
        texts = sorted({text for listed in words for text in listed if text.startswith("label")})
        return tuple(map(Difference, texts))

    def _read(self, parts: Iterable[str], rows: Collection[str]) -> dict[Place, Result]:
        return {
            ("" if rows else result.row, result.prompt_number, result.model): result
            for batch in iterate_entries(self._store, {part: part for part in parts})
            for result, _ in batch
            if not rows or result.row in rows
        }
