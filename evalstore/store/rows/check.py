"""Compares the rows of a store with its contents, for `fsck`, and writes them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.store.rows.columns import CASE_NAMES, KIND_PROMPTS, KIND_TAGS, KINDS, ROW_TABLES
from evalstore.store.rows.writer import Row, build_rows, fill, iterate_contents
from evalstore.store.schema.table_columns import EVALUATIONS, NODES, RUNS, SESSIONS

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.store.driver import Connection
    from evalstore.store.schema.table_columns import TableColumns

_AT_ONCE = 1_000
"""Ids in one query."""
_OF_KINDS = (KINDS.name, KIND_TAGS.name, KIND_PROMPTS.name)
_SOURCES = {
    SESSIONS.name: ("answer_rows",),
    EVALUATIONS.name: ("judgement_rows",),
    RUNS.name: ("run_rows",),
    NODES.name: (
        *(
            "entries",
            "parts",
            "case_nodes",
            "case_rows",
            "case_names",
            "result_nodes",
            "result_rows",
        ),
        *_OF_KINDS,
    ),
}
"""The tables with the rows of the contents of a table."""


def find_wrong_rows(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """Yield what differs: the table and the id of a content, or none, and a message."""
    for source, names in _SOURCES.items():
        for contents in iterate_contents(connection, source):
            for id in sorted(_compare(connection, names, contents)):
                yield source, id.hex(), "its rows are not those of its content"
        for name in (name for name in names if name not in _OF_KINDS):
            if count := _count_others(connection, ROW_TABLES[name], source):
                yield name, "", f"{count} of its rows have no content"


def rewrite_rows(connection: Connection) -> None:
    """Delete all rows and write them again, in the transaction of the connection."""
    for name in ROW_TABLES:
        connection.execute(f"DELETE FROM {name}")
    fill(connection)


def _compare(
    connection: Connection, names: Iterable[str], contents: list[tuple[bytes, Json]]
) -> set[bytes]:
    """Return the ids of contents, or of kinds of cases, whose rows differ."""
    built, wrong = build_rows(contents), set[bytes]()
    for name in names:
        expected = set(built.get(name, ()))
        place = list(ROW_TABLES[name].columns).index(_owner_of(ROW_TABLES[name]))
        owners = {row[place] for row in expected}
        if name not in _OF_KINDS:
            owners.update(id for id, _ in contents)
        stored = set(_stored(connection, ROW_TABLES[name], owners))
        wrong.update(row[place] for row in expected ^ stored)
    return wrong


def _owner_of(table: TableColumns) -> str:
    """Return the column with the id of the content that a row follows from."""
    return "leaf" if table is CASE_NAMES else next(iter(table.columns))


def _stored(connection: Connection, table: TableColumns, owners: Iterable[bytes]) -> Iterator[Row]:
    """Yield the rows of some contents, or kinds of cases."""
    columns = ", ".join(table.columns)
    statement = f"SELECT {columns} FROM {table.name} WHERE {_owner_of(table)} IN"
    left = iter(owners)
    while some := list(islice(left, _AT_ONCE)):
        yield from map(tuple, connection.select_in(statement, some))


def _count_others(connection: Connection, table: TableColumns, source: str) -> int:
    """Return how many rows of a table belong to no content."""
    owner = _owner_of(table)
    content = f"SELECT 1 FROM {source} c WHERE c.id = t.{owner}"
    query = f"SELECT count(*) FROM {table.name} t WHERE NOT EXISTS ({content})"
    return int(connection.execute(query).fetchall()[0][0])
