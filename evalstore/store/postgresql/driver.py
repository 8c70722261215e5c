"""Opens and migrates a store in PostgreSQL, and provides its transactions.

Writers do not wait for each other: rows are inserted if they are missing, whoever is first. A
transaction that the server has rolled back, or whose connection was lost, is made again: all
that is written is named by its content, so nothing is stored twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import count
from threading import Lock
from time import monotonic
from typing import Any, Self, TypeVar

from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError, StoreError, StoreLockedError, StoreMissingError
from evalstore.store.driver import (
    PATIENCE_SECONDS,
    Driver,
    UnexpectedObject,
    refuse_foreign,
    while_wanted,
)
from evalstore.store.location import DatabaseAddress
from evalstore.store.rows.row_tables import ROW_TABLES
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import (
    COORDINATION,
    EVALUATIONS,
    RESULTS,
    RUNS,
    SESSIONS,
    TABLES,
)

try:
    import psycopg
    from psycopg import errors, sql
except ImportError as error:
    raise EvalstoreError(
        "a store in PostgreSQL needs the package psycopg",
        hint="install evalstore with the extra 'postgres': pip install 'evalstore[postgres]'",
    ) from error

from evalstore.store.postgresql.connection import (
    COMPUTED,
    FUNCTIONS,
    GROWTH_MARKS,
    POSTGRESQL,
    ROLLED_BACK,
    TRANSACTION,
    PostgreSQLConnection,
    RawConnection,
    connect,
    explain_database_error,
    is_lost,
    search_path,
    statements,
)

_LOCK = 0x6576616C
"""The key of the lock that is held while tables are created or migrated."""
MAY_WRITE = "current_setting('transaction_read_only') = 'off'"
"""The condition that is false on a standby, and where transactions only read."""
_OURS = (*TABLES.values(), *COORDINATION, *ROW_TABLES.values(), GROWTH_MARKS)
_OBJECTS = """
SELECT c.relname, c.relkind::text,
    ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    ARRAY(SELECT t.tgname::text FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
    ARRAY(SELECT r.rulename::text FROM pg_rewrite r
        WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
    c.relrowsecurity
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""


_CODE = """
SELECT 'function', p.proname, pg_get_function_identity_arguments(p.oid), p.prosrc
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ?
UNION ALL SELECT 'operator', o.oprname, '', ''
FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE n.nspname = ?
"""
_FUNCTION = re.compile(r"CREATE FUNCTION (\w+)\(([^)]*)\).*?\$\$(.*)\$\$", re.DOTALL)


def find_version(
    connection: PostgreSQLConnection,
    address: DatabaseAddress,
    code: list[UnexpectedObject] | None = None,
) -> str | None:
    """Return the migration of a store; None where its schema is missing or empty.

    `code` is what the schema has of code of others, if that is known. Raises `StoreError` if some
    would run, and for a schema with the tables of something else.
    """
    known = find_foreign_code(connection, address) if code is None else code
    # To read which migration a store has must run no code of others.
    refuse_foreign(str(address), [extra for extra in known if extra.table == MIGRATIONS])
    find = "SELECT version_num FROM alembic_version"
    try:
        row = connection.execute(find).fetchone()
    except errors.UndefinedTable:
        # A schema that this user may not look into is passed over in silence.
        right = "has_schema_privilege(oid, 'USAGE')::int"
        query = f"SELECT {right} FROM pg_namespace WHERE nspname = ?"
        row = connection.execute(query, (address.schema,)).fetchone()
        if row and not row[0]:
            raise StoreError(
                f"this user may not use the store '{address}': its schema is not open to it",
                hint="its owner can GRANT what is missing on the schema and its tables",
            ) from None
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = ?"
        if not connection.count(query, address.schema):
            return None
        try:  # another process may have created the store between these queries
            row = connection.execute(find).fetchone()
        except errors.UndefinedTable:
            raise _foreign(address) from None
    if row is None:
        raise _foreign(address)
    return str(row[0])


def _foreign(address: DatabaseAddress) -> StoreError:
    return StoreError(
        f"the schema '{address.schema}' of '{address}' has tables, but not those of evalstore",
        hint="name another one with '?schema=NAME' at the end of the address",
    )


def create_store(connection: PostgreSQLConnection, address: DatabaseAddress) -> None:
    """Create the schema and its tables, unless another process has."""
    connection.execute("BEGIN")
    # It ends, for others, when this program is stopped for long.
    connection.execute("SET LOCAL idle_in_transaction_session_timeout TO '10s'")
    connection.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
    query = "SELECT count(*) FROM pg_namespace WHERE nspname = ?"
    if not connection.count(query, address.schema):
        # IF NOT EXISTS would need the right to create a schema that exists.
        connection.raw.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
    query = "SELECT count(*) FROM pg_tables WHERE schemaname = ? AND tablename = 'alembic_version'"
    if not connection.count(query, address.schema):
        # In one message: each would be waited for.
        connection.raw.execute(";\n".join(statements()).encode())
    connection.execute("COMMIT")


def migrate(address: DatabaseAddress) -> None:
    """Bring the tables of an older store up to date, unless another process has."""
    raw = connect(address)
    try:
        raw.execute("SET idle_in_transaction_session_timeout TO '60s'")
        raw.autocommit = False
        with table_definitions.joined(
            "postgresql+psycopg://", raw, psycopg.DatabaseError
        ) as writing:
            writing.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            # Transactions that write have read it: they end first, and later ones see the new one.
            writing.exec_driver_sql("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
            row = writing.exec_driver_sql("SELECT version_num FROM alembic_version").one()
            if row[0] != table_definitions.HEAD:
                table_definitions.upgrade(writing)
    finally:
        raw.close()


def find_unexpected(
    connection: PostgreSQLConnection, address: DatabaseAddress
) -> list[UnexpectedObject]:
    """Return the differences of a schema from that of the newest migration.

    Those that `find_foreign_code` finds are left out.
    """
    unexpected: list[UnexpectedObject] = []
    tables = {table.name: table for table in _OURS}
    missing = set(tables)
    for name, kind, columns, triggers, rules, is_filtered in connection.execute(
        _OBJECTS, (address.schema,)
    ):
        if name not in tables:
            continue
        missing.discard(name)
        if kind == "r" and not {*tables[name].columns, *COMPUTED.get(name, ())} <= set(columns):
            words = f"the table '{name}' is not as evalstore makes it"
            unexpected.append(UnexpectedObject(words, name, blocks_writing=True))
        for trigger in triggers:
            words = (
                f"the trigger '{safe(trigger)}' of the table '{name}' does not belong to evalstore"
            )
            unexpected.append(UnexpectedObject(words, None, True))
        for rule in rules:
            words = f"the rule '{safe(rule)}' of the table '{name}' does not belong to evalstore"
            unexpected.append(UnexpectedObject(words, None, True))
        if is_filtered:
            words = f"the table '{name}' has policies that may hide rows"
            unexpected.append(UnexpectedObject(words, None, False))
    unexpected += [
        UnexpectedObject(f"the table '{name}' is missing", None, True, missing=True)
        for name in sorted(missing)
    ]
    return [*unexpected, *_find_functions(connection, address)]


def _find_functions(
    connection: PostgreSQLConnection, address: DatabaseAddress
) -> Iterator[UnexpectedObject]:
    """Yield the functions and operators that are foreign.

    A query may call them in place of those of PostgreSQL, with the rights of this user.
    """
    known = {
        (match[1], match[2], " ".join(match[3].split()))
        for match in map(_FUNCTION.search, FUNCTIONS)
        if match
    }
    for kind, name, arguments, body in connection.execute(_CODE, (address.schema,) * 2):
        if (name, arguments, " ".join(body.split())) not in known:
            words = f"the {kind} '{safe(name)}' does not belong to evalstore"
            yield UnexpectedObject(words, None, True, True)


def runs_code(extra: UnexpectedObject) -> bool:
    """Return whether a difference makes a migration unsafe; older tables are others, too."""
    return extra.blocks_reading or (
        extra.blocks_writing and extra.table is None and not extra.missing
    )


def find_stores(connection: PostgreSQLConnection, address: DatabaseAddress) -> list[str]:
    """Return the schemas of the database that have a store which this user may look into.

    Those whose names are like that of the address come first.
    """
    tables = ["alembic_version", SESSIONS.name, EVALUATIONS.name, RUNS.name]
    query = (
        "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'r' AND c.relname = ANY(?) AND has_schema_privilege(n.oid, 'USAGE') "
        "GROUP BY n.nspname HAVING count(*) = ? ORDER BY n.nspname"
    )
    found = [str(name) for (name,) in connection.execute(query, (tables, len(tables)))]
    close = get_close_matches(address.schema, found)
    return sorted(found, key=lambda name: (name not in close, name))


def measure(
    connection: PostgreSQLConnection, address: DatabaseAddress, *, is_there: bool
) -> tuple[int | None, bool]:
    """Return the size of the tables in bytes, and whether this user may write to them.

    Without a store, the size is None, and the other tells whether the user may create one.
    """
    if not is_there:
        right = "has_database_privilege(current_database(), 'CREATE')"
        return None, connection.count(f"SELECT ({right} AND {MAY_WRITE})::int") > 0
    size = connection.count(
        "SELECT COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'",
        address.schema,
    )
    may_write = f"SELECT (has_table_privilege('sessions', 'INSERT') AND {MAY_WRITE})::int"
    return size, connection.count(may_write) > 0


MIGRATIONS = "alembic_version"
"""The table that is read before all others."""
_NAMES = (
    *TABLES,
    *(table.name for table in COORDINATION),
    GROWTH_MARKS.name,
    MIGRATIONS,
)
# `n` are constraints NOT NULL, which PostgreSQL 18 lists; of unique ones the index is looked at.
# A foreign key has internal triggers on both of its tables.
_QUERY = f"""
WITH ours AS MATERIALIZED (
    SELECT c.oid, c.relname::text AS name, c.relkind FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ? AND c.relname IN ({", ".join(f"'{name}'" for name in _NAMES)})
)
SELECT name, 'relation', '', '', '' FROM ours WHERE relkind <> 'r'
UNION ALL SELECT name, 'constraint', k.conname::text, '', ''
FROM ours JOIN pg_constraint k ON k.conrelid = ours.oid WHERE k.contype NOT IN ('p', 'n', 'u')
UNION ALL SELECT name, 'constraint', k.conname::text, '', ''
FROM ours JOIN pg_trigger t ON t.tgrelid = ours.oid AND t.tgisinternal
JOIN pg_constraint k ON k.oid = t.tgconstraint AND k.contype = 'f' AND k.conrelid <> ours.oid
UNION ALL SELECT name, 'column', a.attname::text, a.attgenerated::text,
    pg_get_expr(d.adbin, d.adrelid)
FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid
JOIN pg_attrdef d ON d.adrelid = ours.oid AND d.adnum = a.attnum
UNION ALL SELECT name, 'type', a.attname::text, '', ''
FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid AND NOT a.attisdropped
JOIN pg_type y ON y.oid = a.atttypid JOIN pg_namespace n ON n.oid = y.typnamespace
WHERE n.nspname <> 'pg_catalog'
UNION ALL SELECT name, 'index', c.relname::text, COALESCE(pg_get_expr(i.indpred, i.indrelid), ''),
    COALESCE(pg_get_expr(i.indexprs, i.indrelid), '')
FROM ours JOIN pg_index i ON i.indrelid = ours.oid JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
UNION ALL SELECT name, 'policy', p.polname::text,
    COALESCE(pg_get_expr(p.polwithcheck, p.polrelid), 'true'),
    COALESCE(pg_get_expr(p.polqual, p.polrelid), 'true')
FROM ours JOIN pg_policy p ON p.polrelid = ours.oid
UNION ALL SELECT name, 'statistics', s.stxname::text, '', ''
FROM ours JOIN pg_statistic_ext s ON s.stxrelid = ours.oid WHERE s.stxexprs IS NOT NULL
UNION ALL SELECT name, 'child', c.relname::text, '', ''
FROM ours JOIN pg_inherits h ON h.inhparent = ours.oid JOIN pg_class c ON c.oid = h.inhrelid
"""
_WORDS = {
    "relation": "'{table}' is not a table",
    "constraint": "the constraint '{name}' of the table '{table}' does not belong to evalstore",
    "column": "the column '{name}' of the table '{table}' has a foreign default",
    "type": "the column '{name}' of the table '{table}' has a type that is not PostgreSQL's",
    "index": "the index '{name}' of the table '{table}' has a foreign expression",
    "policy": "the policy '{name}' of the table '{table}' has a condition",
    "statistics": "the statistics '{name}' of the table '{table}' have an expression",
    "child": "the table '{name}' inherits from the table '{table}'",
}
_DEFINITION = re.compile(r"GENERATED ALWAYS AS \((.*)\) STORED$")
_CASTS = re.compile(r"::text(\[\])?")
"""Casts of constants, which PostgreSQL adds."""


def find_foreign_code(
    connection: PostgreSQLConnection, address: DatabaseAddress
) -> list[UnexpectedObject]:
    """Return what would run code that does not belong to evalstore when a table is read or written.

    It reads the catalogues alone. Functions and operators of the schema are looked at elsewhere.
    """
    found = {}
    for table, kind, name, how, expression in connection.execute(_QUERY, (address.schema,)):
        if (table, kind, name) in found or _is_ours(
            table, kind, name, how, _plain(expression, address.schema)
        ):
            continue
        words = _WORDS[kind].format(name=safe(name), table=table)
        found[table, kind, name] = UnexpectedObject(words, table, True, True)
    return list(found.values())


def _is_ours(table: str, kind: str, name: str, how: str, expression: str) -> bool:
    """Return whether evalstore makes an object with this expression, or one that computes nothing.

    `how` is how a column is computed, and the condition of an index or a policy.
    """
    if kind == "column":
        return how == "s" and _COLUMNS.get((table, name)) == expression
    if kind == "policy":
        return {how, expression} <= {"true", "false"}
    return False


def _plain(expression: str, schema: str = "") -> str:
    """Return an expression without what versions of PostgreSQL may write in other ways."""
    if schema:
        expression = re.sub(rf'(?<![\w.$"])("?){schema}\1\.', "", expression)
    return re.sub(r"[\s()]", "", _CASTS.sub("", expression))


_COLUMNS = {
    (table, name): _plain(match[1])
    for table, columns in COMPUTED.items()
    for name, definition in columns.items()
    if (match := _DEFINITION.search(definition))
}
"""The expressions of the computed columns, by table and name."""


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
                elif version != table_definitions.HEAD:
                    table_definitions.refuse_newer(version, driver.name)
                    if not may_migrate:
                        table_definitions.refuse_older(version, driver.name)
                    unsafe = [*code, *find_unexpected(connection, address)]
                    refuse_foreign(driver.name, [extra for extra in unsafe if runs_code(extra)])
                    migrate(address)
                    version = table_definitions.HEAD
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
            table_definitions.refuse_replaced(self.name)
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
