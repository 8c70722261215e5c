"""Finds the verdicts of cases in earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.core.values import Json
from evalstore.planning.cells.earlier_results import EarlierRuns
from evalstore.planning.cells.same_cells import index_cells
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.comparison.comparison import CellIndex
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.core.values import Case
    from evalstore.store import Store
    from evalstore.store.rows.row_results import RowResults

MOST_RUNS = 10
"""The number of earlier runs that are searched."""


class CaseHistory:
    """Finds the earlier verdicts of the cases of a batch, newest first.

    A run that has the same results of a test file as a newer one is left out.
    """

    def __init__(self, store: Store, folder: str, run: Run | None, rows: RowResults) -> None:
        """`folder` is that of the test files; without a stored run there is no history."""
        self.runs: list[Run] = []
        """The earlier runs, newest first."""
        self._rows = rows
        self._entries: list[dict[str, str]] = []
        self._indices: list[CellIndex] = []
        """The results that each run has of the cases of the batch."""
        if run is None:
            return
        leaves = read_tree(run.results, store.load_nodes)
        earlier = EarlierRuns(store, PathHistory(store, folder, run.snapshot, {}))
        for other, entries in islice(earlier.before(run, set(leaves)), MOST_RUNS):
            self.runs.append(other)
            self._entries.append(
                {path: leaf for path, leaf in entries.items() if leaf != leaves[path]}
            )

    def read_batch(self, batch: Sequence[tuple[Result, Case]]) -> None:
        """Read the earlier results of the cases of a batch."""
        self._indices = [
            index_cells(self._rows, entries, (result for result, _ in batch))
            for entries in self._entries
        ]

    def of(self, result: Result, case: Case) -> Json:
        """Return pairs of the number of an earlier run and the verdict on the case."""
        found = (index.find(result, case.prompts) for index in self._indices)
        return [
            [number, earlier[0].word or "answered"]
            for number, earlier in enumerate(found)
            if earlier
        ]
