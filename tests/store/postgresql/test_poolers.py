"""Stores behind pgbouncer, by the mode in which it connections."""

from __future__ import annotations

from contextlib import ExitStack, closing
from itertools import product

import psycopg
import pytest

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql import connection as connections
from tests.pgbouncer import pooling, why_not
from tests.postgresql_server import PostgreSQLServer
from tests.store.sessions import fill

_needs_pooler = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@_needs_pooler
@pytest.mark.parametrize("size", [1, 2, 20])
def test_a_pooler_that_gives_sessions_to_others_is_refused(
    postgresql_server: PostgreSQLServer, size: int
) -> None:
    with pooling(postgresql_server, "transaction", size) as url:
        for _ in range(2):
            with pytest.raises(StoreError, match="is behind a connection pooler") as caught:
                Store.open(read_address(url), create=True)
        assert caught.value.hint
        assert "pool_mode = session" in caught.value.hint
        options = dict(read_address(url).options)
        with psycopg.connect("", autocommit=True, **options) as raw:  # type: ignore[arg-type]
            schema = read_address(url).schema
            found = raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
            assert found.fetchall() == []


@_needs_pooler
def test_a_pooler_of_statements_is_refused(postgresql_server: PostgreSQLServer) -> None:
    with (
        pooling(postgresql_server, "statement") as url,
        pytest.raises(StoreError, match=r"is behind a connection pooler|statement pooling mode"),
    ):
        Store.open(read_address(url), create=True)


@_needs_pooler
def test_stores_behind_a_pooler_of_sessions_stay_apart(postgresql_server: PostgreSQLServer) -> None:
    with pooling(postgresql_server, "session") as url, ExitStack() as stack:
        first, second = (
            stack.enter_context(closing(Store.open(read_address(address), create=True)))
            for address in (url, url.replace("schema=", "schema=other_"))
        )
        fill(first)
        assert check_store(first)[0] > 0
        assert check_store(second) == (0, [])


@_needs_pooler
def test_a_pool_with_one_session_is_used(
    postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_PATIENCE_SECONDS", 0.2)
    with pooling(postgresql_server, "session", 1) as url:
        address = read_address(url)
        with closing(connections.connect(address)) as raw:
            assert raw.execute("SHOW search_path").fetchall() == [(address.schema,)]


def test_without_a_pooler_a_connection_is_one_and_sends_one_message(
    postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[DatabaseAddress] = []
    sent: list[object] = []
    open_, execute = connections._open, psycopg.Connection.execute

    def noted(address: DatabaseAddress) -> connections.RawConnection:
        opened.append(address)
        return open_(address)

    def sending(raw: connections.RawConnection, query: bytes) -> object:
        sent.append(query)
        return execute(raw, query)

    monkeypatch.setattr(connections, "_open", noted)
    monkeypatch.setattr(psycopg.Connection, "execute", sending)
    address = read_address(postgresql_server.url())
    connections.connect(address).close()
    assert (opened, len(sent)) == ([address], 1)


@pytest.mark.parametrize(("standard", "seconds"), [*product(["off", "on"], ["1h", "0"])])
def test_settings_of_a_role_do_not_change_what_the_store_does(
    postgresql_server: PostgreSQLServer, standard: str, seconds: str
) -> None:
    address = read_address(postgresql_server.url())
    options: dict[str, str] = dict(address.options)
    role = f"set_{standard}_{seconds}"
    with psycopg.connect("", autocommit=True, **options) as admin:  # type: ignore[arg-type]
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER".encode())
        for setting in (
            f"standard_conforming_strings TO {standard}",
            f"statement_timeout TO '{seconds}'",
            "client_encoding TO 'LATIN1'",
            "default_transaction_isolation TO 'serializable'",
        ):
            admin.execute(f"ALTER ROLE {role} SET {setting}".encode())
    url = postgresql_server.url().replace(f"//{postgresql_server.user}@", f"//{role}@")
    with closing(Store.open(read_address(url), create=True)) as store:
        fill(store)
        with store.snapshot() as connection:
            assert connection.execute("SHOW statement_timeout").fetchall() == [("0",)]
        assert check_store(store)[1] == []
