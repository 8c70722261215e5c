"""How many results are of questions that were asked again, after a failure or after a pass.

A test that fails and is edited gets a new answer; one that passes keeps its answer. Chance alone
turns some failures into passes, so the pass rate of reused answers rises with every edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.operations.results import iterate_file
from evalstore.report.compare import Known
from evalstore.store.trees import read_tree
from evalstore.values import RECORDED, Case, Json

if TYPE_CHECKING:
    from evalstore.report.compare import Result
    from evalstore.store import Store

_MOST_RUNS = 200
"""Earlier runs that are looked at."""
_MOST_CELLS = 200_000
"""About how many results are read to compare them; a file with more is left out."""

Keep = Callable[["Result", Case], bool]
"""Whether a result counts."""


@dataclass
class Rerolls:
    """Judged results whose answers differ from those of an earlier run."""

    fails: int = 0
    """Those whose previous answers did not pass."""
    passes: int = 0
    """Those whose previous answers passed."""
    passed_after_fail: int = 0
    """Those that pass now, and whose previous answers did not."""
    runs: int = 0
    """Earlier runs that were looked at."""

    def text(self, passed: int) -> str:
        """What a reader of so many passes must know; empty when none was a failure before."""
        if not self.passed_after_fail:
            return ""
        return (
            f"{self.passed_after_fail:,} of {passed:,} passes had failed before being asked again "
            f"(after an edit or --refresh); asked again after a pass: {self.passes:,}. "
            "Chance alone turns some failures into passes."
        )

    def document(self) -> Json:
        """As JSON."""
        return {
            "fails": self.fails,
            "passes": self.passes,
            "passedAfterFail": self.passed_after_fail,
            "runs": self.runs,
        }


def count_rerolls(store: Store, run: str, content: Json, keep: Keep) -> Rerolls:
    """Compare the results of a run that count with the previous answers to the same questions.

    Looks at the newest 200 earlier runs, and reads about 200,000 results of files whose results
    have changed since; files with more are left out.
    """
    found = Rerolls()
    current = read_tree(content["results"], store.load_nodes)
    earlier: dict[str, list[str]] = {}
    before = content["results"]
    for results in _earlier_trees(store, run, content["started"]):
        found.runs += 1
        if results == before:
            continue
        # What both trees have was listed with the later one.
        for path, leaf in read_tree(results, store.load_nodes, unlike=before).items():
            if leaf != current.get(path, leaf) and leaf not in earlier.setdefault(path, []):
                earlier[path].append(leaf)
        before = results
    left = _MOST_CELLS
    for path in sorted(earlier):
        if left > 0 and earlier[path]:
            left -= _compare_file(store, path, [current[path], *earlier[path]], keep, found)
    return found


def _earlier_trees(store: Store, run: str, started: int) -> Iterator[str]:
    """The result trees of the runs before this one, newest first."""
    offset = count = 0
    while some := store.find_runs(limit=_MOST_RUNS, offset=offset):
        offset += len(some)
        for id, content in some:
            if (content["started"], id) < (started, run):
                yield content["results"]
                count += 1
                if count == _MOST_RUNS:
                    return


def _compare_file(
    store: Store, path: str, leaves: Sequence[str], keep: Keep, found: Rerolls
) -> int:
    """Count the results of a file, of which `leaves` are the newest first.

    Returns how many results were read.
    """
    read = 0
    waiting: list[tuple[Result, Case]] = []
    for number, id in enumerate(leaves):
        cells = _cells(store, path, id)
        read += len(cells)
        if len(cells) > _MOST_CELLS:
            break
        if number == 0:
            waiting = [
                (one, case)
                for one, case in cells
                if one.verdict and one.model != RECORDED and keep(one, case)
            ]
            continue
        known = Known(one for one, _ in cells)
        waiting = [one for one in waiting if not _is_counted(*one, known, found)]
        if not waiting or read > _MOST_CELLS:
            break
    return read


def _cells(store: Store, path: str, leaf: str) -> list[tuple[Result, Case]]:
    """The results of a file with their cases; no more than tell that there are too many."""
    cells: list[tuple[Result, Case]] = []
    for some in iterate_file(store, path, leaf):
        cells += some
        if len(cells) > _MOST_CELLS:
            break
    return cells


def _is_counted(now: Result, case: Case, known: Known, found: Rerolls) -> bool:
    """Whether an earlier run had other answers; then it is counted what came of them."""
    was = known.find(now, case.prompts)
    if was is None or was.verdict is None or set(was.sessions) & set(now.sessions):
        return False
    if was.verdict == "pass":
        found.passes += 1
    else:
        found.fails += 1
        found.passed_after_fail += now.verdict == "pass"
    return True
