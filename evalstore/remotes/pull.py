"""Copies rows that a store does not have from a remote, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

from evalstore.core.errors import RemoteError
from evalstore.remotes.arrivals import Arrivals
from evalstore.remotes.differences import MissingIds, count_ids, split_ids
from evalstore.remotes.packs.batches import split_records
from evalstore.remotes.packs.pack_reader import PackReader
from evalstore.remotes.packs.packs import TABLE_NUMBERS
from evalstore.remotes.wanted_records import WantedRecords
from evalstore.store.records import COPIED_TABLES, CheckedRecord
from evalstore.store.schema.table_columns import RUNS

if TYPE_CHECKING:
    from evalstore.remotes.indexes.index_cache import IndexCache
    from evalstore.remotes.indexes.indexed_records import RecordPlace
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.remotes.progress import CopyListener
    from evalstore.store import Store

_AT_ONCE = 30_000


class Pulled(NamedTuple):
    """What a pull has read."""

    stored: Mapping[str, int]
    """How many rows were stored, by table."""
    bytes_received: int
    """Of packs, or parts of them."""
    left: Mapping[str, int]
    """How many rows were left in the remote, because it lacks rows that they refer to, by table."""
    missing: Mapping[str, int]
    """How many rows are in packs that are not in the remote yet, or no longer, by table."""
    missing_packs: int

    @property
    def records(self) -> int:
        """Return how many rows were stored."""
        return sum(self.stored.values())

    @property
    def waiting(self) -> int:
        """Return how many runs were left in the remote."""
        return self.left.get(RUNS.name, 0)

    @classmethod
    def of(cls, arrivals: Arrivals, reader: PackReader) -> Self:
        """Return what was read until now."""
        return cls(
            dict(arrivals.stored),
            reader.bytes_received,
            arrivals.waiting,
            reader.left,
            len(reader.missing_packs),
        )


def pull_records(
    store: Store,
    files: RemoteFiles,
    cache: IndexCache,
    missing: MissingIds,
    listener: CopyListener,
) -> Pulled:
    """Store these rows of a remote; runs come last, so that an interrupted pull shows no new run.

    Each pack is read once. A row that refers to rows which the remote does not have yet is left
    there, as are those in packs that are missing.

    Raises `RemoteError` for a pack that is damaged, and `StoreError` if a stored row has other
    content.
    """
    listener.start(count_ids(missing))
    reader = PackReader(files, cache, listener)
    with WantedRecords.open(cache.records) as wanted, Arrivals.open(store) as arrivals:
        for table in sorted(missing, key=COPIED_TABLES.index):
            for ids in split_ids(missing[table], _AT_ONCE):
                if wanted.add(cache.records.find_places(table, ids)) < len(ids):
                    raise RemoteError(
                        f"what is known of the remote '{files.address}' changed during the pull",
                        hint="another program has read it at the same time; pull again",
                    )
        wanted.order()
        for table in sorted(missing, key=COPIED_TABLES.index):
            for batch in split_records(_read_table(reader, wanted, table)):
                arrivals.add(batch)
        return Pulled.of(arrivals, reader)


def _read_table(reader: PackReader, wanted: WantedRecords, table: str) -> Iterator[CheckedRecord]:
    """Yield the checked records of a table; those of later tables in its packs are kept."""
    for place, data in wanted.iterate_kept(table):
        yield reader.check(wanted.find_pack(place.pack), place, data)
    for number in wanted.list_packs(table):
        pack = wanted.find_pack(number)
        later: list[tuple[RecordPlace, bytes]] = []
        for place, data in reader.read_pack(pack, wanted.list_places(number)):
            if place.entry.table == TABLE_NUMBERS[table]:
                yield reader.check(pack, place, data)
            else:
                later.append((place, data))
        wanted.keep(number, later)
