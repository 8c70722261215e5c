"""Finds in the schema of a store what would run code of others when its tables are used.

A column, a constraint, an index, a policy or statistics may compute an expression, and a column
may have a type with conditions. PostgreSQL computes them with the rights of whoever reads or
writes the table, some already when it plans a query. The catalogues tell without doing so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalstore.core.display import safe
from evalstore.store.postgresql.schema import (
    COMPUTED,
    GROWTH_MARKS,
    SEARCH_COLUMNS,
    SEARCH_TEXTS,
    TOKEN,
    WORDS,
)
from evalstore.store.schema.schema_objects import UnexpectedObject, refuse_foreign
from evalstore.store.schema.table_definitions import COORDINATION, TABLES

if TYPE_CHECKING:
    from evalstore.store.location import DatabaseAddress
    from evalstore.store.postgresql.connection import PostgreSQLConnection

MIGRATIONS = "alembic_version"
"""The table that is read before all others."""
_NAMES = (
    *TABLES,
    *(table.name for table in COORDINATION),
    GROWTH_MARKS.name,
    *SEARCH_COLUMNS,
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


def refuse_code_of_migrations(address: DatabaseAddress, found: list[UnexpectedObject]) -> None:
    """Raise `StoreError` if to read which migration a store has would run code of others."""
    refuse_foreign(str(address), [extra for extra in found if extra.table == MIGRATIONS])


def _is_ours(table: str, kind: str, name: str, how: str, expression: str) -> bool:
    """Return whether evalstore makes an object with this expression, or one that computes nothing.

    `how` is how a column is computed, and the condition of an index or a policy.
    """
    if kind == "column":
        return how == "s" and _COLUMNS.get((table, name)) == expression
    if kind == "index":
        return not how and table == SEARCH_TEXTS and expression == _plain(WORDS)
    if kind == "policy":
        return {how, expression} <= {"true", "false"}
    return False


def _plain(expression: str, schema: str = "") -> str:
    """Return an expression without what versions of PostgreSQL may write in other ways."""
    if schema:
        expression = re.sub(rf'(?<![\w.$"])("?){schema}\1\.', "", expression)
    return re.sub(r"[\s()]", "", _CASTS.sub("", expression))


def _expression_of(definition: str) -> str:
    match = _DEFINITION.search(definition)
    assert match, definition
    return _plain(match[1])


_COLUMNS = {
    (table, name): _expression_of(definition)
    for table, columns in {**COMPUTED, GROWTH_MARKS.name: TOKEN}.items()
    for name, definition in columns.items()
}
"""The expressions of the computed columns, by table and name."""
