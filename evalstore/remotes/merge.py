"""Copies rows that a store does not have from another store, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import NewerError, StoreError
from evalstore.remotes.arrivals import Arrivals, split_records
from evalstore.remotes.differences import MissingIds, count_ids
from evalstore.remotes.push import iterate_records
from evalstore.store.records import COPIED_TABLES, CheckedRecord, check_record
from evalstore.store.schema.table_columns import RUNS

if TYPE_CHECKING:
    from evalstore.remotes.progress import CopyListener
    from evalstore.store import Store


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


def copy_records(
    source: Store, target: Store, missing: MissingIds, listener: CopyListener, name: str
) -> Copied:
    """Store these rows of another store, called `name`; each after all that it refers to.

    Raises `StoreError` for a damaged row, or if a stored row has other content. What was stored
    until then stays, and the next copy completes it.
    """
    listener.start(count_ids(missing))
    size = 0
    with Arrivals.open(target) as arrivals:
        for table in sorted(missing, key=COPIED_TABLES.index):
            rows = {table: missing[table]}
            for batch in split_records(_read_checked(source, rows, name)):
                arrivals.add(batch)
                copied = sum(checked.record.size for checked in batch)
                listener.advance(len(batch), copied)
                size += copied
        arrivals.finish()
        waiting = arrivals.waiting
        runs = waiting[RUNS.name]
        return Copied(dict(arrivals.stored), size, runs, sum(waiting.values()) - runs)


def _read_checked(source: Store, missing: MissingIds, name: str) -> Iterator[CheckedRecord]:
    """Yield these rows of a store, called `name`; raises `StoreError` for a damaged one."""
    try:
        for record in iterate_records(source, missing):
            yield check_record(record)
    except NewerError as error:
        raise NewerError(f"the store '{name}'", error.problem) from error
    except StoreError as error:
        problem = str(error).removeprefix("the store is damaged: ")
        raise StoreError(
            f"the store '{name}' is damaged: {problem}",
            hint=f"'evalstore fsck --store {quote(name)}' lists what is wrong",
        ) from error
