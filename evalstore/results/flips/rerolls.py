"""Counts results of questions that were asked again, after a failure or after a pass.

A test that fails and is edited gets a new answer; a test that passes keeps its answer. Because
some failures become passes by chance, the pass rate of reused answers rises with every edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.results import Result
from evalstore.core.values import RECORDED, Case, Verdict
from evalstore.planning.cells.same_cells import find_cells
from evalstore.store.results import iterate_entries
from evalstore.store.rows.result_sums import open_sums
from evalstore.store.rows.row_results import RowResults
from evalstore.store.trees.path_trees import read_tree, read_trees

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store

_MOST_RUNS = 200
"""The most earlier runs that are read."""
_MOST_CELLS = 200_000
"""About how many results are read to compare them."""
_TREES_AT_ONCE = 20
_AT_ONCE = 5_000
"""Results that are looked for together."""

Keep = Callable[["Result", Case], bool]
"""Whether a result counts."""
_Cell = tuple[Result, tuple[str | None, ...]]
"""A result, and the system prompts of its case."""


class _Leaf(NamedTuple):
    """The results of a file in some runs."""

    id: str
    ended: int
    """When one of these runs ended, in microseconds since 1970."""


@dataclass
class Rerolls:
    """Judged results with answers that were asked for after an earlier run."""

    fails: int = 0
    """Results whose previous answers did not pass."""
    passes: int = 0
    """Results whose previous answers passed."""
    passed_after_fail: int = 0
    """Results that pass now, and whose previous answers did not."""
    runs: int = 0
    """The number of earlier runs that were read."""

    def add(self, verdict: Verdict | None, previous: Verdict) -> None:
        """Count a result with a verdict; `previous` is that on the previous answers."""
        if previous == "pass":
            self.passes += 1
        else:
            self.fails += 1
            self.passed_after_fail += verdict == "pass"

    def text(self, passed: int) -> str:
        """Return a remark on `passed` passes; empty if none of them had failed before."""
        if not self.passed_after_fail:
            return ""
        return (
            f"{self.passed_after_fail:,} of {passed:,} passes had failed before, and passed when "
            "asked again (after an edit, by --refresh or for more attempts); results that had "
            f"passed and were asked again: {self.passes:,}. A new answer may pass by chance alone."
        )


def count_rerolls(store: Store, run: Run, keep: Keep) -> Rerolls:
    """Compare the results of a run that count with the previous answers to the same questions.

    Previous answers are those of the latest run that lacks some of the present ones and had ended
    before these were asked for. So an answer that an undone edit brings back is compared with what
    came before it was made.

    Reads the newest 200 earlier runs, and about 200,000 results of files whose results
    have changed since; others are left out.
    """
    rerolls = Rerolls()
    current = read_tree(run.results, store.load_nodes)
    earlier: dict[str, list[_Leaf]] = {}
    before = run.results
    runs = store.find_recent_runs(run, _MOST_RUNS)
    while batch := list(islice(runs, _TREES_AT_ONCE)):
        rerolls.runs += len(batch)
        roots = [earlier_run.results for earlier_run in batch]
        # Leaves of both trees were listed with the later one.
        pairs = list(zip(roots, [before, *roots], strict=False))
        trees = read_trees(pairs, store.load_nodes)
        for earlier_run, entries in zip(batch, trees, strict=True):
            for path, leaf in entries.items():
                if leaf != current.get(path, leaf):
                    _add(earlier.setdefault(path, []), _Leaf(leaf, earlier_run.ended))
        before = roots[-1]
    if not earlier:
        return rerolls
    with open_sums(store, run.results) as sums:
        asked = sums.asked_since(min(leaves[-1].ended for leaves in earlier.values()))
    old = {leaf.id for _, leaf in store.find_tree_leaves(run.results)} - asked
    entries = {path: current[path] for path in earlier}
    rows, read = RowResults(store), 0
    for listed in iterate_entries(store, entries, dict.fromkeys(entries, old)):
        read += len(listed)
        cells = (
            (result, case.prompts)
            for result, case in listed
            if result.verdict and result.model != RECORDED and keep(result, case)
        )
        while read <= _MOST_CELLS and (left := list(islice(cells, _AT_ONCE))):
            read += _look_back(store, rows, left, earlier, rerolls)
        if read > _MOST_CELLS:
            break
    return rerolls


def _add(leaves: list[_Leaf], leaf: _Leaf) -> None:
    """Add the results of an earlier run; for equal ones the earliest run counts."""
    if leaves and leaves[-1].id == leaf.id:
        leaves.pop()
    leaves.append(leaf)


def _look_back(
    store: Store,
    rows: RowResults,
    cells: list[_Cell],
    earlier: Mapping[str, Sequence[_Leaf]],
    rerolls: Rerolls,
) -> int:
    """Count results by the newest earlier ones that differ; returns how many were looked for."""
    read = 0
    for place in range(_MOST_RUNS):
        files = {result.file for result, _ in cells}
        leaves = {path: earlier[path][place] for path in files if place < len(earlier[path])}
        if not leaves or read > _MOST_CELLS:
            break
        read += sum(result.file in leaves for result, _ in cells)
        cells = _count(store, rows, cells, leaves, rerolls)
    return read


def _count(
    store: Store, rows: RowResults, cells: list[_Cell], earlier: Mapping[str, _Leaf], to: Rerolls
) -> list[_Cell]:
    """Count those with answers that were asked for after the earlier ones; returns the others."""
    entries = {path: leaf.id for path, leaf in earlier.items()}
    found = find_cells(rows, entries, cells)
    new = [
        {*cell[0].sessions}.difference(was[0].sessions) if was and was[0].verdict else set[str]()
        for cell, was in zip(cells, found, strict=True)
    ]
    made = store.find_session_times(set().union(*new))
    left = []
    for cell, was, answers in zip(cells, found, new, strict=True):
        now = cell[0]
        if (
            was
            and was[0].verdict
            and any(made.get(id, 0) > earlier[now.file].ended for id in answers)
        ):
            to.add(now.verdict, was[0].verdict)
        else:
            left.append(cell)
    return left
