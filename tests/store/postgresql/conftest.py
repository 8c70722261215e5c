"""Stores in PostgreSQL whose server fails, and roles with few rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
import pytest

from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql import connection as connections
from evalstore.store.postgresql import driver as drivers
from evalstore.store.postgresql.connection import RawConnection
from tests.postgresql_server import PostgreSQLServer, running_server, why_not

if reason := why_not():
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture
def address(postgresql_server: PostgreSQLServer) -> DatabaseAddress:
    """Return the address of a store that has not been made."""
    return read_address(postgresql_server.url())


@pytest.fixture
def pg_store(address: DatabaseAddress) -> Iterator[Store]:
    """Return a new store."""
    with closing(Store.open(address, create=True)) as store:
        yield store


@pytest.fixture
def own_server() -> Iterator[PostgreSQLServer]:
    """Return a server that the test may stop."""
    with running_server() as server:
        yield server


Admin = Callable[..., list[tuple[Any, ...]]]
"""Executes a statement as the owner of the server, and returns its rows."""


@pytest.fixture
def admin(postgresql_server: PostgreSQLServer) -> Iterator[Admin]:
    """Return what executes statements beside the program."""
    address = read_address(postgresql_server.url("public"))
    options: dict[str, Any] = dict(address.options)
    with psycopg.connect("", autocommit=True, **options) as raw:

        def execute(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
            cursor = raw.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

        yield execute


USES = "GRANT USAGE ON SCHEMA {schema} TO {role}"
READS = "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
_names = count()
As = Callable[..., DatabaseAddress]
"""Returns the address of the store for a new role, after some statements."""


@pytest.fixture
def as_role(address: DatabaseAddress, admin: Admin) -> Iterator[As]:
    """Return what makes roles, which are removed with what they own."""
    made: list[str] = []

    def make(*statements: str) -> DatabaseAddress:
        role = f"role_{next(_names)}"
        made.append(role)
        admin(f"CREATE ROLE {role} LOGIN")
        for statement in statements:
            admin(statement.format(role=role, schema=address.schema))
        url = f"postgresql://{role}@/postgres?host={address.options['host']}"
        return read_address(f"{url}&schema={address.schema}")

    yield make
    for role in made:
        admin(f"DROP OWNED BY {role} CASCADE")
        admin(f"DROP ROLE {role}")


Back = Callable[[], None]


@dataclass
class Outage:
    """A server that is away until some tries to connect have failed."""

    server: PostgreSQLServer
    tries: int
    failed: int = 0

    def begin(self) -> None:
        """Stop the server; all connections are cut."""
        self.server.stop()

    def connect(self, address: DatabaseAddress) -> RawConnection:
        """Connect; the server is started when enough tries have failed."""
        try:
            return connections.connect(address)
        except psycopg.OperationalError:
            self.failed += 1
            if self.failed == self.tries:
                self.server.start()
            raise


@pytest.fixture
def outage(own_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch) -> Outage:
    """Return an outage that ends after three failed tries."""
    made = Outage(own_server, 3)
    monkeypatch.setattr(drivers, "connect", made.connect)
    return made
