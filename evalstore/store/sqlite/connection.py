"""Opens the file of a store with limits, because its origin may be unknown.

Errors of SQLite become `StoreError` with messages for users.

It is checked that a store has only the tables and indexes that the migrations create.

A file of unknown origin may have triggers that delete what is written, or endless views in the
place of tables. Each statement of its schema is compared with ours by its text, because SQLite uses
only the text and not the other columns of `sqlite_master`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Any, cast

from evalstore.core.errors import StoreError, StoreLockedError
from evalstore.store.contents import as_digits
from evalstore.store.driver import (
    Connection,
    Dialect,
    Extent,
    QueryError,
    QueryRows,
    UnexpectedObject,
    refuse_writing,
    took_too_long,
)
from evalstore.store.rows.row_tables import ROW_TABLES, sqlite_views
from evalstore.store.schema.table_definitions import (
    COORDINATION,
    FAILURES,
    RESULTS,
    RUNS,
    TABLES,
    TableColumns,
)

_RECORDED = (*RESULTS, FAILURES.name, RUNS.name)
"""The tables of what is recorded of runs."""


class RowNumbers:
    """The extents of SQLite files: numbers and ids of last rows, which must still be theirs."""

    def measure(self, connection: Connection) -> Extent:
        """Return the number and the id of the last rows; 0 and an empty id without rows."""
        return _last_rows(connection, RESULTS)

    def newest(self, connection: Connection, before: Extent | None) -> Extent:
        """Return the same of what is recorded of runs."""
        del before  # the last rows alone tell
        return _last_rows(connection, _RECORDED)

    def has_had(self, connection: Connection, extent: Extent) -> bool:
        """Return whether the last rows of an extent still have their numbers."""
        if list(map(type, extent)) != [int, str] * len(RESULTS):
            return False
        for table in RESULTS:
            number, id = _last(table, extent)
            query = f"SELECT id FROM {table} WHERE rowid = ?"
            row = connection.execute(query, (number,)).fetchone()
            if (as_digits(row[0]) if row else "") != id:
                return False
        return True

    def count(self, connection: Connection, table: str, before: Extent, after: Extent) -> int:
        """Return how many rows were added, without reading them."""
        return _last(table, after)[0] - _last(table, before)[0]

    def condition(self, table: str, since: Extent) -> tuple[str, tuple[int | str, ...]]:
        """Return that the number of a row is larger than that of the last one."""
        return "rowid > ?", (_last(table, since)[0],)


def _last_rows(connection: Connection, tables: Iterable[str]) -> Extent:
    extent: list[int | str] = []
    for table in tables:
        query = f"SELECT rowid, id FROM {table} ORDER BY rowid DESC LIMIT 1"
        row = connection.execute(query).fetchone()
        extent += (row[0], as_digits(row[1])) if row else (0, "")
    return tuple(extent)


def _last(table: str, extent: Extent) -> tuple[int, str]:
    """Return the number and the id of the last row of a table."""
    at = 2 * RESULTS.index(table)
    return cast("tuple[int, str]", extent[at : at + 2])


_READING = (
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION),
    sqlite3.SQLITE_RECURSIVE,
)


@contextmanager
def answer(connection: Any, statement: str, seconds: float) -> Iterator[QueryRows]:
    """Return the rows of a statement; raises `QueryError` as `Database.ask` does."""
    ends = monotonic() + seconds
    # Our views use functions for JSON, and what a statement may do is decided here.
    connection.execute("PRAGMA trusted_schema = ON")
    connection.set_authorizer(_allow_reading)
    connection.set_progress_handler(lambda: monotonic() > ends, STEPS)
    try:
        cursor = connection.execute(statement)
        if cursor.description is None:
            raise refuse_writing()
        yield QueryRows([str(column[0]) for column in cursor.description], cursor)
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise took_too_long(seconds) from error
        if "not authorized" in str(error) or "prohibited" in str(error):
            raise refuse_writing() from error
        raise QueryError(str(error)) from error
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")


def _allow_reading(action: int, first: str | None, *_rest: object) -> int:
    """Allow what a query does; functions that load code are not allowed."""
    is_reading = action in _READING and first != "load_extension"
    return sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY


LARGEST_VALUE = 256 * 2**20
"""The most bytes of a value or a row: files have at most 32 MiB, old nodes may have more."""

STEPS = 100_000
"""Steps of SQLite, some milliseconds, after which is asked whether a query goes on."""


def _field(path: str) -> str:
    return f"json_extract(content, '$.{path}')"


SQLITE = Dialect(
    field=_field,
    text=_field,
    has=lambda text: f"instr(content, '{text}')",
    as_stored=lambda column: (
        f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"
    ),
    # Most contents have no cost, and are not decoded.
    usd=f"""CASE WHEN instr(content, '"cost"') > 0 THEN {_field("cost.usd")} END""",
    longest_output=(
        "(SELECT max(json_extract(value, '$.usage.outputTokens')) "
        "FROM json_each(content, '$.turns'))"
    ),
    # A text ends for SQLite where it has a NUL character.
    feedback=(
        f"CASE WHEN instr(content, '\\u0000') = 0 THEN {_field('feedback')} END, "
        "CASE WHEN instr(content, '\\u0000') > 0 THEN content END"
    ),
    newest_first="rowid DESC",
    growth=RowNumbers(),
    row_number="rowid",
    is_newer="rowid > ?",
    settled="9223372036854775807",
    for_update="",
    skip_locked="",  # there is one writer at a time
    clock="CAST((julianday('now') - 2440587.5) * 86400e6 AS INTEGER)",
    answer=answer,
)


class SQLiteConnection(sqlite3.Connection):
    """A connection to a SQLite file."""

    dialect = SQLITE
    inserted: tuple[str, bytes] | None = None

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query, as SQLite finds them."""
        return self.execute(statement, parameters)

    def select_in(self, statement: str, values: Sequence[Any], rest: str = "") -> list[Any]:
        """Return the rows of a query that ends with `IN`, for these values."""
        places = ", ".join(["?"] * len(values))
        return self.execute(f"{statement} ({places}) {rest}", values).fetchall()

    def change_in(self, statement: str, values: Sequence[Any], *before: Any) -> None:
        """Execute a statement that changes rows and ends with `IN`, for these values."""
        self.executemany(f"{statement} (?)", [(*before, value) for value in values])

    def insert(self, table: TableColumns, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows, in the order of their columns, except those whose id is in the table."""
        if table.name not in _RECORDED:  # their order tells which are new; others share pages
            rows = sorted(rows, key=itemgetter(*range(len(table.key))))
        places, names = ", ".join("?" * len(table.columns)), ", ".join(table.columns)
        statement = f"INSERT INTO {table.name} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING"
        inserted = self.executemany(statement, rows).rowcount
        if inserted == len(rows) > 0 and table.name in TABLES:  # else the last may not be new
            self.inserted = table.name, rows[-1][0]
        return inserted


def harden(connection: sqlite3.Connection) -> None:
    """Disable on a connection what a file of unknown origin could exploit."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)  # no triggers run
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def copy_database(connection: sqlite3.Connection, target: Path) -> None:
    """Copy all that a connection can see to a file."""
    with closing(sqlite3.connect(target)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")  # an incomplete copy is deleted
        connection.backup(copy)


def is_on_read_only_media(path: Path) -> bool:
    """Return whether the disk of a store is read-only, so that it must be opened as immutable."""
    log = Path(f"{path}-wal")
    return (
        path.is_file()
        and not os.access(path.parent, os.W_OK)
        and not (log.exists() and log.stat().st_size)
    )


_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_LONGEST = 300
"""The most characters of a message of SQLite, which may quote a whole value."""
_REASONS = (
    (
        "readonly|read-only",
        "the store '{path}' is read-only",
        "check the permissions of the file and its folder",
    ),
    (
        "malformed|not a database|corrupt|can't decode|could not decode|no such (column|table)"
        "|unsafe use|datatype mismatch",
        "the store '{path}' is damaged: {text}",
        "restore a copy of it; 'evalstore fsck' lists what is wrong",
    ),
    ("unable to open", "the store '{path}' cannot be opened", "check the path and its permissions"),
    (
        "disk i/o error",
        "the store '{path}' cannot be used: {text}",
        "check the disk, and the size of files that the shell allows ('ulimit -f')",
    ),
    (
        "too big",
        "a value is too large for the store '{path}'",
        f"the limit is {LARGEST_VALUE // 2**20} MiB; 'evalstore fsck' lists what is wrong",
    ),
    (
        "is full",
        "no space left for the store '{path}'",
        "free some space and run again: what is in the store stays there",
    ),
)
"""Patterns of messages of SQLite, with the message and the hint for the user."""


def is_locked(error: Exception) -> bool:
    """Return whether another program has locked the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def explain_database_error(error: Exception, path: str) -> StoreError:
    """Return the `StoreError` for an error of the database at a path."""
    text = str(error)[:_LONGEST]
    if is_locked(error):
        return StoreLockedError(
            f"the store '{path}' is locked by another program",
            hint="wait until it is done and try again; if there is none, its file system may have "
            "no locks: set 'store' in evalstore.yaml to a file on another one",
        )
    for pattern, message, hint in _REASONS:
        if re.search(pattern, text.lower()):
            return StoreError(message.format(path=path, text=text), hint=hint)
    return StoreError(f"the store '{path}' cannot be used: {text}")


def is_interrupt(error: BaseException) -> bool:
    """Return whether a statement was ended because nobody waits for it any more."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT


_START = re.compile(
    r"CREATE (?P<kind>TABLE|VIEW|VIRTUAL TABLE|INDEX|UNIQUE INDEX|TRIGGER) "
    r"(?:(?P<name>\w+)|[\"'`\[](?P<quoted>[^\"'`\]]+)[\"'`\]])"
)
_PLAIN_INDEX = re.compile(r"CREATE INDEX \S+ ON \S+ \([\w\", ]+\)\Z")
_OF_SQLITE = ("sqlite_autoindex_", "sqlite_sequence", "sqlite_stat")


def find_foreign(connection: sqlite3.Connection) -> list[UnexpectedObject]:
    """Return the differences of the schema of a file from that of the newest migration."""
    ours, present = STATEMENTS, set[str]()
    unexpected: list[UnexpectedObject] = []
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        statement = " ".join(str(sql).split())
        if statement in ours:
            present.add(statement)
        elif not str(name).startswith(_OF_SQLITE) or (sql is not None and kind != "table"):
            unexpected.append(_describe(str(name), statement))
    taken = {extra.table for extra in unexpected}
    unexpected += [
        UnexpectedObject(
            f"the {object_kind} '{name}' is missing", None, object_kind == "table", missing=True
        )
        for statement, (object_kind, name) in ours.items()
        if statement not in present and name not in taken
    ]
    return unexpected


def _describe(name: str, statement: str) -> UnexpectedObject:
    start = _START.match(statement)
    if start is None:
        return UnexpectedObject(f"'{name}' is something that evalstore does not know", None, True)
    kind = start["kind"].lower()
    called = (start["name"] or start["quoted"]).lower()
    if ("table", called) in STATEMENTS.values():
        if kind == "table":
            words = f"the table '{called}' is not as evalstore makes it"
            return UnexpectedObject(words, called, blocks_writing=True)
        if "index" not in kind:
            words = f"there is a {kind} in the place of the table '{called}'"
            blocks = kind != "trigger"
            return UnexpectedObject(words, called if blocks else None, True, blocks)
    harmless = kind in ("table", "view", "virtual table") or _PLAIN_INDEX.match(statement)
    return UnexpectedObject(f"the {kind} '{name}' does not belong to evalstore", None, not harmless)


_MIGRATIONS = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)
OF_ROWS: dict[str, tuple[str, str]] = {
    **{
        statement: made
        for table in ROW_TABLES.values()
        for statement, made in table.statements().items()
    },
    **{statement: ("view", name) for name, statement in sqlite_views().items()},
}
"""The statements that create the tables of rows, and the views that people ask."""
STATEMENTS: dict[str, tuple[str, str]] = {
    _MIGRATIONS: ("table", "alembic_version"),
    **{
        statement: made
        for table in (*TABLES.values(), *COORDINATION)
        for statement, made in table.statements().items()
    },
    **OF_ROWS,
}
"""The statements that create an empty SQLite file, each with what it makes and its name."""


_LACKS_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


@contextmanager
def open_tables(schema: str) -> Iterator[sqlite3.Connection]:
    """Open new tables, which are removed at the end of the block.

    Raises `StoreError` when their file cannot be written, mostly as the disk is full.
    """
    with temporary_errors(), closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.executescript(schema)
        connection.execute("BEGIN")  # one transaction, which is never committed
        yield connection


@contextmanager
def temporary_errors() -> Iterator[None]:
    """Translate the errors of a temporary SQLite file into `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        text = f"a temporary file cannot be used: {error}"
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LACKS_ROOM:
            text = "no space left for temporary files"
        hint = "free some space, or name another folder in SQLITE_TMPDIR"
        raise StoreError(text, hint=hint) from error


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Translate the errors of a SQLite file that can be made again into `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LACKS_ROOM:
            text, hint = f"no space left for '{path}'", "free some space and try again"
        elif is_locked(error):
            text = f"'{path}' is locked by another program"
            hint = "wait until it is done and try again"
        else:
            text, hint = f"'{path}' cannot be used: {error}", "remove it; it is created again"
        raise StoreError(text, hint=hint) from error


_BUSY_SECONDS = 10.0


def open_cache(
    path: Path | None, schema: str, identity: str
) -> tuple[SQLiteConnection, Path | None]:
    """Open an SQLite file that can be made again, with these tables; returns its path, too.

    One that is damaged, has triggers or views, or another `identity` is made again. Without a
    path, and where nothing can be written, the tables are in a temporary file, which has no path.
    """
    for again in (False, True):
        try:
            if path is None:
                break
            if again:
                remove_cache(path)
            return _open_cache(path, schema, identity), path
        except sqlite3.OperationalError as error:
            if "malformed" not in str(error):
                break  # read-only, or another program uses it
        except sqlite3.DatabaseError:
            continue
        except OSError:
            break
    return _open_cache(None, schema, identity), None


def _open_cache(path: Path | None, schema: str, identity: str) -> SQLiteConnection:
    connection = sqlite3.connect(
        path or "",
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=SQLiteConnection,
    )
    try:
        harden(connection)
        if path:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        query = "SELECT type, name FROM sqlite_master"
        if not connection.execute(query).fetchall():
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                if not connection.execute(query).fetchall():  # else another program was faster
                    for statement in schema.split(";\n"):
                        connection.execute(statement)
                    connection.execute("CREATE TABLE identity (text TEXT NOT NULL)")
                    connection.execute("INSERT INTO identity VALUES (?)", (identity,))
        kinds = {name: kind for kind, name in connection.execute(query)}
        if (
            kinds.get("identity") != "table"
            or {"trigger", "view"} & set(kinds.values())
            or connection.execute("SELECT text FROM identity").fetchall() != [(identity,)]
        ):
            raise sqlite3.DatabaseError("it is another file, or it has triggers or views")
    except BaseException:
        connection.close()
        raise
    return connection


def remove_cache(path: Path) -> None:
    """Remove a SQLite file that can be made again."""
    for suffix in ("-wal", "-shm", "-journal", ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
