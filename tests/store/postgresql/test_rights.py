"""Roles that may not create, write or read; databases that are read-only, full or not UTF-8."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evalstore.core.errors import STORE_UNUSABLE, StoreError, StoreUnreachableError
from evalstore.exchange.sync.fsck import check_store
from evalstore.runs.workspace_checks.doctor import describe_store
from evalstore.store import Store
from evalstore.store.driver import Connection
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql import connection as connections
from evalstore.store.postgresql.driver import PostgreSQLDriver
from evalstore.store.sqlite.driver import inspect_database
from tests.postgresql_server import PostgreSQLServer
from tests.store.postgresql.conftest import READS, USES, Admin, As
from tests.store.sessions import a_run, a_test, fill


def test_a_role_that_may_not_create_a_schema(as_role: As) -> None:
    address = as_role()
    with pytest.raises(StoreError, match=r"may not use the store .*permission denied") as caught:
        Store.open(address, create=True)
    assert caught.value.exit_code == STORE_UNUSABLE
    assert caught.value.hint
    assert "GRANT" in caught.value.hint
    state = inspect_database(address)
    assert (state.size, state.writable) == (None, False)
    finding = describe_store(state, str(address))
    assert (finding.level, "cannot be created" in finding.message) == ("fail", True)
    finding = describe_store(state, str(address), is_database=True)
    assert finding.hint == "its owner can GRANT CREATE ON DATABASE"


def test_a_role_that_may_not_look_into_the_schema(as_role: As, pg_store: Store) -> None:
    """Its tables are there: it is neither missing nor that of something else."""
    fill(pg_store)
    address = as_role()
    for create in (False, True):
        with pytest.raises(StoreError, match="may not use the store"):
            Store.open(address, create=create)


def test_a_role_that_may_not_read_the_tables(as_role: As, pg_store: Store) -> None:
    fill(pg_store)
    with pytest.raises(StoreError, match=r"may not use the store .*permission denied"):
        Store.open(as_role(USES), create=True)


def test_a_role_that_may_only_read_reads_and_is_told_when_it_writes(
    as_role: As, pg_store: Store
) -> None:
    fill(pg_store)
    address = as_role(USES, READS)
    state = inspect_database(address)
    assert (state.size or 0) > 0
    assert not state.writable
    finding = describe_store(state, str(address), is_database=True)
    assert "read-only" in finding.message
    assert finding.hint
    assert "its owner can GRANT SELECT, INSERT" in finding.hint
    with closing(Store.open(address)) as store:
        assert list(store.iterate()) == list(pg_store.iterate())
        assert store.find_runs() == pg_store.find_runs()
        with pytest.raises(StoreError, match="may not use the store"):
            store.ensure_versions(a_test("new"))
        with pytest.raises(StoreError, match="may not use the store"):
            store.record_run(a_run(1))


def test_a_transaction_that_only_reads(as_role: As, pg_store: Store) -> None:
    """As where an owner has forbidden to write for a while."""
    fill(pg_store)
    address = as_role(
        USES,
        "GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}",
        "ALTER ROLE {role} SET default_transaction_read_only TO on",
    )
    with closing(Store.open(address)) as store:
        assert store.find_runs() == pg_store.find_runs()
        with pytest.raises(StoreError, match=r"is read-only: .*read-only transaction") as caught:
            store.record_run(a_run(1))
    assert caught.value.hint
    assert "default_transaction_read_only" in caught.value.hint
    state = inspect_database(address)
    assert not state.writable
    finding = describe_store(state, str(address), is_database=True)
    assert finding.hint == f"read-only commands work; for others: {caught.value.hint}"


@pytest.mark.extended
def test_a_standby_is_read(own_server: PostgreSQLServer, tmp_path: Path) -> None:
    address = read_address(own_server.url("team"))
    with closing(Store.open(address, create=True)) as store:
        fill(store)
        expected = list(store.iterate())
    with own_server.standby() as standby:
        copy = read_address(standby.url("team"))
        with closing(Store.open(copy, create=True)) as store:
            assert list(store.iterate()) == expected
            with closing(PostgreSQLDriver(copy, patience=0.0)) as driver:
                assert driver.stamp() == driver.stamp()
            with pytest.raises(StoreError, match="is read-only") as caught:
                store.record_run(a_run(1))
            assert caught.value.hint
            assert caught.value.hint.startswith("name the primary server, not a standby")
        other = read_address(standby.url("other"))
        for place in (copy, other):
            state = inspect_database(place)
            assert not state.writable
            finding = describe_store(state, str(place), is_database=True)
            assert finding.hint
            assert "name the primary server, not a standby" in finding.hint
            assert "GRANT" not in finding.hint
        with pytest.raises(StoreError, match="is read-only"):
            Store.open(other, create=True)


def _mounted(folder: Path, megabytes: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


@pytest.fixture
def small_disk(own_server: PostgreSQLServer) -> Iterator[Path]:
    """Return a folder of the server with room for few megabytes."""
    folder = own_server.folder / "small"
    folder.mkdir()
    if not _mounted(folder, 12):
        pytest.skip("no small file system can be mounted here")
    try:
        place = folder / "space"
        own_server.make_folder(place)
        yield place
    finally:
        own_server.stop()
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.extended
def test_a_full_disk_loses_nothing_and_room_is_all_it_needs(
    own_server: PostgreSQLServer, small_disk: Path
) -> None:
    address = read_address(own_server.url())
    with psycopg.connect("", autocommit=True, **_options(address)) as raw:
        raw.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'".encode())
        raw.execute(b"ALTER DATABASE postgres SET default_tablespace TO small")
    with closing(Store.open(address, create=True)) as store:
        fill(store)
        before = list(store.iterate())
        with psycopg.connect("", autocommit=True, **_options(address)) as raw:
            raw.execute(b"CREATE TABLE public.filler (data text)")
            raw.execute(b"ALTER TABLE public.filler ALTER data SET STORAGE EXTERNAL")
            with suppress(psycopg.errors.DiskFull):
                for _ in range(100):
                    raw.execute(b"INSERT INTO public.filler SELECT repeat('x', 400000)")
        large = {key: value for n in range(200) for key, value in a_test(f"{n}" * 9_000).items()}
        with pytest.raises(StoreError, match="no space left for the store") as caught:
            store.ensure_versions(large)
        assert caught.value.exit_code == STORE_UNUSABLE
        assert list(store.iterate()) == before
        with psycopg.connect("", autocommit=True, **_options(address)) as raw:
            raw.execute(b"DROP TABLE public.filler")
            raw.execute(b"CHECKPOINT")  # only then its file is gone
        store.ensure_versions(large)
        assert len(list(store.iterate())) == len(before) + len(large)


def test_a_server_without_room_says_so(pg_store: Store) -> None:
    def work(connection: Connection) -> None:
        connection.execute("DO $$BEGIN RAISE 'could not extend file' USING ERRCODE='53100'; END$$")

    with pytest.raises(StoreError, match=r"no space left .*could not extend file") as caught:
        pg_store.write(work)
    assert caught.value.hint
    assert "free some space on its server" in caught.value.hint


def test_a_server_that_is_too_old(
    address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch, admin: Admin
) -> None:
    ((version,),) = admin("SELECT current_setting('server_version_num')::int / 10000")
    assert version >= connections._OLDEST == 14
    monkeypatch.setattr(connections, "_OLDEST", version + 1)
    with pytest.raises(StoreError, match=f"the server of .* is PostgreSQL {version}$") as caught:
        Store.open(address, create=True)
    assert caught.value.hint == f"a store needs PostgreSQL {version + 1} or newer"
    assert admin("SELECT count(*) FROM pg_namespace WHERE nspname = %s", address.schema) == [(0,)]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding(
    address: DatabaseAddress, admin: Admin, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    admin(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    other = read_address(str(address).replace("/postgres?", f"/{name}?"))
    with pytest.raises(StoreError, match=f"has the encoding {encoding}") as caught:
        Store.open(other, create=True)
    assert caught.value.hint
    assert "--encoding=UTF8" in caught.value.hint
    admin(f"DROP DATABASE {name}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("/postgres?", "no database at .*nowhere"),
        ("postgres@", "does not accept this user: .*nobody"),
    ],
    ids=["database", "user"],
)
def test_what_is_not_there_is_named(address: DatabaseAddress, change: str, message: str) -> None:
    name = {"/": "/nowhere?", "p": "nobody@"}[change[0]]
    other = read_address(str(address).replace(change, name))
    with pytest.raises(StoreError, match=message):
        Store.open(other, create=True)


def test_a_role_that_may_not_connect_to_the_database(
    address: DatabaseAddress, admin: Admin
) -> None:
    admin("CREATE DATABASE closed")
    admin("CREATE ROLE stranger LOGIN")
    admin("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
    url = f"postgresql://stranger@/closed?host={address.options['host']}"
    with pytest.raises(StoreError, match=r"may not use the store .*permission denied"):
        Store.open(read_address(url), create=True)
    admin("DROP DATABASE closed")
    admin("DROP ROLE stranger")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sslmode=perhaps", "the address .* cannot be used: .*invalid sslmode value"),
        ("service=nowhere", "the address .* cannot be used: .*definition of service"),
        ("connect_timeout=soon", "the address .* cannot be used: bad value for connect_timeout"),
        ("port=1,2", "the address .* cannot be used: .*could not match 2 port numbers"),
        ("options=-c nonsense=1", "cannot be used: .*unrecognized configuration parameter"),
        ("application_name=mine", None),
        ("options=-c search_path=public -c lock_timeout=3s", None),
    ],
)
def test_options_of_the_connection_are_those_of_libpq(
    postgresql_server: PostgreSQLServer, option: str, message: str | None
) -> None:
    other = read_address(f"{postgresql_server.url()}&{option}")
    if message is None:
        with closing(Store.open(other, create=True)) as store:
            fill(store)
            assert check_store(store)[1] == []
        return
    with pytest.raises(StoreError, match=message) as caught:
        Store.open(other, create=True)
    assert not isinstance(caught.value, StoreUnreachableError)


def _options(address: DatabaseAddress) -> dict[str, Any]:
    return dict(address.options)
