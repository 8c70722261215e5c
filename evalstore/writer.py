"""The one writer of an execution: facts are committed in order, as soon as they come.

What comes while a commit is under way is committed together with the next one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalstore import hashing

if TYPE_CHECKING:
    from evalstore.store import Store
    from evalstore.values import Evaluation, Failure, Session


class Writer:
    """Commits what it is given; what cannot be committed is kept, and tried again at the end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, tuple[Session, str]] = {}
        self._evaluations: dict[str, tuple[Evaluation, str]] = {}
        self._failures: list[Failure] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._committed: asyncio.Future[None] | None = None
        """Of what has been taken since the last commit."""

    def put_session(self, session: Session) -> str:
        """Take a session to be stored; returns its id."""
        id, content = hashing.identify(hashing.describe_session(session))
        self._sessions[id] = (session, content)
        self._wake.set()
        return id

    def put_evaluation(self, evaluation: Evaluation) -> str:
        """Take an evaluation to be stored; returns its id."""
        id, content = hashing.identify(hashing.describe_evaluation_result(evaluation))
        self._evaluations[id] = (evaluation, content)
        self._wake.set()
        return id

    def put_failure(self, failure: Failure) -> None:
        """Take a failure to be logged."""
        self._failures.append(failure)
        self._wake.set()

    async def run(self) -> None:
        """Commit until closed; raises `StoreError` when that fails."""
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            await self._commit()

    async def settled(self) -> None:
        """Wait until all that was taken so far is in the store."""
        if self._committed is None:
            self._committed = asyncio.get_running_loop().create_future()
        self._wake.set()
        await asyncio.shield(self._committed)

    async def finish(self, running: asyncio.Task[None]) -> None:
        """Commit the rest and end; `running` is the task of `run`."""
        self._closing = True
        self._wake.set()
        await asyncio.gather(running, return_exceptions=True)
        await self._commit()

    async def _commit(self) -> None:
        batch = (self._sessions, self._evaluations, self._failures)
        committed, self._committed = self._committed, None
        self._sessions, self._evaluations, self._failures = {}, {}, []
        try:
            if any(batch):
                await asyncio.to_thread(self._store.record, *batch)
            if committed is not None:
                committed.set_result(None)
        except BaseException:
            self._sessions = {**batch[0], **self._sessions}
            self._evaluations = {**batch[1], **self._evaluations}
            self._failures = [*batch[2], *self._failures]
            raise
