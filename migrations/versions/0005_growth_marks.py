"""In PostgreSQL, sessions and evaluations have the number of the transaction that inserted them.

With it and the marks that are stored beside a snapshot, programs find what is new in a store. In a
SQLite file nothing changes: the order of its rows tells it.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_INSERTED_BY = "inserted_by xid8 GENERATED ALWAYS AS (inserting_transaction(id)) STORED"
_POSTGRESQL = (
    """
    CREATE FUNCTION inserting_transaction(id bytea) RETURNS xid8
    LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN pg_catalog.pg_current_xact_id(); END $$
    """,
    """
    CREATE FUNCTION new_token(made bigint) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN pg_catalog.gen_random_uuid(); END $$
    """,
    f"ALTER TABLE sessions ADD COLUMN {_INSERTED_BY}",
    f"ALTER TABLE evaluations ADD COLUMN {_INSERTED_BY}",
    "CREATE INDEX ix_sessions_inserted_by ON sessions (inserted_by)",
    "CREATE INDEX ix_evaluations_inserted_by ON evaluations (inserted_by)",
    "CREATE TABLE growth_marks ( made bigint NOT NULL, "
    "token uuid GENERATED ALWAYS AS (new_token(made)) STORED, PRIMARY KEY (token) )",
    "CREATE INDEX ix_growth_marks_made ON growth_marks (made)",
)


def upgrade() -> None:
    """Add the columns and the table in PostgreSQL; the rows of both tables are written anew."""
    if op.get_bind().dialect.name == "postgresql":
        for statement in _POSTGRESQL:
            op.get_bind().exec_driver_sql(statement)
