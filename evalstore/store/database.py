"""The transactions of a store, in whichever database it is, and the statements of all queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from evalstore.core.batches import in_batches
from evalstore.core.errors import StoreError
from evalstore.store.contents import all_as_bytes, as_digits
from evalstore.store.driver import (
    Connection,
    Driver,
    QueryRows,
    UnexpectedObject,
    refuse_other_than_queries,
)
from evalstore.store.location import StoreLocation
from evalstore.store.rows.row_tables import ROWS_OF, write_rows
from evalstore.store.schema.table_definitions import TableColumns
from evalstore.store.sqlite.driver import SQLiteDriver

BUSY_SECONDS = 10.0
NO_LIMIT = 2**63 - 1
"""A number of rows that no table has."""


class Database:
    """An open database whose tables are those of this program.

    Its transactions are those of its `Driver`, where they are described.
    """

    def __init__(self, driver: Driver[Connection]) -> None:
        self._driver = driver
        self.path = driver.name
        """The path or the address of the store, as messages show it."""
        self.is_remote = driver.is_remote
        self._reading, self.snapshot, self.writing = driver.reading, driver.snapshot, driver.writing
        self.write, self.dialect = driver.write, driver.dialect
        self.iterate, self.database_problems = driver.iterate, driver.problems
        self.find_remote_runs: Callable[[str], Sequence[str]] | None = None
        """Returns the ids of the runs of a remote, newest first; set where there is a workspace."""

    @classmethod
    def open(
        cls,
        location: StoreLocation,
        *,
        create: bool = False,
        busy: float = BUSY_SECONDS,
        inspect: bool = False,
        immutable: bool = False,
        keep_copy: bool = True,
        may_migrate: bool = True,
    ) -> Self:
        """Open the store at a path or an address, and bring its tables up to date.

        `busy` is how many seconds to wait for other writers. With `inspect`, a store that has
        views in the place of tables is opened, too: they must not be read. An `immutable` file
        is only read, and must be up to date; nobody may write to it meanwhile. Before a migration,
        a copy of a file is made, unless `keep_copy` is false. Raises `StoreError` when the
        store is missing (unless `create`), older than this program (unless `may_migrate`),
        damaged, locked, read-only, newer than this program, not a store, or out of reach.
        """
        if isinstance(location, Path):
            return cls(
                SQLiteDriver.open(
                    location,
                    create=create,
                    busy=busy,
                    inspect=inspect,
                    immutable=immutable,
                    keep_copy=keep_copy,
                    may_migrate=may_migrate,
                )
            )
        from evalstore.store.postgresql.driver import PostgreSQLDriver

        return cls(
            PostgreSQLDriver.open(location, create=create, inspect=inspect, may_migrate=may_migrate)
        )

    def close(self) -> None:
        """Close all connections."""
        self._driver.close()

    @property
    def foreign(self) -> list[UnexpectedObject]:
        """Return objects in the schema that are foreign or missing."""
        return self._driver.foreign

    @property
    def file(self) -> tuple[str, int, int] | None:
        """Return the path, the device and the inode of the file; None for a store on a server."""
        return (self.path, *self._driver.file) if self._driver.file else None

    @property
    def seconds_away(self) -> float:
        """Return for how long its server has been away and is waited for; 0 if it is there."""
        return self._driver.seconds_away

    def _select(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._reading() as connection:
            return list(connection.execute(query, parameters))

    def _select_each(
        self,
        statement: str,
        ids: Iterable[str],
        rest: str = "",
        *,
        as_value: Callable[[str], Any] | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement for these ids, as `select_each` does."""
        with self._reading() as connection:
            yield from select_each(connection, statement, ids, rest, as_value=as_value)

    @contextmanager
    def ask(self, statement: str, seconds: float) -> Iterator[QueryRows]:
        """Return the answer to a statement of a person, which can only read.

        Raises `QueryError` for one that is wrong, that writes, or that takes longer than `seconds`.
        """
        refuse_other_than_queries(statement)
        with (
            self.snapshot() as connection,
            connection.dialect.answer(connection, statement, seconds) as rows,
        ):
            yield rows


def select_each(
    connection: Connection,
    statement: str,
    ids: Iterable[str],
    rest: str = "",
    *,
    as_value: Callable[[str], Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that ends with `IN`, for these ids, as SQLite returns them.

    `rest` follows the ids in the statement; `as_value` converts an id for the comparison.
    """
    for batch in in_batches(dict.fromkeys(ids)):
        values = [*map(as_value, batch)] if as_value else all_as_bytes(batch)
        yield from connection.select_in(statement, values, rest)


def ensure(connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]) -> None:
    """Insert the rows that are missing; rows are by id.

    Raises `StoreError` if a stored row has other content.
    """
    missing = _find_missing(connection, table, rows)
    if _insert(connection, table, missing) == len(missing):
        return
    if left := _find_missing(connection, table, missing):  # others have stored some meanwhile
        raise StoreError(f"id {next(iter(left))} cannot be stored in the table '{table.name}'")


def append(connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]) -> None:
    """Insert rows that are probably new; otherwise as `ensure`."""
    if _insert(connection, table, rows) != len(rows):
        ensure(connection, table, rows)


def _find_missing(
    connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the rows that are not stored; raises `StoreError` if one has other content."""
    missing = dict(rows)
    statement = f"SELECT id, content FROM {table.name} WHERE id IN"
    for digits, content in select_each(connection, statement, rows):
        id = as_digits(digits)
        if content != missing.pop(id)["content"]:
            raise StoreError(
                f"id {id} has other content in the store",
                hint="run 'evalstore fsck': the store is damaged",
            )
    return missing


def _insert(connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]) -> int:
    """Insert the rows that are missing, and those that follow from them; returns how many.

    A row may have its content `parsed`, which then is not parsed again.
    """
    if not rows:
        return 0
    columns = ([row[name] for row in rows.values()] for name in table.columns)
    named = zip(table.columns, columns, strict=True)
    values = [all_as_bytes(column) if name in table.ids else column for name, column in named]
    inserted = connection.insert(table, [*zip(*values, strict=True)])
    if table.name in ROWS_OF:
        contents = (
            (bytes.fromhex(id), row.get("parsed") or json.loads(row["content"]))
            for id, row in rows.items()
        )
        write_rows(connection, contents)
    return inserted
