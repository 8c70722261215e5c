"""Stores whose file has other tables, triggers and views than the migrations make."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.search.index import SearchIndex
from evalstore.store.sqlite import connection
from evalstore.store.sqlite.connection import find_foreign
from evalstore.store.sqlite.driver import inspect_store
from tests.store.sessions import a_run, a_test, fill

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
DELETES = "CREATE TRIGGER t AFTER INSERT ON tests BEGIN DELETE FROM sessions; END"
REFUSED = {
    "a trigger": DELETES,
    "a trigger that aborts": "CREATE TRIGGER t BEFORE INSERT ON tests "
    "BEGIN SELECT RAISE(ABORT, 'database is locked'); END",
    "a trigger on what comes and goes": "CREATE TRIGGER t AFTER DELETE ON leases "
    "BEGIN DELETE FROM runs; END",
    "a trigger of a view": "CREATE VIEW v AS SELECT 1 AS x; "
    "CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN DELETE FROM runs; END",
    "a unique index": "CREATE UNIQUE INDEX i ON tests (content)",
    "an index of an expression": "CREATE INDEX i ON tests (abs(length(content)))",
    "a partial index": "CREATE INDEX i ON tests (content) WHERE content > 'x'",
    "a changed table": "ALTER TABLE tests ADD COLUMN more TEXT DEFAULT 'x'",
    "a generated column": "ALTER TABLE tests ADD COLUMN more AS (length(content) || zeroblob(9))",
    "a table without its key": "CREATE TABLE o AS SELECT * FROM runs; DROP TABLE runs; "
    "ALTER TABLE o RENAME TO runs",
    "another conflict clause": "DROP TABLE leases; CREATE TABLE leases "
    "(id BLOB NOT NULL, runner BLOB UNIQUE ON CONFLICT REPLACE, PRIMARY KEY (id))",
    "a missing table": "DROP TABLE leases",
}
"""What could change what is written, or get in its way."""
HARMLESS = {
    "a table": "CREATE TABLE mine (x)",
    "a view": "CREATE VIEW mine AS SELECT count(*) FROM runs",
    "an endless view": f"CREATE VIEW mine AS {ENDLESS} SELECT x FROM n",
    "an index": "CREATE INDEX mine ON sessions (started)",
    "a virtual table": "CREATE VIRTUAL TABLE mine USING fts5(x)",
    "a missing index": "DROP INDEX ix_runs_started",
}
"""What changes nothing of what is read and written."""
UNREADABLE = {
    "an endless view": f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS} "
    "SELECT zeroblob(16) AS id, '{}' AS content, x AS started FROM n",
    "a view in capitals": 'ALTER TABLE runs RENAME TO kept; CREATE VIEW "RUNS" AS '
    "SELECT * FROM kept",
    "a virtual table": "DROP TABLE runs; CREATE VIRTUAL TABLE runs USING fts5(id, content)",
    "an endless view of the version": f"DROP TABLE alembic_version; CREATE VIEW alembic_version AS "
    f"{ENDLESS} SELECT x AS version_num FROM n WHERE x < 0",
    "a view of the version": "DROP TABLE alembic_version; CREATE VIEW alembic_version AS "
    "SELECT '0002' AS version_num",
}
"""What runs when it is read."""


def by_name(cases: dict[str, str]) -> Callable[..., pytest.MarkDecorator]:
    return pytest.mark.parametrize("script", cases.values(), ids=cases.keys())


@pytest.fixture
def filled(path: Path) -> Path:
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    return path


def change(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(script)


def hide(path: Path, statement: str, *, kind: str, name: str) -> None:
    """Enter a statement under another kind and name: SQLite goes by the statement alone."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        values = (kind, name, name, 0, statement)
        raw.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", values)
        raw.commit()


def problems(path: Path) -> list[str]:
    with closing(Store.open(path, inspect=True)) as store:
        return [damage.message for damage in check_store(store)[1]]


def counts(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as raw:
        names = ("tests", "sessions", "runs")
        return {name: raw.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def test_what_the_migrations_make_is_known(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as raw:
        assert find_foreign(raw) == []
        raw.execute("ANALYZE")
        assert find_foreign(raw) == []


@by_name(REFUSED)
def test_what_could_change_what_is_written_is_named_and_nothing_is_written(
    filled: Path, script: str
) -> None:
    change(filled, script)
    before = counts(filled)
    assert problems(filled) != []
    with closing(Store.open(filled)) as store:
        assert len(store.find_runs()) == 1  # it can still be read
        with pytest.raises(StoreError, match="is not written to: ") as caught:
            store.ensure_versions(a_test("new"))
    assert caught.value.exit_code == STORE_UNUSABLE
    assert counts(filled) == before


@by_name(HARMLESS)
def test_what_changes_nothing_is_named_and_the_store_can_be_used(filled: Path, script: str) -> None:
    change(filled, script)
    assert len(problems(filled)) >= 1
    with closing(Store.open(filled)) as store:
        store.ensure_versions(a_test("new"))
        store.record_run(a_run(50))
        assert len(store.find_runs()) == 2


@by_name(UNREADABLE)
def test_what_runs_when_it_is_read_is_not_read(filled: Path, script: str) -> None:
    change(filled, script)
    with pytest.raises(StoreError, match="is not read: there is a ") as caught:
        Store.open(filled)
    assert caught.value.exit_code == STORE_UNUSABLE
    assert any("in the place of the table" in problem for problem in problems(filled))
    assert "in the place of the table" in (inspect_store(filled).damage or "")


@pytest.mark.parametrize("kind", ["table", "view", "index"])
@pytest.mark.parametrize("name", ["mine", "sqlite_autoindex_runs_1", "sqlite_stat1"])
@pytest.mark.parametrize("statement", [DELETES, DELETES.replace(" ", "/**/ ", 1)])
def test_a_trigger_is_found_whatever_it_is_entered_as(
    filled: Path, kind: str, name: str, statement: str
) -> None:
    hide(filled, statement, kind=kind, name=name)
    try:
        with closing(Store.open(filled)) as store, pytest.raises(StoreError):
            store.ensure_versions(a_test("new"))
    except StoreError:  # SQLite itself takes it for damage
        return
    assert problems(filled) != []
    assert counts(filled)["sessions"] == 2


def test_an_index_that_calls_what_is_not_safe_is_damage(filled: Path) -> None:
    change(filled, "CREATE INDEX i ON tests (content) WHERE json_valid(content)")
    with pytest.raises(StoreError, match="is damaged: malformed database schema"):
        Store.open(filled, inspect=True)


def test_an_older_store_with_a_trigger_is_not_migrated(filled: Path) -> None:
    change(
        filled,
        "DROP TABLE leases; DROP TABLE runners; UPDATE alembic_version SET version_num = '0001';"
        "CREATE TRIGGER t AFTER UPDATE ON alembic_version BEGIN DELETE FROM sessions; END",
    )
    with pytest.raises(StoreError, match="the trigger 't' does not belong to evalstore"):
        Store.open(filled)
    assert counts(filled)["sessions"] == 2


def test_triggers_are_not_executed_even_if_nobody_looked_for_them(filled: Path) -> None:
    change(filled, DELETES)
    with closing(Store.open(filled)) as store:
        store._driver.foreign = []
        with pytest.raises(StoreError, match="levels of trigger recursion"):
            store.ensure_versions(a_test("new"))
    assert counts(filled)["sessions"] == 2


def test_functions_that_reach_out_of_the_file_cannot_be_called_by_its_schema(filled: Path) -> None:
    change(filled, "CREATE VIEW mine AS SELECT load_extension('x'), fts3_tokenizer('y')")
    with closing(Store.open(filled)) as store, store._reading() as connection:
        for statement in ("SELECT * FROM mine", "SELECT load_extension('x')"):
            with pytest.raises(
                sqlite3.OperationalError, match=r"unsafe use|no such|not authorized"
            ):
                connection.execute(statement)
        with pytest.raises(sqlite3.OperationalError, match="too many attached"):
            connection.execute("ATTACH 'other.db' AS other")


def test_a_value_that_is_too_large_is_an_error(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LARGEST_VALUE", 2**20)
    change(filled, "UPDATE runs SET content = CAST(zeroblob(1048577) AS TEXT)")
    with closing(Store.open(filled)) as store, pytest.raises(StoreError, match="too large"):
        store.find_runs()


def test_a_trigger_in_the_search_index_makes_it_anew(filled: Path, tmp_path: Path) -> None:
    index = tmp_path / "search.db"
    SearchIndex.open(index).close()
    change(index, "CREATE TRIGGER t AFTER INSERT ON documents BEGIN SELECT RAISE(ABORT, 'no'); END")
    with closing(Store.open(filled)) as store, closing(SearchIndex.open(index)) as opened:
        assert opened.update(store)
        assert opened.path == str(index)
    with closing(sqlite3.connect(index)) as raw:
        assert raw.execute("SELECT * FROM sqlite_master WHERE type = 'trigger'").fetchall() == []
