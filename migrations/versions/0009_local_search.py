"""Stores in PostgreSQL have no search index: each machine has one in a file, as for SQLite."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the tables of the index, which has nothing that the other tables have not."""
    if op.get_bind().dialect.name == "postgresql":
        for table in ("search_texts", "search_links", "search_marks"):
            op.get_bind().exec_driver_sql(f"DROP TABLE IF EXISTS {table}")
