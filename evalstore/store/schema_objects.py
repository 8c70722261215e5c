"""The objects in the schema of a store: those of evalstore, and what differs from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalstore.errors import StoreError
from evalstore.store.rows.columns import ROW_TABLES
from evalstore.store.rows.views import sqlite_views
from evalstore.store.table_columns import COORDINATION, TABLES

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


class UnexpectedObject(NamedTuple):
    """An object in the schema that evalstore has not created, or one that is missing."""

    words: str
    """A message, such as `the trigger 'x' is not of evalstore`."""
    table: str | None = None
    """The table of evalstore that it replaces."""
    blocks_writing: bool = False
    """Whether it could change what is written."""
    blocks_reading: bool = False
    """Whether reading it could run code of its author, without end."""
    missing: bool = False


def refuse_foreign(name: str, foreign: Sequence[UnexpectedObject]) -> None:
    """Raise `StoreError` if there are objects that make reading or writing unsafe."""
    if foreign:
        verb = "read" if any(extra.blocks_reading for extra in foreign) else "written to"
        raise StoreError(
            f"the store '{name}' is not {verb}: {foreign[0].words}",
            hint="'evalstore fsck' lists what is wrong; do not use a store of unknown origin",
        )
