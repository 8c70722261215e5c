"""Selects cases by their results in earlier runs, takes subsets, and computes age limits.

Filters are applied in a fixed order: paths, tags and `-k`; then changed, failed or retried
cases; then the sample, the shard and the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from evalstore.clock import now
from evalstore.errors import EvalstoreError, NothingSelectedError
from evalstore.planning.age_limit import AT_REQUEST, EVER, AgeLimit
from evalstore.planning.path_history import PathHistory
from evalstore.planning.renames import pair_with_workspace
from evalstore.planning.results import CellResult, as_result
from evalstore.planning.selection import Placed, Subset, read_shard
from evalstore.reports.comparison import ResultIndex
from evalstore.store.path_trees import read_tree
from evalstore.store.results import read_results
from evalstore.values import Case, CaseFile
from evalstore.workspace.settings import AGE_HINT, Settings, read_age

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.plan import Plan
    from evalstore.planning.project import Project
    from evalstore.results import Result

_ALL = "leave the option out to select all; 'evalstore ls cases' lists the cases"


def subset_of(selection: SelectionOptions) -> Subset:
    """Return the subset that the command line selects; raises `EvalstoreError`."""
    if selection.seed is not None and selection.sample is None:
        raise EvalstoreError("'--seed' has no effect without '--sample'", hint="add '--sample N'")
    shard = None if selection.shard is None else read_shard(selection.shard)
    return Subset(selection.sample, selection.seed or 0, shard, selection.limit)


def is_plain(selection: SelectionOptions) -> bool:
    """Return whether a selection depends neither on earlier runs nor on a sample or shard."""
    others = selection.sample is not None or selection.shard is not None or selection.changed
    return not (others or selection.last_failed or selection.retry_errors)


def take_subset(cases: Sequence[Placed], subset: Subset) -> list[Placed]:
    """Return the cases of a subset; raises `NothingSelectedError` for an empty shard."""
    taken = subset.take(cases)
    if cases and not taken and subset.shard:
        number, count = subset.shard
        raise NothingSelectedError(
            f"nothing is selected: no case falls into shard {number}/{count}",
            hint="use fewer shards than there are cases",
        )
    return taken


# --- age limits

_SECOND = 1_000_000
"""Microseconds."""


def bounds_of(
    selection: SelectionOptions, settings: Settings, *, judge_only: bool, begun: float = math.inf
) -> tuple[AgeLimit, AgeLimit]:
    """Return the age limits of answers and of judgements; raises `EvalstoreError`.

    Options of the command line limit answers, those of `judge` judgements; the settings limit
    answers. `begun` is when the run began: its own results count even when it refreshes.
    """
    from_options = EVER
    if selection.max_age is not None:
        from_options = _bound(selection.max_age, "judgement" if judge_only else "answer")
    if selection.refresh:
        from_options = AgeLimit(begun, AT_REQUEST)
    from_settings = EVER if settings.max_age is None else _bound(settings.max_age, "answer")
    if judge_only:
        return from_settings, from_options
    return (from_settings if from_options == EVER else from_options), EVER


def _bound(age: str, subject: str) -> AgeLimit:
    seconds = read_age(age)
    if seconds is None:
        raise EvalstoreError(f"'--max-age {age}' cannot be read", hint=AGE_HINT)
    return AgeLimit(now() - seconds * _SECOND, f"{subject} is older than {age.strip()}")


def stands_until(plan: Plan, settings: Settings) -> float:
    """Return the time at which the oldest answer becomes too old, so that the plan changes."""
    age = read_age(settings.max_age) if settings.max_age else None
    return math.inf if age is None or plan.oldest is None else plan.oldest + age * _SECOND


# --- changed


def only_changed(project: Project, cases: Sequence[Placed]) -> list[Placed]:
    """Return the cases that are not in the snapshot of the newest run.

    Raises `NothingSelectedError` when there are none.
    """
    runs = project.store.find_runs(limit=1)
    if not runs:
        return list(cases)
    entries = read_tree(runs[0].snapshot, project.store.load_nodes)
    files = project.store.load_case_files(list(set(entries.values())))
    pairs = pair_with_workspace(project, entries, files)
    gone = [files[id] for path, id in entries.items() if path not in project.reading.nodes]
    moved = _contents(gone)
    known = {path: _contents([files[entries[old]]]) | moved for path, old in pairs.items()}
    changed = [(path, case) for path, case in cases if _content(case) not in known.get(path, moved)]
    if not changed:
        raise NothingSelectedError(
            "nothing is selected: nothing has changed since the newest run", hint=_ALL
        )
    return changed


_Content = tuple[object, ...]


def _content(case: Case) -> _Content:
    return case.tests, case.prompts, case.evaluation


def _contents(files: Sequence[CaseFile]) -> set[_Content]:
    return {_content(case) for file in files for case in file.cases}


# --- failed


def only_failed(project: Project, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that did not pass in the newest run that has them.

    Raises `NothingSelectedError` when there are none.

    Rows are paired by their values, else by their label.
    """
    waiting, failed, is_first = list(cells), set[int](), True
    reading = project.reading
    leaves = {leaf: reading.files[path] for path, leaf in reading.nodes.items()}
    history = PathHistory(project.store, project.settings.paths["tests"], reading.nodes, leaves)
    for run in project.store.find_recent_runs():
        is_first = False
        if not waiting:
            break
        history.step(run.snapshot)
        before = ResultIndex(_rename(read_results(project.store, run), history))
        left = []
        for cell in waiting:
            result = before.find(as_result(CellResult(cell, None, None, (), ())), cell.case.prompts)
            if result is None:
                left.append(cell)
            elif _has_failed(result):
                failed.add(id(cell))
        waiting = left
    if cells and not failed:
        words = "there is no run yet" if is_first else "nothing failed when it last ran"
        raise NothingSelectedError(f"nothing is selected: {words}", hint=_ALL)
    return [cell for cell in cells if id(cell) in failed]


def _rename(results: Iterable[Result], history: PathHistory) -> Iterator[Result]:
    """Yield results under the current paths of their test files."""
    for result in results:
        path = history.newest_path(result.file)
        if path is not None:
            yield result if path == result.file else result._replace(file=path)


def _has_failed(result: Result) -> bool:
    """Return whether a result has failed; an answered case without an evaluation has not."""
    if result.verdict is None:
        return result.evaluation is not None or len(result.sessions) < result.required_answers
    return result.verdict != "pass"
