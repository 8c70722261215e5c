"""Law 9: fsck computes every id again and finds any changed byte."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.exchange.sync.fsck import Damage, check_store
from evalstore.store import Store
from evalstore.store.schema.table_definitions import TABLES
from tests.store.sessions import fill


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled store that is not to be changed."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def copy_of(whole: Path) -> Path:
    copy = whole.with_name("copy.db")
    for leftover in whole.parent.glob("copy.db*"):
        leftover.unlink()
    shutil.copyfile(whole, copy)
    return copy


def problems(path: Path) -> list[Damage]:
    with closing(Store.open(path)) as store:
        return check_store(store)[1]


def cells(path: Path) -> list[tuple[str, int, str, Any]]:
    """Every value of the store: table, row number, column, value."""
    columns = []
    with closing(sqlite3.connect(path)) as raw:
        for table in TABLES:
            rows = raw.execute(f"SELECT rowid AS number, * FROM {table}")
            names = [column[0] for column in rows.description][1:]
            for number, *values in rows:
                columns += [(table, number, *pair) for pair in zip(names, values, strict=True)]
    return columns


def change(path: Path, table: str, row: int, column: str, value: Any) -> bool:
    """Whether SQLite takes another value, and then has another one."""
    with closing(sqlite3.connect(path)) as raw:
        query = f"SELECT {column}, typeof({column}) FROM {table} WHERE rowid = ?"
        before = raw.execute(query, (row,)).fetchone()
        try:
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        except sqlite3.IntegrityError:
            return False
        raw.commit()
        return bool(raw.execute(query, (row,)).fetchone() != before)


def flipped(value: Any, at: int, by: int) -> Any:
    """A value of the same type with one byte or bit changed."""
    if isinstance(value, bytes):
        at %= max(len(value), 1)
        return value[:at] + bytes([value[at] ^ by]) + value[at + 1 :] if value else b"\0"
    if isinstance(value, str):
        raw = value.encode()
        at %= max(len(raw), 1)
        changed = raw[:at] + bytes([raw[at] ^ by]) + raw[at + 1 :] if raw else b"x"
        return changed.decode("utf-8", "replace")
    if isinstance(value, int | float):
        return value + by
    return by


def test_a_whole_store_has_no_problems(whole: Path) -> None:
    with closing(Store.open(whole)) as store:
        checked, damages = check_store(store)
    assert damages == []
    assert checked == sum(1 for table, _, column, _ in cells(whole) if column == "id")


def test_the_filled_store_has_rows_of_every_table(whole: Path) -> None:
    assert {table for table, *_ in cells(whole)} == set(TABLES)


@given(st.data())
def test_any_changed_value_is_found(whole: Path, data: st.DataObject) -> None:
    table, row, column, value = data.draw(st.sampled_from(cells(whole)))
    other = data.draw(
        st.builds(flipped, st.just(value), st.integers(0, 5_000), st.integers(1, 255))
        | st.sampled_from(
            [
                None,
                b"",
                b"\0" * 16,
                "",
                "{}",
                "[]",
                "null",
                0,
                1.5,
                "\udc80".encode("utf-8", "surrogatepass"),
            ]
        )
        | (st.just(value.encode() if isinstance(value, str) else value))
        | st.binary(max_size=20)
        | st.text(max_size=20)
    )
    path = copy_of(whole)
    if change(path, table, row, column, other):
        damages = problems(path)
        assert damages
        assert all(damage.message for damage in damages)


def test_a_changed_byte_of_every_column_is_found(whole: Path) -> None:
    firsts = {(table, column): (row, value) for table, row, column, value in cells(whole)}
    missed = []
    for (table, column), (row, value) in firsts.items():
        path = copy_of(whole)
        changed = change(path, table, row, column, flipped(value, 7, 1))
        if not changed or not problems(path):
            missed.append((table, column))
    assert missed == []


def test_a_text_that_lost_a_byte_of_a_replacement_character_is_found(whole: Path) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        row = raw.execute("SELECT id, content FROM tools").fetchone()
        cut = row[1].encode().replace("\ufffd".encode(), "\ufffd".encode()[:2])
        raw.execute("UPDATE tools SET content = CAST(? AS TEXT)", (cut,))
        raw.commit()
    assert problems(path) == [Damage("tool", row[0].hex(), "its content does not match its id")]


@given(st.data())
def test_any_changed_byte_of_the_file_is_found_or_changes_nothing(
    whole: Path, data: st.DataObject
) -> None:
    raw = bytearray(whole.read_bytes())
    before = cells(whole)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    path = copy_of(whole)
    path.write_bytes(raw)
    try:
        damages = problems(path)
    except StoreError as error:
        damages = [Damage("database", "", str(error))]
    assert damages or cells(path) == before


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("tools", "test"),
        ("schemas", "test"),
        ("prompts", "session"),
        ("models", "session"),
        ("tests", "session"),
        ("files", "test"),
        ("evaluation_versions", "judgement"),
        ("evaluators", "judgement"),
        ("sessions", "judgement"),
        ("evaluations", "results"),
        ("nodes", "run"),
    ],
)
def test_a_missing_row_is_missed_by_what_refers_to_it(whole: Path, table: str, kind: str) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        gone = {id.hex() for (id,) in raw.execute(f"SELECT id FROM {table}")}
        raw.execute(f"DELETE FROM {table}")
        raw.commit()
    damages = problems(path)
    assert kind in {damage.kind for damage in damages}
    assert {damage.message.split(",")[0].removeprefix("refers to ") for damage in damages} <= gone


def test_a_row_in_the_wrong_table_is_found(whole: Path) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("INSERT INTO prompts SELECT * FROM tools")
        raw.commit()
    assert [damage.message for damage in problems(path)] == ["its content is not a prompt"]


@pytest.mark.parametrize("id", [b"\1\2", "abc", 5])
def test_a_row_with_another_id_is_named_as_the_damaged_one(whole: Path, id: Any) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE tools SET id = ?", (id,))
        raw.commit()
    found = [damage.message for damage in problems(path) if damage.kind == "tool"]
    assert found == ["its content does not match its id"]


def test_what_another_program_stored_is_found(whole: Path) -> None:
    path = copy_of(whole)
    from evalstore.core.hashing import hash_content

    content = json.dumps({"kind": "session"})
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, 1, NULL)",
            (bytes.fromhex(hash_content(content)), content, b"\0" * 16),
        )
        raw.commit()
    assert [damage.message for damage in problems(path)] == [
        "the field 'test' of its content is not what a session has: Field required"
    ]


@pytest.mark.parametrize("length", [50, 100, 4096, 9000])
def test_a_truncated_file_is_an_error_or_found(whole: Path, length: int) -> None:
    path = copy_of(whole)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StoreError) as caught:
        problems(path)
    assert caught.value.exit_code == STORE_UNUSABLE


def test_a_file_that_lost_its_end_is_found(whole: Path) -> None:
    path = copy_of(whole)
    path.write_bytes(path.read_bytes()[:-4096])
    try:
        damages = problems(path)
    except StoreError:
        return
    assert damages


def test_garbage_is_not_a_store(path: Path) -> None:
    path.write_bytes(b"this is not a database at all, but long enough for a header" * 100)
    with pytest.raises(StoreError, match="is damaged") as caught:
        Store.open(path)
    assert caught.value.exit_code == STORE_UNUSABLE


def test_an_invalid_id_is_an_error_when_it_is_read(whole: Path) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE runs SET id = 7")
        raw.commit()
    with (
        closing(Store.open(path)) as store,
        pytest.raises(StoreError, match="something in it has no id"),
    ):
        store.find_runs()


def test_fsck_leaves_the_store_readable(whole: Path) -> None:
    with closing(Store.open(whole)) as store:
        check_store(store)
        next(store.iterate())
        assert store.count_runs() == 1
        assert all(isinstance(run.started, int) for run in store.find_runs())


@pytest.mark.parametrize("value", [b"\xff", "soon", 1.5, 2**63 - 1])
def test_an_invalid_time_is_an_error_when_it_is_read(whole: Path, value: Any) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE failures SET at = ?", (value,))
        (question,) = raw.execute("SELECT question FROM failures").fetchone()
        raw.commit()
    with closing(Store.open(path)) as store, pytest.raises(StoreError, match="'failures': a time"):
        store.find_failed([question.hex()])


@pytest.mark.parametrize("value", ["CAST(x'fffe' AS TEXT)", "'9' || hex(zeroblob(9000))"])
def test_an_invalid_id_is_reported_in_printable_text(whole: Path, value: str) -> None:
    path = copy_of(whole)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"UPDATE tools SET id = {value}")
        raw.execute("UPDATE nodes SET content = CAST(x'7b226b696e64223a22ff227d' AS TEXT)")
        raw.commit()
    damages = problems(path)
    assert damages
    for damage in damages:
        assert len(" ".join(damage).encode()) < 2_000
