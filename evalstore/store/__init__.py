"""The store: versions, sessions, evaluations, snapshots and runs in one database.

The only package that knows the tables. Rows never leave it: values come out. Nothing
stored is overwritten or deleted.
"""

from evalstore.store.store import Store

__all__ = ["Store"]
