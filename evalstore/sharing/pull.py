"""Copies rows that a store does not have from a remote, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.errors import RemoteError, StoreError
from evalstore.sharing.completeness import Completeness
from evalstore.sharing.differences import MissingIds, count_ids, split_ids
from evalstore.sharing.indexes import NO_KEY
from evalstore.sharing.layout import pack_name, sha256
from evalstore.sharing.packs import DamagedPackError, read_record
from evalstore.sharing.remote_files import MissingFileError, RemoteFiles
from evalstore.store.records import COPIED_TABLES, CheckedRecord, check_record

if TYPE_CHECKING:
    from evalstore.sharing.index_cache import IndexCache, RecordPlace
    from evalstore.sharing.indexes import IndexedPack
    from evalstore.sharing.progress import CopyListener
    from evalstore.store import Store

_AT_ONCE = 30_000
_GAP = 16 * 1024
"""Bytes between two records that are rather read than left out by another request."""
_ROWS, _BYTES = 5_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are written in one transaction."""


class MissingPackError(RemoteError):
    """A pack that an index lists is not in the remote, or no longer."""


@dataclass(slots=True)
class Pulled:
    """What a pull has read."""

    records: int = 0
    bytes_received: int = 0
    """Of packs, or parts of them."""
    waiting: int = 0
    """Runs that were left in the remote, because it lacks rows that they refer to."""
    last_pack: tuple[str, bytes] = ("", b"")
    """The SHA-256 and the bytes of the whole pack that was read last: rows of several tables are
    in one."""


def pull_records(
    store: Store,
    files: RemoteFiles,
    cache: IndexCache,
    missing: MissingIds,
    listener: CopyListener,
) -> Pulled:
    """Store these rows of a remote; runs come last, so that an interrupted pull shows no new run.

    A run that refers to rows which the remote does not have yet is left there.

    Raises `RemoteError` for a pack that is damaged, `MissingPackError` for one that is gone, and
    `StoreError` if a stored row has other content.
    """
    pulled = Pulled()
    listener.start(count_ids(missing))
    for table in sorted(missing, key=COPIED_TABLES.index):
        batch: list[CheckedRecord] = []
        size = 0
        for ids in split_ids(missing[table], _AT_ONCE):
            for checked in read_records(
                files, cache, table, ids, pulled, listener, is_complete=True
            ):
                batch.append(checked)
                size += checked.record.size
                if len(batch) >= _ROWS or size >= _BYTES:
                    _store(store, batch, pulled)
                    batch, size = [], 0
        _store(store, batch, pulled)
    return pulled


def _store(store: Store, batch: Sequence[CheckedRecord], pulled: Pulled) -> None:
    if batch and batch[0].kind == "run":
        batch, waiting = Completeness(store).split(batch)
        pulled.waiting += len(waiting)
    if batch:
        store.ensure_records(batch)
        pulled.records += len(batch)


def read_records(
    files: RemoteFiles,
    cache: IndexCache,
    table: str,
    ids: Sequence[bytes],
    pulled: Pulled,
    listener: CopyListener,
    *,
    is_complete: bool = False,
) -> Iterator[CheckedRecord]:
    """Yield the checked records of a table with these ids; those the remote lacks are left out.

    With `is_complete`, it is an error if it lacks one.
    """
    by_pack: dict[int, list[RecordPlace]] = {}
    for place in cache.find_places(table, ids):
        by_pack.setdefault(place.pack, []).append(place)
    if is_complete and sum(map(len, by_pack.values())) < len(ids):
        raise RemoteError(
            f"what is known of the remote '{files.address}' changed during the pull",
            hint="another program has read it at the same time; pull again",
        )
    for number, places in by_pack.items():
        pack = cache.find_pack(number)
        places.sort(key=lambda place: place.entry.offset)
        before = pulled.bytes_received
        whole = cache.rules.requires_signatures
        for place, data in _read_pack(files, pack, places, pulled, whole=whole):
            yield _check(files, pack, place, data)
        listener.advance(len(places), pulled.bytes_received - before)


def _read_pack(
    files: RemoteFiles,
    pack: IndexedPack,
    places: Sequence[RecordPlace],
    pulled: Pulled,
    *,
    whole: bool,
) -> Iterator[tuple[RecordPlace, bytes]]:
    """Yield the bytes of records of a pack: of the whole pack, or of the parts that are needed.

    A signature is that of an index with the SHA-256 of whole packs. The ids of records alone do
    not prove that bytes are those that were signed, so `whole` packs are read then.
    """
    name = pack_name(pack.digest)
    try:
        is_last = pulled.last_pack[0] == pack.digest
        if whole or is_last or 2 * sum(place.entry.length for place in places) >= pack.size:
            if not is_last:
                pulled.last_pack = (pack.digest, _read_whole(files, pack))
                pulled.bytes_received += pack.size
            data = pulled.last_pack[1]
            for place in places:
                start = place.entry.offset
                yield place, data[start : start + place.entry.length]
            return
        for group in _neighbours(places):
            start = group[0].entry.offset
            end = group[-1].entry.offset + group[-1].entry.length
            data = files.read_range(name, start, end - start)
            pulled.bytes_received += len(data)
            for place in group:
                begin = place.entry.offset - start
                yield place, data[begin : begin + place.entry.length]
    except MissingFileError as error:
        raise MissingPackError(
            f"the remote '{files.address}' is damaged: '{name}' is missing",
            hint="try again in a moment; otherwise remove the index that lists it, and push again "
            "from a store that has its rows",
        ) from error


def _read_whole(files: RemoteFiles, pack: IndexedPack) -> bytes:
    name = pack_name(pack.digest)
    data = files.read(name, pack.size)
    if sha256(data) != pack.digest:
        raise _damaged(files, name, "it has other bytes than when it was written")
    return data


def _neighbours(places: Sequence[RecordPlace]) -> Iterator[list[RecordPlace]]:
    """Yield groups of records that are read together."""
    group: list[RecordPlace] = []
    for place in places:
        if group:
            last = group[-1].entry
            if place.entry.offset > last.offset + last.length + _GAP:
                yield group
                group = []
        group.append(place)
    if group:
        yield group


def _check(files: RemoteFiles, pack: IndexedPack, place: RecordPlace, data: bytes) -> CheckedRecord:
    """Return a checked record."""
    name = pack_name(pack.digest)
    try:
        record = read_record(data, place.entry)
        if record is None:
            raise DamagedPackError("its table is not known")
        checked = check_record(record)
        if place.key != (bytes.fromhex(checked.key) if checked.key else NO_KEY):
            raise DamagedPackError("its index has another lookup key")
        return checked
    except DamagedPackError as error:
        raise _damaged(files, name, f"the record {place.entry.id.hex()}: {error}") from error
    except StoreError as error:
        problem = str(error).removeprefix("the store is damaged: ")
        raise _damaged(files, name, problem) from error


def _damaged(files: RemoteFiles, name: str, problem: str) -> RemoteError:
    return RemoteError(
        f"the remote '{files.address}' is damaged: '{name}': {problem}",
        hint="'evalstore fsck --remote' lists what is wrong; nothing of it was stored",
    )
