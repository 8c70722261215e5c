"""Reads records of packs of a remote, and checks every one of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from evalstore.core.errors import NewerError, RemoteError, StoreError
from evalstore.remotes.bundle_files import BundleFiles
from evalstore.remotes.differences import CopyListener
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.indexes import NO_KEY, IndexedPack, IndexedRecord
from evalstore.remotes.packs import TABLE_NAMES, DamagedPackError, PackEntry, read_record
from evalstore.remotes.places.layout import (
    SIGNATURE,
    MissingFileError,
    RemoteFiles,
    pack_name,
    repair_hint,
    require_remote,
    sha256,
)
from evalstore.store.contents import not_readable
from evalstore.store.records import CheckedRecord, check_record
from evalstore.store.schema.content_schemas import find_unknown

_GAP = 16 * 1024
"""Bytes between two records that are rather read than left out by another request."""


class PackReader:
    """Reads packs of a remote: whole ones, or the parts that are needed."""

    def __init__(self, files: RemoteFiles, cache: IndexCache, listener: CopyListener) -> None:
        self._files = files
        self._cache = cache
        self._listener = listener
        self._last: tuple[str, bytes] = ("", b"")
        """The SHA-256 and the bytes of the whole pack that was read last: rows of several tables
        are in one."""
        self.bytes_received = 0
        """Of packs, or parts of them."""
        self.missing_packs: set[str] = set()
        """The SHA-256 of packs that an index lists and that are not there, or no longer."""
        self.left = Counter[str]()
        """How many of the records that should be read are in these packs, by table."""

    def read_records(self, table: str, ids: Sequence[bytes]) -> Iterator[CheckedRecord]:
        """Yield the checked records of a table with these ids that the remote has.

        Raises as `_read_pack` and `_check`.
        """
        places = self._cache.find_places(table, ids)
        yield from self.read_places(
            sorted(places, key=lambda place: (place.pack, place.entry.offset))
        )

    def read_places(self, places: Iterable[IndexedRecord]) -> Iterator[CheckedRecord]:
        """Yield the checked records at these places, which are ordered by pack and offset."""
        for number, group in itertools.groupby(places, key=lambda place: place.pack):
            pack = self._cache.find_pack(number)
            for place, data in self._read_pack(pack, list(group)):
                yield self._check(pack, place, data)

    def _read_pack(
        self, pack: IndexedPack, places: Sequence[IndexedRecord]
    ) -> Iterator[tuple[IndexedRecord, bytes]]:
        """Yield the bytes of records of a pack, which are ordered by their offset.

        A signature is that of an index with the SHA-256 of whole packs. The ids of records alone
        do not prove that bytes are those that were signed, so whole packs are read where
        signatures are required. A pack that is missing is noted: a synchronised folder may have its
        index first, or a clean-up has just replaced it. Raises `RemoteError` for one that is
        damaged, for one that is missing in a bundle, and when the remote is gone.
        """
        before, count = self.bytes_received, 0
        try:
            for count, found in enumerate(self._read(pack, places), start=1):  # noqa: B007
                yield found
        except MissingFileError as error:
            if isinstance(self._files, BundleFiles):
                raise self._damaged(pack, "it is missing") from error
            require_remote(self._files)
            self.missing_packs.add(pack.digest)
            self.left.update(TABLE_NAMES[place.entry.table] for place in places[count:])
        self._listener.advance(len(places), self.bytes_received - before)

    def _read(
        self, pack: IndexedPack, places: Sequence[IndexedRecord]
    ) -> Iterator[tuple[IndexedRecord, bytes]]:
        is_last = self._last[0] == pack.digest
        needed = sum(place.entry.length for place in places)
        if self._cache.rules.requires_signatures or is_last or 2 * needed >= pack.size:
            if not is_last:
                data = self._files.read(pack_name(pack.digest), pack.size)
                if sha256(data) != pack.digest:
                    raise self._damaged(pack, "it has changed since it was written")
                self.bytes_received += pack.size
                self._last = (pack.digest, data)
            data = self._last[1]
            for place in places:
                start = place.entry.offset
                yield place, data[start : start + place.entry.length]
            return
        for group in _neighbours(places):
            start = group[0].entry.offset
            end = group[-1].entry.offset + group[-1].entry.length
            data = self._files.read_range(pack_name(pack.digest), start, end - start)
            self.bytes_received += len(data)
            for place in group:
                begin = place.entry.offset - start
                yield place, data[begin : begin + place.entry.length]

    def _check(self, pack: IndexedPack, place: IndexedRecord, data: bytes) -> CheckedRecord:
        """Return a checked record.

        Raises `RemoteError` for one that is damaged, and `NewerError` for one of a newer program.
        """
        try:
            checked = check_packed(data, place.entry, place.key)
            if checked is None:
                raise DamagedPackError("its table is not known")
        except NewerError as error:
            raise NewerError(f"the remote '{self._files.address}'", error.problem) from error
        except DamagedPackError as error:
            raise self._damaged(pack, f"the record {place.entry.id.hex()}: {error}") from error
        return checked

    def _damaged(self, pack: IndexedPack, problem: str) -> RemoteError:
        return RemoteError(
            f"the remote '{self._files.address}' is damaged: '{pack_name(pack.digest)}': {problem}",
            hint=self._repair(pack),
        )

    def _repair(self, pack: IndexedPack) -> str:
        """Return how to repair the remote; nothing of the pack was stored."""
        if isinstance(self._files, BundleFiles):
            return "make the bundle again; 'evalstore fsck --remote FILE' lists what is wrong"
        names = [pack_name(pack.digest)]
        for name in self._cache.list_indexes(pack.digest):
            names += [name, name + SIGNATURE][: 1 + self._cache.rules.requires_signatures]
        return repair_hint(names, "; 'evalstore fsck --remote' lists all that is damaged")


def _neighbours(places: Sequence[IndexedRecord]) -> Iterator[list[IndexedRecord]]:
    """Yield groups of records that are read together."""
    group: list[IndexedRecord] = []
    for place in places:
        if group:
            last = group[-1].entry
            if place.entry.offset > last.offset + last.length + _GAP:
                yield group
                group = []
        group.append(place)
    if group:
        yield group


def read_checked(
    files: RemoteFiles, pack: IndexedPack, records: Iterable[IndexedRecord]
) -> Iterator[tuple[IndexedRecord, bytes]]:
    """Yield records of a pack with their bytes.

    Those in tables of a newer program are not checked. Raises `RemoteError` for a pack that is
    damaged, and `NewerError` for a record of a newer program.
    """
    name = pack_name(pack.digest)
    content = files.read(name, pack.size)
    if sha256(content) != pack.digest:
        raise _left_alone(files, name, "it has changed since it was written")
    for record in records:
        entry = record.entry
        data = content[entry.offset : entry.offset + entry.length]
        try:
            check_packed(data, entry, record.key)
        except NewerError as error:
            raise NewerError(f"the remote '{files.address}'", error.problem) from error
        except DamagedPackError as error:
            raise _left_alone(files, name, f"the record {entry.id.hex()}: {error}") from error
        yield record, data


def _left_alone(files: RemoteFiles, name: str, problem: str) -> RemoteError:
    return RemoteError(
        f"the remote '{files.address}' is damaged: '{name}': {problem}",
        hint="'evalstore fsck --remote' lists what is wrong; nothing of it was deleted",
    )


def check_packed(data: bytes, entry: PackEntry, key: bytes) -> CheckedRecord | None:
    """Return the record in these bytes; None for one of a table of a newer program.

    `entry` and the lookup key are those of the index. Raises `DamagedPackError` with what is wrong
    with the record, and `NewerError` for one of a newer program that is in a table of today.
    """
    record = read_record(data, entry)
    if record is None:
        return None
    try:
        checked = check_record(record)
        own_key = bytes.fromhex(checked.key) if checked.key else NO_KEY
    except NewerError:
        raise
    except StoreError as error:
        place = f"the store is damaged: row {record.id} of the table '{record.table}': "
        raise DamagedPackError(str(error).removeprefix(place)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedPackError("its content is not that of its kind") from error
    if key != own_key:
        problem = "its index has another lookup key"
        if find_unknown(checked.content):
            raise not_readable(record.table, record.id, checked.content, problem)
        raise DamagedPackError(problem)
    return checked
