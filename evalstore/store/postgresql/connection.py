"""Connections to PostgreSQL: statements with `?`, and reads that survive a lost connection.

Errors of psycopg and PostgreSQL become `StoreError` with messages for users.
"""

from __future__ import annotations

import json
import re
import select
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import Error, InterfaceError, OperationalError, ProgrammingError, errors
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.types.array import ListBinaryDumper
from psycopg.types.json import set_json_loads

from evalstore.core import batches
from evalstore.core.batches import in_weighed_batches
from evalstore.core.errors import StoreError, StoreLockedError, StoreUnreachableError
from evalstore.store.driver import (
    Connection,
    Dialect,
    Extent,
    QueryError,
    QueryRows,
    UnwantedError,
    is_unwanted,
    may_end,
    refuse_unwanted,
    refuse_writing,
    took_too_long,
)
from evalstore.store.location import DatabaseAddress
from evalstore.store.rows.row_tables import ROW_TABLES, postgresql_views
from evalstore.store.schema.table_definitions import (
    COORDINATION,
    EVALUATIONS,
    FAILURES,
    HEAD,
    RESULTS,
    RUNS,
    SESSIONS,
    TABLES,
    VERSIONS,
    TableColumns,
)

TYPES = {
    "BLOB": "bytea",
    "TEXT": "text",
    "BIGINT": "bigint",
    "FLOAT": "double precision",
}
"""The type of PostgreSQL for each of SQLite."""

# A canonical content may have NUL characters, written as `\\u0000`, which no function for JSON
# accepts. They are replaced here; texts that have them are never read with these functions.
FUNCTIONS = (
    r"""
    CREATE FUNCTION content_json(content text) RETURNS json
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT CASE WHEN strpos(content, '\u0000') = 0 THEN content ELSE
            regexp_replace(content, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::json
    $$
    """,
    """
    CREATE FUNCTION content_seconds(content json) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT sum((turn ->> 'latency')::double precision)
        FROM json_array_elements(content -> 'turns') AS turns (turn)
    $$
    """,
    # These two are said to depend on a row alone, which is not true: only so may they compute a
    # column. They are called once, when the row is inserted, in a dump that is restored, too.
    """
    CREATE FUNCTION inserting_transaction(id bytea) RETURNS xid8
    LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN pg_catalog.pg_current_xact_id(); END $$
    """,
    """
    CREATE FUNCTION new_token(made bigint) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN pg_catalog.gen_random_uuid(); END $$
    """,
)
GROWTH_MARKS = TableColumns(
    "growth_marks", {"made": "BIGINT NOT NULL"}, frozenset(), indexed=("made",), key=("token",)
)
"""Marks that were stored with a snapshot; `made` is when, in microseconds since 1970."""
TRANSACTION = "inserted_by"
"""The column with the number of the transaction that has inserted a row."""
_INSERTED_BY = "xid8 GENERATED ALWAYS AS (inserting_transaction(id)) STORED"
_COST = "((content_json(content) #>> '{cost,usd}')::double precision)"
COMPUTED: dict[str, dict[str, str]] = {
    SESSIONS.name: {
        "model": "text GENERATED ALWAYS AS (content_json(content) ->> 'model') STORED",
        "usd": f"double precision GENERATED ALWAYS AS {_COST} STORED",
        "seconds": "double precision GENERATED ALWAYS AS "
        "(content_seconds(content_json(content))) STORED",
        TRANSACTION: _INSERTED_BY,
    },
    EVALUATIONS.name: {
        "usd": f"double precision GENERATED ALWAYS AS {_COST} STORED",
        TRANSACTION: _INSERTED_BY,
    },
    VERSIONS["test"].name: {TRANSACTION: _INSERTED_BY},
    VERSIONS["evaluation"].name: {TRANSACTION: _INSERTED_BY},
    GROWTH_MARKS.name: {"token": "uuid GENERATED ALWAYS AS (new_token(made)) STORED"},
}
"""The columns that the database computes, by table, with their definitions."""
_VERSION = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)


def value_type(declared: str) -> str:
    """Return the type of the values of a column."""
    return TYPES[declared.partition(" ")[0]]


def table_statements(table: TableColumns) -> list[str]:
    """Return the statements that create a table and its indexes."""
    columns = [
        f"{name} {value_type(declared)} {declared.partition(' ')[2]}".strip()
        for name, declared in table.columns.items()
    ]
    if table.name in ROW_TABLES:  # rows are in the same order as in SQLite
        columns = [each.replace(" text", ' text COLLATE "C"') for each in columns]
    computed = COMPUTED.get(table.name, {})
    columns += [f"{name} {rest}" for name, rest in computed.items()]
    key = ", ".join(table.key)
    statements = [f"CREATE TABLE {table.name} ( {', '.join(columns)}, PRIMARY KEY ({key}) )"]
    # For the newest rows: SQLite has the order in which rows were stored.
    newest = [
        f"CREATE INDEX ix_{table.name}_{column} ON {table.name} ({column})"
        for column in ("started", TRANSACTION)
        if TRANSACTION in computed and column in (*table.columns, *computed)
    ]
    return [*statements, *(made for _, made in table.indexes()), *newest]


def row_statements() -> list[str]:
    """Return the statements that create the tables of rows, and the views that people ask."""
    tables = [made for table in ROW_TABLES.values() for made in table_statements(table)]
    return [*tables, *postgresql_views().values()]


def statements() -> list[str]:
    """Return the statements that create an empty store in the schema that is searched."""
    return [
        *FUNCTIONS,
        *(
            statement
            for table in (*TABLES.values(), *COORDINATION)
            for statement in table_statements(table)
        ),
        *row_statements(),
        *table_statements(GROWTH_MARKS),
        _VERSION,
        f"INSERT INTO alembic_version VALUES ('{HEAD}')",
    ]


_LONGEST = 300
"""The most characters of a message of the server, which may quote a whole value."""
ROLLED_BACK = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.IdleInTransactionSessionTimeout,
)
"""Errors after which a transaction can be made again as it was."""
_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleSessionTimeout,
    errors.TooManyConnections,
)
READ_ONLY_HINT = (
    "name the primary server, not a standby; where a role or a database has "
    "default_transaction_read_only, ALTER ROLE or ALTER DATABASE with RESET lets it write"
)
"""What lets a user write where all transactions only read."""
_AGAIN = "run again when it is back: what is in the store stays there"
_NOT_FOUND = f"check the host and the port of the address; if they are right, {_AGAIN}"
_REASONS: tuple[tuple[tuple[type[Error], ...], str, str, str | None], ...] = (
    (
        (errors.LockNotAvailable,),
        "",
        "the store '{name}' is locked by another program",
        "wait until it is done and try again",
    ),
    (
        (errors.InsufficientPrivilege,),
        r"FATAL: .*permission denied",
        "this user may not use the store '{name}': {text}",
        "its owner can GRANT what is missing",
    ),
    (
        (errors.InvalidPassword, errors.InvalidAuthorizationSpecification),
        r"FATAL: .*(authentication failed|no password supplied|pg_hba\.conf|role \")"
        r"|no password supplied",
        "the store '{name}' does not accept this user: {text}",
        "check the user of the address, and its password in PGPASSWORD or ~/.pgpass",
    ),
    (
        (errors.InvalidCatalogName,),
        r'FATAL: .*database "[^"]*" does not exist',
        "no database at '{name}': {text}",
        "create it with 'createdb', or name another one",
    ),
    (
        (errors.ReadOnlySqlTransaction,),
        "",
        "the store '{name}' is read-only: {text}",
        READ_ONLY_HINT,
    ),
    (
        (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded),
        "",
        "no space left for the store '{name}': {text}",
        "free some space on its server and run again: what is in the store stays there",
    ),
    (
        (
            errors.UndefinedTable,
            errors.UndefinedColumn,
            errors.UndefinedFunction,
            errors.WrongObjectType,
        ),
        "",
        "the store '{name}' is damaged: {text}",
        "restore a copy of it; 'evalstore fsck' lists what is wrong",
    ),
    (
        (),
        r"invalid .*(value|number)|definition of service|could not match|certificate|support SSL",
        "the address of the store '{name}' cannot be used: {text}",
        "the documentation of libpq lists the options of connections",
    ),
    (
        # A server that begins, ends, or has no connection left accepts others later.
        (),
        r"FATAL: (?!.*(starting up|shutting down|recovery|accepting conn|too many|slots|terminat))",
        "the store '{name}' cannot be used: {text}",
        None,
    ),
)
"""Errors; the pattern of a connection that is refused, which has no code; a message and a hint."""


def is_lost(error: BaseException) -> bool:
    """Return whether an error means that the connection, or its server, is gone for now."""
    if isinstance(error, _GONE):
        return True
    if not isinstance(error, OperationalError | InterfaceError) or error.sqlstate is not None:
        return False
    # Without a code of the server, the connection itself has failed.
    return _refusal(shorten(error)) is None


def _refusal(text: str) -> tuple[str, str | None] | None:
    """Return the message and the hint for the reason of a server to refuse a connection."""
    refusals = (reason[2:] for reason in _REASONS if reason[1] and re.search(reason[1], text))
    return next(refusals, None)


def explain_database_error(
    error: Exception,
    name: str,
    waited: float = 0.0,
    *,
    was_open: bool = True,
) -> StoreError:
    """Return the `StoreError` for an error of the store with this name.

    `waited` is for how many seconds its server was waited for; `was_open` whether it was there.
    """
    text = shorten(error)
    if isinstance(error, OperationalError) and (refusal := _refusal(text)):
        message, hint = refusal
        return StoreError(message.format(name=name, text=text), hint=hint)
    if isinstance(error, ProgrammingError) and error.sqlstate is None:
        return StoreError(f"the address of the store '{name}' cannot be used: {text}")
    if is_lost(error):
        after = f", after waiting for {waited:g} seconds" if waited else ""
        return StoreUnreachableError(
            f"the store '{name}' cannot be reached{after}: {text}",
            hint=_AGAIN if was_open else _NOT_FOUND,
        )
    for kinds, _, message, hint in _REASONS:
        if isinstance(error, kinds):
            if "permission denied for database" in text:
                hint = "its owner can GRANT CREATE ON DATABASE, which creating a store needs"
            kind = StoreLockedError if isinstance(error, errors.LockNotAvailable) else StoreError
            return kind(message.format(name=name, text=text), hint=hint)
    return StoreError(f"the store '{name}' cannot be used: {text}")


def shorten(error: Exception) -> str:
    """Return the first lines of a message as one line, without what only a server's log needs."""
    diagnostics = error.diag.message_primary if isinstance(error, Error) else None
    text = diagnostics or str(error) or type(error).__name__
    text = text.replace("connection failed: ", "", 1).partition("Is the server running")[0]
    return " ".join(text.split())[:_LONGEST]


_KEPT_MICROSECONDS = 180 * 24 * 3600 * 10**6
"""How long marks are kept. Each program that settles parts of files uses the newest of its own."""
_TOKEN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_SNAPSHOT = re.compile("[0-9]+:[0-9]+:[0-9,]*").fullmatch
_RIGHTS = " AND ".join(
    f"has_table_privilege('{GROWTH_MARKS.name}', '{right}')"
    for right in ("SELECT", "INSERT", "DELETE")
)
_BY_NUMBER = (FAILURES.name, RUNS.name)
"""Tables of few rows without the numbers of their transactions; no row is ever deleted."""
_MAY_READ = f"SELECT has_table_privilege('{GROWTH_MARKS.name}', 'SELECT')::int"


class Snapshots:
    """The extents of PostgreSQL databases: the token of a mark, and a snapshot."""

    def measure(self, connection: Connection) -> Extent | None:
        """Return a new mark and what could be seen before it; None without the rights to it."""
        clock = connection.dialect.clock
        (row,) = connection.execute(f"SELECT ({_RIGHTS})::int, {clock}").fetchall()
        may_mark, now = row
        if not may_mark:
            return None
        # The snapshot of a statement is taken before the first row is written, and so before this
        # transaction has a number.
        (mark,) = connection.execute(
            f"INSERT INTO {GROWTH_MARKS.name} (made) VALUES (?) "
            "RETURNING token::text, pg_current_snapshot()::text",
            (now,),
        ).fetchall()
        too_old = now - _KEPT_MICROSECONDS
        connection.execute(f"DELETE FROM {GROWTH_MARKS.name} WHERE made < ?", (too_old,))
        return tuple(mark)

    def newest(self, connection: Connection, before: Extent | None) -> Extent:
        """Return a snapshot, when the server started, and the numbers of failures and runs.

        Transactions are committed in any order, so no row is the last one: the snapshot stays the
        earlier one until an answer or a judgement can be seen that could not be seen then.
        """
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in _BY_NUMBER)
        has_grown, parameters = "true", tuple[int | str, ...]()
        if before:  # whether a row can be seen that the earlier snapshot could not see
            condition, parameters = self.condition("", ("", before[0]))
            rows = [f"EXISTS (SELECT 1 FROM {table} WHERE {condition})" for table in RESULTS]
            has_grown, parameters = " OR ".join(rows), parameters * len(rows)
        # What one statement sees is all of one moment.
        ((has_grown, now, *others),) = connection.execute(
            f"SELECT ({has_grown})::int, pg_current_snapshot()::text, "
            f"pg_postmaster_start_time()::text, {counts}",
            parameters,
        ).fetchall()
        if before and not has_grown and list(before[1:]) == others:
            return before
        return now, *others

    def has_had(self, connection: Connection, extent: Extent) -> bool:
        """Return whether the mark of an extent is in the store."""
        if not (len(extent) == 2 and _TOKEN(str(extent[0])) and _SNAPSHOT(str(extent[1]))):
            return False
        ((may_read,),) = connection.execute(_MAY_READ).fetchall()
        query = f"SELECT 1 FROM {GROWTH_MARKS.name} WHERE token = ?::uuid"
        return bool(may_read and connection.execute(query, extent[:1]).fetchall())

    def count(self, connection: Connection, table: str, before: Extent, after: Extent) -> int:
        """Return how many rows can be seen now that could not be seen before."""
        del after  # what was committed since then counts, too
        condition, parameters = self.condition(table, before)
        query = f"SELECT count(*) FROM {table} WHERE {condition}"
        return int(connection.execute(query, parameters).fetchall()[0][0])

    def condition(self, table: str, since: Extent) -> tuple[str, tuple[int | str, ...]]:
        """Return that the transaction of a row could not be seen.

        The first part of the condition is implied by the second one, and finds the rows by index.
        """
        del table  # a snapshot is of all tables
        seen = since[1]
        return (
            f"{TRANSACTION} >= pg_snapshot_xmin(?::pg_snapshot) "
            f"AND NOT pg_visible_in_snapshot({TRANSACTION}, ?::pg_snapshot)",
            (seen, seen),
        )


@contextmanager
def answer(connection: Any, statement: str, seconds: float) -> Iterator[QueryRows]:
    """Return the rows of a statement; raises `QueryError` as `Database.ask` does.

    The transaction of the connection must be one that only reads.
    """
    connection.execute(f"SET LOCAL statement_timeout TO {max(1, int(seconds * 1000))}")
    connection.execute("SET LOCAL enable_seqscan TO on")  # a query may read a whole table here
    try:
        with connection.raw.cursor("question", binary=True) as cursor:
            cursor.execute(statement.encode())
            yield QueryRows([str(column.name) for column in cursor.description or ()], iter(cursor))
    except psycopg.errors.QueryCanceled as error:
        raise took_too_long(seconds) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise refuse_writing() from error
    except (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.DataError) as error:
        raise QueryError(error.diag.message_primary or str(error)) from error


_DEFAULTS = {
    "application_name": "evalstore",
    "connect_timeout": "10",
    # A cut cable is noticed after a minute, and not after hours.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Options of connections, unless the address has others."""
_SETTINGS = (
    "SET client_min_messages TO warning; "
    # A role or a database may have other settings of its own.
    "SET standard_conforming_strings TO on; SET statement_timeout TO 0; "
    # Another program may hold a lock for hours. One that is stopped loses it before this.
    "SET lock_timeout TO '20s'; "
    # Thousands of rows are looked up by their ids. Where a table is not much larger, the planner
    # would read all of it each time, and compile the query, which takes longer than to look up.
    "SET enable_seqscan TO off; SET jit TO off; "
)
_SETTINGS_17 = "SET transaction_timeout TO 0; "
"""A setting that PostgreSQL 17 has brought."""
_sound: set[DatabaseAddress] = set()
"""The addresses behind a pooler that were found to keep sessions; to find out takes a while."""
_OLDEST = 14
"""The oldest major version of a server that a store can be on."""
_INSERTED_BYTES = 32 * 2**20
"""The most bytes of the rows of one statement, roughly."""
T = TypeVar("T")
RawConnection = psycopg.Connection[tuple[Any, ...]]


def _path(name: str) -> str:
    return f"'{{{name.replace('.', ',')}}}'"


POSTGRESQL = Dialect(
    field=lambda name: f"content_json(content) #> {_path(name)}",
    text=lambda name: f"content_json(content) #>> {_path(name)}",
    has=lambda text: f"strpos(content, '{text}') > 0",
    as_stored=str,  # all values have the types of their columns
    usd="usd",
    longest_output=(
        "(SELECT max((turn #>> '{usage,outputTokens}')::double precision) "
        "FROM json_array_elements(content_json(content) -> 'turns') AS turns (turn))"
    ),
    feedback=(
        "CASE WHEN strpos(content, '\\u0000') = 0 "
        "THEN content_json(content) #> '{feedback}' END, "
        "CASE WHEN strpos(content, '\\u0000') > 0 THEN content END"
    ),
    newest_first="started DESC",
    growth=Snapshots(),
    row_number=f"{TRANSACTION}::text::bigint",
    is_newer=f"{TRANSACTION} > ?::text::xid8",
    settled="pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1",
    for_update="FOR UPDATE",
    skip_locked="FOR UPDATE SKIP LOCKED",
    clock="(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
    answer=answer,
)


def connect(address: DatabaseAddress) -> RawConnection:
    """Connect to a database; raises errors of psycopg.

    Raises `StoreError` for a database of another encoding, and for a server that is too old.
    """
    raw = _open(address)
    try:
        version = raw.info.server_version // 10_000
        if version < _OLDEST:
            raise StoreError(
                f"the server of '{address}' is PostgreSQL {version}",
                hint=f"a store needs PostgreSQL {_OLDEST} or newer",
            )
        encoding = raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"the database '{address}' has the encoding {encoding}",
                hint="create one with 'createdb --encoding=UTF8 --template=template0 NAME'",
            )
        set_json_loads(_load_json, raw)
        # In this format nothing is escaped, which takes long.
        raw.adapters.register_dumper(list, ListBinaryDumper)
        process = _set_up(raw, address)
        if process != raw.info.backend_pid and address not in _sound:  # a pooler is between
            require_sessions(raw, address, process, lambda: _open(address))
            _sound.add(address)
    except BaseException:
        raw.close()
        raise
    return raw


def _open(address: DatabaseAddress) -> RawConnection:
    return _Connection.connect(
        "",
        autocommit=True,
        # Connections may go through pgbouncer, where prepared statements are those of others.
        prepare_threshold=None,
        **{**_DEFAULTS, **address.options, "client_encoding": "utf8"},  # type: ignore[arg-type]
    )


def _set_up(raw: RawConnection, address: DatabaseAddress) -> int:
    """Make the settings of a session, in one message; returns the server process that has it."""
    newer = _SETTINGS_17 if raw.info.server_version >= 17_00_00 else ""
    statements = f"{search_path(address, 'SESSION')}; {_SETTINGS}{newer}SELECT pg_backend_pid()"
    cursor = raw.execute(statements.encode())
    while cursor.nextset():
        pass
    return int(cursor.fetchall()[0][0])


def search_path(address: DatabaseAddress, scope: str = "LOCAL") -> str:
    """Return the statement after which the tables are those of a store."""
    return f'SET {scope} search_path TO "{address.schema}"'


def _load_json(data: str | bytes) -> Any:
    """Return a field of a content as SQLite does: a list or an object is its JSON."""
    value = json.loads(data)
    if isinstance(value, list | dict):
        return data.decode() if isinstance(data, bytes) else data
    return value


@lru_cache(maxsize=1_000)
def _translate(statement: str) -> bytes:
    """Return a statement with the placeholders of psycopg."""
    return statement.replace("%", "%%").replace("?", "%s").encode()


class PostgreSQLConnection:
    """A connection to a database.

    Outside a transaction, a statement that finds the connection lost is executed on a new one:
    it only reads.
    """

    dialect = POSTGRESQL
    _names = count()

    def __init__(self, raw: RawConnection, reconnect: Callable[[], RawConnection]) -> None:
        self.raw = raw
        self.inserted: tuple[str, bytes] | None = None
        self._reconnect = reconnect

    @property
    def is_in_transaction(self) -> bool:
        """Return whether a transaction has begun on it, also one that has failed."""
        return self.raw.info.transaction_status not in (
            TransactionStatus.IDLE,
            TransactionStatus.UNKNOWN,
        )

    def commit(self) -> None:
        """Commit the transaction."""
        self.execute("COMMIT")

    def close(self) -> None:
        """Close it."""
        self.raw.close()

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        """Execute a statement; its result is held in memory."""
        if self.is_in_transaction:
            return self._execute(statement, parameters)
        return self._again_when_lost(lambda: self._execute(statement, parameters))

    def begin(self, statements: str, *, may_connect: bool) -> str | None:
        """Begin a transaction, with several statements in one message; the last is a query.

        Returns the first text that this finds. A lost connection is made again if `may_connect`,
        which may take long.
        """

        # Nothing is decoded, so the cursor may be one of texts, which takes several statements.
        def execute() -> psycopg.Cursor[Any]:
            return self.raw.execute(statements.encode())

        cursor = self._again_when_lost(execute) if may_connect else execute()
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        return str(row[0]) if row else None

    def _again_when_lost(self, execute: Callable[[], T]) -> T:
        try:
            return execute()
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not is_lost(error):
                raise
        self.raw.close()
        self.raw = self._reconnect()
        return execute()

    def _execute(self, statement: str, parameters: Sequence[Any]) -> psycopg.Cursor[Any]:
        refuse_unwanted()
        cursor = self.raw.cursor(binary=True)
        # Without parameters, there is nothing to escape, and there may be several statements.
        return (
            cursor.execute(_translate(statement), parameters)
            if parameters
            else cursor.execute(statement.encode())
        )

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query, in a snapshot, some thousands at a time."""
        name = f"stream_{next(self._names)}"
        with self.raw.cursor(name, binary=True) as cursor:
            cursor.itersize = batches.SIZE
            cursor.execute(_translate(statement), parameters)
            yield from cursor

    def select_in(self, statement: str, values: Sequence[Any], rest: str = "") -> list[Any]:
        """Return the rows of a query that ends with `IN`, for these values."""
        query = f"{statement.removesuffix('IN')}= ANY(?) {rest}"
        return self.execute(query, (list(values),)).fetchall()

    def change_in(self, statement: str, values: Sequence[Any], *before: Any) -> None:
        """Execute a statement that changes rows and ends with `IN`, for these values."""
        self.execute(f"{statement.removesuffix('IN')}= ANY(?)", (*before, list(values)))

    def count(self, query: str, *parameters: Any) -> int:
        """Return the number that a query with one row and one column returns."""
        (number,) = self.execute(query, parameters).fetchall()[0]
        return int(number)

    def insert(self, table: TableColumns, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows, in the order of their columns, except those whose id is in the table.

        They are inserted in the order of their keys, so that two transactions do not wait for
        each other.
        """
        kinds = [value_type(declared) for declared in table.columns.values()]
        arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
        names = ", ".join(table.columns)
        statement = (
            f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays}) "
            "ON CONFLICT DO NOTHING"
        ).encode()
        inserted = 0
        ordered = sorted(rows, key=lambda row: tuple(row[: len(table.key)]))
        for batch in in_weighed_batches(
            ordered,
            lambda row: sum(len(value) for value in row if isinstance(value, str | bytes)),
            _INSERTED_BYTES,
            len(ordered),
        ):
            columns = zip(kinds, zip(*batch, strict=True), strict=True)
            parameters = [  # psycopg needs numbers of one type in a list
                [
                    value if value is None or kind != TYPES["FLOAT"] else float(value)
                    for value in values
                ]
                for kind, values in columns
            ]
            inserted += self.raw.execute(statement, parameters).rowcount
        if inserted == len(rows) > 0 and table.name in TABLES:  # else the last may not be new
            self.inserted = table.name, bytes(rows[-1][0])
        return inserted


_ANSWER_SECONDS = 5.0
"""How long a server may take to accept that a statement ends."""


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that ends its statement, and is closed, when nobody waits for it any more."""

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        """Return what the server answers; raises `UnwantedError` if nobody waits for it."""
        return super().wait(self._watched(gen) if may_end() else gen, *arguments, **options)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Pass on what a generator of psycopg waits for; it is told when nothing has come."""
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and is_unwanted():
                    with suppress(psycopg.Error):  # then the server ends it by itself
                        self.cancel_safe(timeout=_ANSWER_SECONDS)
                    self.close()
                    raise UnwantedError
                state = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


# --- tells poolers that keep a server process for a client from those that change it


_ROUNDS = 3
"""How often both processes are asked for: other clients may take one in between."""
_PATIENCE_SECONDS = 3.0
"""How long a second process is waited for; a pool may have one only."""
_PROCESS = "SELECT pg_backend_pid()"


def require_sessions(
    raw: RawConnection, address: DatabaseAddress, process: int, connect: Callable[[], RawConnection]
) -> None:
    """Raise `StoreError` if a pooler lets other clients use the server process of a connection.

    `process` is that which the connection had last; `connect` makes another connection.
    """
    try:
        other = connect()
    except psycopg.OperationalError:  # the pooler has no room for a second client
        other = None
    try:
        for _ in range(_ROUNDS):
            # The first connection is in no transaction: it has given its process back, or keeps it.
            begun = _begin(other) if other else None
            # Where there is one process only, the first connection would wait for it.
            if begun == process or raw.execute(_PROCESS.encode()).fetchone() != (process,):
                raise StoreError(
                    f"the store '{address}' is behind a connection pooler that shares a session "
                    "between clients",
                    hint="set it to pool sessions (pgbouncer: 'pool_mode = session'), or use the "
                    "port of the server itself",
                )
            if other is None or begun is None:
                return  # no second process is to be had, and this connection keeps its own
            other.execute(b"ROLLBACK")
    finally:
        if other:
            other.close()


def _begin(raw: RawConnection) -> int | None:
    """Begin a transaction; returns its server process, or None if none is free in time."""
    raw.pgconn.send_query(f"BEGIN; {_PROCESS}".encode())
    process: int | None = None
    end = monotonic() + _PATIENCE_SECONDS
    while True:
        while raw.pgconn.is_busy():
            left = end - monotonic()
            if left <= 0 or not select.select([raw.pgconn.socket], [], [], left)[0]:
                return None
            raw.pgconn.consume_input()
        result = raw.pgconn.get_result()
        if result is None:
            return process
        if result.status == ExecStatus.TUPLES_OK:
            process = int(result.get_value(0, 0) or b"0")
        elif result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
