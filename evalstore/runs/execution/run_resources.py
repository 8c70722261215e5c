"""The resources that the plans of one run share, and their jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from evalstore.core.results import Session
from evalstore.planning.cells import Cell
from evalstore.planning.plan import Plan, PlannedAsk
from evalstore.runs.execution.candidates import CandidateCaller
from evalstore.runs.execution.content_cache import ContentCache
from evalstore.runs.execution.evaluators import EvaluatorCaller
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.limits.accounting import Accounting
from evalstore.runs.execution.model_calls import Endpoint, ModelCaller, RunEnvironment
from evalstore.runs.execution.sharing.work_sharing import Item, WorkSharing, lease_key_of
from evalstore.runs.execution.writer import Writer, run_in_thread

StopsAt = Callable[["Cell", "Plan", "ExecutionCounts"], bool]
"""Whether the verdict on a cell of a plan ends the run."""


@dataclass(frozen=True, slots=True)
class RunEndpoints:
    """The models that a run may call: candidates by display id, judges by evaluator id."""

    candidates: Mapping[str, Endpoint]
    judges: Mapping[str, Endpoint]

    def all(self) -> tuple[Endpoint, ...]:
        """Return all endpoints; several may share a provider or an account."""
        return (*self.candidates.values(), *self.judges.values())

    def account_of(self, item: Item) -> str:
        """Return the name of the account that an item's calls are counted for."""
        if isinstance(item, PlannedAsk):
            return self.candidates[item.cell.candidate.id].account.name
        assert item.judge is not None
        return self.judges[item.judge.evaluator].account.name


class Job(NamedTuple):
    """An answer or judgement to get, with all its calls."""

    item: Item
    sleeps: int
    """The number of sleeps of this process when the item was claimed."""
    session: Session | None = None
    """The session to judge, if it is a single one and still in memory."""


_current_job: ContextVar[Job] = ContextVar("_current_job")
"""The job of the current task."""


class JobLeases:
    """Checks whether this run still has the lease of a job.

    Other runs may take over the jobs of a process that has slept for a long time.
    """

    def __init__(self, sharing: WorkSharing, writer: Writer) -> None:
        self._sharing = sharing
        self._writer = writer
        self.may_go_on: Callable[[], Awaitable[bool]] | None = None
        """Called after a sleep: returns whether the run of several runners goes on."""
        self._asked_at = 0
        """The number of sleeps when it was last called."""

    def count_sleeps(self) -> int:
        """Return how often this process has slept; call it before items are claimed."""
        return self._sharing.presence.count_sleeps()

    def job(self, item: Item, session: Session | None = None, sleeps: int | None = None) -> Job:
        """Return a job for an item, which was claimed after so many sleeps, or just now."""
        return Job(item, self.count_sleeps() if sleeps is None else sleeps, session)

    async def begin(self, job: Job) -> bool:
        """Set the job of the current task, and return whether it `is_ours`."""
        _current_job.set(job)
        return await self.is_ours()

    def has_slept_since(self, job: Job) -> bool:
        """Return whether this process slept so long that another run may have taken over a job."""
        return job.sleeps != self._sharing.presence.count_sleeps()

    def may_be_lost(self, job: Job) -> bool:
        """Return whether this process has slept, so that `is_ours` must tell."""
        sleeps = self._sharing.presence.count_sleeps()
        return sleeps != job.sleeps or (self.may_go_on is not None and sleeps != self._asked_at)

    async def is_ours(self) -> bool:
        """Return whether no other run took over the current job while this process slept."""
        job = _current_job.get()
        sleeps = self._sharing.presence.count_sleeps()
        if self.may_go_on and sleeps != self._asked_at:
            # Others may have recorded the run, even if this job was claimed after the sleep.
            if not await self.may_go_on():
                return False
            self._asked_at = sleeps
        if not self.has_slept_since(job):
            return True
        await self._writer.flush()
        return await run_in_thread(partial(self._sharing.leases.has, lease_key_of(job.item)))


@dataclass(frozen=True, slots=True)
class RunResources:
    """The resources that the plans of one run share."""

    environment: RunEnvironment
    endpoints: RunEndpoints
    calls: ModelCaller
    accounting: Accounting
    sharing: WorkSharing
    leases: JobLeases
    contents: ContentCache
    candidates: CandidateCaller
    evaluators: EvaluatorCaller
    stops_at: StopsAt | None
    halt: Callable[[], None]
    """Called to start no more work, in this plan and those after it."""
    failures: Counter[str]
    """Key -> how often it has failed in this run."""
