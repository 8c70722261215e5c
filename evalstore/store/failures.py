"""Calls that have failed, as the store logs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlmodel import col

from evalstore import hashing
from evalstore.store.contents import as_time, decode
from evalstore.store.database import Database, chunks
from evalstore.store.tables import FailureRow
from evalstore.values import Failure, Json

Place = tuple[str, str | None, str]
"""Of a judgement: the ids of its subject, of the evaluation version, of the evaluator."""


class Trouble(NamedTuple):
    """A logged failure."""

    at: int
    """Microseconds since 1970, UTC."""
    message: str


class Failures(Database):
    """The part of a store that knows of failures."""

    def find_failed(self, questions: Iterable[str]) -> dict[str, Trouble]:
        """The newest failure of each of these questions that has one."""
        row = FailureRow
        found: dict[str, Trouble] = {}
        with self._connect() as connection:
            for some in chunks(questions):
                query = (
                    select(col(row.question), col(row.id), col(row.at), col(row.content))
                    .where(col(row.question).in_(some))
                    .order_by(col(row.at), col(row.id))
                )
                for question, id, at, content in connection.execute(query):
                    found[str(question)] = _trouble(id, at, decode("failures", id, content))
        return found

    def find_failed_judgements(self) -> dict[Place, Trouble]:
        """The newest failure of each judgement that has one."""
        row = FailureRow
        query = (
            select(col(row.id), col(row.at), col(row.content))
            .where(col(row.question).is_(None))
            .order_by(col(row.at), col(row.id))
        )
        found: dict[Place, Trouble] = {}
        with self._connect() as connection:
            for id, at, text in connection.execute(query):
                content = decode("failures", id, text)
                if content.get("subject") and content.get("evaluator"):
                    place = content["subject"], content.get("evaluation"), content["evaluator"]
                    found[place] = _trouble(id, at, content)
        return found

    def find_failures(self, limit: int | None = None) -> list[tuple[str, Json]]:
        """Failures with their contents, newest first."""
        return self._load_failures(_newest_failures().limit(limit))

    def find_failures_of(
        self, questions: Iterable[str], subjects: Iterable[str]
    ) -> list[tuple[str, Json]]:
        """The failures to answer these questions and to judge these sessions, newest first."""
        row, found = FailureRow, dict[str, Json]()
        for some in chunks(questions):
            found |= self._load_failures(_newest_failures().where(col(row.question).in_(some)))
        subject = func.json_extract(col(row.content), "$.subject")
        for some in chunks(subjects):
            query = _newest_failures().where(col(row.question).is_(None), subject.in_(some))
            found |= self._load_failures(query)
        return sorted(found.items(), key=lambda one: (-one[1]["at"], one[0]))

    def _load_failures(self, query: Select[str, str]) -> list[tuple[str, Json]]:
        with self._connect() as connection:
            found = connection.execute(query)
            return [(id, decode("failures", id, content)) for id, content in found]

    def count_failures(self) -> int:
        """How many failures there are."""
        with self._connect() as connection:
            return int(connection.scalar(select(func.count()).select_from(FailureRow)) or 0)


def _trouble(id: str, at: object, content: Json) -> Trouble:
    return Trouble(as_time(at, "failures", id), content["message"])


def _newest_failures() -> Select[str, str]:
    return select(col(FailureRow.id), col(FailureRow.content)).order_by(
        col(FailureRow.at).desc(), col(FailureRow.id)
    )


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
