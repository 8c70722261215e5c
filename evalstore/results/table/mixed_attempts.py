"""Finds the results of many whose attempts differ, some thousands at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from evalstore.results.attempts import CellToJudge, MixedAttempts, mix_of, read_attempts

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.store import Store

_AT_ONCE = 4_000
"""Results whose attempts are read together."""


class MixReader:
    """Finds the results whose attempts differ, some thousands at once."""

    def __init__(self, store: Store, rule: str) -> None:
        self._store, self._rule = store, rule
        self._waiting: list[CellToJudge] = []
        self._mixed: dict[tuple[str, ...], MixedAttempts] = {}
        self._models: set[str] = set()

    def add(self, result: Result, judged_by: Collection[str]) -> None:
        """Take a result; one that is pending, or has a single attempt, cannot be mixed."""
        if result.required_answers > 1 and result.verdict:
            self._waiting.append(CellToJudge(result, judged_by, self._rule))
            if len(self._waiting) >= _AT_ONCE:
                self._read()

    def finish(self) -> tuple[Mapping[tuple[str, ...], MixedAttempts], frozenset[str]]:
        """Return what was found, and the candidates of these results."""
        self._read()
        return self._mixed, frozenset(self._models)

    def _read(self) -> None:
        attempts = read_attempts(self._store, self._waiting)
        for result, _, _ in self._waiting:
            mixed = mix_of(result, attempts.get(result.evaluations, ()))
            if mixed:
                self._mixed[result.evaluations] = mixed
                self._models.add(result.model)
        self._waiting = []
