"""Index files: what one push has brought, and in which pack it is.

An index is the line `evalstore index 1`, a line of JSON (who has written it and when, and the
packs with their SHA-256 and size), and then 43 bytes for each record: the number of its table, its
id, its lookup key (the question of a session, the subject of an evaluation, the time of a run and
whether it was about all cases, otherwise zeros), the number of the pack, the offset and the length
in it, little-endian. The header of one that a clean-up has written also names the indexes that it
replaces: it lists all of their records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from evalstore.canonical_json import canonical_json
from evalstore.sharing.layout import digest_of_index
from evalstore.sharing.packs import LONGEST_RECORD, PackEntry

MAGIC = b"evalstore index 1\n"
MOST_RECORDS = 1_000_000
"""Records in one index; a push of more writes several."""
MOST_PACKS = 65_536
MOST_REPLACED = 50_000
_LONGEST_HEADER = 16 * 2**20
LARGEST_INDEX = 64 * 2**20 + _LONGEST_HEADER
"""Bytes."""
NO_KEY = bytes(16)
_ENTRY = Struct("<B16s16sHII")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_LONGEST_NAME = 200
_LAST_TIME = 253_402_300_800_000_000
"""Microseconds from 1970 to the year 10000."""


class DamagedIndexError(Exception):
    """The bytes of an index are not as they were written."""


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


def write_index(header: IndexHeader, records: Sequence[IndexedRecord]) -> bytes:
    """Return the bytes of an index file."""
    description: dict[str, Any] = {
        "writer": header.writer[:_LONGEST_NAME],
        "created": header.created,
        "packs": [list(pack) for pack in header.packs],
    }
    if header.replaces:
        description["replaces"] = list(header.replaces)
    entries = [
        _ENTRY.pack(entry.table, entry.id, key, pack, entry.offset, entry.length)
        for pack, entry, key in records
    ]
    return b"".join([MAGIC, canonical_json(description).encode(), b"\n", *entries])


def read_index(data: bytes) -> tuple[IndexHeader, Iterator[IndexedRecord]]:
    """Return the header and the records of an index file; raises `DamagedIndexError`."""
    end = data.find(b"\n", len(MAGIC), len(MAGIC) + _LONGEST_HEADER)
    if not data.startswith(MAGIC) or end < 0:
        raise DamagedIndexError("it is not an index")
    header = _read_header(data[len(MAGIC) : end])
    body = memoryview(data)[end + 1 :]
    if len(body) % _ENTRY.size or len(body) // _ENTRY.size > MOST_RECORDS:
        raise DamagedIndexError("it does not end where it should")
    return header, _iterate_records(header, body)


def count_records(data: bytes) -> int:
    """Return how many records an index lists whose header can be read."""
    return (len(data) - data.index(b"\n", len(MAGIC)) - 1) // _ENTRY.size


def _read_header(line: bytes) -> IndexHeader:
    try:
        content = json.loads(line)
        writer, created = content["writer"], content["created"]
        packs = [IndexedPack(digest, size) for digest, size in content["packs"]]
        replaces = content.get("replaces", [])
        writer.encode()  # it could be half of a character
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedIndexError("its header cannot be read") from error
    sound = (
        writer.__class__ is str
        and len(writer) <= _LONGEST_NAME
        and created.__class__ is int
        and 0 <= created < _LAST_TIME
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
    )
    if not sound:
        raise DamagedIndexError("its header has other fields")
    return IndexHeader(writer, created, packs, replaces)


def _iterate_records(header: IndexHeader, body: memoryview) -> Iterator[IndexedRecord]:
    for table, id, key, pack, offset, length in _ENTRY.iter_unpack(body):
        if pack >= len(header.packs) or offset + length > header.packs[pack].size:
            raise DamagedIndexError("a record is outside of its pack")
        yield IndexedRecord(pack, PackEntry(table, id, offset, length), key)
