"""Finds the cells that did not pass when they last ran, among many, in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.batches import in_batches
from evalstore.core.errors import NothingSelectedError
from evalstore.planning.cells.same_cells import find_cells
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.store.rows.row_results import RowResults
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.core.results import Result
    from evalstore.planning.cells.cell_batches import StreamedCells
    from evalstore.planning.project import Project


def find_failed(project: Project, cells: StreamedCells, *, hint: str) -> bytearray:
    """Return 1 for each cell that did not pass in the newest run that has it, and 0 for the others.

    Rows are paired by their values, else by their label. Raises `NothingSelectedError` when there
    are none.
    """
    failed, waiting, is_first = bytearray(len(cells)), bytearray(b"\1" * len(cells)), True
    reading = project.reading
    leaves = {leaf: reading.files[path] for path, leaf in reading.nodes.items()}
    history = PathHistory(project.store, project.settings.paths["tests"], reading.nodes, leaves)
    rows = RowResults(project.store)
    for run in project.store.find_recent_runs():
        is_first = False
        if not any(waiting):
            break
        history.step(run.snapshot)
        entries = {
            path: leaf
            for name, leaf in read_tree(run.results, project.store.load_nodes).items()
            if (path := history.newest_path(name)) is not None
        }
        if entries:
            _look_up(rows, entries, cells, waiting, failed)
    if cells and not any(failed):
        words = "there is no run yet" if is_first else "nothing failed when it last ran"
        raise NothingSelectedError(f"nothing is selected: {words}", hint=hint)
    return failed


def _look_up(
    rows: RowResults,
    entries: Mapping[str, str],
    cells: StreamedCells,
    waiting: bytearray,
    failed: bytearray,
) -> None:
    """Note which of the cells that are waiting failed in a run; those that it has wait no more."""
    left = (each for each in cells.places(entries.keys()) if waiting[each[0]])
    for batch in in_batches(left):
        found = find_cells(rows, entries, ((cell, cell.prompts) for _, cell in batch))
        for (number, _), was in zip(batch, found, strict=True):
            if was:
                waiting[number], failed[number] = 0, _has_failed(was[0])


def _has_failed(result: Result) -> bool:
    """Return whether a result has failed; an answered case without an evaluation has not."""
    if result.verdict is None:
        return result.evaluation is not None or len(result.sessions) < result.required_answers
    return result.verdict != "pass"
