"""The statements that create an empty SQLite file."""

from __future__ import annotations

from evalstore.store.rows.columns import ROW_TABLES
from evalstore.store.rows.views import sqlite_views
from evalstore.store.schema.table_definitions import COORDINATION, TABLES

_MIGRATIONS = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)
OF_ROWS: dict[str, tuple[str, str]] = {
    **{
        statement: made
        for table in ROW_TABLES.values()
        for statement, made in table.statements().items()
    },
    **{statement: ("view", name) for name, statement in sqlite_views().items()},
}
"""The statements that create the tables of rows, and the views that people ask."""
STATEMENTS: dict[str, tuple[str, str]] = {
    _MIGRATIONS: ("table", "alembic_version"),
    **{
        statement: made
        for table in (*TABLES.values(), *COORDINATION)
        for statement, made in table.statements().items()
    },
    **OF_ROWS,
}
"""The statements that create an empty SQLite file, each with what it makes and its name."""
