"""Copies rows that a store does not have from another store, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.errors import StoreError
from evalstore.sharing.differences import MissingIds, count_ids
from evalstore.sharing.push import iterate_records
from evalstore.store.records import CheckedRecord, check_record

if TYPE_CHECKING:
    from evalstore.sharing.progress import CopyListener
    from evalstore.store import Store

_ROWS, _BYTES = 5_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are written in one transaction."""


def merge_records(
    source: Store, target: Store, missing: MissingIds, listener: CopyListener, name: str
) -> None:
    """Store these rows of another store, called `name`; runs come last.

    Raises `StoreError` for a damaged row, or if a stored row has other content. What was stored
    until then stays.
    """
    listener.start(count_ids(missing))
    batch: list[CheckedRecord] = []
    size = 0
    for checked in _read(source, missing, name):
        batch.append(checked)
        size += checked.record.size
        if len(batch) >= _ROWS or size >= _BYTES:
            target.ensure_records(batch)
            listener.advance(len(batch), size)
            batch, size = [], 0
    if batch:
        target.ensure_records(batch)
        listener.advance(len(batch), size)


def _read(source: Store, missing: MissingIds, name: str) -> Iterator[CheckedRecord]:
    try:
        for record in iterate_records(source, missing):
            yield check_record(record)
    except StoreError as error:
        problem = str(error).removeprefix("the store is damaged: ")
        raise StoreError(
            f"the store '{name}' is damaged: {problem}",
            hint=f"'evalstore fsck --store {name}' lists what is wrong",
        ) from error
