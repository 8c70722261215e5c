"""Finds the questions with sessions or evaluations that a store has got since it was looked at.

Nothing stored is changed or deleted, so new rows are all that can change what follows from the
stored ones. SQLite has one writer at a time, and numbers the rows of a table in the order in which
they are committed. A server has many: whatever numbered the rows there, one with a small number may
be committed after one with a large number was read. So a store on a server does not tell.
"""

from __future__ import annotations

from typing import NamedTuple

from evalstore.store.contents import as_count, decode_content
from evalstore.store.database import Database, select_each
from evalstore.store.driver import Connection
from evalstore.store.ids import as_digits
from evalstore.store.table_columns import EVALUATIONS, SESSIONS


class Extent(NamedTuple):
    """How far the tables of sessions and evaluations of a store reach."""

    sessions: int
    """The number of the last row; 0 without rows."""
    session: str
    """The id of the last row; empty without rows."""
    evaluations: int
    evaluation: str


class GrowthQueries(Database):
    """The queries for what is new in a store."""

    def measure_extent(self) -> Extent | None:
        """Return how far the tables reach; None for a store that does not tell what is new."""
        with self._reading() as connection:
            number = connection.dialect.commit_number
            if number is None:
                return None
            sessions, evaluations = (
                _find_last(connection, table.name, number) for table in (SESSIONS, EVALUATIONS)
            )
        return Extent(*sessions, *evaluations)

    def find_new_questions(self, since: Extent, most: int) -> set[str] | None:
        """Return the questions whose sessions or evaluations were added after an extent.

        None when more than `most` rows were added, when the tables never had that extent, and for a
        store that does not tell.
        """
        with self._reading() as connection:
            number = connection.dialect.commit_number
            if number is None or not _had(connection, since, number):
                return None
            query = f"SELECT question FROM sessions WHERE {number} > ? LIMIT ?"
            rows = connection.execute(query, (since.sessions, most + 1)).fetchall()
            questions = {as_digits(question) for (question,) in rows}
            query = f"SELECT subject, id, content FROM evaluations WHERE {number} > ? LIMIT ?"
            judged = set[str]()
            count = len(rows)
            for subject, id, content in connection.execute(query, (since.evaluations, most + 1)):
                count += 1
                judgement = as_digits(id)
                sessions = decode_content(EVALUATIONS.name, judgement, content)["sessions"]
                judged.update(sessions if len(sessions) > 1 else [as_digits(subject)])
            if count > most:
                return None
            statement = "SELECT question FROM sessions WHERE id IN"
            found = select_each(connection, statement, judged)
            questions |= {as_digits(question) for (question,) in found}
        return questions


def _find_last(connection: Connection, table: str, number: str) -> tuple[int, str]:
    """Return the number and the id of the last row of a table; 0 and an empty id without rows."""
    query = f"SELECT {number}, id FROM {table} ORDER BY {number} DESC LIMIT 1"
    row = connection.execute(query).fetchone()
    return (as_count(row[0], table) or 0, as_digits(row[1])) if row else (0, "")


def _had(connection: Connection, extent: Extent, number: str) -> bool:
    """Return whether the last rows of an extent still have their numbers."""
    for table, last, id in (
        (SESSIONS, extent.sessions, extent.session),
        (EVALUATIONS, extent.evaluations, extent.evaluation),
    ):
        query = f"SELECT id FROM {table.name} WHERE {number} = ?"
        row = connection.execute(query, (last,)).fetchone()
        if (as_digits(row[0]) if row else "") != id:
            return False
    return True
