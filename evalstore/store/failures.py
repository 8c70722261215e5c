"""Queries for failed calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from evalstore.core import hashing
from evalstore.core.deserialize import restore_failure
from evalstore.core.results import Failure
from evalstore.store.contents import as_time, decode_content
from evalstore.store.database import NO_LIMIT, Database
from evalstore.store.ids import as_digits

Place = tuple[str, str | None, str]
"""Identifies a judgement by the ids of its subject, evaluation version and evaluator."""


class LoggedFailure(NamedTuple):
    """A failure with its id."""

    id: str
    failure: Failure


class FailureQueries(Database):
    """The queries for failures."""

    def find_failed(self, questions: Iterable[str]) -> dict[str, Failure]:
        """Return the newest failure of each of these questions that has one."""
        statement = "SELECT question, id, at, content FROM failures WHERE question IN"
        failures: dict[str, Failure] = {}
        rows = self._select_each(statement, questions, "ORDER BY at, id")
        for question, id, at, text in rows:
            failures[as_digits(question)] = _decoded(id, text, at)
        return failures

    def iterate_failed_judgements(self) -> Iterator[tuple[Place, Failure]]:
        """Yield each failure of a judgement, the newest last."""
        query = "SELECT id, at, content FROM failures WHERE question IS NULL ORDER BY at, id"
        for id, at, text in self._select(query):
            failure = _decoded(id, text, at)
            if failure.subject and failure.evaluator:
                yield (failure.subject, failure.evaluation, failure.evaluator), failure

    def find_failures(self, limit: int | None = None) -> list[LoggedFailure]:
        """Return failures, newest first."""
        query = "SELECT id, content FROM failures ORDER BY at DESC, id LIMIT ?"
        rows = self._select(query, (NO_LIMIT if limit is None else limit,))
        return [_logged(*row) for row in rows]

    def find_failures_of(
        self, questions: Iterable[str], subjects: Iterable[str]
    ) -> list[LoggedFailure]:
        """Return failures to answer these questions or judge these sessions, newest first."""
        statement = "SELECT id, content FROM failures WHERE"
        subject = f"question IS NULL AND {self.dialect.text('subject')} IN"
        of_questions = self._select_each(f"{statement} question IN", questions)
        of_subjects = self._select_each(f"{statement} {subject}", subjects, as_value=str)
        failures = {_logged(*row) for row in chain(of_questions, of_subjects)}
        return sorted(failures, key=lambda logged: (-logged.failure.at, logged.id))

    def count_failures(self) -> int:
        """Return how many failures there are."""
        return int(self._select("SELECT count(*) FROM failures")[0][0])


def _logged(id: Any, text: Any) -> LoggedFailure:
    digits = as_digits(id)
    return LoggedFailure(digits, restore_failure(decode_content("failures", digits, text)))


def _decoded(id: Any, text: Any, at: object) -> Failure:
    """Return the failure of a row; raises `StoreError` when its column `at` is not a time."""
    as_time(at, "failures", as_digits(id))
    return _logged(id, text).failure


def describe_failures(failures: Iterable[Failure]) -> dict[str, str]:
    """Return the contents of failures by id."""
    return dict(hashing.identify(hashing.describe_failure(failure)) for failure in failures)
