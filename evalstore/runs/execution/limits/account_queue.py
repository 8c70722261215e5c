"""Processes the jobs of one account as fast as its rate limiter allows, independent of others.

Urgent jobs are processed first, then fetched ones. Only a few more jobs are fetched than can run at
once, so that plans of any length need little memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from evalstore.runs.execution.limits.rate_limiter import RateLimiter

J = TypeVar("J")


class AccountQueue(Generic[J]):
    """The jobs of one account."""

    def __init__(
        self,
        limiter: RateLimiter,
        work: Callable[[J], Awaitable[None]],
        fetch: Callable[[int], Awaitable[list[J] | None]],
        on_change: Callable[[], None],
    ) -> None:
        """`fetch` returns up to this many jobs, or None when there are none left.

        `on_change` is called when a job has ended, or jobs were fetched.
        """
        self.limiter = limiter
        self._work = work
        self._fetch = fetch
        self._on_change = on_change
        self._urgent: deque[J] = deque()
        self._fetched: deque[J] = deque()
        self._fetching = False
        self._exhausted = False
        self._halted = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.error: BaseException | None = None
        """The exception of a job that failed because of a bug or an unusable store."""

    @property
    def is_idle(self) -> bool:
        """Return whether no job is in progress, and none is left to begin."""
        remaining = not self._halted and (self._urgent or self._fetched or not self._exhausted)
        return not self.tasks and not remaining

    @property
    def backlog(self) -> int:
        """Return how many urgent jobs wait."""
        return len(self._urgent)

    def put(self, jobs: list[J]) -> None:
        """Add urgent jobs, which are done before those that are fetched."""
        self._urgent.extend(jobs)
        self.start()

    def start(self) -> None:
        """Begin as many jobs as may run at once."""
        if self._halted:
            return
        while self.limiter.has_room and (job := self._next()) is not None:
            self.limiter.busy += 1
            self._spawn(self._work_on(job))
        if not self._exhausted and not self._fetching and len(self._fetched) < self.limiter.ahead:
            self._fetching = True
            self._spawn(self._fetch_more())

    def halt(self) -> None:
        """Begin no more jobs."""
        self._halted = True

    def _next(self) -> J | None:
        jobs = self._urgent or self._fetched
        return jobs.popleft() if jobs else None

    async def _work_on(self, job: J | None) -> None:
        """Do a job, and more jobs after it while this many may run at once."""
        try:
            while job is not None:
                await self._work(job)
                self.start()
                goes_on = not self._halted and self.limiter.busy <= self.limiter.limit
                job = self._next() if goes_on else None
        finally:
            self.limiter.busy -= 1

    async def _fetch_more(self) -> None:
        ahead = self.limiter.ahead
        jobs = await self._fetch(2 * ahead if ahead < self.limiter.limit else max(16, 2 * ahead))
        self._fetching = False
        if jobs is None:
            self._exhausted = True
        else:
            self._fetched.extend(jobs)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Future[None]) -> None:
        assert isinstance(task, asyncio.Task)
        self.tasks.discard(task)
        if task.cancelled():
            self._halted = True
        elif error := task.exception():
            self._halted = True
            self.error = self.error or error
        self.start()
        self._on_change()
