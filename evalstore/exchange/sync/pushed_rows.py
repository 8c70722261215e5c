"""Which rows a push copies to a remote.

What only excluded tags need is imported when there are some, to keep other pushes quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalstore.remotes.differences import count_ids, find_missing
from evalstore.remotes.reachable import ReachedIds, find_reached
from evalstore.store.records import COPIED_TABLES
from evalstore.store.revisions import TAG, resolve_run
from evalstore.store.schema.table_columns import FAILURES

if TYPE_CHECKING:
    from evalstore.exchange.sync.open_remote import OpenDatabase, OpenRemote
    from evalstore.planning.options import Location
    from evalstore.remotes.differences import MissingIds
    from evalstore.store import Store


@dataclass(frozen=True, slots=True)
class ChosenRuns:
    """The runs after a revision, and what else is copied with them."""

    store: Store
    earlier: frozenset[bytes]
    """The ids of the run that the revision names and of those before it."""
    later: frozenset[bytes]
    others: frozenset[bytes]
    """The ids of the calls that have failed since, and of the names of runs."""

    def reach(self) -> ReachedIds:
        """Return what the later runs reach."""
        return find_reached(self.store, self.later, others=self.others)

    def reach_beyond(self) -> ReachedIds:
        """Return what the later runs reach and the earlier ones do not."""
        return find_reached(self.store, self.later, presumed=self.earlier, others=self.others)


def choose_since(store: Store, revision: str, *, with_failures: bool) -> ChosenRuns:
    """Return the runs after the one that a revision names; raises `RevisionError`."""
    run = resolve_run(store, revision)
    earlier, later = map(frozenset, store.find_run_ids(run.started, run.id))
    failures = store.find_failure_ids(run.ended) if with_failures else ()
    return ChosenRuns(store, earlier, later, frozenset((*failures, *store.load_files_of(TAG))))


class ChosenRows(NamedTuple):
    """The rows that a push copies unless the remote has them."""

    ids: ReachedIds | None = None
    """None: all rows of the store."""
    excluded_runs: ReachedIds | None = None
    """The runs that must not be copied, because of their tags."""


def pushed_tables(*, with_failures: bool) -> list[str]:
    """Return the tables whose rows are pushed."""
    return [name for name in COPIED_TABLES if with_failures or name != FAILURES.name]


def choose_rows(
    location: Location,
    opened: OpenRemote | OpenDatabase,
    *,
    since: str | None = None,
    exclude_tags: Sequence[str] = (),
    with_failures: bool = False,
) -> ChosenRows:
    """Return the rows that a push copies; the remote is not read.

    To the tags are added those that the remote excludes. Raises `EvalstoreError`.
    """
    reached = None
    if since is not None:
        reached = choose_since(opened.store, since, with_failures=with_failures).reach()
    if exclude_tags or opened.exclude_tags:
        from evalstore.exchange.sync.untagged_rows import find_untagged_rows

        shared = find_untagged_rows(
            location, exclude_tags, opened.exclude_tags, reached, with_failures=with_failures
        )
        return ChosenRows(shared.ids, shared.excluded_runs)
    return ChosenRows(reached)


def find_missing_rows(
    opened: OpenRemote | OpenDatabase, chosen: ChosenRows, *, with_failures: bool = False
) -> MissingIds:
    """Return those of the chosen rows that the remote lacks, as far as it was read."""
    with opened.ids() as theirs:
        if chosen.ids is not None:
            return find_missing(chosen.ids, theirs)
        with opened.store.snapshot_ids() as ids:
            return find_missing(ids, theirs, pushed_tables(with_failures=with_failures))


def count_excluded_runs(opened: OpenRemote | OpenDatabase, chosen: ChosenRows) -> int:
    """Return how many runs stay here although the remote lacks them, as far as it was read."""
    if chosen.excluded_runs is None:
        return 0
    with opened.ids() as theirs:
        return count_ids(find_missing(chosen.excluded_runs, theirs))
