"""Counts results of questions that were asked again, after a failure or after a pass.

A test that fails and is edited gets a new answer; a test that passes keeps its answer. Because
some failures become passes by chance, the pass rate of reused answers rises with every edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.reports.comparison import ResultIndex
from evalstore.results import Result
from evalstore.store.case_chunks import has_parts
from evalstore.store.path_trees import read_tree, read_trees
from evalstore.store.results import iterate_entries
from evalstore.values import RECORDED, Case

if TYPE_CHECKING:
    from evalstore.runs import Run
    from evalstore.store import Store

_MOST_RUNS = 200
"""The most earlier runs that are read."""
_MOST_CELLS = 200_000
"""About how many results are read to compare them; a file with more is left out."""
_TREES_AT_ONCE = 20
_FILES_AT_ONCE = 50
_FEW_CELLS = 1_000
"""Results of a file that is read together with others."""

Keep = Callable[["Result", Case], bool]
"""Whether a result counts."""


@dataclass
class Rerolls:
    """Judged results whose answers differ from those of an earlier run."""

    fails: int = 0
    """Results whose previous answers did not pass."""
    passes: int = 0
    """Results whose previous answers passed."""
    passed_after_fail: int = 0
    """Results that pass now, and whose previous answers did not."""
    runs: int = 0
    """The number of earlier runs that were read."""

    def text(self, passed: int) -> str:
        """Return a remark on `passed` passes; empty if none of them had failed before."""
        if not self.passed_after_fail:
            return ""
        return (
            f"{self.passed_after_fail:,} of {passed:,} passes had failed before being asked again "
            "(after an edit, by --refresh or for more attempts); "
            f"asked again after a pass: {self.passes:,}. "
            "Chance alone turns some failures into passes."
        )


def count_rerolls(store: Store, run: Run, keep: Keep) -> Rerolls:
    """Compare the results of a run that count with the previous answers to the same questions.

    Reads the newest 200 earlier runs, and about 200,000 results of files whose results
    have changed since; files with more are left out.
    """
    rerolls = Rerolls()
    current = read_tree(run.results, store.load_nodes)
    earlier: dict[str, dict[str, None]] = {}
    before = run.results
    trees = (earlier.results for earlier in store.find_recent_runs(run, _MOST_RUNS))
    while roots := list(islice(trees, _TREES_AT_ONCE)):
        rerolls.runs += len(roots)
        # Leaves of both trees were listed with the later one.
        pairs = list(zip(roots, [before, *roots], strict=False))
        for entries in read_trees(pairs, store.load_nodes):
            for path, leaf in entries.items():
                if leaf != current.get(path, leaf):
                    earlier.setdefault(path, {})[leaf] = None
        before = roots[-1]
    left = _MOST_CELLS
    paths = iter(sorted(earlier))
    while left > 0 and (batch := list(islice(paths, _FILES_AT_ONCE))):
        files = {path: [current[path], *earlier[path]] for path in batch}
        for group in _groups(store, files):
            if left > 0:
                left -= _compare(store, group, keep, rerolls)
    return rerolls


Files = Mapping[str, Sequence[str]]
"""From paths to the nodes of their results, the newest first."""


def _groups(store: Store, files: Files) -> Iterator[Files]:
    """Yield batches of the files: those with few results together, each of the others alone."""
    roots = store.load_leaves(leaves[0] for leaves in files.values())
    few: dict[str, Sequence[str]] = {}
    for path, leaves in files.items():
        root = roots[leaves[0]]
        if has_parts(root) or len(root["cells"]) > _FEW_CELLS:
            yield {path: leaves}
        else:
            few[path] = leaves
    if few:
        yield few


def _compare(store: Store, files: Files, keep: Keep, rerolls: Rerolls) -> int:
    """Count the results of some files; returns the number of results that were read."""
    waiting: dict[str, list[tuple[Result, Case]]] = {}
    read = 0
    for number in range(max(map(len, files.values()))):
        leaf_by_path = {
            path: leaves[number]
            for path, leaves in files.items()
            if number < len(leaves) and (number == 0 or waiting[path])
        }
        if not leaf_by_path:
            break
        cells = _cells(store, leaf_by_path)
        read += len(cells)
        if len(cells) > _MOST_CELLS:
            break
        if number == 0:
            waiting = {path: [] for path in leaf_by_path}
            for result, case in cells:
                if result.verdict and result.model != RECORDED and keep(result, case):
                    waiting[result.file].append((result, case))
            continue
        index = ResultIndex(result for result, _ in cells)
        for path in leaf_by_path:
            waiting[path] = [
                entry for entry in waiting[path] if not _is_counted(*entry, index, rerolls)
            ]
        if read > _MOST_CELLS:
            break
    return read


def _cells(store: Store, leaves: Mapping[str, str]) -> list[tuple[Result, Case]]:
    """Return the results of files with their cases; stops when there are too many."""
    cells: list[tuple[Result, Case]] = []
    for batch in iterate_entries(store, leaves):
        cells += batch
        if len(cells) > _MOST_CELLS:
            break
    return cells


def _is_counted(now: Result, case: Case, index: ResultIndex, rerolls: Rerolls) -> bool:
    """Return whether an earlier run lacks some of the answers; its verdict is then counted."""
    was = index.find(now, case.prompts)
    if was is None or was.verdict is None or set(now.sessions) <= set(was.sessions):
        return False
    if was.verdict == "pass":
        rerolls.passes += 1
    else:
        rerolls.fails += 1
        rerolls.passed_after_fail += now.verdict == "pass"
    return True
