"""The loop of one plan: the queue of each account is processed until nothing is left.

The jobs that follow from a job (judgements of its answer, or of a complete group) are queued
before it ends. The plan is therefore done when all queues are idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from evalstore.core import hashing
from evalstore.planning.plan import CHECKS, PlannedAsk, PlannedJudgement
from evalstore.runs.execution.item_source import OwnOrder, WorkSource
from evalstore.runs.execution.judgement_queue import JudgementQueue
from evalstore.runs.execution.limits.account_queue import AccountQueue
from evalstore.runs.execution.model_calls import CallFailed, LeaseLostError
from evalstore.runs.execution.plan_progress import PlanProgress, group_by_account
from evalstore.runs.execution.sharing.work_sharing import Item, lease_key_of

if TYPE_CHECKING:
    from evalstore.core.results import Session
    from evalstore.planning.cells.cells import Cell, Subject
    from evalstore.planning.plan import Plan
    from evalstore.runs.execution.event_loop_fairness import BurstLimit
    from evalstore.runs.execution.judgement_queue import DueSubjects
    from evalstore.runs.execution.run_resources import Job, RunResources


_SESSIONS_IN_MEMORY = 64
"""The most answers that wait for their judge in memory; others are read again."""

T = TypeVar("T")


class PlanExecution:
    """Carries out one plan."""

    def __init__(self, resources: RunResources, plan: Plan, bursts: BurstLimit) -> None:
        self._resources = resources
        self._accounting = resources.accounting
        self._writer = resources.accounting.writer
        self._leases = resources.leases
        self._bursts = bursts
        self._progress = PlanProgress(plan, resources.accounting.outcome, resources.failures)
        self._judgements = JudgementQueue(resources, self._progress)
        self._finished = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None
        """The task that makes missing checks of stored sessions; None before the plan is begun."""
        self._items = self._item_source(plan)
        accounts = {
            endpoint.account.name: endpoint.account for endpoint in resources.endpoints.all()
        }
        self._queues = {
            name: AccountQueue(
                resources.calls.rate_limiter(account),
                self._work,
                self._fetcher(name),
                self._finish_if_done,
            )
            for name, account in accounts.items()
        }

    # --- the loop

    async def run(self, writing: asyncio.Task[None], heartbeat: asyncio.Task[None]) -> None:
        """Carry out the plan as far as possible; raises `StoreError` when results cannot be stored.

        It ends early when one of these tasks ends. When it is cancelled, calls in flight are
        cancelled, and finished results are stored.
        """
        checking = self._checking = asyncio.create_task(self._check_stored())
        checking.add_done_callback(lambda _: self._finish_if_done())
        sharing = asyncio.create_task(self._take_over())
        finished = asyncio.create_task(self._finished.wait())
        for queue in self._queues.values():
            queue.start()
        self._finish_if_done()
        try:
            necessary = {writing, heartbeat, sharing}
            await asyncio.wait({finished, *necessary}, return_when=asyncio.FIRST_COMPLETED)
            for task in (checking, *necessary):
                if task.done():
                    task.result()
            for queue in self._queues.values():
                if queue.error:
                    raise queue.error
        finally:
            await self._stop({finished, sharing, checking})
            stored = asyncio.ensure_future(self._writer.flush())
            await wait_uninterrupted(
                asyncio.wait({stored, writing}, return_when=asyncio.FIRST_COMPLETED)
            )
            stored.cancel()

    async def _stop(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Cancel these tasks and those of the queues."""
        for queue in self._queues.values():
            queue.halt()
        tasks = tasks.union(*(queue.tasks for queue in self._queues.values()))
        for task in tasks:
            task.cancel()
        await wait_uninterrupted(asyncio.gather(*tasks, return_exceptions=True))
        self._queues.clear()  # they refer to this object: without the cycle its memory is freed

    def halt(self) -> None:
        """Begin no more jobs; calls in flight may finish."""
        for queue in self._queues.values():
            queue.halt()
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        """End the loop if nothing is left to do or an error has occurred."""
        queues, checking = self._queues.values(), self._checking
        if checking is None:
            return
        is_waiting = not self._resources.calls.is_halted() and (
            self._resources.sharing.is_waiting or not checking.done()
        )
        failed = checking.done() and not checking.cancelled() and checking.exception() is not None
        if (
            failed
            or any(queue.error for queue in queues)
            or (not is_waiting and all(queue.is_idle for queue in queues))
        ):
            self._finished.set()

    # --- filling the queues

    def _fetcher(self, account: str) -> Callable[[int], Awaitable[list[Job] | None]]:
        """Return a function that claims up to a number of next items, None if none are left."""

        async def fetch(count: int) -> list[Job] | None:
            batch = await self._items.take(account, count)
            return await self._claim(batch) if batch else None

        return fetch

    def _item_source(self, plan: Plan) -> OwnOrder | WorkSource:
        resources, sharing = self._resources, self._resources.sharing
        planned = group_by_account(plan, resources.endpoints.account_of)
        if not sharing.offers_work:
            return OwnOrder(sharing, self._progress, planned)
        accounts = {end.account.name: end.account.place for end in resources.endpoints.all()}
        halted = resources.calls.is_halted
        return WorkSource(sharing, self._progress, planned, accounts.__getitem__, halted)

    async def _claim(self, items: Sequence[Item]) -> list[Job]:
        """Claim items; returns jobs for those that are open and that no other run works on."""
        # While the answer of the store is on its way, the process may sleep and lose the items.
        sleeps = self._leases.count_sleeps()
        claimed = await self._resources.sharing.claim(items)
        self._resources.contents.add(claimed.contents)
        self._read_evaluations(item for item in claimed.items if isinstance(item, PlannedAsk))
        jobs: list[Job] = []
        for item in claimed.items:
            self._progress.begin(lease_key_of(item), item.count)
            jobs += [self._leases.job(item, sleeps=sleeps)] * item.count
            if isinstance(item, PlannedJudgement):
                self._judgements.add(item)
        for key in claimed.done:
            self._writer.release_lease(key)
        judgements = await self._judgements.judge_others(claimed.sessions)
        await self._judge_groups()
        return jobs + (await self._claim(judgements) if judgements else [])

    def _read_evaluations(self, asks: Iterable[PlannedAsk]) -> None:
        """Read the evaluation versions of other cells that share these questions."""
        evaluations = {
            cell.case.evaluation: None
            for ask in asks
            for cell in self._progress.cells_of(ask.question_id)
            if cell is not ask.cell
        }
        self._resources.contents.read_evaluations(id for id in evaluations if id is not None)

    async def _take_over(self) -> None:
        """Claim the work of other runs that have ended; their results count."""
        sharing = self._resources.sharing
        while True:
            await sharing.until_others_may_be_done()
            jobs = await self._claim(sharing.take_deferred())
            sharing.end_reclaiming()
            self._put(jobs)
            self._finish_if_done()

    async def _check_stored(self) -> None:
        """Make the missing checks of stored sessions, and queue the judgements of models."""
        checks = StoredChecks(self._resources, self._judgements, self._progress)
        async for judgements in checks.make():
            self._put(await self._claim(judgements))

    async def _judge_groups(self) -> None:
        """Judge the groups whose answers are complete now."""
        if self._progress.has_answered:
            judgements = await self._judgements.judge_groups()
            if judgements:
                self._put(await self._claim(judgements))

    def _put(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._queues[self._resources.endpoints.account_of(job.item)].put([job])

    def _put_unclaimed(self, judgements: Iterable[PlannedJudgement], session: Session) -> None:
        """Queue judgements of a new answer; no other run has it yet, so leases are taken later."""
        for judgement in judgements:
            key = lease_key_of(judgement)
            self._writer.take_lease(key)
            self._progress.begin(key, judgement.count)
            queue = self._queues[self._resources.endpoints.account_of(judgement)]
            kept = session if queue.backlog < _SESSIONS_IN_MEMORY else None
            self._judgements.add(judgement)
            queue.put([self._leases.job(judgement, kept)] * judgement.count)

    # --- work

    async def _work(self, job: Job) -> None:
        """Do one job, and queue the jobs that follow from it."""
        self._leases.enter(job)
        if not await self._leases.is_ours():
            await self._claim_again(job)
            return
        try:
            if isinstance(job.item, PlannedAsk):
                await self._ask(job, job.item)
            else:
                await self._judgements.judge(job.item, job.session)
                self._finish_call(lease_key_of(job.item))
        except LeaseLostError:
            await self._claim_again(job)
            return
        if self._accounting.outcome.over_budget:
            self._resources.halt()
        # The next call is made when the reply to this one is in the store.
        await self._writer.flush()
        await self._judge_groups()

    async def _ask(self, job: Job, ask: PlannedAsk) -> None:
        question = ask.question_id
        newest = self._progress.plan.newest.get(question, 0)
        try:
            session = await self._resources.candidates.ask(ask, newest)
        except CallFailed as failed:
            model = self._resources.endpoints.candidates[ask.cell.candidate.id].model.id
            self._progress.fail(question)
            self._accounting.add_failure(failed, question=question, model=model)
        else:
            if ask.count == 1 and self._leases.has_slept_since(job):
                # The answer is paid, so it is kept, but does not replace that of the other run.
                started = max(self._resources.environment.now(), newest + 1)
                self._accounting.add_surplus_session(replace(session, started=started))
                await self._claim_again(job)
                return
            try:
                await self._bursts.wait()
            finally:  # the answer is paid, so it is stored even when the run is cancelled
                id = self._accounting.add_session(question, session)
                judgements = await self._judgements.judge_new(question, id, session)
                self._put_unclaimed(judgements, session)
        self._finish_call(question)

    async def _claim_again(self, job: Job) -> None:
        """Claim a job again that another run may have taken over."""
        key = lease_key_of(job.item)
        await self._writer.flush()
        if job.item.count > 1:
            self._finish_call(
                key
            )  # other jobs of the item may be in progress: the next run does the rest
        else:
            self._progress.abandon(key)
            self._put(await self._claim([job.item]))

    def _finish_call(self, key: str) -> None:
        """Note that an answer or judgement with this key has arrived or failed."""
        if not self._progress.finish_call(key):
            return
        if self._progress.is_question(key):
            for answer in self._progress.take_oldest(key):
                self._put_unclaimed(self._judgements.judge_oldest(answer), answer.session)
            self._progress.add_answered(key)
        self._writer.release_lease(key)


async def wait_uninterrupted(work: Awaitable[T]) -> T:
    """Wait until `work` has ended, even when the waiting task is cancelled."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


# --- makes the missing checks of stored sessions; runners of one run divide them


_AT_ONCE = 200
"""The number of subjects whose sessions are read together."""
_CLAIMED_AT_ONCE = 16
"""The number of subjects that are claimed together: their checks may be slow."""
_LOOK_SECONDS = 0.2
"""Seconds until it is checked again whether other runners have made their checks."""


class StoredChecks:
    """The checks of stored sessions in one plan."""

    def __init__(
        self, resources: RunResources, judgements: JudgementQueue, progress: PlanProgress
    ) -> None:
        self._sharing = resources.sharing
        self._writer = resources.accounting.writer
        self._is_halted = resources.calls.is_halted
        self._judgements = judgements
        self._progress = progress

    async def make(self) -> AsyncIterator[list[PlannedJudgement]]:
        """Make the checks, some at a time; yields the judgements that are left to models."""
        if not self._sharing.is_expected:
            for due in self._judgements.stored_due(_AT_ONCE):
                if self._is_halted():
                    return
                yield await self._judgements.judge_stored(due)
            return
        left: dict[Subject, list[Cell]] = {}
        for due in self._judgements.stored_due(_CLAIMED_AT_ONCE, self._sharing.starting_place):
            if self._is_halted():
                return
            yield await self._make_claimed(due, left)
        while left and not self._is_halted():
            await asyncio.sleep(_LOOK_SECONDS)
            due, left = left, {}
            yield await self._make_claimed(due, left)

    async def _make_claimed(
        self, due: DueSubjects, left: dict[Subject, list[Cell]]
    ) -> list[PlannedJudgement]:
        """Make the checks of subjects that no other runner works on; the others are added to left.

        Those of a runner whose process is stopped stay as they are.
        """
        keys = {_key_of(subject): subject for subject in due}
        claimed = await self._sharing.claim_subjects([*keys])
        left |= {keys[key]: due[keys[key]] for key in claimed.held}
        ours = {keys[key]: due[keys[key]] for key in keys if key in claimed.granted}
        if not ours:
            return []
        subjects = [hashing.subject_of(ids) for ids in ours]
        self._sharing.find_new_votes(
            {subject: self._progress.votes(subject) for subject in subjects}
        )
        judgements = await self._judgements.judge_stored(ours)
        for key in claimed.granted:
            self._writer.release_lease(key)
        return judgements


def _key_of(subject: Subject) -> str:
    return hashing.hash_content(f"{hashing.subject_of(subject)} {CHECKS}")
