"""Finds the baseline of a gate: the run with which a run is compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from evalstore.core.display import plural, safe, short
from evalstore.core.errors import RevisionError, UnsuitedError
from evalstore.core.runs import Run, RunCommit
from evalstore.planning.earlier_results import RunFilter, every_run
from evalstore.planning.first_pushes import first_push_of
from evalstore.planning.options import Location, RunOptions, is_partial
from evalstore.planning.project import Project
from evalstore.store import Store
from evalstore.store.revisions import resolve_run
from evalstore.workspace.git import Ancestors, State
from evalstore.workspace.git.status import read_state

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
        raise UnsuitedError(
            "'--baseline' needs '--fail-on regression'",
            hint="the other gates do not depend on earlier runs",
        )
    if options.threshold is not None:
        raise UnsuitedError(
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
    return lambda run: not _is_same_state(run.git, state)


def _is_same_state(git: RunCommit | None, state: RunCommit | State | None) -> bool:
    """Return whether a run was of a state of the checkout, as far as is known."""
    if git is None or state is None or git.commit != state.commit:
        return False
    return None in (git.dirty, state.dirty) or git.dirty == state.dirty


class GateRuns:
    """The earlier runs that tell whether a failure is a regression, if no baseline is named.

    In a git checkout they are those of commits that the present one builds on, if there is a
    complete one among them; else all. A job that is tried again must not accept what its first
    attempt has found.
    """

    def __init__(
        self, root: Path, git: RunCommit | State | None, store: Store | None, present: str = ""
    ) -> None:
        """`git` is the present state; None: outside git. `present` is the id of the present run.

        Without a `store` only runs of commits are taken, as others may be copied there later.
        """
        self._git = git
        self._commits = Ancestors(root, git.commit) if git else None
        runs = store.find_recent_runs(limit=store.count_runs()) if store and git else ()
        if store and not any(run.id != present and self.is_complete(run) for run in runs):
            self._commits = None

    def counts(self, run: Run) -> bool:
        """Return whether a run tells what was in the history of the present files."""
        if self._commits is None:
            return True
        return run.git is not None and not run.git.dirty and run.git.commit in self._commits

    def is_complete(self, run: Run) -> bool:
        """Return whether a run counts, and is about all cases and complete."""
        return run.status == "complete" and not is_partial(run) and self.counts(run)

    def kind(self, run: Run) -> object:
        """Return equal values for runs that count alike."""
        return self.is_complete(run), self.counts(run), self.is_accepted(run)

    def is_accepted(self, run: Run) -> bool:
        """Return whether what failed in a run was accepted, so that it does not count again.

        Without commits, or if files may have had changes, it is not known whether it was accepted,
        or is the same failure.
        """
        if self._commits is None or run.git is None or run.git.dirty is None:
            return False
        return not _is_same_state(run.git, self._git)


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
            since = f"; {plural(skipped, 'run')} of this commit" if skipped else ""
            verb = " does not count" if skipped == 1 else " do not count"
            note(f"the baseline is {_describe(location, run)}{since}{verb if since else ''}")
            return Baseline(run, counts)
    raise RevisionError(
        f"'{revision}' cannot be a baseline: it and all runs of '{remote}' before it are of the "
        "current commit, so what they found would be accepted",
        hint="leave out '--baseline', or give the id of the run whose failures you accept",
    )


def _describe(location: Location, run: Run) -> str:
    push = first_push_of(location, "run", run.id)
    by = f", pushed by {safe(push.writer)}" if push else ""
    commit = f" of commit {run.git.commit[:8]}" if run.git else ""
    return f"run {short(run.id)}{commit}{by}"
