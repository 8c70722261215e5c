"""Finds the baseline of a gate, and refuses one that would make it pass by accident."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evalstore.display import safe, short
from evalstore.errors import EvalstoreError
from evalstore.git.status import read_state
from evalstore.operations.first_pushes import first_push_of
from evalstore.store.revisions import resolve_run

if TYPE_CHECKING:
    from evalstore.planning.options import Location, RunOptions
    from evalstore.planning.project import Project
    from evalstore.runs import Run


def find_baseline(
    location: Location, project: Project, options: RunOptions, note: Callable[[str], None]
) -> Run | None:
    """Return the run to compare with, before anything is asked; None if none is named.

    Of one that is counted from the newest run of a remote, as in `origin/@`, note which it is.
    Raises `EvalstoreError`, also when that is a run of the present commit with failures: a job
    that is tried again would accept what its first attempt has found.
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
    run = resolve_run(project.store, options.baseline)
    if "/@" in options.baseline:
        words = _describe(location, run)
        if _is_of_this_commit(project, run) and _has_failures(run):
            raise EvalstoreError(
                f"the baseline '{options.baseline}' is {words}: it is of the present commit, so "
                "what it found would be accepted",
                hint="name a run of another commit, such as the last one of the main branch; "
                f"or, to accept these failures, '--baseline {short(run.id)}'",
            )
        note(f"the baseline is {words}")
    return run


def _describe(location: Location, run: Run) -> str:
    push = first_push_of(location, "run", run.id)
    by = f", pushed by {safe(push.writer)}" if push else ""
    commit = f" of commit {run.git.commit[:8]}" if run.git else ""
    return f"run {short(run.id)}{commit}{by}"


def _is_of_this_commit(project: Project, run: Run) -> bool:
    """Return whether a run had the commit of the workspace, and as many changes to it: or none."""
    state = read_state(project.workspace.root)
    return bool(state and run.git and tuple(run.git) == (state.commit, state.dirty))


def _has_failures(run: Run) -> bool:
    return any(run.verdicts.get(verdict) for verdict in ("fail", "error", "undecided"))
