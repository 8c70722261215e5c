"""Which parts a large index file has, so that a few of its ids can be read without the others.

Beside an index file may be `NAME.idx.<sha256>.parts`, named by its content and written before the
index. It is the line `evalstore parts 1`, the header of the index, and for each part of the table
of the index, in their order, 46 bytes: how many ids it has, its length, the first 4 bytes of its
least and of its greatest id, and its SHA-256. A part has ids of one table; the last part has no
ids, but all other columns. So whoever looks for some records reads the last part, which tells where
the records of a table and those with a lookup key are, and then only the ids that these records
can have.

It says nothing that the index does not say, and can be removed at any time: then the index is read
as a whole, as by programs that know no parts. Where signatures are required it is not used, because
a signature is that of the whole index.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from evalstore.remotes.indexes.indexes import (
    LARGEST_INDEX,
    MAGIC,
    NO_KEY,
    DamagedIndexError,
    IndexedRecord,
    IndexHeader,
    read_header,
    read_index,
    read_rest,
    unpack_ids,
    write_pieces,
)
from evalstore.remotes.places.layout import read_parts_name, sha256

_MAGIC = b"evalstore parts 1\n"
_PART = Struct("<HI4s4s32s")
_PREFIX = 4
"""Bytes of an id by which its block is found."""
_BLOCK = 256
"""Ids of a block."""
_FEWEST = 20_000
"""Records from which on an index is written with parts."""
_MOST_PARTS = 2**16
LARGEST_PARTS = 20 * 2**20
"""Bytes."""


class IndexPart(NamedTuple):
    """A part of the table of an index file."""

    ids: int
    """How many it has; 0 for the last part."""
    start: int
    """Bytes from the beginning of the file."""
    length: int
    least: bytes
    """The beginning of its least id."""
    greatest: bytes
    digest: bytes
    """SHA-256."""

    @property
    def end(self) -> int:
        """Return where it ends in the file."""
        return self.start + self.length

    def require_sound(self, data: bytes) -> None:
        """Raise `DamagedIndexError` if these are not the bytes of the part."""
        if len(data) != self.length or sha256(data) != self.digest.hex():
            raise DamagedIndexError("it has other bytes than when it was written")

    def read_ids(self, data: bytes) -> list[bytes]:
        """Return the ids in these bytes; raises `DamagedIndexError` if they are not of the part."""
        self.require_sound(data)
        joined = unpack_ids(data, self.ids)
        ids = [joined[at : at + len(NO_KEY)] for at in range(0, len(joined), len(NO_KEY))]
        # They would not be found.
        if (min(ids)[:_PREFIX], max(ids)[:_PREFIX]) != (self.least, self.greatest):
            raise DamagedIndexError("it has other ids than its parts say")
        return ids


class WrittenIndex(NamedTuple):
    """The bytes of an index file and of the file with its parts."""

    data: bytes
    parts: bytes | None
    """None where reading a part would save little."""


def write_with_parts(header: IndexHeader, records: Sequence[IndexedRecord]) -> WrittenIndex:
    """Return the bytes of an index file, with its parts if it is large."""
    blocks = list(_split(records)) if len(records) >= _FEWEST else []
    if _BLOCK * len(blocks) > 8 * len(records):  # tables take turns
        blocks = []
    head, pieces = write_pieces(header, records, [len(block) for block in blocks])
    data = b"".join([head, *pieces])
    if not blocks:
        return WrittenIndex(data, None)
    found = [_MAGIC, head.removeprefix(MAGIC)]
    for block, piece in zip(blocks, pieces, strict=False):
        ids = [record.entry.id for record in block]
        found.append(_describe(len(ids), piece, min(ids), max(ids)))
    return WrittenIndex(data, b"".join([*found, _describe(0, pieces[-1])]))


def _describe(count: int, piece: bytes, least: bytes = NO_KEY, greatest: bytes = NO_KEY) -> bytes:
    digest = bytes.fromhex(sha256(piece))
    return _PART.pack(count, len(piece), least[:_PREFIX], greatest[:_PREFIX], digest)


def _split(records: Sequence[IndexedRecord]) -> Iterator[Sequence[IndexedRecord]]:
    start = 0
    for _, group in itertools.groupby(records, key=lambda record: record.entry.table):
        end = start + sum(1 for _ in group)
        for first in range(start, end, _BLOCK):
            yield records[first : min(first + _BLOCK, end)]
        start = end


def read_parts(data: bytes, name: str) -> tuple[IndexHeader, list[IndexPart]]:
    """Return the header of an index file and its parts, from the file with its parts.

    Raises `DamagedIndexError`, also for a file that has another name.
    """
    of = read_parts_name(name)
    if of is None or sha256(data) != of[1]:
        raise DamagedIndexError("it has other bytes than when it was written")
    end = data.find(b"\n", len(_MAGIC))
    if not data.startswith(_MAGIC) or end < 0:
        raise DamagedIndexError("it does not say which parts an index has")
    line = data[len(_MAGIC) : end]
    header = read_header(line)
    rows, rest = divmod(len(data) - end - 1, _PART.size)
    if rest or not 0 < rows <= _MOST_PARTS:
        raise DamagedIndexError("it does not end where it should")
    parts = list[IndexPart]()
    start = len(MAGIC) + len(line) + 1
    for count, length, *rest_of_part in _PART.iter_unpack(data[end + 1 :]):
        parts.append(IndexPart(count, start, length, *rest_of_part))
        start += length
    counts = [part.ids for part in parts]
    if counts.pop() or 0 in counts or sum(counts) != header.records or start > LARGEST_INDEX:
        raise DamagedIndexError("its parts are not those of an index")
    return header, parts


def check_parts(data: bytes, parts: bytes, name: str) -> None:
    """Raise `DamagedIndexError` if the file with the parts of an index says something else.

    `data` are the bytes of the index, which must be sound; `parts` are those of that file.
    """
    header, (*blocks, rest) = read_parts(parts, name)
    own_header, own_records = read_index(data)
    is_same = header == own_header and rest.end == len(data)
    if is_same:
        last = data[rest.start :]
        rest.require_sound(last)
        ids = (id for block in blocks for id in block.read_ids(data[block.start : block.end]))
        records = (
            record._replace(entry=record.entry._replace(id=id))
            for id, record in zip(ids, read_rest(header, last), strict=True)
        )
        tables = [block.ids * [position] for position, block in enumerate(blocks)]
        blocks_of = itertools.chain.from_iterable(tables)
        found = dict[int, int]()
        is_same = all(
            record == own and found.setdefault(block, own.entry.table) == own.entry.table
            for block, record, own in zip(blocks_of, records, own_records, strict=True)
        )
    if not is_same:
        raise DamagedIndexError("it has other records than its index")
