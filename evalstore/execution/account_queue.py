"""One account's work, done as fast as its pace allows; accounts do not wait for each other.

A lane takes what is urgent first, then what it has fetched. It fetches a little more than it
can do at once, so that a plan of any length keeps few jobs in memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from evalstore.execution.rate_limiter import RateLimiter

J = TypeVar("J")


class AccountQueue(Generic[J]):
    """The jobs of one account."""

    def __init__(
        self,
        pace: RateLimiter,
        work: Callable[[J], Awaitable[None]],
        fetch: Callable[[int], Awaitable[list[J] | None]],
        changed: Callable[[], None],
    ) -> None:
        """`fetch` brings up to so many jobs, or None when there are none left."""
        self.pace = pace
        self._work = work
        self._fetch = fetch
        self._changed = changed
        self._urgent: deque[J] = deque()
        self._fetched: deque[J] = deque()
        self._fetching = False
        self._dry = False
        self._halted = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.error: BaseException | None = None
        """What ended a job that should not have ended so: a bug, or an unusable store."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, and nothing is left to begin."""
        left = not self._halted and (self._urgent or self._fetched or not self._dry)
        return not self.tasks and not left

    @property
    def backlog(self) -> int:
        """How many urgent jobs wait."""
        return len(self._urgent)

    def put(self, jobs: list[J]) -> None:
        """Do these before anything that is fetched."""
        self._urgent.extend(jobs)
        self.start()

    def start(self) -> None:
        """Begin as many jobs as there is room for."""
        if self._halted:
            return
        while self.pace.has_room and (job := self._next()) is not None:
            self.pace.busy += 1
            self._spawn(self._do(job))
        if not self._dry and not self._fetching and len(self._fetched) < self.pace.limit:
            self._fetching = True
            self._spawn(self._fetch_more())

    def halt(self) -> None:
        """Begin nothing more."""
        self._halted = True

    def _next(self) -> J | None:
        jobs = self._urgent or self._fetched
        return jobs.popleft() if jobs else None

    async def _do(self, job: J | None) -> None:
        """Do a job, and others after it as long as this place is wanted."""
        try:
            while job is not None:
                await self._work(job)
                self.start()
                wanted = not self._halted and self.pace.busy <= self.pace.limit
                job = self._next() if wanted else None
        finally:
            self.pace.busy -= 1

    async def _fetch_more(self) -> None:
        jobs = await self._fetch(max(16, 2 * self.pace.limit))
        self._fetching = False
        if jobs is None:
            self._dry = True
        else:
            self._fetched.extend(jobs)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[None]) -> None:
        assert isinstance(task, asyncio.Task)
        self.tasks.discard(task)
        if task.cancelled():
            self._halted = True
        elif error := task.exception():
            self._halted = True
            self.error = self.error or error
        self.start()
        self._changed()
