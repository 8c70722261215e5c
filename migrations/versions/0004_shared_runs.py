"""Runs that several programs carry out together: their work, their shares and their accounts.

In PostgreSQL, costs and durations become columns that the database computes, and the search
index is in tables.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_COST = "((content_json(content) #>> '{cost,usd}')::double precision)"
_POSTGRESQL = (
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
    "ALTER TABLE sessions "
    "ADD COLUMN model text GENERATED ALWAYS AS (content_json(content) ->> 'model') STORED, "
    f"ADD COLUMN usd double precision GENERATED ALWAYS AS {_COST} STORED, "
    "ADD COLUMN seconds double precision GENERATED ALWAYS AS "
    "(content_seconds(content_json(content))) STORED",
    f"ALTER TABLE evaluations ADD COLUMN usd double precision GENERATED ALWAYS AS {_COST} STORED",
    "CREATE INDEX ix_sessions_started ON sessions (started)",
    "CREATE INDEX ix_evaluations_started ON evaluations (started)",
    "CREATE TABLE search_texts ( number bigint GENERATED ALWAYS AS IDENTITY, "
    "id bytea NOT NULL, part integer NOT NULL, kind smallint NOT NULL, "
    'words text COLLATE "C" NOT NULL, PRIMARY KEY (id, part) )',
    "CREATE INDEX ix_search_texts_words ON search_texts "
    "USING gin (array_to_tsvector(string_to_array(words, ' ')))",
    "CREATE TABLE search_links ( text bytea NOT NULL, session bytea NOT NULL, "
    "PRIMARY KEY (text, session) )",
)


def upgrade() -> None:
    """Create the tables; in PostgreSQL also computed columns and the search index."""
    op.create_table("runner_accounts", _digest("id"), _text("accounts"), _key())
    op.create_table(
        "shared_runs",
        _digest("id"),
        _text("description"),
        _number("started"),
        sa.Column("cost_limit", sa.Float),
        _key(),
    )
    op.create_table(
        "run_shares",
        _digest("id"),
        _digest("run"),
        sa.Column("reserved", sa.Float, nullable=False),
        sa.Column("spent", sa.Float, nullable=False),
        _text("counts"),
        _key(),
    )
    op.create_index("ix_run_shares_run", "run_shares", ["run"])
    op.create_table(
        "work",
        _digest("id"),
        _digest("batch"),
        _text("account"),
        _number("place"),
        _digest("runner", nullable=True),
        _key(),
    )
    op.create_index("ix_work_batch", "work", ["batch"])
    op.create_index("ix_work_runner", "work", ["runner"])
    if op.get_bind().dialect.name == "postgresql":
        for statement in _POSTGRESQL:
            op.get_bind().exec_driver_sql(statement)


def _digest(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.LargeBinary(16), nullable=nullable)


def _text(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _key() -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("id")
