"""Opens and migrates a store in PostgreSQL, and provides its transactions.

Writers do not wait for each other: rows are inserted if they are missing, whoever is first. A
transaction that the server has rolled back, or whose connection was lost, is made again: all
that is written is named by its content, so nothing is stored twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Lock
from time import monotonic
from typing import Any, Self, TypeVar

from evalstore.core.errors import EvalstoreError, StoreLockedError, StoreMissingError
from evalstore.store.driver import (
    PATIENCE_SECONDS,
    Driver,
    refuse_foreign,
    while_wanted,
)
from evalstore.store.location import DatabaseAddress
from evalstore.store.schema import migrations
from evalstore.store.schema.table_definitions import RESULTS

try:
    import psycopg
except ImportError as error:
    raise EvalstoreError(
        "a store in PostgreSQL needs the package psycopg",
        hint="install evalstore with the extra 'postgres': pip install 'evalstore[postgres]'",
    ) from error

from evalstore.store.postgresql.connection import (
    POSTGRESQL,
    ROLLED_BACK,
    PostgreSQLConnection,
    RawConnection,
    connect,
    explain_database_error,
    is_lost,
    search_path,
)
from evalstore.store.postgresql.creation import (
    create_store,
    find_foreign_code,
    find_stores,
    find_unexpected,
    find_version,
    migrate,
    runs_code,
)
from evalstore.store.postgresql.schema import TRANSACTION

T = TypeVar("T")
_STAMP = "SELECT pg_postmaster_start_time()::text || ' ' || pg_current_snapshot()::text"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_BEGIN = "BEGIN; SET LOCAL idle_in_transaction_session_timeout TO '10s'"
"""Begins a transaction that ends, for others, when its program is stopped for long.

Others wait longer for a lock, and a runner whose beat had to wait does not count as dead."""
_TRIES_FOR_LOCK = 3
"""How often a transaction waits for a lock of another program: for a minute, as in SQLite."""
_AT_ONCE = "SET LOCAL lock_timeout TO '20ms'"
_VERSION = "SELECT version_num FROM alembic_version"
"""Locks the table until the transaction ends, so that nobody migrates the store meanwhile."""


def _statements(
    address: DatabaseAddress, stored: Iterable[tuple[str, bytes]], *, wait: bool
) -> str:
    """Return the statements that begin a transaction; the last finds the version of the store.

    It finds none where a row that was stored, with its table and id, is gone.
    """
    rows = (f"EXISTS (SELECT FROM {table} WHERE id = '\\x{id.hex()}')" for table, id in stored)
    at_once = () if wait else (_AT_ONCE,)
    version = " AND ".join((f"{_VERSION} WHERE true", *rows))
    return "; ".join((_BEGIN, search_path(address), *at_once, version))


def _find_last_rows(connection: PostgreSQLConnection) -> list[tuple[str, bytes]]:
    """Return the tables and ids of the results that were stored last."""
    rows = (
        f"(SELECT '{table}', id FROM {table} ORDER BY {TRANSACTION} DESC LIMIT 1)"
        for table in RESULTS
    )
    with suppress(psycopg.ProgrammingError):  # this user may not read them
        return connection.execute(" UNION ALL ".join(rows)).fetchall()
    return []


def _would_wait(path: str) -> StoreLockedError:
    return StoreLockedError(f"the store '{path}' does not answer at once")


class PostgreSQLDriver(Driver[PostgreSQLConnection]):
    """An open database whose tables are those of this program."""

    dialect = POSTGRESQL
    is_remote = True

    def __init__(self, address: DatabaseAddress, patience: float) -> None:
        """`patience` is how many seconds a server that goes away is waited for."""
        super().__init__(str(address))
        self._address = address
        self._outage = Outage(patience)

    @classmethod
    def open(
        cls,
        address: DatabaseAddress,
        *,
        create: bool,
        inspect: bool = False,
        may_migrate: bool = True,
        patience: float = PATIENCE_SECONDS,
    ) -> Self:
        """Open the store at an address and bring its tables up to date, as `Database.open` does.

        Unless `may_migrate`, `StoreError` is raised for a store that is older than this program.
        """
        driver = cls(address, patience)
        try:
            with driver.reading() as connection:
                code = find_foreign_code(connection, address)
                version = find_version(connection, address, code)
                if version is None and not create:
                    schemas = find_stores(connection, address)
                    raise StoreMissingError(str(address), schemas, may_make=may_migrate)
                if version is None:
                    create_store(connection, address)
                    version = find_version(connection, address, code)
                elif version != migrations.HEAD:
                    migrations.refuse_newer(version, driver.name)
                    if not may_migrate:
                        migrations.refuse_older(version, driver.name)
                    unsafe = [*code, *find_unexpected(connection, address)]
                    refuse_foreign(driver.name, [extra for extra in unsafe if runs_code(extra)])
                    migrate(address)
                    version = migrations.HEAD
                driver.foreign = [*code, *find_unexpected(connection, address)]
                if not inspect:
                    blocking = [extra for extra in driver.foreign if extra.blocks_reading]
                    refuse_foreign(driver.name, blocking)
                    driver._stored = _find_last_rows(connection)
            driver._version = version
        except BaseException:
            driver.close()
            raise
        return driver

    # --- connections and transactions

    def _connect(self) -> PostgreSQLConnection:
        # A server that was there is waited for.
        raw = self._reconnect() if self._version else connect(self._address)
        return PostgreSQLConnection(raw, self._reconnect)

    def _roll_back(self, connection: PostgreSQLConnection) -> bool:
        if connection.is_in_transaction:
            with while_wanted(None), suppress(psycopg.Error):  # a lost one is closed
                connection.execute("ROLLBACK")
        return not (connection.raw.closed or connection.is_in_transaction)

    def _begin_snapshot(self, connection: PostgreSQLConnection) -> None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    @contextmanager
    def _transaction(self, *, wait: bool) -> Iterator[PostgreSQLConnection]:
        if not wait and not self._idle:
            raise _would_wait(self.name)
        with super()._transaction(wait=wait) as connection:
            yield connection

    def _begin(self, connection: PostgreSQLConnection, *, wait: bool) -> str | None:
        statements = _statements(self._address, self._stored, wait=wait)
        version = connection.begin(statements, may_connect=wait)
        if version is None and self._stored:
            migrations.refuse_replaced(self.name)
        return version

    def _find_version(self, connection: PostgreSQLConnection) -> str | None:
        return find_version(connection, self._address)

    def write(self, work: Callable[[PostgreSQLConnection], T], *, wait: bool = True) -> T:
        """Do work in a transaction that writes; again after it was rolled back or lost.

        Without `wait`, `StoreLockedError` is raised then, and where a connection must be made.
        """
        pause, tries_for_lock = _FIRST_PAUSE, count(1)
        deadline = math.inf
        with self._translated():
            while True:
                try:
                    with self._transaction(wait=wait) as connection:
                        return work(connection)
                except psycopg.errors.LockNotAvailable:
                    if not wait or next(tries_for_lock) == _TRIES_FOR_LOCK:
                        raise
                except psycopg.Error as error:
                    if not (isinstance(error, ROLLED_BACK) or is_lost(error)):
                        raise
                    if not wait:
                        raise _would_wait(self.name) from error
                    # This program may have been stopped until now, so its time begins here.
                    deadline = min(deadline, monotonic() + self._outage.patience)
                    is_over = is_lost(error) and not self._outage.goes_on()
                    if is_over or monotonic() > deadline or self._closed.wait(pause):
                        raise
                    pause = min(2 * pause, _LONGEST_PAUSE)

    def _reconnect(self) -> RawConnection:
        """Connect again to a server that is back within the patience."""
        pause = _FIRST_PAUSE
        while True:
            try:
                raw = connect(self._address)
            except psycopg.Error as error:
                if not (is_lost(error) and self._outage.goes_on()) or self._closed.wait(pause):
                    raise
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._outage.end()
                return raw

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, UnicodeError) as error:
            if isinstance(error, psycopg.ProgrammingError):
                with suppress(psycopg.Error):
                    self._refuse_migrated()
            waited = self._outage.patience if self.seconds_away > self._outage.patience else 0.0
            was_open = self._version is not None
            raise explain_database_error(error, self.name, waited, was_open=was_open) from error

    @property
    def seconds_away(self) -> float:
        """Return for how long the server has been away; 0 if it is there."""
        return self._outage.seconds

    def stamp(self) -> str:
        """Return the newest transactions of the server and those in progress.

        Two equal stamps mean that nothing was committed in between.
        """
        with self.reading() as connection:
            (row,) = connection.execute(_STAMP).fetchall()
            return str(row[0])

    # --- for `fsck`

    def _stream_damaged(self, connection: PostgreSQLConnection, query: str) -> Iterator[Any]:
        return connection.stream(query)

    def problems(self) -> list[str]:
        """Return nothing: the server itself watches over its files."""
        return []


# --- since when a server is away, and whether it is still waited for


class Outage:
    """The outage of the server of a store, for all its connections together."""

    def __init__(self, patience: float) -> None:
        """`patience` is how many seconds the server is waited for."""
        self.patience = patience
        self._since: float | None = None
        self._last = 0.0
        self._lock = Lock()

    def goes_on(self) -> bool:
        """Note that the server could not be reached; returns False when the patience has ended."""
        with self._lock:
            now = monotonic()
            # After a longer pause this program was stopped, or did not need the server.
            if self._since is None or now - self._last > max(self.patience, PATIENCE_SECONDS):
                self._since = now
            self._last = now
            return now - self._since <= self.patience

    def end(self) -> None:
        """Note that the server was reached."""
        with self._lock:
            self._since = None

    @property
    def seconds(self) -> float:
        """Return for how long the server has been away; 0 if it is there."""
        since = self._since
        return 0.0 if since is None else monotonic() - since
