"""Short transactions of an event loop, without a thread as long as the store is free.

To hand a transaction of a few rows to a thread takes longer than to carry it out, and the
thread then has to wait for its turn at every row. Only a wait for another program needs one.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

from evalstore.errors import StoreLockedError

R = TypeVar("R", covariant=True)


class Transaction(Protocol[R]):
    """A transaction that changes nothing when it raises `StoreLockedError`."""

    def __call__(self, *, wait: bool) -> R:
        """Carry it out; `wait` as for `Database.writing`."""


async def run_short_transaction(transaction: Transaction[R]) -> R:
    """Carry out a transaction at once, or in a thread while another program writes."""
    try:
        return transaction(wait=False)
    except StoreLockedError:
        return await asyncio.to_thread(transaction, wait=True)
