"""Copies rows that a store does not have from another store, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING

from evalstore.errors import NewerError, StoreError
from evalstore.sharing.batches import split_records
from evalstore.sharing.differences import MissingIds, count_ids
from evalstore.sharing.push import iterate_records
from evalstore.store.records import CheckedRecord, check_record

if TYPE_CHECKING:
    from evalstore.sharing.progress import CopyListener
    from evalstore.store import Store


def merge_records(
    source: Store, target: Store, missing: MissingIds, listener: CopyListener, name: str
) -> None:
    """Store these rows of another store, called `name`; runs come last.

    Raises `StoreError` for a damaged row, or if a stored row has other content. What was stored
    until then stays.
    """
    listener.start(count_ids(missing))
    for batch in split_records(read_checked(source, missing, name)):
        target.ensure_records(batch)
        listener.advance(len(batch), sum(checked.record.size for checked in batch))


def read_checked(source: Store, missing: MissingIds, name: str) -> Iterator[CheckedRecord]:
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
