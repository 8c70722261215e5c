"""The store: versions, sessions, evaluations, snapshots and runs in one database.

Only this package uses the tables; it returns values, not rows. Nothing that is stored is
overwritten or deleted.
"""

from evalstore.store.store import Store

__all__ = ["Store"]
