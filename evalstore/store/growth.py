"""Finds the questions with sessions or evaluations that a store has got since it was looked at.

Nothing stored is changed or deleted, so new rows are all that can change what follows from the
stored ones. SQLite numbers the rows of a table in the order in which they are inserted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from evalstore.store.contents import as_count, decode_content
from evalstore.store.database import Database, select_each
from evalstore.store.ids import as_digits
from evalstore.store.table_columns import EVALUATIONS, SESSIONS

_LAST = "SELECT rowid, id FROM {} ORDER BY rowid DESC LIMIT 1"


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

    @property
    def identity(self) -> tuple[str, int, int]:
        """Return what identifies the file of the store on this machine."""
        return self.path, *(self._file or (0, 0))

    def measure_extent(self) -> Extent:
        """Return how far the tables reach."""
        with self._reading() as connection:
            ends: list[Any] = []
            for table in (SESSIONS, EVALUATIONS):
                row = connection.execute(_LAST.format(table.name)).fetchone()
                number = as_count(row[0], table.name) if row else 0
                ends += [number or 0, as_digits(row[1]) if row else ""]
        return Extent(*ends)

    def find_new_questions(self, since: Extent, most: int) -> set[str] | None:
        """Return the questions whose sessions or evaluations were added after an extent.

        None when more than `most` rows were added, or when the tables never had that extent.
        """
        with self._reading() as connection:
            for table, number, id in (
                (SESSIONS, since.sessions, since.session),
                (EVALUATIONS, since.evaluations, since.evaluation),
            ):
                query = f"SELECT id FROM {table.name} WHERE rowid = ?"
                row = connection.execute(query, (number,)).fetchone()
                if (as_digits(row[0]) if row else "") != id:
                    return None
            query = "SELECT question FROM sessions WHERE rowid > ? LIMIT ?"
            rows = connection.execute(query, (since.sessions, most + 1)).fetchall()
            questions = {as_digits(question) for (question,) in rows}
            query = "SELECT subject, id, content FROM evaluations WHERE rowid > ? LIMIT ?"
            judged = set[str]()
            count = len(rows)
            for subject, id, content in connection.execute(query, (since.evaluations, most + 1)):
                count += 1
                judgement = as_digits(id)
                sessions = decode_content(EVALUATIONS.name, judgement, content)["sessions"]
                judged.add(sessions[0] if len(sessions) > 1 else as_digits(subject))
            if count > most:
                return None
            statement = "SELECT question FROM sessions WHERE id IN"
            found = select_each(connection, statement, judged)
            questions |= {as_digits(question) for (question,) in found}
        return questions
