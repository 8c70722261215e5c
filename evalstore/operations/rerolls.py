"""Counts results of questions that were asked again, after a failure or after a pass.

A test that fails and is edited gets a new answer; a test that passes keeps its answer. Because
some failures become passes by chance, the pass rate of reused answers rises with every edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.reports.comparison import ResultIndex
from evalstore.results import Result
from evalstore.store.case_chunks import has_parts
from evalstore.store.path_trees import read_tree, read_trees
from evalstore.store.results import iterate_entries
from evalstore.values import RECORDED, Case, Verdict

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


class _Leaf(NamedTuple):
    """The results of a file in some runs."""

    id: str
    ended: int
    """When one of these runs ended, in microseconds since 1970."""


class _Waiting(NamedTuple):
    """A result whose previous answers are looked for."""

    result: Result
    case: Case


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

    def add(self, result: Result, previous: Verdict) -> None:
        """Count a result; `previous` is the verdict on the previous answers."""
        if previous == "pass":
            self.passes += 1
        else:
            self.fails += 1
            self.passed_after_fail += result.verdict == "pass"

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
    have changed since; files with more are left out.
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
    left = _MOST_CELLS
    paths = iter(sorted(earlier))
    while left > 0 and (names := list(islice(paths, _FILES_AT_ONCE))):
        files = {path: [_Leaf(current[path], run.ended), *earlier[path]] for path in names}
        for group in _groups(store, files):
            if left > 0:
                left -= _compare(store, group, keep, rerolls)
    return rerolls


Files = Mapping[str, Sequence[_Leaf]]
"""From paths to their results, the newest first."""


def _add(leaves: list[_Leaf], leaf: _Leaf) -> None:
    """Add the results of an earlier run; for equal ones the earliest run counts."""
    if leaves and leaves[-1].id == leaf.id:
        leaves.pop()
    leaves.append(leaf)


def _groups(store: Store, files: Files) -> Iterator[Files]:
    """Yield batches of the files: those with few results together, each of the others alone."""
    roots = store.load_leaves(leaves[0].id for leaves in files.values())
    few: dict[str, Sequence[_Leaf]] = {}
    for path, leaves in files.items():
        root = roots[leaves[0].id]
        if has_parts(root) or len(root["cells"]) > _FEW_CELLS:
            yield {path: leaves}
        else:
            few[path] = leaves
    if few:
        yield few


def _compare(store: Store, files: Files, keep: Keep, rerolls: Rerolls) -> int:
    """Count the results of some files; returns the number of results that were read."""
    waiting: dict[str, list[_Waiting]] = {}
    read = 0
    for number in range(max(map(len, files.values()))):
        leaf_by_path = {
            path: leaves[number]
            for path, leaves in files.items()
            if number < len(leaves) and (number == 0 or waiting[path])
        }
        if not leaf_by_path:
            break
        cells = _cells(store, {path: leaf.id for path, leaf in leaf_by_path.items()})
        read += len(cells)
        if len(cells) > _MOST_CELLS:
            break
        if number == 0:
            waiting = {path: [] for path in leaf_by_path}
            for result, case in cells:
                if result.verdict and result.model != RECORDED and keep(result, case):
                    waiting[result.file].append(_Waiting(result, case))
            continue
        index = ResultIndex(result for result, _ in cells)
        here = {path: waiting[path] for path in leaf_by_path}
        counted = _asked_again(store, here, index, leaf_by_path)
        for result, previous in counted.items():
            rerolls.add(result, previous)
        for path, entries in here.items():
            waiting[path] = [entry for entry in entries if entry.result not in counted]
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


def _asked_again(
    store: Store,
    waiting: Mapping[str, Sequence[_Waiting]],
    index: ResultIndex,
    leaves: Mapping[str, _Leaf],
) -> dict[Result, Verdict]:
    """Return the results with answers that were asked for after these earlier ones.

    Each is given with its earlier verdict.
    """
    previous: dict[Result, tuple[Verdict, set[str]]] = {}
    for result, case in (entry for entries in waiting.values() for entry in entries):
        was = index.find(result, case.prompts)
        if was and was.verdict and (new := set(result.sessions).difference(was.sessions)):
            previous[result] = was.verdict, new
    made = store.find_session_times({id for _, new in previous.values() for id in new})
    return {
        result: verdict
        for result, (verdict, new) in previous.items()
        if any(made.get(id, 0) > leaves[result.file].ended for id in new)
    }
