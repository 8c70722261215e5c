"""Finds the questions with sessions or evaluations that a store has got since it was looked at.

Nothing stored is changed or deleted, so new rows are all that can change what follows from the
stored ones. Each database has a way of its own to tell which these are.
"""

from __future__ import annotations

from evalstore.store.contents import decode_content
from evalstore.store.database import Database, select_each
from evalstore.store.driver import Extent
from evalstore.store.ids import as_digits
from evalstore.store.schema.table_columns import EVALUATIONS, SESSIONS


class GrowthQueries(Database):
    """The queries for what is new in a store."""

    def measure_extent(self) -> Extent | None:
        """Return how far the store reaches; None where its database cannot tell what is new."""
        return self.write(lambda connection: connection.dialect.growth.measure(connection))

    def find_newest(self, before: Extent | None = None) -> Extent:
        """Return how far the answers, judgements, failures and runs of the store reach.

        It equals the one `before`, which was found earlier, unless any was added since; versions
        that are read from files do not count.
        """
        with self._reading() as connection:
            return connection.dialect.growth.newest(connection, before)

    def count_added(self, before: Extent, after: Extent) -> tuple[int, int]:
        """Return how many sessions and evaluations were added between two moments, at least.

        Some that were added later may count, too.
        """
        with self._reading() as connection:
            growth = connection.dialect.growth
            sessions, evaluations = (
                growth.count(connection, table.name, before, after)
                for table in (SESSIONS, EVALUATIONS)
            )
        return sessions, evaluations

    def find_new_questions(self, since: Extent, most: int) -> set[str] | None:
        """Return the questions whose sessions or evaluations were added after an extent.

        None when more than `most` rows were added, and when the store never had that extent.
        """
        with self._reading() as connection:
            growth = connection.dialect.growth
            if not growth.has_had(connection, since):
                return None
            condition, parameters = growth.condition(SESSIONS.name, since)
            query = f"SELECT question FROM sessions WHERE {condition} LIMIT ?"
            rows = connection.execute(query, (*parameters, most + 1)).fetchall()
            questions = {as_digits(question) for (question,) in rows}
            condition, parameters = growth.condition(EVALUATIONS.name, since)
            query = f"SELECT subject, id, content FROM evaluations WHERE {condition} LIMIT ?"
            judged = set[str]()
            count = len(rows)
            for subject, id, content in connection.execute(query, (*parameters, most + 1)):
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
