"""A question of a person in SQL, and its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from evalstore.core.errors import EvalstoreError

_QUERIES = ("select", "with", "values")
_HINT = "'evalstore sql' without a query lists the views and their columns"


class QueryRows(NamedTuple):
    """The rows of a query."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


class QueryError(EvalstoreError):
    """A statement that the database refuses."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message, hint=hint)


def refuse_other_than_queries(statement: str) -> None:
    """Raise `QueryError` for a statement that begins like one that changes something."""
    word = statement.split(maxsplit=1)[0].rstrip(";").lower() if statement.strip() else ""
    if word not in _QUERIES and not word.startswith(("(", "-", "/")):
        raise refuse_writing()


def refuse_writing() -> QueryError:
    """Return the error for a statement that does more than read."""
    return QueryError(
        "'evalstore sql' only reads the store", "begin the statement with SELECT or WITH"
    )


def took_too_long(seconds: float) -> QueryError:
    """Return the error for a statement that was ended."""
    return QueryError(
        f"the query took longer than {seconds:g} s", "ask for less, or raise --timeout"
    )
