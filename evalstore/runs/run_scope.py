"""Narrows the scope of a run to single cells, and describes what is left as a selection."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.core.errors import NothingSelectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from evalstore.planning.cells.cells import Cell
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.planner import Scope

_MOST_ROWS = 20
"""The most rows that a selection names; of more, it names the files."""


def narrow(
    scope: Scope, selection: SelectionOptions, keep: Callable[[Cell], bool]
) -> tuple[Scope, SelectionOptions]:
    """Return the scope with only those cells for which `keep` is true, and its selection.

    The selection names the paths and the candidates that are left, if some are left out. Raises
    `NothingSelectedError` when no cell is left.
    """
    cells = [cell for cell in scope.cells if keep(cell)]
    if not cells:
        raise NothingSelectedError("nothing is selected")
    if len(cells) == len(scope.cells):
        return scope, selection
    models = {cell.candidate.id for cell in scope.cells}
    kept_models = {cell.candidate.id for cell in cells}
    return (
        replace(scope, cells=cells, skipped=[]),
        replace(
            selection,
            paths=_name_paths(scope.cells, cells),
            models=tuple(sorted(kept_models)) if kept_models < models else selection.models,
        ),
    )


def _name_paths(every: Collection[Cell], kept: Collection[Cell]) -> tuple[str, ...]:
    """Return the files with the rows that are left, or only the files if these are many."""
    total = Counter(file for file, _ in {(cell.file, cell.case.row) for cell in every})
    rows: dict[str, dict[str, None]] = {}
    for cell in kept:
        rows.setdefault(cell.file, {})[cell.case.row] = None
    paths = [
        path
        for file, names in rows.items()
        for path in ([file] if len(names) == total[file] else [f"{file}::{row}" for row in names])
    ]
    return tuple(paths) if len(paths) <= _MOST_ROWS else tuple(rows)
