"""Runs short transactions in the event loop, with a thread only while the store is locked.

Handing a transaction of a few rows to a thread takes longer than carrying it out. Only a wait for
another program, or for a server, needs a thread.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

from evalstore.errors import StoreLockedError

R = TypeVar("R", covariant=True)


class Transaction(Protocol[R]):
    """A transaction that changes nothing when it raises `StoreLockedError`."""

    def __call__(self, *, wait: bool) -> R:
        """Carry out the transaction; `wait` is that of `Database.writing`."""


async def run_short_transaction(transaction: Transaction[R], *, is_remote: bool = False) -> R:
    """Carry out a transaction; in a thread if the store is remote, or another program writes."""
    if is_remote:
        return await asyncio.to_thread(transaction, wait=True)
    try:
        return transaction(wait=False)
    except StoreLockedError:
        return await asyncio.to_thread(transaction, wait=True)
