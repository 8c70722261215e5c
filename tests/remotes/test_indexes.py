"""How an index file lists records."""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from struct import Struct
from typing import Any

import pytest

from evalstore.remotes.packs import (
    MOST_RECORDS,
    NO_KEY,
    DamagedIndexError,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    PackEntry,
    read_index,
    write_index,
)

CREATED = 1_700_000_000_000_000
PACKS = [IndexedPack("a" * 64, 3_000_000_000 // 8), IndexedPack("b" * 64, 10_000)]
ROW = Struct("<B16s16sHII")
NUMBERS = Struct("<BHHII")


def _id(text: object) -> bytes:
    return sha256(str(text).encode()).digest()[:16]


def _push(count: int) -> list[IndexedRecord]:
    """The records of a push: questions, their answers, and the judgements of these."""
    records, offset = [], 17
    for table, about in ((8, None), (9, "question"), (10, 9)):
        for number in range(count):
            key = _id((about, number)) if about else NO_KEY
            entry = PackEntry(table, _id((table, number)), offset, 100 + number * 7 % 50)
            records.append(IndexedRecord(0, entry, key))
            offset += entry.length
    return records


@pytest.mark.parametrize(
    "records",
    [
        [],
        _push(20),
        [
            IndexedRecord(0, PackEntry(1, _id(1), 375_000_000 - 4, 4), NO_KEY),
            IndexedRecord(0, PackEntry(255, _id(2), 0, 1), NO_KEY),
            IndexedRecord(1, PackEntry(9, _id(3), 17, 9_000), _id(4)),
            IndexedRecord(1, PackEntry(9, _id(5), 9_017, 983), _id(6)),
            IndexedRecord(0, PackEntry(9, _id(7), 17, 1), _id(8)),
        ],
    ],
)
def test_an_index_is_read_as_it_was_written(records: list[IndexedRecord]) -> None:
    header, found = read_index(write_index(IndexHeader("Ann", CREATED, PACKS), records))
    assert header == IndexHeader("Ann", CREATED, PACKS, [], len(records), [])
    assert list(found) == records


def test_records_of_several_pushes_keep_their_times() -> None:
    replaced = [f"indexes/20231114T221320Z-{'c' * 64}.idx"]
    records = [
        record._replace(pushed=CREATED - position % 3) for position, record in enumerate(_push(4))
    ]
    data = write_index(IndexHeader("Ann", CREATED, PACKS, replaced), records)
    header, found = read_index(data)
    assert header.times == [CREATED - 2, CREATED - 1, CREATED]
    assert header.replaces == replaced
    assert list(found) == records


def test_a_record_takes_half_of_its_45_bytes() -> None:
    data = write_index(IndexHeader("Ann", CREATED, PACKS), _push(200))
    assert len(data) < 600 * 45 / 2 + 300


def test_an_index_of_format_1_is_read() -> None:
    header = {"created": CREATED, "packs": [list(pack) for pack in PACKS], "writer": "Ann"}
    records = _push(3)
    rows = b"".join(
        ROW.pack(entry.table, entry.id, key, pack, entry.offset, entry.length)
        for pack, entry, key, _ in records
    )
    data = b"evalstore index 1\n" + json.dumps(header).encode() + b"\n" + rows
    read, found = read_index(data)
    assert read == IndexHeader("Ann", CREATED, PACKS, [], 9, [])
    assert list(found) == records
    with pytest.raises(DamagedIndexError, match="does not end where it should"):
        read_index(data + b"x")


def _index(body: bytes, **fields: Any) -> bytes:
    header = {"writer": "Eve", "created": 0, "packs": [["a" * 64, 9]], "records": 1, **fields}
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    line = b"evalstore index 2\n" + json.dumps(header).encode() + b"\n"
    return line + packer.compress(body) + packer.flush()


def _row(*numbers: int) -> bytes:
    return bytes(32) + NUMBERS.pack(*numbers)


SOUND = _row(9, 0, 0, 0, 9)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_index(bytes(2**20)), "does not end"),
        (_index(bytes(2**20), records=MOST_RECORDS), "does not end"),
        (_index(SOUND, records=MOST_RECORDS + 1), "other fields"),
        (_index(SOUND, records=-1), "other fields"),
        (_index(SOUND, records=True), "other fields"),
        (_index(SOUND, records=2), "does not end"),
        (_index(SOUND[:-1]), "does not end"),
        (_index(SOUND) + b"x", "does not end"),
        (_index(SOUND)[:-1], "does not end"),
        (_index(b"", records=1)[:-2] + b"\xff\xff", "cannot be unpacked"),
        (_index(SOUND, times=["1"]), "other fields"),
        (_index(SOUND, times=[-1]), "other fields"),
        (_index(SOUND, times=[False]), "other fields"),
        (_index(SOUND, times=7), "header"),
        (_index(_row(9, 0, 1, 0, 9), times=[5]), "has no time"),
        (_index(_row(9, 0, 1, 0, 9)), "has no time"),
        (_index(_row(9, 1, 0, 0, 9)), "outside its pack"),
        (_index(_row(9, 0, 0, 0, 10)), "outside its pack"),
        (_index(_row(9, 0, 0, 2**32 - 1, 1)), "outside its pack"),
        (b"evalstore index 2\n[]\n", "cannot be read"),
        (b"evalstore index 3\n{}\n", "has format 3; this version"),
        (b"evalstore index 99999999999\n{}\n", "is not an index"),
        (b"evalstore index \n{}\n", "is not an index"),
    ],
)
def test_an_index_that_is_not_sound_is_refused(data: bytes, message: str) -> None:
    assert list(read_index(_index(SOUND))[1])
    with pytest.raises(DamagedIndexError, match=message):
        list(read_index(data)[1])
