"""The transactions in which rows are copied into a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.store.records import CheckedRecord

_ROWS, _BYTES = 5_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are written in one transaction."""


def split_records(records: Iterable[CheckedRecord]) -> Iterator[list[CheckedRecord]]:
    """Yield records in the parts that are each written in one transaction."""
    batch: list[CheckedRecord] = []
    size = 0
    for checked in records:
        batch.append(checked)
        size += checked.record.size
        if len(batch) >= _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
