"""Index files that are read in parts: what the parts are, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstore.remotes.indexes import index_parts
from evalstore.remotes.indexes.index_parts import check_parts, read_parts, write_with_parts
from evalstore.remotes.indexes.indexes import (
    NO_KEY,
    DamagedIndexError,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    read_index,
    read_rest,
    write_index,
)
from evalstore.remotes.packs.packs import PackEntry
from evalstore.remotes.places.layout import parts_name, read_parts_name

CREATED = 1_700_000_000_000_000
HEADER = IndexHeader("Ann", CREATED, [IndexedPack("a" * 64, 10**6), IndexedPack("b" * 64, 10**6)])
INDEX = f"indexes/20231114T221320Z-{'c' * 64}.idx"
PART = Struct("<HI4s4s32s")
RECORDS = st.lists(
    st.builds(
        IndexedRecord,
        st.integers(0, 1),
        st.builds(
            PackEntry,
            st.sampled_from([1, 9, 9, 9, 10, 255]),
            st.binary(min_size=16, max_size=16),
            st.integers(0, 900_000),
            st.integers(1, 90_000),
        ),
        st.sampled_from([NO_KEY, b"k" * 16]),
        st.sampled_from([None, CREATED - 1]),
    ),
    min_size=2,
    max_size=40,
)


def _id(text: object) -> bytes:
    return sha256(str(text).encode()).digest()[:16]


def _push(count: int) -> list[IndexedRecord]:
    return [
        IndexedRecord(0, PackEntry(table, _id((table, number)), 17 + number, 100), _id(number))
        for table in (8, 9)
        for number in range(count)
    ]


def _name(parts: bytes) -> str:
    return parts_name(INDEX, sha256(parts).hexdigest())


def _written(records: Sequence[IndexedRecord]) -> tuple[bytes, bytes]:
    data, parts = write_with_parts(HEADER, records)
    assert parts is not None
    return data, parts


@given(RECORDS, st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("small_parts")
def test_the_parts_of_an_index_have_its_records(
    records: list[IndexedRecord], in_order: bool
) -> None:
    if in_order:
        records.sort(key=lambda record: record.entry.table)
    data, parts = write_with_parts(HEADER, records)
    header, own = read_index(data)
    listed = list(own)
    assert [record._replace(pushed=None) for record in listed] == [
        record._replace(pushed=None) for record in records
    ]
    if parts is None:  # most blocks would have one id
        assert len({record.entry.table for record in records}) > 1
        assert data == write_index(HEADER, records)
        return
    found, (*blocks, rest) = read_parts(parts, _name(parts))
    assert found == header
    ids = [id for block in blocks for id in block.read_ids(data[block.start : block.end])]
    without = list(read_rest(found, data[rest.start : rest.end]))
    assert ids == [record.entry.id for record in listed]
    assert without == [record._replace(entry=record.entry._replace(id=b"")) for record in listed]
    assert rest.end == len(data)
    check_parts(data, parts, _name(parts))


def test_only_a_large_index_has_parts_and_they_are_small() -> None:
    assert write_with_parts(HEADER, _push(9_999)).parts is None
    records = _push(10_000)
    data, parts = _written(records)
    whole = len(write_index(HEADER, records))
    assert len(data) < whole * 1.005
    assert len(parts) < whole / 50
    assert list(read_index(data)[1]) == records


@pytest.mark.usefixtures("small_parts")
def test_a_flipped_byte_in_any_part_is_found() -> None:
    data, parts = _written(_push(5))
    for at in range(len(parts)):
        changed = parts[:at] + bytes([parts[at] ^ 1]) + parts[at + 1 :]
        with pytest.raises(DamagedIndexError, match="other bytes than when it was written"):
            read_parts(changed, _name(parts))
    _, listed = read_parts(parts, _name(parts))
    for part in listed:
        for at in range(part.start, part.end):
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            with pytest.raises(DamagedIndexError, match="other bytes than when it was written"):
                part.require_sound(changed[part.start : part.end])
    assert [part.start for part in listed[1:]] == [part.end for part in listed[:-1]]


def _rows(parts: bytes) -> tuple[bytes, list[tuple[int, int, bytes, bytes, bytes]]]:
    """Split a file with parts into its lines and its rows."""
    end = parts.index(b"\n", parts.index(b"\n") + 1) + 1
    return parts[:end], [*PART.iter_unpack(parts[end:])]


def _joined(lines: bytes, rows: Sequence[tuple[int, int, bytes, bytes, bytes]]) -> bytes:
    return lines + b"".join(PART.pack(*row) for row in rows)


@pytest.mark.usefixtures("small_parts")
def test_parts_that_are_not_sound_are_refused() -> None:
    data, parts = _written(_push(5))
    lines, rows = _rows(parts)
    assert _joined(lines, rows) == parts
    ids, length, least, greatest, digest = rows[0]
    others = (length, least, greatest, digest)
    hostile = [
        b"",
        b"evalstore parts 2\n" + parts,
        lines,
        lines[:-1],
        parts[:-1],
        parts + b"x",
        _joined(lines, rows[1:]),
        _joined(lines, rows[:-1]),
        _joined(lines, [(ids + 1, *others), *rows[1:]]),
        _joined(lines, [(0, *others), *rows]),
        _joined(lines, [*rows, (0, 2**32 - 1, *rows[0][2:])]),
        _joined(lines, [*rows[:-1], (0, 2**32 - 1, *rows[-1][2:])]),
        _joined(lines.replace(b'"records":10', b'"records":1000001'), rows),
        _joined(lines.replace(b'"records":10', b'"records":-1'), rows),
        _joined(lines.replace(b'"records"', b'"rows"'), rows),
        _joined(b"evalstore parts 1\n[]\n", rows),
        _joined(lines, rows[:-1] * 10_000),
    ]
    for changed in hostile:
        with pytest.raises(DamagedIndexError):
            read_parts(changed, _name(changed))
    for changed in (
        _joined(lines.replace(b"Ann", b"Eve"), rows),
        _joined(lines, [rows[1], rows[0], *rows[2:]]),
        _joined(
            lines, [(ids, length, bytes(4), greatest, digest), *rows[1:]]
        ),  # hides nothing, lies
        _joined(lines, [(ids, length, least, bytes(4), digest), *rows[1:]]),  # hides the ids
    ):
        read_parts(changed, _name(changed))
        with pytest.raises(DamagedIndexError):
            check_parts(data, changed, _name(changed))


@pytest.mark.usefixtures("small_parts")
def test_a_part_is_never_unpacked_beyond_its_ids() -> None:
    """A bomb has the right SHA-256, and says that it has few ids."""
    data, parts = _written([_push(40)[0]._replace(key=NO_KEY)] * 400)
    _, listed = read_parts(parts, _name(parts))
    block = listed[0]
    with pytest.raises(DamagedIndexError, match="does not end where it should"):
        block._replace(ids=block.ids - 1).read_ids(data[block.start : block.end])
    with pytest.raises(DamagedIndexError, match="does not end where it should"):
        block._replace(ids=block.ids + 1).read_ids(data[block.start : block.end])
    rest = listed[-1]
    for records in (399, 401):
        header = IndexHeader("Ann", CREATED, HEADER.packs, records=records)
        with pytest.raises(DamagedIndexError, match="does not end where it should"):
            list(read_rest(header, data[rest.start : rest.end]))


def test_other_names_are_not_those_of_parts() -> None:
    digest = "d" * 64
    assert read_parts_name(f"{INDEX}.{digest}.parts") == (INDEX, digest)
    for name in (
        INDEX,
        f"{INDEX}.sig",
        f"{INDEX}.parts",
        f"{INDEX}.{digest.upper()}.parts",
        f"{INDEX}.{digest}.parts.idx",
        f"indexes/../{INDEX}.{digest}.parts",
        f"packs/{INDEX.removeprefix('indexes/')}.{digest}.parts",
    ):
        assert read_parts_name(name) is None


def test_an_index_has_so_few_parts_that_all_can_be_read() -> None:
    most = index_parts.LARGEST_PARTS // PART.size
    assert 1_000_000 // index_parts._BLOCK + 256 < index_parts._MOST_PARTS < most
