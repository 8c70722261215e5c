"""The tables of a store in PostgreSQL: those of SQLite, in a schema of their own.

Costs and durations are computed from `content` when a row is written. In SQLite queries compute
them, because there a field of a JSON text is read faster than it is fetched.
"""

from __future__ import annotations

from evalstore.store.table_columns import (
    COORDINATION,
    EVALUATIONS,
    MIGRATION,
    SESSIONS,
    TABLES,
    TableColumns,
)

TYPES = {"BLOB": "bytea", "TEXT": "text", "BIGINT": "bigint", "FLOAT": "double precision"}
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
)
_COST = "((content_json(content) #>> '{cost,usd}')::double precision)"
COMPUTED: dict[str, dict[str, str]] = {
    SESSIONS.name: {
        "model": "text GENERATED ALWAYS AS (content_json(content) ->> 'model') STORED",
        "usd": f"double precision GENERATED ALWAYS AS {_COST} STORED",
        "seconds": "double precision GENERATED ALWAYS AS "
        "(content_seconds(content_json(content))) STORED",
    },
    EVALUATIONS.name: {"usd": f"double precision GENERATED ALWAYS AS {_COST} STORED"},
}
"""The columns that the database computes, by table, with their definitions."""
NEWEST = {table: f"CREATE INDEX ix_{table}_started ON {table} (started)" for table in COMPUTED}
"""The indexes for the newest rows; SQLite has the order in which rows were stored."""
_VERSION = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)


def column_type(declared: str) -> str:
    """Return the type of a column in PostgreSQL; `declared` is that of `TableColumns`."""
    return f"{value_type(declared)} {declared.partition(' ')[2]}".strip()


def value_type(declared: str) -> str:
    """Return the type of the values of a column."""
    return TYPES[declared.partition(" ")[0]]


def table_statements(table: TableColumns) -> list[str]:
    """Return the statements that create a table and its indexes."""
    columns = [f"{name} {column_type(declared)}" for name, declared in table.columns.items()]
    columns += [f"{name} {rest}" for name, rest in COMPUTED.get(table.name, {}).items()]
    statements = [f"CREATE TABLE {table.name} ( {', '.join(columns)}, PRIMARY KEY (id) )"]
    statements += [
        f"CREATE INDEX ix_{table.name}_{column} ON {table.name} ({column})"
        for column in table.indexed
    ]
    if table.name in NEWEST:
        statements.append(NEWEST[table.name])
    return statements


def statements() -> list[str]:
    """Return the statements that create an empty store in the schema that is searched."""
    return [
        *FUNCTIONS,
        *(
            statement
            for table in (*TABLES.values(), *COORDINATION)
            for statement in table_statements(table)
        ),
        *search_statements(),
        _VERSION,
        f"INSERT INTO alembic_version VALUES ('{MIGRATION}')",
    ]


SEARCH_TEXTS, SEARCH_LINKS = "search_texts", "search_links"
SEARCH_COLUMNS = {
    SEARCH_TEXTS: ("number", "id", "part", "kind", "words"),
    SEARCH_LINKS: ("text", "session"),
}
"""The tables of the search index, whose rows are computed from others, with their columns."""
WORDS = "array_to_tsvector(string_to_array(words, ' '))"
"""The words of a row, as they are indexed: they are split already, so nothing is parsed."""


def search_statements() -> list[str]:
    """Return the statements that create the tables of the search index.

    A text with many words has several rows. They are in the order in which they were added.
    """
    return [
        f"CREATE TABLE {SEARCH_TEXTS} ( number bigint GENERATED ALWAYS AS IDENTITY, "
        "id bytea NOT NULL, part integer NOT NULL, kind smallint NOT NULL, "
        'words text COLLATE "C" NOT NULL, PRIMARY KEY (id, part) )',
        f"CREATE INDEX ix_{SEARCH_TEXTS}_words ON {SEARCH_TEXTS} USING gin ({WORDS})",
        f"CREATE TABLE {SEARCH_LINKS} ( text bytea NOT NULL, session bytea NOT NULL, "
        "PRIMARY KEY (text, session) )",
    ]
