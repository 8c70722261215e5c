"""Finds the verdicts of cases in earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.operations.earlier_results import EarlierRuns
from evalstore.planning.path_history import PathHistory
from evalstore.reports.comparison import ResultIndex
from evalstore.store.path_trees import read_tree
from evalstore.store.results import iterate_entries
from evalstore.values import Json

if TYPE_CHECKING:
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case

MOST_RUNS = 10
"""The number of earlier runs that are searched."""


class CaseHistory:
    """Finds the earlier verdicts of the cases of a batch, newest first.

    A run that has the same results of a test file as a newer one is left out.
    """

    def __init__(self, store: Store, folder: str, run: Run | None) -> None:
        """`folder` is that of the test files; without a stored run there is no history."""
        self.runs: list[Run] = []
        """The earlier runs, newest first."""
        self._store = store
        self._entries: list[dict[str, str]] = []
        self._indices: list[ResultIndex] = []
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
        """Read the earlier results of the test files of a batch."""
        files = {result.file for result, _ in batch}
        self._indices = [
            ResultIndex(
                result
                for results in iterate_entries(
                    self._store, {path: leaf for path, leaf in entries.items() if path in files}
                )
                for result, _ in results
            )
            for entries in self._entries
        ]

    def of(self, result: Result, case: Case) -> Json:
        """Return pairs of the number of an earlier run and the verdict on the case."""
        listed = []
        for number, index in enumerate(self._indices):
            earlier = index.find(result, case.prompts)
            if earlier:
                listed.append([number, earlier.word or "answered"])
        return listed
