"""Frees and deletes items of plans that runners have taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.store.ids import as_bytes

if TYPE_CHECKING:
    from evalstore.store.driver import Connection


def delete_work(connection: Connection, keys: Sequence[str]) -> None:
    """Delete items that are done, or that have failed."""
    if keys:
        connection.change_in(
            "DELETE FROM work WHERE id IN", [as_bytes(key) for key in sorted(keys)]
        )


def free_work(connection: Connection, runner: str) -> None:
    """Free the items that a runner had taken."""
    connection.execute("UPDATE work SET runner = NULL WHERE runner = ?", (as_bytes(runner),))
