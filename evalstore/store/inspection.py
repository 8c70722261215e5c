"""Inspects a store without creating, migrating or writing anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.store.schema.migrations import HEAD, KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.store.location import DatabaseAddress


@dataclass(frozen=True, slots=True)
class StoreState:
    """The state of a store."""

    size: int | None
    """The size in bytes, including the log; None when there is no store."""
    version: str | None = None
    """The migration of the store; None when it cannot be read or is empty."""
    writable: bool = False
    damage: str | None = None
    """The reason why it cannot be read; None if it can."""
    others: Sequence[str] = ()
    """The schemas of the database that have a store, if the one named in the address has none."""
    hint: str | None = None
    """What lets a user write to a database where all transactions only read."""

    @property
    def is_newer(self) -> bool:
        """Return whether a newer version of evalstore has written it."""
        return self.version is not None and self.version not in KNOWN

    @property
    def is_older(self) -> bool:
        """Return whether the next command will migrate it."""
        return self.version in KNOWN and self.version != HEAD


def inspect_database(address: DatabaseAddress) -> StoreState:
    """Return the state of a store in a database; raises `StoreError` if it cannot be reached."""
    from evalstore.store.postgresql.driver import PostgreSQLDriver

    driver = PostgreSQLDriver(address, patience=0.0)
    try:
        size, version, writable, hint, others = driver.inspect()
        return StoreState(size, version, writable, others=others, hint=hint)
    finally:
        driver.close()
