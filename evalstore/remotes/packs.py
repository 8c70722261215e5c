"""Packs, files of up to 8 MiB that hold rows, and the index files that list what is in them.

A pack is the line `evalstore pack 2` and then records, one after another: the number of the table
and of the coding (a byte each), the lengths of the content, of the data and of what is stored, and
the content with the data, compressed with deflate where that is shorter. A length has 7 bits in
each byte, the lowest first; the highest bit of a byte says that another one follows. The same
records make the same pack, so that an interrupted push that is repeated finds what it has written.

Records of older programs, which a clean-up copies as they are, have another head: the number of the
table and of the coding, the id (16 bytes), and the lengths (4 bytes each, little-endian).

Index files: what one push has brought, and in which pack it is.

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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct, iter_unpack
from typing import Any, NamedTuple

from evalstore.core.errors import RemoteError
from evalstore.core.hashing import canonical_json
from evalstore.remotes.layout import RemoteFiles, digest_of_index, sha256
from evalstore.store.records import StoredRecord
from evalstore.store.sqlite.connection import LARGEST_VALUE

MAGIC = b"evalstore pack 2\n"
LARGEST_PACK = 8 * 2**20
"""Bytes after which a pack is full; a single record may be larger."""
LONGEST_RECORD = LARGEST_VALUE + 2**20
"""The most bytes of a record, and of a pack with one record."""
TABLE_NUMBERS = {
    "files": 1,
    "schemas": 2,
    "tools": 3,
    "prompts": 4,
    "models": 5,
    "evaluators": 6,
    "evaluation_versions": 7,
    "tests": 8,
    "sessions": 9,
    "evaluations": 10,
    "failures": 11,
    "nodes": 12,
    "runs": 13,
}
"""Part of the format: a number is never used again for something else."""
TABLE_NAMES = {number: name for name, number in TABLE_NUMBERS.items()}
_STORED, _DEFLATE = 3, 4
"""How a record is packed: not at all, or with deflate after `DICTIONARY`. Part of the format."""
_OLD_STORED, _OLD_ZLIB, _OLD_DEFLATE = 0, 1, 2
"""The same of older programs, whose records have `_OLD_HEAD`."""
_OLD_HEAD = Struct("<BB16sIII")
_LONGEST_LENGTH = 5
"""Bytes of a length."""
_WINDOW = -15
"""Raw deflate: what zlib puts around it would be a tenth of a short record."""
DICTIONARY = b"".join(Path(__file__).with_name("dictionary.txt").read_bytes().splitlines())
"""What most contents have in common, with which the compression of records begins. What is near its
end costs least to refer to: answers and judgements are the most rows. Part of the format."""
_LONG = 64 * 2**10
"""Bytes from which on packing well takes too long."""
_WELL, _QUICKLY = 6, 1


class DamagedPackError(Exception):
    """The bytes of a record are not as they were written."""


class PackEntry(NamedTuple):
    """A record in a pack."""

    table: int
    """One of `TABLE_NUMBERS`, or one of a newer program."""
    id: bytes
    offset: int
    """Bytes from the beginning of the pack."""
    length: int
    """Bytes, with its head."""


def is_small(size: int) -> bool:
    """Return whether a pack of this size should be put together with others."""
    return 2 * size < LARGEST_PACK


class PackWriter:
    """Collects the records of one pack."""

    def __init__(self) -> None:
        self._pieces = [MAGIC]
        self.size = len(MAGIC)
        """Bytes."""
        self.entries: list[PackEntry] = []

    @property
    def is_full(self) -> bool:
        """Return whether the next record belongs into another pack."""
        return self.size >= LARGEST_PACK

    def add(self, record: StoredRecord) -> PackEntry:
        """Append a record; returns where it is."""
        content, data = record.content.encode("utf-8", "surrogatepass"), record.data or b""
        payload = content + data
        packed, coding = _pack(payload), _DEFLATE
        if len(packed) >= len(payload):
            packed, coding = payload, _STORED
        id = bytes.fromhex(record.id)
        number = TABLE_NUMBERS[record.table]
        head = _head(number, coding, len(content), len(data), len(packed))
        return self.copy(number, id, head + packed)

    def copy(self, table: int, id: bytes, data: bytes) -> PackEntry:
        """Append a record as it is in another pack; returns where it is."""
        entry = PackEntry(table, id, self.size, len(data))
        self.entries.append(entry)
        self._pieces.append(data)
        self.size += len(data)
        return entry

    def finish(self, variant: int = 0) -> tuple[str, bytes]:
        """Return the SHA-256 of the pack and its bytes.

        Another `variant` of it has another name: it ends with an empty record that no index lists.
        """
        end = _head(0, _STORED, variant, 0, 0) if variant else b""
        data = b"".join([*self._pieces, end])
        return sha256(data), data


def read_record(data: bytes, entry: PackEntry) -> StoredRecord | None:
    """Return the record at the beginning of these bytes; None for a table of a newer program.

    `entry` says what it should be; its id is compared only where the head has one. Raises
    `DamagedPackError`.
    """
    if len(data) != entry.length or len(data) < 2:
        raise DamagedPackError("it ends too early")
    table, coding = data[0], data[1]
    if table != entry.table:
        raise DamagedPackError("it is not what its index says")
    name = TABLE_NAMES.get(table)
    if name is None:
        return None
    content_size, data_size, start = _read_lengths(data, coding, entry)
    size = content_size + data_size
    if size > LONGEST_RECORD:
        raise DamagedPackError(f"it would have {size:,} bytes")
    payload = _unpack(memoryview(data)[start:], coding, size)
    try:
        content = payload[:content_size].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DamagedPackError("its content is not UTF-8") from error
    blob = payload[content_size:]
    if blob and name != "files":
        raise DamagedPackError("it has data, which only files have")
    return StoredRecord(name, entry.id.hex(), content, blob if name == "files" else None)


def _head(table: int, coding: int, *lengths: int) -> bytes:
    head = bytearray((table, coding))
    for length in lengths:
        while length > 0x7F:
            head.append(length & 0x7F | 0x80)
            length >>= 7
        head.append(length)
    return bytes(head)


def _read_lengths(data: bytes, coding: int, entry: PackEntry) -> tuple[int, int, int]:
    """Return the lengths of the content and of the data, and where what is stored begins."""
    if coding in (_OLD_STORED, _OLD_ZLIB, _OLD_DEFLATE):
        if len(data) < _OLD_HEAD.size:
            raise DamagedPackError("it ends too early")
        _, _, id, content_size, data_size, packed_size = _OLD_HEAD.unpack_from(data)
        start = _OLD_HEAD.size
    else:
        id, start = entry.id, 2
        content_size, start = _read_length(data, start)
        data_size, start = _read_length(data, start)
        packed_size, start = _read_length(data, start)
    if id != entry.id or packed_size != len(data) - start:
        raise DamagedPackError("it is not what its index says")
    return content_size, data_size, start


def _read_length(data: bytes, start: int) -> tuple[int, int]:
    """Return a length, and where it ends."""
    length = 0
    for position, byte in enumerate(data[start : start + _LONGEST_LENGTH]):
        length |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return length, start + position + 1
    raise DamagedPackError("a length in it does not end")


def _pack(payload: bytes) -> bytes:
    level = _WELL if len(payload) < _LONG else _QUICKLY
    packer = zlib.compressobj(level, zlib.DEFLATED, _WINDOW, zdict=DICTIONARY)
    return packer.compress(payload) + packer.flush()


def _unpack(packed: memoryview, coding: int, size: int) -> bytes:
    """Return bytes of the expected size; more are never unpacked."""
    if coding in (_STORED, _OLD_STORED):
        payload = bytes(packed)
    elif coding in (_DEFLATE, _OLD_DEFLATE, _OLD_ZLIB):
        unpacker = (
            zlib.decompressobj()
            if coding == _OLD_ZLIB
            else zlib.decompressobj(_WINDOW, zdict=DICTIONARY)
        )
        try:
            payload = unpacker.decompress(packed, size + 1)
        except zlib.error as error:
            raise DamagedPackError(f"it cannot be unpacked: {error}") from error
        if not unpacker.eof or unpacker.unused_data:
            raise DamagedPackError("it has another length")
    else:
        raise DamagedPackError(f"its encoding is {coding}")
    if len(payload) != size:
        raise DamagedPackError("it has another length")
    return payload


# --- index files


FORMAT = 2
"""Increase this number when older programs cannot read an index."""
_INDEX_MAGIC = f"evalstore index {FORMAT}\n".encode()
_ANY_INDEX = re.compile(rb"evalstore index ([0-9]{1,9})\n")
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
    return b"".join(
        [_INDEX_MAGIC, canonical_json(description).encode(), b"\n", *table, packer.flush()]
    )


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


def load_index(files: RemoteFiles, name: str) -> bytes:
    """Return the bytes of an index file; raises `DamagedIndexError` and `RemoteError`."""
    data = files.read(name, LARGEST_INDEX)
    if sha256(data) != digest_of_index(name):
        raise DamagedIndexError("it has changed since it was written")
    return data


@contextmanager
def explaining_damage(files: RemoteFiles, name: str) -> Iterator[None]:
    """Raise `RemoteError` with a hint in place of `DamagedIndexError`."""
    try:
        yield
    except DamagedIndexError as error:
        hint = (
            f"'evalstore fsck --remote' lists what is wrong; remove '{name}', and push again from "
            "a store that has its rows"
        )
        raise RemoteError(
            f"the remote '{files.address}' is damaged: '{name}': {error}",
            hint="install a newer version" if isinstance(error, NewerIndexError) else hint,
        ) from error


def read_index(data: bytes) -> tuple[IndexHeader, Iterator[IndexedRecord]]:
    """Return the header and the records of an index file.

    Raises `DamagedIndexError`, also while the records are iterated.
    """
    magic = _ANY_INDEX.match(data)
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
    data = memoryview(_unpack_columns(packed, count * _RECORD))
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


def _unpack_columns(packed: bytes | memoryview, size: int) -> bytes:
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
