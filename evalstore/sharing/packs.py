"""Packs: files of up to 8 MiB that hold rows.

A pack is the line `evalstore pack 1` and then records, one after another: the number of the table
and of the coding (a byte each), the id (16 bytes), the lengths of the content, of the data and of
what is stored (4 bytes each, little-endian), and the content with the data, compressed with zlib
where that is shorter. The same records make the same pack, so that an interrupted push that is
repeated finds what it has written.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from evalstore.sharing.layout import sha256
from evalstore.sharing.pack_dictionary import DICTIONARY
from evalstore.store.connection import LARGEST_VALUE
from evalstore.store.records import StoredRecord

MAGIC = b"evalstore pack 1\n"
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
_HEAD = Struct("<BB16sIII")
_STORED, _ZLIB, _DEFLATE = 0, 1, 2
"""How a record is packed: not at all, by older programs with zlib, with deflate after
`DICTIONARY`. Part of the format."""
_WINDOW = -15
"""Raw deflate: what zlib puts around it would be a tenth of a short record."""
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
        head = _HEAD.pack(number, coding, id, len(content), len(data), len(packed))
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
        end = _HEAD.pack(0, _STORED, variant.to_bytes(16, "big"), 0, 0, 0) if variant else b""
        data = b"".join([*self._pieces, end])
        return sha256(data), data


def read_record(data: bytes, entry: PackEntry) -> StoredRecord | None:
    """Return the record at the beginning of these bytes; None for a table of a newer program.

    `entry` says what it should be. Raises `DamagedPackError`.
    """
    if len(data) != entry.length or len(data) < _HEAD.size:
        raise DamagedPackError("it ends too early")
    table, coding, id, content_size, data_size, packed_size = _HEAD.unpack_from(data)
    if (table, id) != (entry.table, entry.id) or packed_size != len(data) - _HEAD.size:
        raise DamagedPackError("it is not what its index says")
    name = TABLE_NAMES.get(table)
    if name is None:
        return None
    size = content_size + data_size
    if size > LONGEST_RECORD:
        raise DamagedPackError(f"it would have {size:,} bytes")
    payload = _unpack(memoryview(data)[_HEAD.size :], coding, size)
    try:
        content = payload[:content_size].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DamagedPackError("its content is not UTF-8") from error
    blob = payload[content_size:]
    if blob and name != "files":
        raise DamagedPackError("it has data, which only files have")
    return StoredRecord(name, id.hex(), content, blob if name == "files" else None)


def _pack(payload: bytes) -> bytes:
    level = _WELL if len(payload) < _LONG else _QUICKLY
    packer = zlib.compressobj(level, zlib.DEFLATED, _WINDOW, zdict=DICTIONARY)
    return packer.compress(payload) + packer.flush()


def _unpack(packed: memoryview, coding: int, size: int) -> bytes:
    """Return bytes of the expected size; more are never unpacked."""
    if coding == _STORED:
        payload = bytes(packed)
    elif coding in (_ZLIB, _DEFLATE):
        unpacker = (
            zlib.decompressobj()
            if coding == _ZLIB
            else zlib.decompressobj(_WINDOW, zdict=DICTIONARY)
        )
        try:
            payload = unpacker.decompress(packed, size + 1)
        except zlib.error as error:
            raise DamagedPackError(f"it cannot be unpacked: {error}") from error
        if not unpacker.eof or unpacker.unused_data:
            raise DamagedPackError("it has another length")
    else:
        raise DamagedPackError(f"its coding is {coding}")
    if len(payload) != size:
        raise DamagedPackError("it has another length")
    return payload


def iterate_entries(data: bytes) -> Iterator[PackEntry]:
    """Yield the entries of a whole pack, for checking it; raises `DamagedPackError`."""
    if not data.startswith(MAGIC):
        raise DamagedPackError("it is not a pack")
    offset = len(MAGIC)
    while offset < len(data):
        if offset + _HEAD.size > len(data):
            raise DamagedPackError("it ends too early")
        table, _, id, _, _, packed_size = _HEAD.unpack_from(data, offset)
        length = _HEAD.size + packed_size
        if offset + length > len(data):
            raise DamagedPackError("it ends too early")
        yield PackEntry(table, id, offset, length)
        offset += length
