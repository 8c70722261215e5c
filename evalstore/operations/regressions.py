"""Finds the regressions of a run: cases that do not pass although they have passed before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore.operations.diff_sides import compare_sides, follow_renames, run_side
from evalstore.operations.earlier_results import EarlierRuns, every_run
from evalstore.planning.path_history import PathHistory
from evalstore.planning.selection import Selection
from evalstore.reports.comparison import CellIndex, sort_pairs
from evalstore.store.results import iterate_cases
from evalstore.store.row_results import RowResults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalstore.operations.baseline import Baseline
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case, Json

_AT_ONCE = 200
"""The failures that are looked for together in an earlier run."""


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


class _Failure(NamedTuple):
    """A result that does not pass, and its case in the last run that was searched."""

    result: Result
    then: Result
    """The result in the newest run searched so far that judged the case."""
    case: Case


def find_regressions(
    store: Store, folder: str, run: Run, baseline: Baseline | None = None
) -> list[Regression]:
    """Return the results of a run that do not pass and whose cases have passed before.

    Without a baseline a pass in any earlier run counts, so a case remains a regression until it
    passes again: files and rows are followed from run to run, however old, as a gate must not
    forget. With a baseline they are the results that broke in the comparison of the two runs.
    `folder` is that of the test files.
    """
    if baseline:
        return _find_broken(store, folder, run, baseline)
    runs = EarlierRuns(store, PathHistory(store, folder, run.snapshot, {}))
    found = _search(store, runs, run, _find_failures(store, run))
    regressions = [Regression(result, id) for result, id in found]
    return sorted(regressions, key=lambda each: (each.result.file, each.result.row))


def has_case_without_verdict(
    project: Project, cells: Iterable[tuple[Result, Case]], baseline: Baseline | None = None
) -> bool:
    """Return whether an older run, which the store lacks, may tell what became of these cases.

    Without a baseline that is so unless each has passed in a run of the store; with one, unless
    each has a verdict in it or in a run before it. The cells are those of the workspace.
    """
    store, reading = project.store, project.reading
    history = PathHistory(store, project.settings.paths["tests"], reading.nodes, reading.files)
    newest = baseline.run if baseline else next(store.find_recent_runs(limit=1), None)
    if newest is None:
        return True
    waiting: dict[str, list[_Failure]] = {}
    for result, case in cells:
        waiting.setdefault(result.file, []).append(_Failure(result, result, case))
    after = replace(newest, started=newest.started + 1, id="0" * 32)
    runs = EarlierRuns(store, history, baseline.counts if baseline else every_run)
    for _ in _search(store, runs, after, waiting, any_verdict=baseline is not None):
        pass
    return any(waiting.values())


def _search(
    store: Store,
    runs: EarlierRuns,
    run: Run,
    waiting: dict[str, list[_Failure]],
    *,
    any_verdict: bool = False,
) -> Iterator[tuple[Result, str]]:
    """Yield the results whose cases have passed before a run, with the id of the newest such run.

    They are taken out of `waiting`, which has the results by file. With `any_verdict` every
    earlier verdict counts.
    """
    rows = RowResults(store)
    paths = {path for path, left in waiting.items() if left}
    for past, entries in runs.before(run, paths, limit=store.count_runs()) if paths else ():
        left: dict[str, list[_Failure]] = {path: [] for path in entries}
        for batch in _batches(waiting, sorted(entries)):
            names = {
                path: {name for each in failures for name in (each.then.key, each.then.row)}
                for path, failures in batch.items()
            }
            found = rows.find({path: entries[path] for path in batch}, names)
            for path, failures in batch.items():
                judged = CellIndex(
                    (cell, case)
                    for cell, case in found[path].cells
                    if cell.verdict and not names[path].isdisjoint((cell.key, cell.row))
                )
                for failure in failures:
                    was = judged.find(failure.then, failure.case.prompts)
                    if was is None:
                        left[path].append(failure)
                    elif any_verdict or was[0].verdict == "pass":
                        yield failure.result, past.id
                    else:
                        left[path].append(_Failure(failure.result, *was))
                        if _place(was[0]) != _place(failure.then):
                            runs.forget()
        waiting.update(left)
        paths &= {path for path, left in waiting.items() if left}
        if not paths:
            return


def _batches(
    waiting: Mapping[str, Sequence[_Failure]], paths: Iterable[str]
) -> Iterator[dict[str, Sequence[_Failure]]]:
    """Yield those of `waiting` in these files in batches, by file."""
    batch: dict[str, Sequence[_Failure]] = {}
    room = _AT_ONCE
    for path in paths:
        failures = waiting[path]
        for start in range(0, len(failures), _AT_ONCE):
            some = failures[start : start + _AT_ONCE]
            if len(some) > room:
                yield batch
                batch, room = {}, _AT_ONCE
            batch[path] = some
            room -= len(some)
    if batch:
        yield batch


def _find_broken(store: Store, folder: str, run: Run, baseline: Baseline) -> list[Regression]:
    """Return the results that broke since the baseline, as `diff` pairs the two runs."""
    now = run_side(store, run)
    was = follow_renames(store, folder, run_side(store, baseline.run), now)
    filled, pairing = compare_sides(store, folder, was, now, Selection(), counts=baseline.counts)
    return [
        Regression(pair.now, filled.earlier.get(pair.was, baseline.run.id))
        for pair in sort_pairs(pairing).broke
        if pair.was and pair.now
    ]


def _find_failures(store: Store, run: Run) -> dict[str, list[_Failure]]:
    """Return the judged results of a run that do not pass, by file."""
    failures: dict[str, list[_Failure]] = {}
    for batch in iterate_cases(store, run):
        for result, case in batch:
            if result.verdict not in (None, "pass"):
                failures.setdefault(result.file, []).append(_Failure(result, result, case))
    return failures


def _place(result: Result) -> tuple[object, ...]:
    """Return by what a result is found in an older run."""
    return result.key, result.row, result.prompt, result.prompt_number
