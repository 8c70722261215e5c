"""Index files: what one push has brought, and in which pack it is.

An index is the line `evalstore index 2`, a line of JSON, and a table of the records. The JSON says
who has written it and when, the packs with their SHA-256 and size, and how many records there are.
If a clean-up has written the index, the JSON also names the indexes that it replaces, all of whose
records it lists, and the times of the pushes that brought them.

A record has 45 bytes: its id, its lookup key (the question of a session, the subject of an
evaluation, the time of a run and whether it was about all cases, otherwise zeros), the number of
its table, that of its pack, that of the time of its push, and its offset and length in the pack. In
place of the offset is the distance from the end of the record before it, if that is in the same
pack. Ids, keys and tables are stored column by column; of the other numbers, first the lowest bytes
of all records. Then the columns are compressed with deflate. An index of format 1 has 43 bytes for
each record, one after another and not compressed.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct, iter_unpack
from typing import Any, NamedTuple

from evalstore.core.canonical_json import canonical_json
from evalstore.remotes.packs import LONGEST_RECORD, PackEntry
from evalstore.remotes.places.layout import digest_of_index

FORMAT = 2
"""Increase this number when older programs cannot read an index."""
MAGIC = f"evalstore index {FORMAT}\n".encode()
_MAGIC = re.compile(rb"evalstore index ([0-9]{1,9})\n")
MOST_RECORDS = 1_000_000
"""Records in one index; a push of more writes several."""
MOST_PACKS = 65_536
MOST_REPLACED = 50_000
MOST_TIMES = 65_536
_LONGEST_HEADER = 16 * 2**20
LARGEST_INDEX = 64 * 2**20 + _LONGEST_HEADER
"""Bytes."""
NO_KEY = bytes(16)
_ID = len(NO_KEY)
_ROW = Struct("<B16s16sHII")
"""A record of format 1."""
_NUMBERS = Struct("<BHHII")
"""The table, the pack, the time, the distance and the length of a record."""
_RECORD = 2 * _ID + _NUMBERS.size
"""Bytes of a record."""
_OFFSETS = 2**32
_WINDOW = -15
"""Raw deflate."""
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_LONGEST_NAME = 200
_LAST_TIME = 253_402_300_800_000_000
"""Microseconds from 1970 to the year 10000."""


class DamagedIndexError(Exception):
    """The bytes of an index are not as they were written."""


class NewerIndexError(DamagedIndexError):
    """An index is of a newer program."""


class IndexedPack(NamedTuple):
    """A pack of an index."""

    digest: str
    """SHA-256."""
    size: int
    """Bytes."""


class IndexedRecord(NamedTuple):
    """A record of an index."""

    pack: int
    """The position of the pack in the index."""
    entry: PackEntry
    key: bytes
    """`NO_KEY` for records that have none."""
    pushed: int | None = None
    """The time of its push, in microseconds since 1970; None: that of the index."""


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """The header of an index file."""

    writer: str
    """Who has pushed; not verified."""
    created: int
    """Microseconds since 1970, UTC, by the clock of the writer."""
    packs: Sequence[IndexedPack]
    replaces: Sequence[str] = ()
    """The names of the index files that it replaces."""
    records: int = 0
    """How many records it lists; set in what `read_index` returns."""
    times: Sequence[int] = ()
    """The times of the pushes that it replaces; set in what `read_index` returns."""


def write_index(header: IndexHeader, records: Sequence[IndexedRecord]) -> bytes:
    """Return the bytes of an index file."""
    times = sorted({_time_of(record, header) for record in records})
    description: dict[str, Any] = {
        "writer": header.writer[:_LONGEST_NAME],
        "created": header.created,
        "packs": [list(pack) for pack in header.packs],
        "records": len(records),
    }
    if header.replaces:
        description["replaces"] = list(header.replaces)
    if times not in ([], [header.created]):
        description["times"] = times
    packer = zlib.compressobj(wbits=_WINDOW)
    table = [packer.compress(column) for column in _columns(header, records, times)]
    return b"".join([MAGIC, canonical_json(description).encode(), b"\n", *table, packer.flush()])


def _columns(
    header: IndexHeader, records: Sequence[IndexedRecord], times: Sequence[int]
) -> Iterator[bytes]:
    """Yield the columns of the table."""
    positions = {time: position for position, time in enumerate(times)}
    numbers = bytearray()
    last, end = -1, 0
    for record in records:
        pack, entry, _, _ = record
        distance = entry.offset - (end if pack == last else 0)
        time = positions[_time_of(record, header)]
        numbers += _NUMBERS.pack(entry.table, pack, time, distance % _OFFSETS, entry.length)
        last, end = pack, entry.offset + entry.length
    yield b"".join(record.entry.id for record in records)
    yield b"".join(record.key for record in records)
    for position in range(_NUMBERS.size):
        yield bytes(numbers[position :: _NUMBERS.size])


def _time_of(record: IndexedRecord, header: IndexHeader) -> int:
    return header.created if record.pushed is None else record.pushed


def read_index(data: bytes) -> tuple[IndexHeader, Iterator[IndexedRecord]]:
    """Return the header and the records of an index file.

    Raises `DamagedIndexError`, also while the records are iterated.
    """
    magic = _MAGIC.match(data)
    start = magic.end() if magic else 0
    end = data.find(b"\n", start, start + _LONGEST_HEADER)
    if magic is None or end < 0:
        raise DamagedIndexError("it is not an index")
    version = int(magic[1])
    if version > FORMAT:
        raise NewerIndexError(f"it has format {version}; this version reads up to {FORMAT}")
    body = memoryview(data)[end + 1 :]
    content = _read_json(data[start:end])
    if version < FORMAT:
        count, rest = divmod(len(body), _ROW.size)
        if rest:
            raise DamagedIndexError("it does not end where it should")
        header = _read_header({**content, "records": count, "times": []})
        return header, _within_packs(header, _iterate_rows(body))
    header = _read_header(content)
    return header, _within_packs(header, _iterate_columns(header, body))


def _read_json(line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedIndexError("its header cannot be read") from error
    if content.__class__ is not dict:
        raise DamagedIndexError("its header cannot be read")
    return dict(content)


def _read_header(content: dict[str, Any]) -> IndexHeader:
    try:
        writer, created = content["writer"], content["created"]
        packs = [IndexedPack(digest, size) for digest, size in content["packs"]]
        replaces = content.get("replaces", [])
        records, times = content["records"], content.get("times", [])
        writer.encode()  # it could be half of a character
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedIndexError("its header cannot be read") from error
    sound = (
        writer.__class__ is str
        and len(writer) <= _LONGEST_NAME
        and _is_time(created)
        and records.__class__ is int
        and 0 <= records <= MOST_RECORDS
        and len(packs) <= MOST_PACKS
        and all(
            digest.__class__ is str
            and _DIGEST.match(digest)
            and size.__class__ is int
            and 0 < size <= 2 * LONGEST_RECORD
            for digest, size in packs
        )
        and replaces.__class__ is list
        and len(replaces) <= MOST_REPLACED
        and all(name.__class__ is str and digest_of_index(name) for name in replaces)
        and times.__class__ is list
        and len(times) <= MOST_TIMES
        and all(map(_is_time, times))
    )
    if not sound:
        raise DamagedIndexError("its header has other fields")
    return IndexHeader(writer, created, packs, replaces, records, times)


def _is_time(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < _LAST_TIME


def _iterate_rows(body: memoryview) -> Iterator[IndexedRecord]:
    """Yield the records of an index of format 1."""
    for table, id, key, pack, offset, length in _ROW.iter_unpack(body):
        yield IndexedRecord(pack, PackEntry(table, id, offset, length), key)


def _iterate_columns(header: IndexHeader, packed: bytes | memoryview) -> Iterator[IndexedRecord]:
    count = header.records
    data = memoryview(_unpack(packed, count * _RECORD))
    numbers = bytearray(count * _NUMBERS.size)
    for position in range(_NUMBERS.size):
        numbers[position :: _NUMBERS.size] = data[count * (2 * _ID + position) :][:count]
    ids = iter_unpack("16s", data[: count * _ID])
    keys = iter_unpack("16s", data[count * _ID :][: count * _ID])
    times: Sequence[int | None] = header.times or (None,)
    last, end = -1, 0
    for (id,), (key,), row in zip(ids, keys, _NUMBERS.iter_unpack(numbers), strict=True):
        table, pack, time, distance, length = row
        if time >= len(times):
            raise DamagedIndexError("a record has no time")
        offset = (distance + (end if pack == last else 0)) % _OFFSETS
        last, end = pack, offset + length
        yield IndexedRecord(pack, PackEntry(table, id, offset, length), key, times[time])


def _unpack(packed: bytes | memoryview, size: int) -> bytes:
    """Return bytes of the expected size; more are never unpacked."""
    unpacker = zlib.decompressobj(_WINDOW)
    try:
        data = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise DamagedIndexError(f"it cannot be unpacked: {error}") from error
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise DamagedIndexError("it does not end where it should")
    return data


def _within_packs(header: IndexHeader, records: Iterator[IndexedRecord]) -> Iterator[IndexedRecord]:
    """Yield the records; raises `DamagedIndexError` for one that is not in its pack."""
    sizes = [pack.size for pack in header.packs]
    for record in records:
        entry = record.entry
        if record.pack >= len(sizes) or entry.offset + entry.length > sizes[record.pack]:
            raise DamagedIndexError("a record is outside its pack")
        yield record
