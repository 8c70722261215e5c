"""Finds the verdicts of cases in earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.operations.earlier_results import EarlierRuns
from evalstore.planning.path_history import PathHistory
from evalstore.reports.comparison import CellIndex
from evalstore.store.path_trees import read_tree
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.store.row_results import RowResults
    from evalstore.values import Case

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
        self._indices: list[Mapping[str, CellIndex]] = []
        """The results that each run has of the cases of the batch, by test file."""
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
        names: dict[str, set[str]] = {}
        for result, _ in batch:
            names.setdefault(result.file, set()).update((result.key, result.row))
        # Runs that have the same nodes of a file share its index.
        indices: dict[tuple[str, tuple[str, ...]], CellIndex] = {}
        self._indices = []
        for entries in self._entries:
            of_run: dict[str, CellIndex] = {}
            there = {path: entries[path] for path in names if path in entries}
            for path, found in self._rows.find(there, names).items():
                place = path, found.nodes
                if place not in indices:
                    indices[place] = CellIndex(found.cells)
                of_run[path] = indices[place]
            self._indices.append(of_run)

    def of(self, result: Result, case: Case) -> Json:
        """Return pairs of the number of an earlier run and the verdict on the case."""
        listed = []
        for number, indices in enumerate(self._indices):
            index = indices.get(result.file)
            earlier = index.find(result, case.prompts) if index else None
            if earlier:
                listed.append([number, earlier[0].word or "answered"])
        return listed
