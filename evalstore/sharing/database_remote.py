"""A database as a remote: a store of others, with which rows are exchanged in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import RemoteError, StoreMissingError
from evalstore.sharing.arrivals import Arrivals
from evalstore.sharing.batches import split_records
from evalstore.sharing.differences import MissingIds, count_ids
from evalstore.sharing.merge import read_checked
from evalstore.store import Store
from evalstore.store.records import COPIED_TABLES
from evalstore.store.table_columns import RUNS

if TYPE_CHECKING:
    from evalstore.sharing.progress import CopyListener
    from evalstore.store.location import DatabaseAddress


class Copied(NamedTuple):
    """What was copied from one store to another."""

    stored: Mapping[str, int]
    """How many rows were stored, by table."""
    size: int
    """Bytes of the rows that were read."""
    waiting: int
    """Runs that were not stored, as the source lacks rows that they refer to."""
    waiting_rows: int
    """Other rows that were not stored for the same reason."""


@contextmanager
def open_database(address: DatabaseAddress, *, create: bool = False) -> Iterator[Store]:
    """Open a database that is a remote; its tables are never migrated.

    With `create`, tables that are missing are made. Raises `StoreError` when it cannot be used,
    and `RemoteError` when it has no tables.
    """
    try:
        store = Store.open(address, create=create, may_migrate=False)
    except StoreMissingError as error:
        push = "'evalstore push' makes them"
        raise RemoteError(
            f"'{address}' is not a remote of evalstore: there are no tables",
            hint=f"{push}; {error.others}" if error.others else push,
        ) from error
    with closing(store):
        yield store


def copy_records(
    source: Store, target: Store, missing: MissingIds, listener: CopyListener
) -> Copied:
    """Store these rows of another store; each is checked, and stored after what it refers to.

    Raises `StoreError` for a damaged row, or if a stored row has other content. What was stored
    until then stays, and the next copy completes it.
    """
    listener.start(count_ids(missing))
    size = 0
    with Arrivals.open(target) as arrivals:
        for table in sorted(missing, key=COPIED_TABLES.index):
            rows = {table: missing[table]}
            for batch in split_records(read_checked(source, rows, source.path)):
                arrivals.add(batch)
                copied = sum(checked.record.size for checked in batch)
                listener.advance(len(batch), copied)
                size += copied
        waiting = arrivals.waiting
        runs = waiting[RUNS.name]
        return Copied(dict(arrivals.stored), size, runs, sum(waiting.values()) - runs)
