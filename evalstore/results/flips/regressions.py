"""Finds the regressions of a run: cases that do not pass although they have passed before.

What passed in between and stands now on the same answer and judgement as when it failed before,
because an edit was undone or another branch was run, is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from evalstore.comparison.comparison import sort_pairs
from evalstore.comparison.pair_groups import unpack_result
from evalstore.core.batches import in_batches
from evalstore.core.display import plural, short
from evalstore.core.hashing import DigestSet, digest_of_value
from evalstore.core.runs import Run
from evalstore.core.values import Case, Json, Result
from evalstore.files.temporary_list import SortedValues, keep_values
from evalstore.planning.earlier_results import (
    EarlierRuns,
    FollowedResult,
    RecentRuns,
    RunFilter,
    every_run,
    find_in_runs,
)
from evalstore.planning.first_pushes import Baseline, GateRuns
from evalstore.planning.path_history import PathHistory
from evalstore.planning.project import Project
from evalstore.planning.selection import Selection
from evalstore.results.compare.diff_sides import compare_sides, read_runs
from evalstore.store import Store
from evalstore.store.results import RowResults, iterate_cases
from evalstore.store.trees.tree_nodes import read_tree
from evalstore.workspace.git import read_state

_NAMES = 6
"""How many of the first fields of a result name it in an older run."""
_OPEN = 1 << 62
"""Stands for a failure of which no run decided."""


class Regression(NamedTuple):
    """A result that does not pass, and the newest earlier run in which its case passed."""

    result: Result
    passed_in: str
    """The id of the run."""

    def document(self) -> Json:
        """Return the place of the result and the run as plain values."""
        result = self.result
        return {
            "file": result.file,
            "row": result.row,
            "prompt": result.prompt,
            "model": result.model,
            "passedIn": self.passed_in,
        }


class _Failure(NamedTuple):
    """A result that does not pass, and what the runs that were searched tell of it."""

    result: Result
    prompts: tuple[str | None, ...]
    """The system prompts of its case."""
    passed_in: str | None = None
    """The newest complete run that judged the case, which passed."""
    partly: str | None = None
    """The newest other run that did, if the case passed; empty: it did not pass."""
    last_pass: str = ""
    """The newest of all runs in which the case passed, whatever each covered."""


_Decide: TypeAlias = "Callable[[_Failure, Result, Run], _Failure | None]"
"""Returns what is known of a failure after an earlier result of its case; None: it is none."""


def find_regressions(
    project: Project, run: Run, baseline: Baseline | None = None
) -> Sequence[Regression]:
    """Return the results of a run that do not pass and whose cases have passed before.

    Without a baseline the newest complete run of `GateRuns` that judged a case decides, or outside
    git the newest in which it passed; where there is none, the newest other one. Files and rows
    are followed from run to run, however old. With a baseline they are the results that broke in
    the comparison of the two runs. Many regressions are in a temporary file.
    """
    store, folder = project.store, project.settings.paths["tests"]
    if baseline:
        return keep_regressions(_find_broken(store, folder, run, baseline))
    counting = GateRuns(project.workspace.root, run.git, store, run.id)
    follow = partial(PathHistory, store, folder, run.snapshot, {})
    leaves = read_tree(run.results, store.load_nodes)
    decide, failures = partial(_judge_past, counting), _find_failures(iterate_cases(store, run))
    ordered = SortedValues(keys=4)
    ordered.add(
        [each.result.file, each.result.row, place, number, tuple(each.result), each.last_pass]
        for place, number, each in _search(
            store, run, follow, failures, decide, kind=counting.kind, leaves=leaves
        )
        if each.passed_in or each.partly
    )
    return keep_regressions(_unpack(value[-2:]) for value in ordered)


def keep_regressions(regressions: Iterable[Regression]) -> Sequence[Regression]:
    """Return regressions as a list, or if there are many in a temporary file."""
    return keep_values(regressions, lambda it: (tuple(it.result), it.passed_in), _unpack)


def without_files(
    regressions: Sequence[Regression], is_left_out: Callable[[str], object]
) -> Sequence[Regression]:
    """Return regressions without those of some test files."""
    files = {regression.result.file for regression in regressions}
    left_out = {file for file in files if is_left_out(file)}
    if not left_out:
        return regressions
    return keep_regressions(each for each in regressions if each.result.file not in left_out)


def _unpack(values: Sequence[Any]) -> Regression:
    result, passed_in = values
    return Regression(unpack_result(result), passed_in)


def has_case_without_verdict(
    project: Project, cells: Iterable[tuple[Result, Case]], baseline: Baseline | None = None
) -> bool:
    """Return whether an older run, which the store lacks, may tell what became of these cases.

    Without a baseline that is so unless a complete run decides for each; with one, unless each has
    a verdict in it or in a run before it. The cells are those of the workspace.
    """
    store, reading = project.store, project.reading
    newest = baseline.run if baseline else store.find_run_before()
    if newest is None:
        return True
    failures = (_Failure(result, case.prompts) for result, case in cells)
    after = replace(newest, started=newest.started + 1, id="0" * 32)
    root = project.workspace.root
    counting = GateRuns(root, read_state(root), None)

    def decide(failure: _Failure, was: Result, past: Run) -> _Failure | None:
        now = failure.result
        if baseline or (
            was.verdict == "pass" and now.verdict in (None, "pass") and counting.is_complete(past)
        ):
            return None  # what is still to be judged cannot have failed before that pass
        return _judge_past(counting, failure, was, past)

    folder, counts = project.settings.paths["tests"], baseline.counts if baseline else every_run
    follow = partial(PathHistory, store, folder, reading.nodes, reading.files)
    found = _search(store, after, follow, failures, decide, counts, counting.kind)
    return any(place == _OPEN for place, *_ in found)


def _search(
    store: Store,
    run: Run,
    follow: Callable[[], PathHistory],
    failures: Iterable[_Failure],
    decide: _Decide,
    counts: RunFilter = every_run,
    kind: Callable[[Run], object] = every_run,
    leaves: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[int, int, _Failure]]:
    """Yield the failures but for those of which an earlier run tells that they are none.

    Each is given with the number of runs that were searched before one decided that it is a
    regression, whatever older runs have, or `_OPEN`; and with its own number. `follow` returns the
    paths of files before the run, and failures of a file are best next to each other. `leaves` are
    the results from which the failures are, by file: an earlier run with the same has the failure.
    """
    rows, limit = RowResults(store), store.count_runs()
    recent = RecentRuns(store, run, limit)
    for waiting in map(dict, in_batches(enumerate(failures))):
        cells = {it: FollowedResult(each.result, each.prompts) for it, each in waiting.items()}
        paths = {each.result.file for each in waiting.values()}
        runs = EarlierRuns(store, follow(), counts, recent, kind)
        earlier = runs.before(run, paths, limit=limit)
        found = find_in_runs(rows, earlier, cells, paths, leaves=leaves)
        for place, (past, matches) in enumerate(found):
            for number, was in matches:
                if was is None:
                    continue
                failure, then = waiting[number], cells[number].result
                known = decide(failure, was.result, past)
                if known is None:
                    del waiting[number], cells[number]
                    continue
                if known != failure or was.result[:_NAMES] != then[:_NAMES]:
                    runs.forget(failure.result.file)
                last = failure.last_pass or past.id * (was.result.verdict == "pass")
                waiting[number], cells[number] = known._replace(last_pass=last), was
            for number in _judged_later(store, past, waiting):
                del cells[number]
                yield place, number, waiting.pop(number)
        for number, failure in waiting.items():
            yield _OPEN, number, failure


def _judge_past(runs: GateRuns, failure: _Failure, was: Result, past: Run) -> _Failure | None:
    """Return what an earlier result of the case tells of a failure; None if it did not regress."""
    now = failure.result
    is_same = (was.sessions, was.evaluations) == (now.sessions, now.evaluations)
    failed_so = was.verdict != "pass" and is_same
    accepts = runs.is_accepted(past) and (was.verdict != "undecided" or now.verdict == "undecided")
    if failure.passed_in:
        return None if failed_so else failure
    if runs.is_complete(past):
        if was.verdict == "pass":
            return failure._replace(passed_in=past.id)
        return None if accepts else failure
    if failure.partly:
        return failure._replace(partly="") if failed_so else failure
    if failure.partly is None and runs.counts(past):
        if was.verdict == "pass":
            return failure._replace(partly=past.id)
        if accepts:
            return failure._replace(partly="")
    return failure


def _judged_later(store: Store, past: Run, failures: Mapping[int, _Failure]) -> list[int]:
    """Return those that passed in this run and were judged after it: no older run has them."""
    passed = {
        number: each.result.evaluations
        for number, each in failures.items()
        if each.passed_in == past.id
    }
    times = store.find_times("evaluations", {*chain(*passed.values())}) if passed else {}
    return [
        number for number, ids in passed.items() if any(times.get(id, 0) > past.ended for id in ids)
    ]


def _find_broken(store: Store, folder: str, run: Run, baseline: Baseline) -> Iterator[Regression]:
    """Yield the results that broke since the baseline, as `diff` pairs the two runs.

    What the baseline has left undecided is compared with the last decision before it.
    """
    was, now = read_runs(store, folder, baseline.run, run)
    filled, pairing = compare_sides(store, folder, was, now, Selection(), counts=baseline.counts)
    pairs = sort_pairs(pairing)
    undecided, is_any = DigestSet(), False
    for pair in chain(pairs.broke, pairs.changed):  # what is undecided now has not broken
        if pair.was is None or pair.now is None or pair.now.verdict in (None, "pass"):
            continue
        if pair.was.verdict == "pass":
            yield Regression(pair.now, filled.earlier.get(pair.was, baseline.run.id))
        elif pair.was.verdict == "undecided" != pair.now.verdict:
            is_any = undecided.add(digest_of_value(pair.now)) or is_any
    if not is_any:
        return
    failures = (
        each
        for each in _find_failures(iterate_cases(store, run))
        if digest_of_value(each.result) in undecided
    )
    follow = partial(PathHistory, store, folder, run.snapshot, {})
    start, ordered = (baseline.run.started, baseline.run.id), SortedValues(keys=2)

    def counts(run: Run) -> bool:
        return (run.started, run.id) < start and baseline.counts(run)

    ordered.add(
        [place, number, tuple(each.result), each.passed_in]
        for place, number, each in _search(store, run, follow, failures, _last_decision, counts)
        if each.passed_in
    )
    for value in ordered:
        yield _unpack(value[-2:])


def _last_decision(failure: _Failure, was: Result, past: Run) -> _Failure | None:
    """Return a failure with the run of its last decision; None if that was not a pass."""
    if failure.passed_in or was.verdict == "undecided":
        return failure
    return failure._replace(passed_in=past.id) if was.verdict == "pass" else None


def _find_failures(batches: Iterable[Sequence[tuple[Result, Case]]]) -> Iterator[_Failure]:
    """Yield the judged results that do not pass, by file."""
    for batch in batches:
        for result, case in batch:
            if result.verdict not in (None, "pass"):
                yield _Failure(result, case.prompts)


# --- names the runs in which they passed


_NAMED = 3
"""The most runs that are named."""


def passed_in_text(regressions: Sequence[Regression]) -> str:
    """Return in which runs they passed: `passed in runs 4dc1d29b and 7f3c21aa`."""
    runs = list(dict.fromkeys(short(regression.passed_in) for regression in regressions))
    more = len(runs) - _NAMED
    named = [*runs[:_NAMED], *([plural(more, "other")] if more > 0 else [])]
    listed = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    return f"passed in run{'s' * (len(runs) > 1)} {listed}"
