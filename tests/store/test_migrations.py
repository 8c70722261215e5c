"""Migrations: the tables are those declared, old stores are copied and migrated, newer refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event

from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.rows.row_tables import ROW_TABLES, VIEWS
from evalstore.store.schema import table_definitions
from evalstore.store.schema.alembic_metadata import METADATA
from evalstore.store.schema.table_definitions import COORDINATION, EVENTS, VERSIONS
from evalstore.store.sqlite.connection import SQLiteConnection
from tests.store.sessions import fill

OURS = table_definitions.HEAD
NEXT = f"""
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{OURS}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("extra", sa.Text))
"""


def made_of(path: Path) -> list[tuple[str, ...]]:
    """All that a store consists of; blanks of its statements do not count."""
    with closing(sqlite3.connect(path)) as store:
        rows = store.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name")
        made = [(*names, " ".join((sql or "").split())) for *names, sql in rows]
        return [*made, (version_of(path),)]


def test_a_new_store_is_what_the_migrations_make(tmp_path: Path) -> None:
    new, migrated = tmp_path / "new.db", tmp_path / "migrated.db"
    Store.open(new, create=True).close()
    with (
        closing(
            sqlite3.connect(migrated, isolation_level=None, factory=SQLiteConnection)
        ) as connection,
        table_definitions.joined(
            "sqlite://", connection, sqlite3.DatabaseError, "BEGIN IMMEDIATE"
        ) as writing,
    ):
        table_definitions.upgrade(writing)
    assert made_of(new) == made_of(migrated)
    assert len(made_of(new)) > 20


def test_readers_and_a_writer_of_a_new_store_work_side_by_side(path: Path) -> None:
    Store.open(path, create=True).close()
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_each_kind_is_in_its_table() -> None:
    kinds = {**VERSIONS, **EVENTS}
    assert {kind: table.name for kind, table in kinds.items()} == {
        "file": "files",
        "tool": "tools",
        "schema": "schemas",
        "prompt": "prompts",
        "test": "tests",
        "evaluation": "evaluation_versions",
        "model": "models",
        "evaluator": "evaluators",
        "cases": "nodes",
        "results": "nodes",
        "tree": "nodes",
        "sources": "nodes",
        "session": "sessions",
        "judgement": "evaluations",
        "failure": "failures",
        "run": "runs",
    }


def version_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as store:
        return str(store.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def columns_of(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as store:
        return [name for _, name, *_ in store.execute(f"PRAGMA table_info({table})")]


@pytest.fixture
def newer_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make the program one migration newer than it is; returns that migration's file."""
    folder = tmp_path / "migrations 100%"
    shutil.copytree(
        table_definitions.migrations(), folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    migration = folder / "versions" / "next.py"
    migration.write_text(NEXT)
    monkeypatch.setattr(table_definitions, "migrations", lambda: folder)
    monkeypatch.setattr(table_definitions, "HEAD", "next")
    monkeypatch.setattr(table_definitions, "KNOWN", (*table_definitions.KNOWN, "next"))
    return migration


@pytest.fixture
def older(path: Path) -> Path:
    """A filled store as this program makes it."""
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    return path


@pytest.fixture
def engine(path: Path) -> Engine:
    """An engine of SQLAlchemy for the store's file."""
    return create_engine(f"sqlite:///{path}")


def test_the_migrated_schema_is_the_declared_one(path: Path, engine: Engine) -> None:
    Store.open(path, create=True).close()
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def test_the_program_knows_the_folder_of_migrations() -> None:
    script = ScriptDirectory(str(table_definitions.migrations()))
    revisions = [revision.revision for revision in script.walk_revisions()]
    assert tuple(reversed(revisions)) == table_definitions.KNOWN
    assert script.get_current_head() == table_definitions.HEAD == table_definitions.KNOWN[-1]


def test_an_older_store_is_copied_then_migrated(
    older: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("newer_program")
    copy = older.with_name("store.db.before-next")
    Store.open(older).close()
    assert (version_of(older), version_of(copy)) == ("next", OURS)
    assert "extra" in columns_of(older, "runs")
    assert "extra" not in columns_of(copy, "runs")
    assert sorted(path.name for path in older.parent.glob("store.db*tmp*")) == []


def test_copies_that_were_broken_off_are_removed(
    older: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("newer_program")
    left = (
        ".store.db.before-next.evalstore-0123abcd.tmp",
        ".store.db.before-next.evalstore-0123abcd.tmp-journal",
    )
    others = ("store.db.before-0001", "store.db.tmp")
    for name in (*left, *others):
        older.with_name(name).write_bytes(b"half")
    Store.open(older).close()
    names = {path.name for path in older.parent.iterdir()}
    assert names.isdisjoint(left)
    assert names.issuperset({*others, "store.db.before-next"})


def test_a_copy_that_fails_leaves_nothing(
    older: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("newer_program")

    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    before = sorted(path.name for path in older.parent.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match="No space left"):
            Store.open(older)
    after = sorted(path.name for path in older.parent.iterdir())
    assert [name for name in after if not name.endswith(("-wal", "-shm"))] == before
    assert version_of(older) == OURS


def test_a_copy_holds_everything(older: Path, request: pytest.FixtureRequest) -> None:
    with closing(Store.open(older)) as store:
        before = list(store.iterate())
    request.getfixturevalue("newer_program")
    Store.open(older).close()
    request.getfixturevalue("monkeypatch").undo()
    with closing(Store.open(older.with_name("store.db.before-next"))) as copy:
        assert list(copy.iterate()) == before
        assert check_store(copy)[1] == []


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    older: Path, request: pytest.FixtureRequest
) -> None:
    migration: Path = request.getfixturevalue("newer_program")
    migration.write_text(NEXT + '    op.execute("SELECT * FROM nowhere")\n')
    with pytest.raises(StoreError):
        Store.open(older)
    assert version_of(older) == OURS
    assert "extra" not in columns_of(older, "runs")


def test_a_migration_that_is_interrupted_changes_nothing(
    older: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("newer_program")
    upgrade = table_definitions.upgrade

    def interrupt(*_given: object) -> None:
        raise KeyboardInterrupt

    def upgrade_in_part(connection: Connection) -> None:
        upgrade(connection)
        event.listen(connection.engine, "do_execute", interrupt)
        connection.exec_driver_sql("SELECT 1")

    with monkeypatch.context() as patched:
        patched.setattr(table_definitions, "upgrade", upgrade_in_part)
        with pytest.raises(KeyboardInterrupt):
            Store.open(older)
    assert version_of(older) == OURS
    assert "extra" not in columns_of(older, "runs")


@pytest.mark.usefixtures("newer_program")
def test_a_new_store_has_all_migrations_and_no_copy(path: Path) -> None:
    Store.open(path, create=True).close()
    assert version_of(path) == "next"
    assert not path.with_name("store.db.before-next").exists()


def test_a_store_of_the_first_version_is_migrated(older: Path) -> None:
    with closing(sqlite3.connect(older)) as store:
        later = [*(f"TABLE {table.name}" for table in (*COORDINATION, *ROW_TABLES.values()))]
        later += [f"VIEW {name}" for name in VIEWS]
        store.executescript("; ".join(f"DROP {name}" for name in later))
        store.execute("UPDATE alembic_version SET version_num = '0001'")
        store.commit()
    Store.open(older).close()
    assert version_of(older) == OURS
    assert columns_of(older, "leases") == ["id", "runner"]
    assert version_of(older.with_name(f"store.db.before-{OURS}")) == "0001"


def test_a_newer_store_is_refused(older: Path) -> None:
    with closing(sqlite3.connect(older)) as store:
        store.execute("UPDATE alembic_version SET version_num = '0099'")
        store.commit()
    before = older.read_bytes()
    with pytest.raises(StoreError, match=r"newer than this program \(version 0099") as caught:
        Store.open(older)
    assert caught.value.exit_code == STORE_UNUSABLE
    assert older.read_bytes() == before


@pytest.mark.parametrize("name", ["store.db", "new.db"])
def test_ordinary_opening_imports_no_declared_tables(older: Path, name: str) -> None:
    program = (
        "import pathlib, sys; from evalstore.store import Store; "
        f"Store.open(pathlib.Path({str(older.with_name(name))!r}), create=True).close(); "
        "print({'alembic', 'sqlalchemy', 'sqlmodel', 'pydantic'} & sys.modules.keys())"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "set()\n"
