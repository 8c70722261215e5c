"""The command `sql`: asks the store a question in SQL, which cannot change anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evalstore.planning.open_project import open_store

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.store.question import QueryRows


@contextmanager
def sql(location: Location, statement: str, *, seconds: float) -> Iterator[QueryRows]:
    """Return the rows of a query, which are read while the block runs.

    Raises `QueryError` for a statement that is wrong, that does more than read, or that takes
    longer than so many seconds.
    """
    with open_store(location) as store, store.ask(statement, seconds) as answer:
        yield answer


def plain(value: Any) -> Any:
    """Return a value of a database as one of JSON: bytes are hexadecimal digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value if value is None or isinstance(value, str | int | float) else str(value)
