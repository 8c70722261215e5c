"""Which rows one side has and the other has not, and the progress of copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Protocol

from evalstore.core.batches import in_batches
from evalstore.store.contents import ID_BYTES, as_id
from evalstore.store.records import COPIED_TABLES

MissingIds = Mapping[str, bytes]
"""The sorted ids that are missing, concatenated, by table; as lists they need ten times as much."""


class IdSource(Protocol):
    """Something that knows the ids of its rows."""

    def iterate_ids(self, table: str) -> Iterator[tuple[bytes]]:
        """Yield the ids of a table in ascending order, each in a tuple as a database returns it."""
        ...


def find_missing(
    source: IdSource,
    target: IdSource,
    tables: Iterable[str] = COPIED_TABLES,
    counts: dict[str, int] | None = None,
) -> dict[str, bytes]:
    """Return the ids that the source has and the target lacks; tables without any are left out.

    How many ids the source has is added to `counts`.
    """
    missing = {}
    for table in tables:
        numbers = count()
        ids = (id for id, _ in zip(source.iterate_ids(table), numbers, strict=False))
        lacking = _find_lacking(ids, target.iterate_ids(table))
        if found := b"".join(as_id(id) for (id,) in lacking):
            missing[table] = found
        if counts is not None:
            counts[table] = next(numbers)
    return missing


def _find_lacking(
    ids: Iterator[tuple[bytes]], others: Iterator[tuple[bytes]]
) -> Iterator[tuple[bytes]]:
    """Yield those of these ids that are not among the others; both are in ascending order."""
    other = next(others, None)
    for id in ids:
        while other is not None and other < id:
            other = next(others, None)
        if id != other:
            yield id


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
