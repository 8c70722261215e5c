"""Checks that a store has only the tables and indexes that the migrations create.

A file of unknown origin may have triggers that delete what is written, or endless views in the
place of tables. Each statement of its schema is compared with ours by its text, because SQLite
uses only the text and not the other columns of `sqlite_master`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from evalstore.store.driver import UnexpectedObject
from evalstore.store.rows.columns import ROW_TABLES, sqlite_views
from evalstore.store.schema.table_definitions import COORDINATION, TABLES

SCHEMA = "SELECT type, name, sql FROM sqlite_master"
"""The query whose rows `find_foreign` needs."""
_START = re.compile(
    r"CREATE (?P<kind>TABLE|VIEW|VIRTUAL TABLE|INDEX|UNIQUE INDEX|TRIGGER) "
    r"(?:(?P<name>\w+)|[\"'`\[](?P<quoted>[^\"'`\]]+)[\"'`\]])"
)
_PLAIN_INDEX = re.compile(r"CREATE INDEX \S+ ON \S+ \([\w\", ]+\)\Z")
_OF_SQLITE = ("sqlite_autoindex_", "sqlite_sequence", "sqlite_stat")


def find_foreign(rows: Iterable[tuple[Any, ...]]) -> list[UnexpectedObject]:
    """Return the differences of a schema from that of the newest migration."""
    ours, present = STATEMENTS, set[str]()
    unexpected: list[UnexpectedObject] = []
    for kind, name, sql in rows:
        statement = " ".join(str(sql).split())
        if statement in ours:
            present.add(statement)
        elif not str(name).startswith(_OF_SQLITE) or (sql is not None and kind != "table"):
            unexpected.append(_describe(str(name), statement))
    taken = {extra.table for extra in unexpected}
    unexpected += [
        UnexpectedObject(
            f"the {object_kind} '{name}' is missing", None, object_kind == "table", missing=True
        )
        for statement, (object_kind, name) in ours.items()
        if statement not in present and name not in taken
    ]
    return unexpected


def _describe(name: str, statement: str) -> UnexpectedObject:
    start = _START.match(statement)
    if start is None:
        return UnexpectedObject(f"'{name}' is something that evalstore does not know", None, True)
    kind = start["kind"].lower()
    called = (start["name"] or start["quoted"]).lower()
    if ("table", called) in STATEMENTS.values():
        if kind == "table":
            words = f"the table '{called}' is not as evalstore makes it"
            return UnexpectedObject(words, called, blocks_writing=True)
        if "index" not in kind:
            words = f"there is a {kind} in the place of the table '{called}'"
            blocks = kind != "trigger"
            return UnexpectedObject(words, called if blocks else None, True, blocks)
    harmless = kind in ("table", "view", "virtual table") or _PLAIN_INDEX.match(statement)
    return UnexpectedObject(f"the {kind} '{name}' does not belong to evalstore", None, not harmless)


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
