"""What a store in PostgreSQL has besides the tables of the first migrations.

PostgreSQL computes costs, durations and models when a row is written. This is as the first store
in PostgreSQL had it; later migrations change it, and not this module.
"""

from __future__ import annotations

from alembic import op

_FUNCTIONS = (
    r"""
    CREATE OR REPLACE FUNCTION content_json(content text) RETURNS json
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT CASE WHEN strpos(content, '\u0000') = 0 THEN content ELSE
            regexp_replace(content, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::json
    $$
    """,
    """
    CREATE OR REPLACE FUNCTION content_seconds(content json) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT sum((turn ->> 'latency')::double precision)
        FROM json_array_elements(content -> 'turns') AS turns (turn)
    $$
    """,
)
_USD = "(content_json(content) #>> '{cost,usd}')::double precision"
_COLUMNS = (
    ("sessions", "model", "text", "content_json(content) ->> 'model'"),
    ("sessions", "usd", "double precision", _USD),
    ("sessions", "seconds", "double precision", "content_seconds(content_json(content))"),
    ("evaluations", "usd", "double precision", _USD),
)


def upgrade_postgresql() -> None:
    """Add the computed columns and the indexes for the newest rows; SQLite has neither.

    A store that has them already stays as it is.
    """
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    # As the driver takes them: a colon is no parameter here, and a percent sign is none either.
    for function in _FUNCTIONS:
        connection.exec_driver_sql(function)
    for table, name, kind, expression in _COLUMNS:
        connection.exec_driver_sql(
            f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} {kind} "
            f"GENERATED ALWAYS AS ({expression}) STORED"
        )
    for table in ("sessions", "evaluations"):
        connection.exec_driver_sql(
            f"CREATE INDEX IF NOT EXISTS ix_{table}_started ON {table} (started)"
        )
