"""A database as a remote: a store of others, with which rows are exchanged in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from evalstore.errors import RemoteError, StoreMissingError
from evalstore.store import Store

if TYPE_CHECKING:
    from evalstore.store.location import StoreLocation


@contextmanager
def open_database(address: StoreLocation, *, create: bool = False) -> Iterator[Store]:
    """Open a database that is a remote; its tables are never migrated.

    With `create`, tables that are missing are made. Raises `StoreError` when it cannot be used,
    and `RemoteError` when it has no tables.
    """
    try:
        store = Store.open(address, create=create, may_migrate=False)
    except StoreMissingError as error:
        push = "'evalstore push' makes them"
        raise RemoteError(
            f"'{address}' is not a remote of evalstore: there are no tables",
            hint=f"{push}; {error.others}" if error.others else push,
        ) from error
    with closing(store):
        yield store
