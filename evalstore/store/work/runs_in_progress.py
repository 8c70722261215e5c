"""Finds the runs that programs carry out at this moment, as far as the store describes them."""

from __future__ import annotations

from typing import NamedTuple

from evalstore.core.errors import RevisionError, StoreError
from evalstore.store import Store
from evalstore.store.work.shared_runs import SharedRun


class RunInProgress(NamedTuple):
    """A run that is not recorded yet."""

    run: str
    """The id of the run in progress, which `run --join` takes; its record has another one."""
    author: str | None
    seconds: int
    """Since it began, by the clock of the database."""
    programs: int
    """How many programs carry it out; 0 when nothing was heard of any for some time."""
    asked: int
    """Answers so far."""
    judged: int
    """Judgements so far."""
    joinable: bool
    """Whether other programs can take part in it."""
    to_ask: int | None = None
    """How many answers were missing when it began; None if that is not described."""
    to_judge: int | None = None
    """The same of judgements, at most."""


class RunsInProgress(NamedTuple):
    """The runs in progress of a store."""

    runs: tuple[RunInProgress, ...]
    """Newest first."""
    warnings: tuple[str, ...]
    """About those that cannot be read."""


def find_runs_in_progress(store: Store) -> RunsInProgress:
    """Return the runs in progress that can be read, and warnings about the others."""
    found = store.find_shared_runs()
    return RunsInProgress(
        tuple(_describe(store, run) for run in found if not run.error),
        tuple(describe_unreadable(run.error) for run in found if run.error),
    )


def describe_unreadable(error: StoreError) -> str:
    """Return the warning about a run in progress that is left out."""
    return f"{error}; {error.hint}"


def find_runs_of_others(store: Store, *, is_running: bool) -> tuple[RunInProgress, ...]:
    """Return those of other programs; with `is_running`, this program carries one out, too.

    Then those of which no program is known yet are left out, as one of them may be its own. So are
    those that cannot be read.
    """
    left_out = (True, None) if is_running else (True,)
    runs = store.find_shared_runs()
    others = (run for run in runs if run.is_own not in left_out and not run.error)
    return tuple(_describe(store, run) for run in others)


def load_run_in_progress(store: Store, id: str) -> tuple[RunInProgress, SharedRun]:
    """Return a run in progress by its full id; raises `RevisionError` if it is over by now.

    Raises `StoreError` if it cannot be read.
    """
    for run in store.find_shared_runs():
        if run.id == id:
            if run.error:
                raise run.error
            return _describe(store, run), run
    raise RevisionError(
        f"run {id[:8]} has just ended", hint="'evalstore show' shows the newest run"
    )


def _describe(store: Store, run: SharedRun) -> RunInProgress:
    shares = store.find_shares(run.id)
    at_work = [share for share in shares if share.is_registered and not share.counts.get("ended")]
    planned = run.description.get("planned", {})
    return RunInProgress(
        run=run.id,
        author=run.description.get("author"),
        seconds=int(run.elapsed),
        programs=0 if run.is_silent else max(len(at_work), 1),
        asked=sum(share.counts.get("asked", 0) for share in shares),
        judged=sum(share.counts.get("judged", 0) for share in shares),
        joinable=not run.description.get("problem"),
        to_ask=planned.get("ask"),
        to_judge=planned.get("judge"),
    )
