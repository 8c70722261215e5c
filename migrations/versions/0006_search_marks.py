"""In PostgreSQL, tests and evaluation versions have the number of their transaction, too.

With it and a mark beside the search index, a search finds what is new without reading the tables.
In a SQLite file nothing changes: the order of its rows tells it.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_INSERTED_BY = "inserted_by xid8 GENERATED ALWAYS AS (inserting_transaction(id)) STORED"
_POSTGRESQL = (
    f"ALTER TABLE tests ADD COLUMN {_INSERTED_BY}",
    f"ALTER TABLE evaluation_versions ADD COLUMN {_INSERTED_BY}",
    "CREATE INDEX ix_tests_inserted_by ON tests (inserted_by)",
    "CREATE INDEX ix_evaluation_versions_inserted_by ON evaluation_versions (inserted_by)",
    # An index that was made before is kept; without this table it would be made anew.
    "CREATE TABLE IF NOT EXISTS search_marks ( token uuid NOT NULL, snapshot text NOT NULL, "
    "tables text NOT NULL, PRIMARY KEY (token) )",
)


def upgrade() -> None:
    """Add the columns and the table in PostgreSQL; the rows of both tables are written anew."""
    if op.get_bind().dialect.name == "postgresql":
        for statement in _POSTGRESQL:
            op.get_bind().exec_driver_sql(statement)
