"""Which rows one side has and the other has not, and the progress of copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from evalstore.core.batches import in_batches
from evalstore.store.ids import as_id
from evalstore.store.records import COPIED_TABLES, ID_BYTES

_FEW = 50_000
"""Ids of a table that are compared at once; more are compared in ranges of their first byte."""

MissingIds = Mapping[str, bytes]
"""The sorted ids that are missing, concatenated, by table; as lists they need ten times as much."""


class IdSource(Protocol):
    """Something that knows the ids of its rows."""

    def find_range(self, table: str, first: bytes, last: bytes) -> set[tuple[bytes]]:
        """Return the ids of a table from `first` up to `last`, both included.

        Each is in a tuple, as it comes from the database: unpacking a million takes half a second.
        """
        ...

    def count(self, table: str, most: int) -> int:
        """Return how many rows a table has, but not more than `most`."""
        ...


def find_missing(
    source: IdSource, target: IdSource, tables: Iterable[str] = COPIED_TABLES
) -> dict[str, bytes]:
    """Return the ids that the source has and the target lacks; tables without any are left out."""
    missing = {}
    for table in tables:
        found = bytearray()
        most = max(side.count(table, _FEW + 1) for side in (source, target))
        for first, last in _ranges(most):
            lacking = source.find_range(table, first, last)
            lacking -= target.find_range(table, first, last)
            found += b"".join(sorted(as_id(id) for (id,) in lacking))
        if found:
            missing[table] = bytes(found)
    return missing


def _ranges(count: int) -> Iterator[tuple[bytes, bytes]]:
    step = 1 if count > _FEW else 256
    for byte in range(0, 256, step):
        yield bytes([byte]) + bytes(15), bytes([byte + step - 1]) + b"\xff" * 15


def count_by_table(missing: MissingIds) -> dict[str, int]:
    """Return how many ids there are in each table."""
    return {table: len(ids) // ID_BYTES for table, ids in missing.items()}


def count_ids(missing: MissingIds) -> int:
    """Return how many ids there are in all tables."""
    return sum(map(len, missing.values())) // ID_BYTES


def split_ids(joined: bytes | bytearray) -> Iterator[list[bytes]]:
    """Yield concatenated ids in batches."""
    starts = range(0, len(joined), ID_BYTES)
    return in_batches(bytes(joined[at : at + ID_BYTES]) for at in starts)


class CopyListener:
    """Ignores all progress; subclasses override the methods that they need."""

    def start(self, records: int) -> None:
        """Report how many records will be copied."""

    def advance(self, records: int, size: int) -> None:
        """Report how many more records were copied, and the bytes that were sent or received."""
