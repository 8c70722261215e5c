"""Finds the baseline of a gate: the run with which a run is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.display import plural, safe, short
from evalstore.errors import EvalstoreError, RevisionError
from evalstore.git.status import read_state
from evalstore.operations.earlier_results import RunFilter, every_run
from evalstore.operations.first_pushes import first_push_of
from evalstore.store.revisions import resolve_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalstore.planning.options import Location, RunOptions
    from evalstore.planning.project import Project
    from evalstore.runs import Run

_COUNTED = "/@"
"""Is in a baseline that is counted from the newest run of a remote."""


class Baseline(NamedTuple):
    """A run to compare with, and which runs before it count for the cases that it did not judge."""

    run: Run
    counts: RunFilter = every_run


def find_baseline(
    location: Location, project: Project, options: RunOptions, note: Callable[[str], None]
) -> Baseline | None:
    """Return the baseline, before anything is asked; None if none is named.

    Of one that is counted from the newest run of a remote, note which it is. Raises
    `EvalstoreError`.
    """
    if options.baseline is None:
        return None
    if options.fail_on != "regression":
        raise EvalstoreError(
            "'--baseline' needs '--fail-on regression'",
            hint="the other gates do not depend on earlier runs",
        )
    if options.threshold is not None:
        raise EvalstoreError(
            "'--baseline' has no effect with '--threshold'",
            hint="leave one of them out; with '--threshold' only the pass rate counts",
        )
    if _COUNTED not in options.baseline:
        return Baseline(resolve_run(project.store, options.baseline))
    return _count_back(location, project, options.baseline, note)


def choose_runs(root: Path, revision: str) -> RunFilter:
    """Return which runs may be a baseline, or stand for one that did not judge a case.

    `root` is the folder of the workspace. For `origin/@`, runs of the present commit do not count:
    a job that is tried again would accept what its first attempt has found, and a shard what other
    shards have found. A workspace with changes may be compared with its commit.
    """
    state = read_state(root) if _COUNTED in revision else None
    if state is None:
        return every_run

    def counts(run: Run) -> bool:
        if run.git is None or run.git.commit != state.commit:
            return True
        return None not in (run.git.dirty, state.dirty) and run.git.dirty != state.dirty

    return counts


def _count_back(
    location: Location, project: Project, revision: str, note: Callable[[str], None]
) -> Baseline:
    """Return the newest run that counts, from the named one of a remote on; note which it is."""
    store = project.store
    run = resolve_run(store, revision)
    counts = choose_runs(project.workspace.root, revision)
    remote = revision.partition("/")[0]
    ids = store.find_remote_runs(remote) if store.find_remote_runs else [run.id]
    for skipped, id in enumerate(ids[ids.index(run.id) :]):
        run = resolve_run(store, f"{remote}/{id}")
        if counts(run):
            since = f"; {plural(skipped, 'run')} of the present commit" if skipped else ""
            verb = " does not count" if skipped == 1 else " do not count"
            note(f"the baseline is {_describe(location, run)}{since}{verb if since else ''}")
            return Baseline(run, counts)
    raise RevisionError(
        f"'{revision}' cannot be a baseline: it and all runs of '{remote}' before it are of the "
        "present commit, so what they found would be accepted",
        hint="leave out '--baseline' until there is a run of another commit; to accept the "
        "failures of a run, name it by its id",
    )


def _describe(location: Location, run: Run) -> str:
    push = first_push_of(location, "run", run.id)
    by = f", pushed by {safe(push.writer)}" if push else ""
    commit = f" of commit {run.git.commit[:8]}" if run.git else ""
    return f"run {short(run.id)}{commit}{by}"
