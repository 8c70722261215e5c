"""How records are packed."""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from struct import Struct

import pytest

from evalstore.remotes.packs import (
    DICTIONARY,
    DamagedPackError,
    PackEntry,
    PackWriter,
    read_record,
)
from evalstore.store.records import StoredRecord

ID = "0123456789abcdef" * 2
CONTENT = json.dumps({"kind": "judgement", "feedback": "It is cold there."})
HEAD = Struct("<BB16sIII")
"""That of older programs."""


def _deflated(payload: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=DICTIONARY)
    return packer.compress(payload) + packer.flush()


def test_the_text_that_compression_begins_with_never_changes() -> None:
    digest = "68f0d57bc35ab52ccd1059ac1bbfcda4609880d18177b7a8e8e528bb9eb7f77e"
    assert sha256(DICTIONARY).hexdigest() == digest


@pytest.mark.parametrize("text", ["", "x", CONTENT, "\ud800", CONTENT * 5_000])
def test_a_record_is_read_as_it_was_written(text: str) -> None:
    pack = PackWriter()
    record = StoredRecord("evaluations", ID, text)
    entry = pack.add(record)
    _, data = pack.finish()
    assert read_record(data[entry.offset :], entry) == record


def test_a_record_takes_half_as_much_as_alone() -> None:
    content = {
        "evaluation": ID[::-1],
        "evaluator": "4e746071c4fc6b446646257b6aca27ff",
        "kind": "judgement",
        "nonce": "4648dc342c4b8429",
        "origin": "run",
        "scheme": 1,
        "sessions": [sha256(b"x").hexdigest()[:32]],
        "started": 1795455760030090,
        "verdict": "pass",
    }
    text = json.dumps(content, separators=(",", ":"))
    entry = PackWriter().add(StoredRecord("evaluations", ID, text))
    assert entry.length <= len(zlib.compress(text.encode(), 9)) / 2 + 7


@pytest.mark.parametrize(
    ("coding", "packed"),
    [(0, CONTENT.encode()), (1, zlib.compress(CONTENT.encode())), (2, _deflated(CONTENT.encode()))],
)
def test_records_of_older_programs_are_read(coding: int, packed: bytes) -> None:
    data = HEAD.pack(10, coding, bytes.fromhex(ID), len(CONTENT), 0, len(packed)) + packed
    entry = PackEntry(10, bytes.fromhex(ID), 0, len(data))
    assert read_record(data, entry) == StoredRecord("evaluations", ID, CONTENT)


def test_more_than_a_record_says_is_not_unpacked() -> None:
    packed = _deflated(bytes(10**6))
    for size in (10, 10**6 + 1):
        data = HEAD.pack(10, 2, bytes.fromhex(ID), size, 0, len(packed)) + packed
        with pytest.raises(DamagedPackError, match="another length"):
            read_record(data, PackEntry(10, bytes.fromhex(ID), 0, len(data)))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\x0a", "too early"),
        (b"\x0a\x03", "does not end"),
        (b"\x0a\x03\x01\x00\x80", "does not end"),
        (b"\x0a\x03" + b"\xff" * 9, "does not end"),
        (b"\x0a\x03\x01\x00\x02x", "not what its index says"),
        (b"\x0b\x03\x01\x00\x01x", "not what its index says"),
        (b"\x0a\x03\x02\x00\x01x", "another length"),
        (b"\x0a\x03\xff\xff\xff\xff\x0f\x00\x01x", "would have"),
        (b"\x0a\x09\x01\x00\x01x", "coding is 9"),
    ],
)
def test_a_record_with_a_wrong_head_is_refused(head: bytes, message: str) -> None:
    with pytest.raises(DamagedPackError, match=message):
        read_record(head, PackEntry(10, bytes.fromhex(ID), 0, len(head)))
