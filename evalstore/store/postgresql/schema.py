"""The tables of a store in PostgreSQL: those of SQLite, in a schema of their own.

Costs and durations are computed from `content` when a row is written. In SQLite queries compute
them, because there a field of a JSON text is read faster than it is fetched. The number of the
transaction that writes a row is computed in the same way.
"""

from __future__ import annotations

from evalstore.store.rows.row_tables import ROW_TABLES, postgresql_views
from evalstore.store.schema.table_definitions import (
    COORDINATION,
    EVALUATIONS,
    MIGRATION,
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
        f"INSERT INTO alembic_version VALUES ('{MIGRATION}')",
    ]
