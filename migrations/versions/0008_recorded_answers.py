"""Cases with other recorded answers have the same rows of what cases have in common.

Each recorded answer had rows of its own, as its id was part of them.
"""

from __future__ import annotations

from typing import Any

from alembic import op

from evalstore.store.rows import row_tables

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Write the rows of cases with recorded answers anew."""
    bind = op.get_bind()
    raw: Any = bind.connection.driver_connection
    connection: Any = raw
    if bind.dialect.name == "postgresql":
        from evalstore.store.postgresql.connection import PostgreSQLConnection

        connection = PostgreSQLConnection(raw, lambda: raw)
    is_former = connection.dialect.has('"recorded":')
    former = f"SELECT id FROM kinds WHERE {is_former}"
    if not connection.execute(f"{former} LIMIT 1").fetchall():
        return
    for table in ("case_rows", "kind_tags", "kind_prompts"):
        connection.execute(f"DELETE FROM {table} WHERE kind IN ({former})")
    connection.execute(f"DELETE FROM kinds WHERE {is_former}")
    for contents in row_tables.iterate_contents(connection, "nodes"):
        row_tables.write_rows(connection, (each for each in contents if each[1]["kind"] == "cases"))
