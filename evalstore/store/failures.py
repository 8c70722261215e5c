"""Calls that have failed, as the store logs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from evalstore import hashing
from evalstore.results import Failure
from evalstore.store.contents import as_time, decode
from evalstore.store.database import Database, select_each
from evalstore.store.ids import as_digits
from evalstore.values import Json

Place = tuple[str, str | None, str]
"""Of a judgement: the ids of its subject, of the evaluation version, of the evaluator."""


class LoggedFailure(NamedTuple):
    """A logged failure."""

    at: int
    """Microseconds since 1970, UTC."""
    message: str


class FailureQueries(Database):
    """The part of a store that knows of failures."""

    def find_failed(self, questions: Iterable[str]) -> dict[str, LoggedFailure]:
        """The newest failure of each of these questions that has one."""
        statement = "SELECT question, id, at, content FROM failures WHERE question IN"
        found: dict[str, LoggedFailure] = {}
        with self._reading() as connection:
            rows = select_each(connection, statement, questions, "ORDER BY at, id")
            for question, id, at, text in rows:
                digits = as_digits(id)
                content = decode("failures", digits, text)
                found[as_digits(question)] = _trouble(digits, at, content)
        return found

    def find_failed_judgements(self) -> dict[Place, LoggedFailure]:
        """The newest failure of each judgement that has one."""
        query = "SELECT id, at, content FROM failures WHERE question IS NULL ORDER BY at, id"
        found: dict[Place, LoggedFailure] = {}
        with self._reading() as connection:
            for id, at, text in connection.execute(query):
                digits = as_digits(id)
                content = decode("failures", digits, text)
                if content.get("subject") and content.get("evaluator"):
                    place = content["subject"], content.get("evaluation"), content["evaluator"]
                    found[place] = _trouble(digits, at, content)
        return found

    def find_failures(self, limit: int | None = None) -> list[tuple[str, Json]]:
        """Failures with their contents, newest first."""
        query = "SELECT id, content FROM failures ORDER BY at DESC, id LIMIT ?"
        with self._reading() as connection:
            found = connection.execute(query, (-1 if limit is None else limit,))
            return list(_decoded(found))

    def find_failures_of(
        self, questions: Iterable[str], subjects: Iterable[str]
    ) -> list[tuple[str, Json]]:
        """The failures to answer these questions and to judge these sessions, newest first."""
        statement = "SELECT id, content FROM failures WHERE"
        subject = "question IS NULL AND json_extract(content, '$.subject') IN"
        with self._reading() as connection:
            asked = select_each(connection, f"{statement} question IN", questions)
            judged = select_each(connection, f"{statement} {subject}", subjects, as_value=str)
            found = dict(_decoded(chain(asked, judged)))
        return sorted(found.items(), key=lambda one: (-one[1]["at"], one[0]))

    def count_failures(self) -> int:
        """How many failures there are."""
        with self._reading() as connection:
            return int(connection.execute("SELECT count(*) FROM failures").fetchone()[0])


def _decoded(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, Json]]:
    for id, text in rows:
        digits = as_digits(id)
        yield digits, decode("failures", digits, text)


def _trouble(id: str, at: object, content: Json) -> LoggedFailure:
    return LoggedFailure(as_time(at, "failures", id), content["message"])


def failure_rows(failures: Sequence[Failure]) -> dict[str, dict[str, Any]]:
    """The rows of failures by id."""
    rows = {}
    for failure in failures:
        id, content = hashing.identify(hashing.describe_failure(failure))
        rows[id] = {
            "id": id,
            "content": content,
            "question": failure.question,
            "at": failure.at,
        }
    return rows
