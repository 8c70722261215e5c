"""Writes what runners have done of plans and shared runs, in the transactions of their facts."""

from __future__ import annotations

from collections.abc import Sequence

from evalstore.store.driver import Connection
from evalstore.store.ids import as_bytes
from evalstore.store.schema.table_definitions import RUN_SHARES


def delete_work(connection: Connection, keys: Sequence[str]) -> None:
    """Delete items that are done, or that have failed."""
    if keys:
        connection.change_in(
            "DELETE FROM work WHERE id IN", [as_bytes(key) for key in sorted(keys)]
        )


def free_work(connection: Connection, runner: str) -> None:
    """Free the items that a runner had taken."""
    connection.execute("UPDATE work SET runner = NULL WHERE runner = ?", (as_bytes(runner),))


def write_counts(connection: Connection, runner: str, counts: str) -> None:
    """Note what a runner has done of its shared run; without a share, nothing is noted."""
    connection.execute(
        f"UPDATE {RUN_SHARES.name} SET counts = ? WHERE id = ?", (counts, as_bytes(runner))
    )


def settle_dead_share(connection: Connection, runner: str) -> None:
    """Count as spent what the calls in flight of a dead runner may have cost."""
    connection.execute(
        f"UPDATE {RUN_SHARES.name} SET spent = spent + reserved, reserved = 0 WHERE id = ?",
        (as_bytes(runner),),
    )
