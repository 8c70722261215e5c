"""Opens, inspects and migrates the SQLite file of a store, and provides its transactions.

Every write is one `BEGIN IMMEDIATE` transaction, so writers wait for each other instead of failing
half-way. Errors of the database are raised as `StoreError`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Self

from evalstore.core.errors import StoreError
from evalstore.files.atomic_write import remove_abandoned, temporary_file
from evalstore.store.driver import (
    Driver,
    UnwantedError,
    is_unwanted,
    may_end,
    refuse_foreign,
)
from evalstore.store.location import DatabaseAddress
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import HEAD, RESULTS
from evalstore.store.sqlite.connection import (
    SQLITE,
    STATEMENTS,
    STEPS,
    SQLiteConnection,
    copy_database,
    explain_database_error,
    find_foreign,
    harden,
    is_interrupt,
    is_locked,
    is_on_read_only_media,
)

_CACHE = 32 * 1024
"""KiB of pages in memory: ids are random, so reads and writes are spread over the file."""
_COUNT = "SELECT count(*) FROM sqlite_master"
"""Counts tables, indexes and the like."""


class SQLiteDriver(Driver[SQLiteConnection]):
    """An open SQLite file whose tables are those of this program."""

    dialect = SQLITE
    is_remote = False

    def __init__(self, path: Path, busy: int, *, immutable: bool = False) -> None:
        """`busy` is the milliseconds to wait for writers; an `immutable` file never changes."""
        super().__init__(str(path))
        self._path = path
        self._busy = busy
        self._immutable = immutable

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool,
        busy: float,
        inspect: bool = False,
        immutable: bool = False,
        keep_copy: bool = True,
        may_migrate: bool = True,
    ) -> Self:
        """Open the file at a path and bring its tables up to date, as `Database.open` does."""
        if not path.exists():
            if not create:
                raise StoreError(f"no store at '{path}'", hint="run 'evalstore init' first")
            path.parent.mkdir(parents=True, exist_ok=True)
        options = {"inspect": inspect, "keep_copy": keep_copy, "may_migrate": may_migrate}
        try:
            return cls._open(path, int(busy * 1000), immutable=immutable, **options)
        except StoreError:
            if not is_on_read_only_media(path):
                raise
            return cls._open(path, int(busy * 1000), immutable=True, **options)

    @classmethod
    def _open(cls, path: Path, busy: int, *, immutable: bool, **options: bool) -> Self:
        driver = cls(path, busy, immutable=immutable)
        try:
            driver._bring_up_to_date(**options)
            driver.file = _identify(path)
        except BaseException:
            driver.close()
            raise
        return driver

    def _bring_up_to_date(self, *, inspect: bool, keep_copy: bool, may_migrate: bool) -> None:
        with self.reading() as connection:
            self.foreign = find_foreign(connection)
            unreadable = [extra for extra in self.foreign if extra.blocks_reading]
            if unreadable and inspect:
                return
            refuse_foreign(self.name, unreadable)
            version = self._find_known_version(connection)
            is_new = version is None
            if is_new:
                self._keep_log(connection)
                version = self._make_tables(connection)
            if version != table_definitions.HEAD:
                unsafe = [
                    extra for extra in self.foreign if extra.blocks_writing and not extra.missing
                ]
                refuse_foreign(self.name, unsafe)
                if not (is_new or may_migrate):
                    table_definitions.refuse_older(str(version), self.name)
                self._migrate(connection, copy=keep_copy and not is_new)
            if self.foreign:  # it was empty or older, unless another process has just made it
                self.foreign = find_foreign(connection)
            self._version = table_definitions.HEAD
            with suppress(sqlite3.Error):  # what cannot be read is said where it is needed
                for table in RESULTS:
                    query = f"SELECT '{table}', id FROM {table} ORDER BY rowid DESC LIMIT 1"
                    self._stored = [*self._stored, *connection.execute(query)]

    def _keep_log(self, connection: sqlite3.Connection) -> None:
        """Turn on the write-ahead log, so that readers do not block a writer.

        SQLite itself does not wait here for another process that creates the same store.
        """
        deadline = monotonic() + self._busy / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not is_locked(error) or monotonic() > deadline:
                    raise
            else:
                return
            connection.execute("BEGIN IMMEDIATE")  # this one waits
            connection.rollback()

    def _make_tables(self, connection: sqlite3.Connection) -> str:
        """Create the tables, unless another process has; returns the migration of the store."""
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            version = self._find_known_version(connection)
            if version is None:
                make_tables(connection)
                version = HEAD
        return version

    def _migrate(self, connection: sqlite3.Connection, *, copy: bool) -> None:
        errors = sqlite3.DatabaseError
        with table_definitions.joined(
            "sqlite://", connection, errors, "BEGIN IMMEDIATE"
        ) as writing:
            # Another process may have been faster.
            if self._find_known_version(connection) != table_definitions.HEAD:
                if copy:
                    _back_up(self)
                table_definitions.upgrade(writing)

    def _find_known_version(self, connection: sqlite3.Connection) -> str | None:
        """Return the migration of the store; None for an empty file."""
        version = version_of(connection)
        if version is None and connection.execute(_COUNT).fetchone()[0]:
            version = version_of(connection)  # another process may just have created it
            if version is None:
                raise StoreError(
                    f"'{self.name}' is a database, but not a store of evalstore",
                    hint="name another file with --store",
                )
        if version is not None:
            table_definitions.refuse_newer(version, self.name)
        return version

    # --- connections and transactions

    def _connect(self) -> SQLiteConnection:
        path = self._path.absolute()
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro&immutable=1" if self._immutable else path,
            timeout=self._busy / 1000,
            isolation_level=None,
            check_same_thread=False,
            uri=self._immutable,
            factory=SQLiteConnection,
        )
        try:
            harden(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _roll_back(self, connection: SQLiteConnection) -> bool:
        try:
            if connection.in_transaction:
                connection.rollback()
        except (
            sqlite3.ProgrammingError
        ):  # SQLAlchemy closes the connection of an interrupted migration
            return False
        return True

    @contextmanager
    def _connection(self) -> Iterator[SQLiteConnection]:
        with super()._connection() as connection, _ended(connection):
            yield connection

    def _begin_snapshot(self, connection: SQLiteConnection) -> None:
        connection.execute("BEGIN")

    @contextmanager
    def _transaction(self, *, wait: bool) -> Iterator[SQLiteConnection]:
        if self.file and self.file != _identify(self._path):
            # Writes to a deleted file would be lost.
            raise StoreError(
                f"the store '{self.name}' was removed or replaced while it was open",
                hint="put it back, or run again to begin a new one",
            )
        with super()._transaction(wait=wait) as connection:
            yield connection

    def _begin(self, connection: SQLiteConnection, *, wait: bool) -> str | None:
        if not wait:
            connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            if not wait:
                connection.execute(f"PRAGMA busy_timeout = {self._busy}")
        version = self._find_version(connection) if self._version else None
        for table, id in self._stored:
            if not connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (id,)).fetchone():
                table_definitions.refuse_replaced(self.name)  # an earlier copy is now in the file
        return version

    def _find_version(self, connection: SQLiteConnection) -> str | None:
        return version_of(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if is_interrupt(error) and is_unwanted():
                raise UnwantedError from error
            if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):
                with suppress(sqlite3.Error):
                    self._refuse_migrated()
            raise explain_database_error(error, self.name) from error

    # --- for `fsck`

    def _stream_damaged(self, connection: SQLiteConnection, query: str) -> Iterator[Any]:
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            yield from connection.execute(query)
        finally:
            connection.text_factory = str

    def problems(self) -> list[str]:
        """Return the problems that SQLite's integrity check reports."""
        with self.reading() as connection:
            problems = [str(line) for (line,) in connection.execute("PRAGMA integrity_check")]
        return [] if problems == ["ok"] else problems


def version_of(connection: sqlite3.Connection) -> str | None:
    """Return the migration of a store; None for one without tables."""
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        if "no such table" in str(error):
            return None
        raise
    return row[0] if row else None


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty store, as all migrations up to `HEAD` would."""
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO alembic_version VALUES (?)", (HEAD,))


@contextmanager
def _ended(connection: SQLiteConnection) -> Iterator[None]:
    """End statements when nobody waits any more for what they read."""
    if not may_end():
        yield
        return
    connection.set_progress_handler(is_unwanted, STEPS)
    try:
        yield
    finally:
        with suppress(sqlite3.ProgrammingError):  # it was closed
            connection.set_progress_handler(None, STEPS)


def _back_up(driver: SQLiteDriver) -> None:
    """Copy the store to a file beside it, before a migration; the copy is atomic."""
    target = Path(f"{driver.name}.before-{table_definitions.HEAD}")
    remove_abandoned(target.parent)
    if target.exists():
        return
    try:
        with driver.reading() as connection, temporary_file(target) as file:
            copy_database(connection, Path(file.name))
    except OSError as error:
        raise StoreError(
            f"the store '{driver.name}' cannot be copied, so it is not migrated: {error.strerror}",
            hint="make room for a second store beside it, and try again",
        ) from error


def _identify(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@dataclass(frozen=True, slots=True)
class StoreState:
    """The state of a store."""

    size: int | None
    """The size in bytes, including the log; None when there is no store."""
    version: str | None = None
    """The migration of the store; None when it cannot be read or is empty."""
    writable: bool = False
    damage: str | None = None
    """The reason why it cannot be read; None if it can."""
    others: Sequence[str] = ()
    """The schemas of the database that have a store, if the one named in the address has none."""
    hint: str | None = None
    """What lets a user write to a database where all transactions only read."""

    @property
    def is_newer(self) -> bool:
        """Return whether a newer version of evalstore has written it."""
        return self.version is not None and self.version not in table_definitions.KNOWN

    @property
    def is_older(self) -> bool:
        """Return whether the next command will migrate it."""
        return self.version in table_definitions.KNOWN and self.version != table_definitions.HEAD


def inspect_database(address: DatabaseAddress) -> StoreState:
    """Return the state of a store in a database; raises `StoreError` if it cannot be reached."""
    from evalstore.store.postgresql import driver as postgresql
    from evalstore.store.postgresql.connection import READ_ONLY_HINT

    driver = postgresql.PostgreSQLDriver(address, patience=0.0)
    with closing(driver), driver.reading() as connection:
        version = postgresql.find_version(connection, address)
        size, may_write = postgresql.measure(connection, address, is_there=version is not None)
        others = postgresql.find_stores(connection, address) if version is None else []
        only_reads = f"SELECT (NOT {postgresql.MAY_WRITE})::int"
        hint = READ_ONLY_HINT if not may_write and connection.count(only_reads) else None
        return StoreState(size, version, may_write, others=others, hint=hint)


def inspect_store(path: Path) -> StoreState:
    """Return the state of the store at a path."""
    try:
        size = path.stat().st_size
    except OSError:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        return StoreState(None, writable=os.access(folder, os.W_OK))
    log = Path(f"{path}-wal")
    size += log.stat().st_size if log.exists() else 0
    # SQLite writes its log beside the store.
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    # On read-only media SQLite can only read a file that is opened as immutable.
    mode = "mode=rw" if writable else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            harden(connection)
            foreign = find_foreign(connection)
            unreadable = [extra.words for extra in foreign if extra.blocks_reading]
            if unreadable:
                return StoreState(size, None, writable, unreadable[0])
            version = version_of(connection)
            if version is None and connection.execute(_COUNT).fetchone()[0]:
                return StoreState(size, None, writable, "it is not a store of evalstore")
    except sqlite3.Error as error:
        return StoreState(size, None, writable, str(error))
    return StoreState(size, version, writable)
