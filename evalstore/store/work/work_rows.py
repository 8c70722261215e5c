"""The items of a batch of a plan that several runners carry out; each is taken by one of them.

The first runner offers the items, and all of them take the next ones that are free. What a dead
runner had taken is free again. The leases decide who does an item; these rows only keep runners
from asking for the same leases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalstore.store.database import Database
from evalstore.store.driver import Connection
from evalstore.store.ids import as_bytes, as_digits
from evalstore.store.schema.table_definitions import WORK
from evalstore.store.work.leases import Leases, delete_work


class OfferedItem(NamedTuple):
    """An item of a batch, in the order of its plan."""

    key: str
    """The key of its lease."""
    account: str
    """The account that its calls are counted for, by the same name on all machines."""


class WorkRows:
    """The items of one batch."""

    def __init__(self, store: Database, leases: Leases, batch: str) -> None:
        """`batch` is an id that all runners of the same part of the same plan compute."""
        self._store = store
        self._leases = leases
        self._batch = as_bytes(batch)

    def offer(self, items: Sequence[OfferedItem]) -> None:
        """Add the items that no runner has offered yet."""
        rows = [
            (as_bytes(item.key), self._batch, item.account, place, None)
            for place, item in enumerate(items)
        ]

        def write(connection: Connection) -> None:
            self._leases.join(connection)
            if rows:
                connection.insert(WORK, rows)

        self._store.write(write)

    def take(self, account: str, count: int) -> list[str]:
        """Take up to `count` items of an account that are free; returns their keys, in order."""
        runner = as_bytes(self._leases.runner.id)

        def write(connection: Connection) -> list[str]:
            rows = connection.execute(
                "WITH free AS (SELECT id FROM work "
                "WHERE batch = ? AND account = ? AND runner IS NULL "
                f"ORDER BY place LIMIT ? {connection.dialect.skip_locked}) "
                "UPDATE work SET runner = ? WHERE id IN (SELECT id FROM free) RETURNING place, id",
                (self._batch, account, count, runner),
            ).fetchall()
            return [as_digits(id) for _, id in sorted(rows)]

        return self._store.write(write)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete items that are done already."""
        self._store.write(lambda connection: delete_work(connection, keys))

    def is_left(self, account: str) -> bool:
        """Return whether other runners still work on items of an account; frees those of dead ones.

        Also true when items were freed just now. Runners whose process is stopped for long do not
        count.
        """
        query = "SELECT DISTINCT runner FROM work WHERE batch = ? AND account = ?"

        def write(connection: Connection) -> bool:
            rows = connection.execute(query, (self._batch, account)).fetchall()
            holders = {None if id is None else as_digits(id) for (id,) in rows}
            others = {id for id in holders if id is not None} - {self._leases.runner.id}
            return self._leases.are_awaited(connection, others) or None in holders

        return self._store.write(write)
