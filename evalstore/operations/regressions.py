"""Finds the regressions of a run: cases that do not pass although they have passed before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.operations.earlier_results import EarlierRuns
from evalstore.reports.comparison import ResultIndex
from evalstore.store.path_trees import read_tree
from evalstore.store.results import iterate_cases, iterate_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case, Json


class Regression(NamedTuple):
    """A result that does not pass, and the earlier run in which its case passed."""

    result: Result
    passed_in: str
    """The id of the run."""

    def document(self) -> Json:
        """Return the place of the result and the run as JSON."""
        result = self.result
        return {
            "file": result.file,
            "row": result.row,
            "prompt": result.prompt,
            "model": result.model,
            "passedIn": self.passed_in,
        }


def find_regressions(
    store: Store, folder: str, run: Run, baseline: Run | None = None
) -> list[Regression]:
    """Return the results of a run that do not pass and whose cases have passed before.

    Without a baseline a pass in any earlier run counts, so a case remains a regression until it
    passes again. With a baseline only the verdict in that run counts, or for a case that it did
    not judge the newest one before it. `folder` is that of the test files.
    """
    waiting: dict[str, list[tuple[Result, Case]]] = {}
    for batch in iterate_cases(store, run):
        for result, case in batch:
            if result.verdict not in (None, "pass"):
                waiting.setdefault(result.file, []).append((result, case))
    if not waiting:
        return []
    paths = set(waiting)
    regressions: list[Regression] = []
    nodes = read_tree(run.snapshot, store.load_nodes)
    earlier = EarlierRuns(store, folder, nodes, {}, run.snapshot)
    for past, entries in earlier.among(_runs(store, run, baseline), paths):
        for batch in iterate_entries(store, entries):
            judged = ResultIndex(result for result, _ in batch if result.verdict)
            for path in {result.file for result, _ in batch} & paths:
                left = []
                for result, case in waiting[path]:
                    was = judged.find(result, case.prompts)
                    if was and was.verdict == "pass":
                        regressions.append(Regression(result, past.id))
                    elif was is None or baseline is None:
                        left.append((result, case))
                waiting[path] = left
        paths &= {path for path, left in waiting.items() if left}
        if not paths:
            break
    return sorted(regressions, key=lambda each: (each.result.file, each.result.row))


def _runs(store: Store, run: Run, baseline: Run | None) -> Iterator[Run]:
    """Yield the runs to compare with, newest first: however old, as a gate must not forget."""
    if baseline:
        yield baseline
    yield from store.find_recent_runs(before=baseline or run, limit=store.count_runs())
