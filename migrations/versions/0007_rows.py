"""Cases, results, answers, judgements and runs are rows, too, and people can ask views.

The rows follow from the contents. So a later migration that changes their tables makes them anew,
and this one creates those of the program that runs it.
"""

from __future__ import annotations

from typing import Any

from alembic import op

from evalstore.store.rows import row_tables

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables and the views, and write the rows of all that is stored."""
    bind = op.get_bind()
    raw: Any = bind.connection.driver_connection
    connection: Any = raw
    if bind.dialect.name == "postgresql":
        from evalstore.store.postgresql.connection import PostgreSQLConnection, row_statements

        connection = PostgreSQLConnection(raw, lambda: raw)
        statements = row_statements()
    else:
        from evalstore.store.sqlite.connection import OF_ROWS

        statements = list(OF_ROWS)
    for statement in statements:
        bind.exec_driver_sql(statement)
    row_tables.fill(connection)
