"""Finds the runs that programs carry out at this moment, as far as the store describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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


def find_runs_in_progress(store: Store) -> tuple[RunInProgress, ...]:
    """Return the runs in progress, newest first."""
    return tuple(_describe(store, run) for run in store.find_shared_runs())


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
