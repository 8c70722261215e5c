"""Cells of test files that are in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evalstore.core.values import Case, CaseFile
from evalstore.planning.cells.cells import (
    Candidate,
    Cell,
    Judge,
    SkippedPair,
    cells_of,
    place_cases,
)


def build_cells(
    files: Mapping[str, CaseFile],
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    selected: Callable[[str, Case], bool],
    *,
    attempts: int | None = None,
) -> tuple[list[Cell], list[SkippedPair]]:
    """The cells of every selected case, and the pairs that are skipped."""
    placed = place_cases(files, candidates, judges, selected)
    made = [each for of_case in placed for each in cells_of(of_case, attempts)]
    skipped = [each for each in made if isinstance(each, SkippedPair)]
    return [each for each in made if not isinstance(each, SkippedPair)], skipped
