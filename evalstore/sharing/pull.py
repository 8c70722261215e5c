"""Copies rows that a store does not have from a remote, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.errors import RemoteError
from evalstore.sharing.batches import split_records
from evalstore.sharing.completeness import Completeness
from evalstore.sharing.differences import MissingIds, count_ids, split_ids
from evalstore.sharing.pack_reader import PackReader
from evalstore.sharing.packs import TABLE_NUMBERS
from evalstore.sharing.wanted_records import WantedRecords
from evalstore.store.records import COPIED_TABLES, CheckedRecord

if TYPE_CHECKING:
    from evalstore.sharing.index_cache import IndexCache, RecordPlace
    from evalstore.sharing.progress import CopyListener
    from evalstore.sharing.remote_files import RemoteFiles
    from evalstore.store import Store

_AT_ONCE = 30_000


@dataclass(slots=True)
class Pulled:
    """What a pull has read."""

    records: int = 0
    bytes_received: int = 0
    """Of packs, or parts of them."""
    waiting: int = 0
    """Runs that were left in the remote, because it lacks rows that they refer to."""


def pull_records(
    store: Store,
    files: RemoteFiles,
    cache: IndexCache,
    missing: MissingIds,
    listener: CopyListener,
) -> Pulled:
    """Store these rows of a remote; runs come last, so that an interrupted pull shows no new run.

    Each pack is read once. A run that refers to rows which the remote does not have yet is left
    there.

    Raises `RemoteError` for a pack that is damaged, `MissingPackError` for one that is gone, and
    `StoreError` if a stored row has other content.
    """
    pulled = Pulled()
    listener.start(count_ids(missing))
    reader = PackReader(files, cache, listener)
    with WantedRecords.open(cache) as wanted:
        for table in sorted(missing, key=COPIED_TABLES.index):
            for ids in split_ids(missing[table], _AT_ONCE):
                if wanted.add(cache.find_places(table, ids)) < len(ids):
                    raise RemoteError(
                        f"what is known of the remote '{files.address}' changed during the pull",
                        hint="another program has read it at the same time; pull again",
                    )
        wanted.order()
        for table in sorted(missing, key=COPIED_TABLES.index):
            for batch in split_records(_read_table(reader, wanted, table)):
                _store(store, batch, pulled)
    pulled.bytes_received = reader.bytes_received
    return pulled


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


def _store(store: Store, batch: Sequence[CheckedRecord], pulled: Pulled) -> None:
    if batch and batch[0].kind == "run":
        batch, waiting = Completeness(store).split(batch)
        pulled.waiting += len(waiting)
    if batch:
        store.ensure_records(batch)
        pulled.records += len(batch)
