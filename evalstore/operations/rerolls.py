"""Counts results of questions that were asked again, after a failure or after a pass.

A test that fails and is edited gets a new answer; a test that passes keeps its answer. Because
some failures become passes by chance, the pass rate of reused answers rises with every edit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.operations.cell_answers import CellAnswers
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
_TIMES_AT_ONCE = 5_000
"""Results of which is looked up together when their answers were asked for."""
_FEW_CELLS = 1_000
"""Results of a file that is read together with others."""

Keep = Callable[["Result", Case], bool]
"""Whether a result counts."""


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
    numbers = {path: number for number, path in enumerate(files)}
    paths = [*files]
    now = CellAnswers()
    left: Sequence[int] = ()
    """The results whose previous answers are looked for."""
    read = 0
    for place in range(max(map(len, files.values()))):
        waiting = {paths[now.file(number)] for number in left}
        leaf_by_path = {
            path: leaves[place]
            for path, leaves in files.items()
            if place < len(leaves) and (place == 0 or path in waiting)
        }
        if not leaf_by_path:
            break
        was = CellAnswers()
        is_first = place == 0
        count = 0
        for batch in _cells(store, {path: leaf.id for path, leaf in leaf_by_path.items()}):
            count += len(batch)
            for result, case in batch:
                if not is_first:
                    was.add(result, case.prompts, numbers[result.file])
                elif result.verdict and result.model != RECORDED and keep(result, case):
                    now.add(result, case.prompts, numbers[result.file])
        read += count
        if count > _MOST_CELLS:
            break
        if is_first:
            left = range(len(now))
            continue
        here = [number for number in left if paths[now.file(number)] in leaf_by_path]
        ended = {numbers[path]: leaf.ended for path, leaf in leaf_by_path.items()}
        counted = bytearray(len(now))
        for number, previous in _asked_again(store, now, was, here, ended):
            rerolls.add(now.verdict(number), previous)
            counted[number] = 1
        left = array("l", (number for number in left if not counted[number]))
        if read > _MOST_CELLS:
            break
    return read


def _cells(store: Store, leaves: Mapping[str, str]) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results of files with their cases; ends when there were too many."""
    count = 0
    for batch in iterate_entries(store, leaves):
        yield batch
        count += len(batch)
        if count > _MOST_CELLS:
            break


def _asked_again(
    store: Store,
    now: CellAnswers,
    was: CellAnswers,
    numbers: Iterable[int],
    ended: Mapping[int, int],
) -> Iterator[tuple[int, Verdict]]:
    """Yield those of these results with answers that were asked for after the earlier ones.

    Each is given with its earlier verdict; `ended` says when the earlier runs of files ended.
    """
    found = now.find_same(was, numbers)
    while batch := list(islice(found, _TIMES_AT_ONCE)):
        new = {
            number: (verdict, answers)
            for number, earlier in batch
            if (verdict := was.verdict(earlier))
            and (answers := now.answers(number) - was.answers(earlier))
        }
        made = store.find_session_times({id for _, answers in new.values() for id in answers})
        for number, (verdict, answers) in new.items():
            if any(made.get(id, 0) > ended[now.file(number)] for id in answers):
                yield number, verdict
