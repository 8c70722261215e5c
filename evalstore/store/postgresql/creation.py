"""Creates, migrates and inspects the schema of a store in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

import psycopg
from psycopg import errors, sql

from evalstore.core.display import safe
from evalstore.core.errors import StoreError
from evalstore.store.driver import UnexpectedObject, refuse_foreign
from evalstore.store.location import DatabaseAddress
from evalstore.store.postgresql.connection import (
    PostgreSQLConnection,
    connect,
)
from evalstore.store.postgresql.schema import (
    COMPUTED,
    FUNCTIONS,
    GROWTH_MARKS,
    statements,
)
from evalstore.store.rows.row_tables import ROW_TABLES
from evalstore.store.schema import migrations
from evalstore.store.schema.table_definitions import (
    COORDINATION,
    EVALUATIONS,
    RUNS,
    SESSIONS,
    TABLES,
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
        with migrations.joined("postgresql+psycopg://", raw, psycopg.DatabaseError) as writing:
            writing.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            # Transactions that write have read it: they end first, and later ones see the new one.
            writing.exec_driver_sql("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
            row = writing.exec_driver_sql("SELECT version_num FROM alembic_version").one()
            if row[0] != migrations.HEAD:
                migrations.upgrade(writing)
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
