"""Schemas of other programs and of other versions of this one; creations and migrations at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql.connection import PostgreSQLConnection, connect
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import SHARED_RUNS
from evalstore.store.sqlite.driver import inspect_database
from evalstore.store.store import open_unchanged
from tests.postgresql_server import PostgreSQLServer
from tests.runs.execution.loopback.team import SECONDS, wait_until
from tests.store.postgresql.conftest import Admin
from tests.store.sessions import a_test, fill

ROOT = Path(__file__).parent.parent.parent.parent
NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("extra", sa.Text))
"""
_COLUMNS = """
SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    a.attgenerated, pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE n.nspname = %s AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
"""
_INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %s"
_CONSTRAINTS = """
SELECT c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
JOIN pg_namespace n ON n.oid = c.connamespace WHERE n.nspname = %s
"""
_FUNCTIONS = """
SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s
"""
_ALL = {"columns": _COLUMNS, "indexes": _INDEXES, "constraints": _CONSTRAINTS, "code": _FUNCTIONS}


def describe(admin: Admin, schema: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return all that a schema consists of; spaces in functions, and its name, do not count."""

    def plain(value: Any) -> Any:
        return " ".join(value.replace(f"{schema}.", "").split()) if type(value) is str else value

    return {
        kind: sorted([tuple(map(plain, row)) for row in admin(query, schema)], key=str)
        for kind, query in _ALL.items()
    } | {"version": admin(f"SELECT version_num FROM {schema}.alembic_version")}


def set_version(admin: Admin, address: DatabaseAddress, version: str) -> None:
    admin(f"UPDATE {address.schema}.alembic_version SET version_num = '{version}'")


@pytest.mark.skipif(
    table_definitions.HEAD == "0003", reason="0003 is older than stores in PostgreSQL"
)
def test_a_new_store_is_what_the_migrations_make(
    pg_store: Store, address: DatabaseAddress, postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    migrated = read_address(postgresql_server.url())
    admin(f"CREATE SCHEMA {migrated.schema}")
    with closing(connect(migrated)) as raw:
        raw.autocommit = False
        with table_definitions.joined(
            "postgresql+psycopg://", raw, psycopg.DatabaseError
        ) as writing:
            table_definitions.upgrade(writing)
    new = describe(admin, address.schema)
    assert describe(admin, migrated.schema) == new
    assert len(new["columns"]) > 40
    assert pg_store.foreign == []
    with closing(Store.open(migrated)) as store:
        assert store.foreign == []
        fill(store)
        fill(pg_store)
        assert list(store.iterate()) == list(pg_store.iterate())


@pytest.fixture
def next_folder(tmp_path: Path) -> Path:
    """Return a folder of migrations with one more."""
    folder = tmp_path / "migrations"
    shutil.copytree(
        table_definitions.migrations(), folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "versions/next.py").write_text(
        NEXT.format(head=table_definitions.HEAD), encoding="utf-8"
    )
    return folder


@pytest.fixture
def next_version(next_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the next version of the program, which has one more migration."""
    known = (*table_definitions.KNOWN, "next")
    monkeypatch.setattr(table_definitions, "HEAD", "next")
    monkeypatch.setattr(table_definitions, "KNOWN", known)
    monkeypatch.setattr(table_definitions, "migrations", lambda: next_folder)


@pytest.mark.usefixtures("next_version")
def test_an_older_store_is_migrated_with_all_it_has(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    fill(pg_store)
    before = list(pg_store.iterate())
    assert inspect_database(address).is_older
    for _ in range(2):
        with closing(Store.open(address)) as store:
            assert list(store.iterate()) == before
            assert check_store(store)[1] == []
    assert admin(f"SELECT extra FROM {address.schema}.runs") == [(None,)]
    assert not inspect_database(address).is_older


def test_a_migration_waits_for_transactions_of_older_programs_and_none_follows(
    pg_store: Store, address: DatabaseAddress, admin: Admin, request: pytest.FixtureRequest
) -> None:
    waiting = (
        "SELECT count(*) FROM pg_locks JOIN pg_class c ON c.oid = relation JOIN pg_namespace n "
        "ON n.oid = relnamespace WHERE NOT granted AND relname = 'alembic_version' "
        f"AND nspname = '{address.schema}'"
    )
    newer: list[Store] = []
    with pg_store.writing() as connection:
        request.getfixturevalue("next_version")
        migrating = threading.Thread(target=lambda: newer.append(Store.open(address)))
        migrating.start()
        wait_until(lambda: admin(waiting) == [(1,)])
        rows = [(b"1" * 16, "{}", 0, None)]
        assert connection.insert(SHARED_RUNS, rows) == 1
    migrating.join(SECONDS)
    with closing(newer[0]) as store:
        assert len(store.find_shared_runs()) == 1
        assert admin(f"SELECT extra FROM {address.schema}.runs") == []
    with pytest.raises(StoreError, match="its version is next now, ours is "):
        pg_store.add_shared_run("2" * 32, {}, None)


@pytest.mark.usefixtures("next_version")
def test_an_older_store_of_somebody_else_is_not_migrated(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    fill(pg_store)
    before = describe(admin, address.schema)
    with pytest.raises(StoreError, match="is older than this program") as caught:
        open_unchanged(address).__enter__()
    assert caught.value.hint
    assert describe(admin, address.schema) == before


@pytest.mark.usefixtures("next_version")
def test_a_migration_that_fails_leaves_the_store_as_it_was(
    pg_store: Store, address: DatabaseAddress, admin: Admin, next_folder: Path
) -> None:
    fill(pg_store)
    before = describe(admin, address.schema)
    migration = next_folder / "versions/next.py"
    text = migration.read_text(encoding="utf-8")
    migration.write_text(text + '    op.execute("SELECT 1 / 0")\n', encoding="utf-8")
    with pytest.raises(StoreError, match="division by zero"):
        Store.open(address)
    assert describe(admin, address.schema) == before


@pytest.mark.usefixtures("next_version")
def test_a_store_with_a_trigger_is_not_migrated(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    schema = address.schema
    admin(
        "CREATE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
    )
    when = f"BEFORE INSERT ON {schema}.runs FOR EACH ROW"
    admin(f"CREATE TRIGGER spy {when} EXECUTE FUNCTION public.spy()")
    before = describe(admin, schema)
    with pytest.raises(StoreError, match="the trigger 'spy'"):
        Store.open(address)
    assert describe(admin, schema) == before
    admin("DROP FUNCTION public.spy CASCADE")


def test_an_older_program_refuses_a_migrated_store(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    fill(pg_store)
    before = list(pg_store.iterate())
    set_version(admin, address, "0999")
    with pytest.raises(StoreError, match="is newer than this program") as caught:
        Store.open(address, create=True)
    assert caught.value.exit_code == STORE_UNUSABLE
    assert caught.value.hint
    assert "upgrade evalstore" in caught.value.hint
    assert inspect_database(address).is_newer
    with pytest.raises(StoreError, match="is newer than this program"):
        open_unchanged(address).__enter__()
    set_version(admin, address, table_definitions.HEAD)
    assert list(pg_store.iterate()) == before


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE {0}.bookmarks (url text)",
        "CREATE TABLE {0}.alembic_version (version_num text)",
    ],
    ids=["tables", "no version"],
)
def test_a_schema_of_another_program_is_left_alone(
    address: DatabaseAddress, admin: Admin, made: str
) -> None:
    admin(f"CREATE SCHEMA {address.schema}")
    admin(made.format(address.schema))
    before = describe_tables(admin, address)
    for create in (False, True):
        with pytest.raises(StoreError, match="has tables, but not those of evalstore") as caught:
            Store.open(address, create=create)
        assert caught.value.hint == "name another one with '?schema=NAME' at the end of the address"
    assert describe_tables(admin, address) == before


def describe_tables(admin: Admin, address: DatabaseAddress) -> list[tuple[Any, ...]]:
    return admin(_COLUMNS, address.schema)


def test_a_version_of_another_program_that_uses_alembic(
    address: DatabaseAddress, admin: Admin
) -> None:
    admin(f"CREATE SCHEMA {address.schema}")
    admin(f"CREATE TABLE {address.schema}.alembic_version (version_num text)")
    admin(f"INSERT INTO {address.schema}.alembic_version VALUES ('ab12cd34ef56')")
    with pytest.raises(StoreError, match="is newer than this program"):
        Store.open(address, create=True)


OPEN = """
import sys
from evalstore.store import Store
from evalstore.store.schema import table_definitions
from evalstore.store.location import read_address
from pathlib import Path
from tests.store.sessions import a_test, fill

if sys.argv[2] != "-":
    table_definitions.HEAD, table_definitions.KNOWN = "next", (*table_definitions.KNOWN, "next")
    table_definitions.migrations = lambda: Path(sys.argv[2])
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
store = Store.open(read_address(sys.argv[1]), create=True)
for number in range(5):
    store.ensure_versions(a_test(str(number)))
    fill(store)
store.close()
"""


def at_once(address: DatabaseAddress, folder: str, count: int) -> None:
    """Open a store in several processes at the same moment, and store the same in all of them."""
    command = [sys.executable, "-c", OPEN, str(address), folder]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    workers = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(count)]
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    assert [worker.communicate(timeout=60)[1] for worker in workers] == [""] * count
    assert [worker.returncode for worker in workers] == [0] * count


def test_a_store_that_is_created_while_it_is_looked_for_is_found(
    address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = PostgreSQLConnection.count

    def count_later(connection: PostgreSQLConnection, query: str, *parameters: Any) -> int:
        if "pg_tables" in query:  # there was no table before
            monkeypatch.undo()
            Store.open(address, create=True).close()
        return count(connection, query, *parameters)

    monkeypatch.setattr(PostgreSQLConnection, "count", count_later)
    with closing(Store.open(address)) as store:
        fill(store)
        assert check_store(store)[1] == []


@pytest.mark.extended
def test_processes_that_create_a_store_at_once_create_one(address: DatabaseAddress) -> None:
    at_once(address, "-", 3)
    with closing(Store.open(address)) as store:
        assert store.foreign == []
        before, damages = check_store(store)
        assert damages == []
        for number in range(5):
            store.ensure_versions(a_test(str(number)))
        fill(store)
        assert check_store(store) == (before, [])


@pytest.mark.extended
def test_processes_that_migrate_a_store_at_once_migrate_it_once(
    pg_store: Store, address: DatabaseAddress, next_folder: Path, admin: Admin
) -> None:
    fill(pg_store)
    at_once(address, str(next_folder), 3)
    assert admin(f"SELECT version_num FROM {address.schema}.alembic_version") == [("next",)]
    assert admin(f"SELECT DISTINCT extra FROM {address.schema}.runs") == [(None,)]
