"""The store: versions, sessions, evaluations, snapshots and runs in one database.

Only this package uses the tables; it returns values, not rows. Nothing that is stored is
overwritten or deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.store.store import Store

__all__ = ["Store"]


def __getattr__(name: str) -> object:
    """Import `Store` when it is used: a command that only needs a location starts faster."""
    if name == "Store":
        from evalstore.store.store import Store

        globals()[name] = Store
        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
