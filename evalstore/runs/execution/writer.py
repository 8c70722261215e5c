"""The writer of an execution, which commits facts in order, as soon as they arrive.

Facts that arrive during a commit are part of the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any, TypeVar

from evalstore.core import hashing
from evalstore.core.errors import StoreLockedError
from evalstore.core.values import Evaluation, Failure, Json, Session
from evalstore.store import Store
from evalstore.store.events import LeaseChange

# --- short transactions: to hand one of a few rows to a thread takes longer than to carry it out
# Only a wait for another program, or for a server, needs a thread. What is in a thread goes on when
# its task is cancelled, so the task waits: else a runner that has ended could register once more.


T = TypeVar("T")


async def run_short_transaction(transaction: Callable[..., T], *, is_remote: bool) -> T:
    """Carry out a transaction; in a thread if the store is remote, or another program writes.

    Its argument `wait` is that of `Database.writing`. It changes nothing when it raises
    `StoreLockedError`.
    """
    if is_remote:
        return await run_in_thread(partial(transaction, wait=True))
    try:
        return transaction(wait=False)
    except StoreLockedError:
        return await run_in_thread(partial(transaction, wait=True))


async def run_in_thread(transaction: Callable[[], T]) -> T:
    """Carry out a transaction in a thread, to its end even if the waiting task is cancelled."""
    done = asyncio.ensure_future(asyncio.to_thread(transaction))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({done})
        if not done.cancelled():
            done.exception()  # is not reported as one that nobody has seen
        raise


_LATENCY_PER_DELAY = 40
"""A commit waits for more facts, but at most the time of an answer divided by this number."""
_LONGEST_DELAY = 0.01
"""The longest wait in seconds."""
_TRIES = 6
"""The number of tries; each waits for a lock as long as the store does, a minute in all."""


class Writer:
    """Commits facts; those that cannot be committed are kept and tried again at the end."""

    def __init__(self, store: Store, runner: str) -> None:
        """`runner` is the id under which leases are taken."""
        self.describe_counts: Callable[[], str] | None = None
        """Returns what this runner has done of a shared run, as JSON."""
        self.note_stored: Callable[[], None] = lambda: None
        """Called when what was described is stored."""
        self.exclusive: AbstractAsyncContextManager[Any] = nullcontext()
        """Held from the description on until then."""
        self._store = store
        self._runner = runner
        self._sessions: dict[str, str] = {}
        self._evaluations: dict[str, str] = {}
        self._described: dict[str, Json] = {}
        """The values of which they are the texts, by id; one that lacks is read from its text."""
        self._failures: list[Failure] = []
        self._taken_leases: list[str] = []
        self._released_leases: list[str] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._delay = 0.0
        """Seconds that a commit waits for more facts."""
        self._waiting: list[asyncio.Future[None]] = []
        """Callers of `flush` since the last commit."""

    def put_session(self, session: Session) -> str:
        """Store a session with the next commit; returns its id."""
        self._delay = min(session.turns[-1].latency / _LATENCY_PER_DELAY, _LONGEST_DELAY)
        return self._put(self._sessions, hashing.describe_session(session))

    def put_evaluation(self, evaluation: Evaluation) -> str:
        """Store an evaluation with the next commit; returns its id."""
        return self._put(self._evaluations, hashing.describe_evaluation_result(evaluation))

    def _put(self, contents: dict[str, str], described: Json) -> str:
        id, contents[id] = hashing.identify(described)
        self._described[id] = described
        self._wake.set()
        return id

    def put_failure(self, failure: Failure) -> None:
        """Log a failure with the next commit."""
        self._failures.append(failure)
        self._wake.set()

    def take_lease(self, lease: str) -> None:
        """Take a lease with the next commit."""
        self._taken_leases.append(lease)

    def release_lease(self, lease: str) -> None:
        """Release a lease with the next commit."""
        self._released_leases.append(lease)
        self._wake.set()

    async def run(self) -> None:
        """Commit until closed; raises `StoreError` when that fails."""
        while not self._closing:
            await self._wake.wait()
            if not self._closing:
                await asyncio.sleep(self._delay)
            self._wake.clear()
            await self._commit()

    async def flush(self) -> None:
        """Wait until all facts so far are in the store."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(committed)
        self._wake.set()
        await committed

    async def finish(self, running: asyncio.Task[None]) -> None:
        """Commit the rest and end; `running` is the task of `run`."""
        self._closing = True
        self._wake.set()
        await asyncio.gather(running, return_exceptions=True)
        await self._commit()

    async def _commit(self) -> None:
        async with self.exclusive:
            await self._commit_all()

    async def _commit_all(self) -> None:
        batch = (self._sessions, self._evaluations, self._failures)
        described, self._described = self._described, {}
        taken, released = self._taken_leases, self._released_leases
        waiting, self._waiting = self._waiting, []
        self._sessions, self._evaluations, self._failures = {}, {}, []
        self._taken_leases, self._released_leases = [], []
        try:
            counts = self.describe_counts() if self.describe_counts else None
            change = LeaseChange(self._runner, taken, released, counts, self._store.is_remote)
            if any(batch) or taken or released:
                await self._record(*batch, change, described)
            self.note_stored()
            for future in waiting:
                if not future.done():
                    future.set_result(None)
        except BaseException:
            for future in waiting:
                future.cancel()
            self._sessions = {**batch[0], **self._sessions}
            self._evaluations = {**batch[1], **self._evaluations}
            self._failures = [*batch[2], *self._failures]
            self._taken_leases, self._released_leases = (
                [*taken, *self._taken_leases],
                [*released, *self._released_leases],
            )
            raise

    async def _record(
        self,
        sessions: dict[str, str],
        evaluations: dict[str, str],
        failures: list[Failure],
        leases: LeaseChange,
        described: Mapping[str, Json],
    ) -> None:
        """Commit; while another program has locked a file, retry a limited number of times."""
        facts = (sessions, evaluations, failures, leases, described)
        for tries_left in reversed(range(_TRIES)):
            try:
                await run_short_transaction(
                    partial(self._store.record, *facts), is_remote=self._store.is_remote
                )
            except StoreLockedError:
                # A server has already been waited for as long.
                if not tries_left or self._store.is_remote:
                    raise
            else:
                return
