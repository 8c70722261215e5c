"""Finds the same cells in an earlier run, by the names of their rows."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from evalstore.comparison.comparison import CellIndex, NamedCell
from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.store.rows.row_results import RowResults


def find_cells(
    rows: RowResults,
    entries: Mapping[str, str],
    cells: Iterable[tuple[NamedCell, Container[str | None]]],
    counts: Callable[[Result], object] = bool,
) -> list[tuple[Result, Case] | None]:
    """Return the same cell as each of these in an earlier run, with its case there, if it has one.

    Each cell is given with the system prompts of its case.
    """
    listed = list(cells)
    index = index_cells(rows, entries, (cell for cell, _ in listed), counts)
    return [index.find(cell, prompts) for cell, prompts in listed]


def index_cells(
    rows: RowResults,
    entries: Mapping[str, str],
    cells: Iterable[NamedCell],
    counts: Callable[[Result], object] = bool,
) -> CellIndex:
    """Return the results of an earlier run among which the same cells as these are.

    `entries` are those of its results by the current paths of the files. Results for which `counts`
    is false are left out.
    """
    names: dict[str, set[str]] = {}
    for cell in cells:
        if cell.file in entries:
            names.setdefault(cell.file, set()).update((cell.key, cell.row))
    found = rows.find({path: entries[path] for path in names}, names)
    return CellIndex(
        (result, case)
        for path, of_file in found.items()
        for result, case in of_file.cells
        if counts(result) and not names[path].isdisjoint((result.key, result.row))
    )


def is_judged(result: Result) -> bool:
    """Return whether a result has a verdict."""
    return result.verdict is not None
