"""Finds the runs that programs carry out at this moment, as far as the store describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evalstore.errors import StoreError
    from evalstore.store import Store
    from evalstore.store.shared_runs import SharedRun


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


def _describe(store: Store, run: SharedRun) -> RunInProgress:
    shares = store.find_shares(run.id)
    at_work = [share for share in shares if share.is_registered and not share.counts.get("ended")]
    return RunInProgress(
        run=run.id,
        author=run.description.get("author"),
        seconds=int(run.elapsed),
        programs=0 if run.is_silent else max(len(at_work), 1),
        asked=sum(share.counts.get("asked", 0) for share in shares),
        judged=sum(share.counts.get("judged", 0) for share in shares),
        joinable=not run.description.get("problem"),
    )
