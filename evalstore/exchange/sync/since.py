"""The runs after a revision, for `push --since`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.remotes.reachable import ReachedIds, find_reached
from evalstore.store.revisions import resolve_run

if TYPE_CHECKING:
    from evalstore.store import Store


@dataclass(frozen=True, slots=True)
class ChosenRuns:
    """The runs after a revision, and what else is copied with them."""

    store: Store
    earlier: frozenset[bytes]
    """The ids of the run that the revision names and of those before it."""
    later: frozenset[bytes]
    failures: frozenset[bytes]
    """The ids of the calls that have failed since."""

    def reach(self) -> ReachedIds:
        """Return what the later runs reach."""
        return find_reached(self.store, self.later, others=self.failures)

    def reach_beyond(self) -> ReachedIds:
        """Return what the later runs reach and the earlier ones do not."""
        return find_reached(self.store, self.later, presumed=self.earlier, others=self.failures)


def choose_since(store: Store, revision: str, *, with_failures: bool) -> ChosenRuns:
    """Return the runs after the one that a revision names; raises `RevisionError`."""
    run = resolve_run(store, revision)
    earlier, later = map(frozenset, store.find_run_ids(run.started, run.id))
    failures = store.find_failure_ids(run.ended) if with_failures else ()
    return ChosenRuns(store, earlier, later, frozenset(failures))
