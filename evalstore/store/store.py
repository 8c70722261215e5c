"""Reading and writing the store.

Writing is insert-or-ignore: the content determines the id, so a second writer has nothing to
write; an id with other content is an error. Every call is one transaction. Many writers may
share a store; each waits for the others.
"""

from __future__ import annotations

from typing import NamedTuple

from evalstore.core.values import Json
from evalstore.store.contents import decode_content, decode_row, missing
from evalstore.store.costs import CostQueries
from evalstore.store.failures import FailureQueries
from evalstore.store.growth import GrowthQueries
from evalstore.store.ids import as_bytes, as_digits
from evalstore.store.records import RecordQueries
from evalstore.store.rows.row_queries import RowQueries
from evalstore.store.runs import RunQueries
from evalstore.store.schema.table_columns import EVENTS, FAILURES, SESSIONS, TABLES, VERSIONS
from evalstore.store.sessions import SessionQueries
from evalstore.store.versions import VersionQueries
from evalstore.store.work.shared_runs import SharedRunQueries


class Stored(NamedTuple):
    """A content with its kind, as `show` prints it."""

    kind: str
    id: str
    content: Json


class Store(
    VersionQueries,
    SessionQueries,
    RunQueries,
    SharedRunQueries,
    FailureQueries,
    CostQueries,
    GrowthQueries,
    RecordQueries,
    RowQueries,
):
    """An open store."""

    def find_prefix(self, prefix: str, most: int = 20) -> list[tuple[str, str]]:
        """Return the kind and the id of everything whose id starts with these digits."""
        matches: list[tuple[str, str]] = []
        with self._reading() as connection:
            for name in TABLES:
                query = f"SELECT id, content FROM {name} WHERE id BETWEEN ? AND ? LIMIT ?"
                rows = connection.execute(query, (*_range(prefix), most))
                contents = (decode_row(name, *row) for row in rows)
                matches += [(content["kind"], id) for id, content in contents]
        return sorted(matches, key=lambda match: match[1])

    def load_any(self, kind: str, id: str) -> Stored:
        """Return a content by its kind and full id; raises `StoreError` when it is missing."""
        table = {**VERSIONS, **EVENTS}[kind].name
        query = f"SELECT content FROM {table} WHERE id = ?"
        with self._reading() as connection:
            row = connection.execute(query, (as_bytes(id),)).fetchone()
        if row is None:
            raise missing(kind, id)
        return Stored(kind, id, decode_content(table, id, row[0], kind, shown=True))

    def find_questions(self, prefix: str, most: int = 20) -> list[str]:
        """Return ids of questions that have a session or a failure and start with these digits."""
        questions: set[str] = set()
        with self._reading() as connection:
            for name in (SESSIONS.name, FAILURES.name):
                query = f"SELECT DISTINCT question FROM {name} WHERE question BETWEEN ? AND ?"
                rows = connection.execute(f"{query} LIMIT ?", (*_range(prefix), most))
                questions |= {as_digits(id) for (id,) in rows}
        return sorted(questions)[:most]


def _range(prefix: str) -> tuple[bytes | None, bytes | None]:
    """Return the first and the last id that start with these digits."""
    return as_bytes(prefix.ljust(32, "0")), as_bytes(prefix.ljust(32, "f"))
