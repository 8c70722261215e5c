"""Reads the stamp of a store in a database, which differs after every change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.store.location import DatabaseAddress


def read_stamp(address: DatabaseAddress) -> str:
    """Return a text that differs whenever something may have been committed in between.

    Raises `StoreError`. Transactions in other databases of the server change it, too.
    """
    from evalstore.store.postgresql.driver import PostgreSQLDriver

    driver = PostgreSQLDriver(address, patience=0.0)
    try:
        return driver.stamp()
    finally:
        driver.close()
