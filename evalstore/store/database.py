"""Opens and migrates the SQLite file, and provides its transactions.

Every write is one `BEGIN IMMEDIATE` transaction, so writers wait for each other instead of failing
half-way. Errors of the database are raised as `StoreError`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Self

from evalstore.errors import StoreError
from evalstore.files.atomic_write import remove_abandoned, temporary_file
from evalstore.store import migrations
from evalstore.store.connection import Pool, is_on_read_only_media
from evalstore.store.database_errors import explain_database_error, is_locked
from evalstore.store.ids import as_bytes, as_digits
from evalstore.store.schema_check import SCHEMA, UnexpectedObject, find_foreign
from evalstore.store.table_columns import MIGRATION, TABLES, TableColumns

BUSY_SECONDS = 10.0
_AT_ONCE = 8_000
"""Ids in one query."""
_COUNT = "SELECT count(*) FROM sqlite_master"
"""Counts tables, indexes and the like."""


class Database:
    """An open SQLite file whose tables are those of this program."""

    def __init__(self, pool: Pool, path: str, busy: int) -> None:
        """`busy` is how many milliseconds to wait for other writers."""
        self._pool = pool
        self._busy = busy
        self.path = path
        self.foreign: list[UnexpectedObject] = []
        """Objects in the schema that evalstore has not created, and objects that are missing."""
        self.find_remote_runs: Callable[[str], Sequence[str]] | None = None
        """Returns the ids of the runs of a remote, newest first; set where there is a workspace."""
        self._file: tuple[int, int] | None = None
        """Identifies the open file, because its path may be replaced."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = False,
        busy: float = BUSY_SECONDS,
        inspect: bool = False,
        immutable: bool = False,
        keep_copy: bool = True,
    ) -> Self:
        """Open the store at a path and bring its tables up to date.

        `busy` is how many seconds to wait for other writers. With `inspect`, a store that has
        views in the place of tables is opened, too: they must not be read. An `immutable` store
        is only read, and must be up to date; nobody may write to it meanwhile. Before a migration,
        a copy of the store is made, unless `keep_copy` is false. Raises `StoreError` when the
        store is missing (unless `create`), damaged, locked, read-only, newer than this program, or
        not a store.
        """
        name = str(path)
        if not path.exists():
            if not create:
                raise StoreError(
                    f"there is no store at '{name}'", hint="run 'evalstore init' first"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
        patience = int(busy * 1000)
        try:
            return cls._open(
                path, patience, inspect=inspect, immutable=immutable, keep_copy=keep_copy
            )
        except StoreError:
            if not is_on_read_only_media(path):
                raise
            return cls._open(path, patience, inspect=inspect, immutable=True)

    @classmethod
    def _open(
        cls,
        path: Path,
        busy: int,
        *,
        inspect: bool,
        immutable: bool = False,
        keep_copy: bool = True,
    ) -> Self:
        database = cls(Pool(path, busy, immutable=immutable), str(path), busy)
        try:
            database._bring_up_to_date(inspect=inspect, keep_copy=keep_copy)
            database._file = _identify(path)
        except BaseException:
            database.close()
            raise
        return database

    def _bring_up_to_date(self, *, inspect: bool, keep_copy: bool) -> None:
        with self._reading() as connection:
            self.foreign = _foreign_in(connection)
            unreadable = [extra for extra in self.foreign if extra.blocks_reading]
            if unreadable and inspect:
                return
            refuse_foreign(self.path, unreadable)
            version = self._version(connection)
            is_new = version is None
            if is_new:
                self._keep_log(connection)
                version = self._make_tables(connection)
            if version != migrations.HEAD:
                unsafe = [
                    extra for extra in self.foreign if extra.blocks_writing and not extra.missing
                ]
                refuse_foreign(self.path, unsafe)
                self._migrate(connection, copy=keep_copy and not is_new)
            self.foreign = _foreign_in(connection)

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
            version = self._version(connection)
            if version is None:
                migrations.make_tables(connection)
                version = MIGRATION
        return version

    def _migrate(self, connection: sqlite3.Connection, *, copy: bool) -> None:
        with migrations.transaction(connection) as writing:
            # Another process may have been faster.
            if self._version(connection) != migrations.HEAD:
                if copy:
                    self._back_up()
                migrations.upgrade(writing)

    def _version(self, connection: sqlite3.Connection) -> str | None:
        """Return the migration of the store; None for an empty file."""
        version = migrations.version_of(connection)
        if version is None and connection.execute(_COUNT).fetchone()[0]:
            version = migrations.version_of(connection)  # another process may just have created it
            if version is None:
                raise StoreError(
                    f"'{self.path}' is a database, but not a store of evalstore",
                    hint="name another file with --store",
                )
        if version is not None:
            migrations.refuse_newer(version, self.path)
        return version

    def _back_up(self) -> None:
        """Copy the store to a file beside it, before a migration; the copy is atomic."""
        target = Path(f"{self.path}.before-{migrations.HEAD}")
        remove_abandoned(target.parent)
        _remove_partial_copies(Path(self.path))
        if target.exists():
            return
        try:
            self._copy(target)
        except OSError as error:
            raise StoreError(
                f"the store '{self.path}' cannot be copied, so it is not migrated: "
                f"{error.strerror}",
                hint="make room for a second store beside it, and try again",
            ) from error

    def _copy(self, target: Path) -> None:
        with (
            self._reading() as connection,
            temporary_file(target) as file,
            closing(sqlite3.connect(file.name)) as copy,
        ):
            copy.execute("PRAGMA journal_mode = OFF")  # an incomplete copy is deleted
            connection.backup(copy)

    def close(self) -> None:
        """Close the file."""
        self._pool.close()

    # --- transactions

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise explain_database_error(error, self.path) from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._translated(), self._pool.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[sqlite3.Connection]:
        """Return a transaction that writes, for the other modules of this package.

        Without `wait`, `StoreLockedError` is raised at once while another program writes.
        """
        if self._file and self._file != _identify(Path(self.path)):
            # Writes to a deleted file would be lost.
            raise StoreError(
                f"the store '{self.path}' was removed or replaced while it was open",
                hint="put it back, or run again to begin a new one",
            )
        refuse_foreign(self.path, [extra for extra in self.foreign if extra.blocks_writing])
        with self._reading() as connection:
            if not wait:
                connection.execute("PRAGMA busy_timeout = 0")
            try:
                connection.execute("BEGIN IMMEDIATE")
            finally:
                if not wait:
                    connection.execute(f"PRAGMA busy_timeout = {self._busy}")
            with connection:  # commits, or rolls back
                yield connection

    # --- for `fsck`

    def iterate(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield every row of every table, as SQLite returns it, with the name of its table.

        Ids are bytes. In a text, bytes that are not UTF-8 are kept as surrogates.
        """
        with self._reading() as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            try:
                connection.execute("BEGIN")  # concurrent writes are not visible
                for table in set(TABLES) - {extra.table for extra in self.foreign if extra.table}:
                    rows = connection.execute(f'SELECT * FROM "{table}"')
                    names = [str(column[0]) for column in rows.description]
                    for row in rows:
                        yield table, dict(zip(names, row, strict=True))
            finally:
                connection.text_factory = str

    def database_problems(self) -> list[str]:
        """Return the problems that SQLite's integrity check reports."""
        with self._reading() as connection:
            problems = [str(line) for (line,) in connection.execute("PRAGMA integrity_check")]
        return [] if problems == ["ok"] else problems


def _remove_partial_copies(store: Path) -> None:
    """Remove incomplete copies of a store, left by programs that were killed.

    The caller must hold the store's lock, as every copy of a store does.
    """
    partial = re.compile(
        rf"{re.escape(store.name)}\.before-[0-9a-z]+\.[0-9]+\.tmp(-journal|-wal|-shm)?"
    )
    for path in list(store.parent.iterdir()):
        if partial.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()


def _foreign_in(connection: sqlite3.Connection) -> list[UnexpectedObject]:
    return find_foreign(connection.execute(SCHEMA))


def refuse_foreign(path: str, foreign: Sequence[UnexpectedObject]) -> None:
    """Raise `StoreError` if there are objects that make reading or writing unsafe."""
    if foreign:
        verb = "read" if any(extra.blocks_reading for extra in foreign) else "written to"
        raise StoreError(
            f"the store '{path}' is not {verb}: {foreign[0].words}",
            hint="'evalstore fsck' lists what is wrong; do not use a store of unknown origin",
        )


def _identify(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def select_each(
    connection: sqlite3.Connection,
    statement: str,
    ids: Iterable[str],
    rest: str = "",
    *,
    as_value: Callable[[str], Any] = as_bytes,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that ends with `IN`, for these ids, as SQLite returns them.

    `rest` follows the ids in the statement; `as_value` converts an id for the comparison.
    """
    for batch in chunks(ids):
        places = ", ".join(["?"] * len(batch))
        query = f"{statement} ({places}) {rest}"
        yield from connection.execute(query, [as_value(id) for id in batch]).fetchall()


def ensure(
    connection: sqlite3.Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]
) -> None:
    """Insert the rows that are missing; rows are by id.

    Raises `StoreError` if a stored row has other content.
    """
    missing = dict(rows)
    statement = f"SELECT id, content FROM {table.name} WHERE id IN"
    for digits, content in select_each(connection, statement, rows):
        id = as_digits(digits)
        if content != missing.pop(id)["content"]:
            raise StoreError(
                f"id {id} has other content in the store",
                hint="run 'evalstore fsck': the store is damaged",
            )
    _insert(connection, "INSERT", table, missing)


def append(
    connection: sqlite3.Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]
) -> None:
    """Insert rows that are probably new; otherwise as `ensure`."""
    if _insert(connection, "INSERT OR IGNORE", table, rows) != len(rows):
        ensure(connection, table, rows)


def _insert(
    connection: sqlite3.Connection,
    verb: str,
    table: TableColumns,
    rows: Mapping[str, dict[str, Any]],
) -> int:
    """Insert rows; returns how many."""
    names = tuple(table.columns)
    places = ", ".join("?" * len(names))
    values = [
        tuple(as_bytes(row[name]) if name in table.ids else row[name] for name in names)
        for row in rows.values()
    ]
    statement = f"{verb} INTO {table.name} ({', '.join(names)}) VALUES ({places})"
    return connection.executemany(statement, values).rowcount if values else 0


def chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids without repetitions, in lists that fit into one query."""
    unique_ids = list(dict.fromkeys(ids))
    for start in range(0, len(unique_ids), _AT_ONCE):
        yield unique_ids[start : start + _AT_ONCE]
