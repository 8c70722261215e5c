"""Executes plans: makes calls within limits, and stores sessions and evaluations.

Each answer is stored and judged as soon as it arrives. A failure is logged, and its answer stays
missing, so that the next run asks for it again. A lease is taken on each question and judgement
first, so that runs on one store share the work. The clock and randomness are arguments.

The queue of each account is processed until nothing is left of a plan. The jobs that follow from a
job (judgements of its answer, or of a complete group) are queued before it ends. The plan is
therefore done when all queues are idle.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from evalstore.core import batches, hashing
from evalstore.core.errors import NotRunError, StoreError
from evalstore.core.hashing import subject_of
from evalstore.core.values import Failure, Session, Vote
from evalstore.planning.cells import Cell, Subject
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement, missing_judgements
from evalstore.runs.execution.candidates import CandidateCaller, ContentCache
from evalstore.runs.execution.evaluators import Allows, CodeChecks, EvaluatorCaller
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.limits.accounting import Accounting
from evalstore.runs.execution.limits.budget import SharedBudget
from evalstore.runs.execution.limits.rate_limiter import RateLimiter
from evalstore.runs.execution.model_calls import (
    CallFailed,
    Endpoint,
    LeaseLostError,
    Limits,
    ModelCaller,
    ModelKey,
    RunEnvironment,
)
from evalstore.runs.execution.sharing.run_share import SharedWork, ShareWriter, is_halted_by
from evalstore.runs.execution.sharing.work_sharing import Item, WorkSharing, lease_key_of
from evalstore.runs.execution.writer import run_in_thread
from evalstore.store import Store
from evalstore.store.driver import PATIENCE_SECONDS
from evalstore.store.events import OutputTokens
from evalstore.store.leases import ENDED, LEADS, RECORDS, OfferedItem, WorkRows
from evalstore.store.shared_runs import RunShare

__all__ = ["Endpoint", "ExecutionCounts", "Executor", "Limits", "RunEnvironment"]

_FIRST_LOOK, _LONGEST_LOOK = 0.2, 2.0
"""Seconds until it is checked again whether other runners have ended, or have taken items."""
_CLAIMED_AT_ONCE = 16
"""The number of subjects that are claimed together: their checks may be slow."""
_LOOK_SECONDS = 0.2
"""Seconds until it is checked again whether other runners have made their checks."""
_PER_ITERATION = 8
"""The number of answers that are taken in one iteration of the event loop: others wait."""
T = TypeVar("T")

StopsAt = Callable[["Cell", "Plan", "ExecutionCounts"], bool]
"""Whether the verdict on a cell of a plan ends the run."""


class Job(NamedTuple):
    """An answer or judgement to get, with all its calls."""

    item: Item
    sleeps: int
    """The number of sleeps of this process when the item was claimed."""
    session: Session | None = None
    """The session to judge, if it is a single one and still in memory."""


_current_job: ContextVar[Job] = ContextVar("_current_job")
"""The job of the current task."""


class Executor:
    """Executes plans, one after the other, as an asynchronous context manager.

    When the context ends, everything is stored and all leases are released.
    """

    leaves_run = False
    """Whether another runner will record the shared run."""
    _writing: asyncio.Task[None]
    _heartbeat: asyncio.Task[None]
    _outages: asyncio.Task[None]
    """The tasks in the background, while the context is open."""

    def __init__(
        self,
        store: Store,
        candidates: Mapping[str, Endpoint],
        judges: Mapping[str, Endpoint],
        limits: Limits,
        environment: RunEnvironment,
        stops_at: StopsAt | None = None,
        allows: Allows = lambda _sha256, _network: False,
        shared: SharedWork | None = None,
    ) -> None:
        """`candidates` are by display id, `judges` by evaluator id.

        The run is halted at the first cell for which `stops_at` is true. Checks run the Python
        files for which `allows` is true. `shared` is the run of which this is one runner.
        """
        self.environment, self.stops_at = environment, stops_at
        self.answering, self.judging = candidates, judges
        self._endpoints = (*candidates.values(), *judges.values())
        self.accounts = {end.account.name: end.account for end in self._endpoints}
        self.sharing = WorkSharing(store, environment, is_expected=shared is not None)
        self.accounting = Accounting(store, environment, self.sharing.runner)
        self.writer, self.outcome = self.accounting.writer, self.accounting.outcome
        self._shared, self._store = shared, store
        self._share = self._make_share()
        self.calls = self._make_caller(limits)
        self.contents = ContentCache(store)
        self._python_checks = CodeChecks(self.contents, allows)
        callers = (self.contents, self.calls, self.accounting, environment)
        self.candidates = CandidateCaller(candidates, *callers)
        self.evaluators = EvaluatorCaller(
            judges, *callers, limits.judge_tokens, self._python_checks
        )
        self.failures = Counter[str]()
        """Key -> how often it has failed in this run."""
        self.bursts = asyncio.Semaphore(_PER_ITERATION)
        """Limits how many answers are taken before other tasks have their turn."""
        self._asked_at = 0
        """The number of sleeps of this process when others had last told of the shared run."""
        self._shown = Counter[str]()
        """What the other runners of a shared run had done when it was last shown."""
        self._records = False
        """Whether this runner has begun a shared run and will record it now."""
        self._execution: PlanExecution | None = None
        """The execution of the current plan; None between plans."""

    def _make_share(self) -> ShareWriter | None:
        """Return what writes the share of this runner; None if the run is not shared."""
        if not self._shared:
            return None
        runner = self.sharing.runner
        share = ShareWriter(self._store, self._shared, runner, self.outcome, self.halt)
        self.sharing.presence.on_beat = self._note_progress
        self.writer.describe_counts = share.describe
        self.writer.note_stored = share.note_stored
        self.writer.exclusive = share.writing
        return share

    def _make_caller(self, limits: Limits) -> ModelCaller:
        """Return what makes the calls; with a limit, it knows how long answers are."""
        budget = None
        if self._share and self._shared and self._shared.cost_limit is not None:
            limit = self._shared.cost_limit  # of all runners together
            budget = SharedBudget(self._share, limit, self.sharing.find_alive)
        caller = ModelCaller(limits, self.environment, self._is_ours, budget)
        is_limited = budget is not None or limits.max_cost is not None
        accounts = map(caller.rate_limiter, self.accounts.values())
        if is_limited or any(account.tokens_per_minute < math.inf for account in accounts):
            answering = [
                (hashing.identify(hashing.describe_model(end.version))[0], end.key)
                for end in self.answering.values()
            ]
            judging = [(id, end.key) for id, end in self.judging.items()]
            # Of one that answers and judges, the larger numbers count.
            sizes: dict[ModelKey, OutputTokens] = {}
            for kind, makers in (("session", answering), ("judgement", judging)):
                found = self._store.find_output_tokens(kind, [id for id, _ in makers])
                for id, key in makers:
                    tokens, known = found.get(id), sizes.get(key, OutputTokens(0, 0))
                    if tokens:
                        most = max(known.most, tokens.most)
                        sizes[key] = OutputTokens(max(known.mean, tokens.mean), most)
            caller.note_outputs(sizes)
        return caller

    async def __aenter__(self) -> Self:
        """Start the background tasks."""
        limiters = [
            (account.place, self.calls.rate_limiter(account)) for account in self.accounts.values()
        ]
        if limited := [placed for placed in limiters if placed[1].is_limited]:
            await self.sharing.presence.share_accounts(limited)
        if self._share:
            # From now on the one that records the run waits for this runner.
            await asyncio.to_thread(self.sharing.leases.register)
            await self._share.write()
            if self._shared and not self._shared.leads:
                self._shown = _sum_up(await self.find_shares())
        self._writing = asyncio.create_task(self.writer.run())
        self._heartbeat = asyncio.create_task(self.sharing.presence.keep_alive())
        outages = _tell_of_outages(self._store, self.environment.listener.note)
        self._outages = asyncio.create_task(outages)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Store finished results, release all leases and close the providers."""
        ended = {self._heartbeat, self._outages}
        for task in ended:
            task.cancel()
        await wait_uninterrupted(asyncio.wait(ended))
        self._python_checks.close()
        try:
            await wait_uninterrupted(self.writer.finish(self._writing))
        finally:
            try:
                if self._share and (kind or self.leaves_run):
                    with suppress(StoreError):  # nor can the leases be released then
                        await wait_uninterrupted(self._share.leave())
                await wait_uninterrupted(
                    asyncio.to_thread(self.sharing.release_all, stays=self._records)
                )
            finally:
                providers = {id(each.provider): each.provider for each in self._endpoints}
                for provider in providers.values():
                    await provider.close()

    async def carry_out(self, plan: Plan) -> None:
        """Carry out a plan as far as possible; raises `StoreError` when results cannot be stored.

        The outcome's sessions, votes and costs are those of this plan. When it is cancelled, calls
        in flight are cancelled, and finished results are kept.
        """
        self.sharing.open(plan)
        self.outcome.sessions.clear()
        self.outcome.votes.clear()
        self.outcome.costs.clear()
        if self.is_halted:
            return
        self._execution = PlanExecution(self, plan)
        try:
            await self._execution.run(self._writing, self._heartbeat)
        finally:
            self._execution = None

    async def finish_shared(self) -> list[RunShare] | None:
        """Wait for the other runners of a shared run; returns their shares if it is complete.

        A runner that has joined does not wait for the one that has begun the run, if that is alive
        and will record it: the result is None. Nor does it wait for those at work when it was
        interrupted, or when the run is recorded meanwhile. It leaves them the run after a sign of
        life from them: one that was just killed looks alive for a while.
        """
        assert self._share
        assert self._shared
        leads, own = self._shared.leads, self.sharing.runner
        await self.writer.flush()
        await self._share.end()
        # Others wait for what this runner has taken, and it waits for them.
        await asyncio.to_thread(self.sharing.release_items)
        was_interrupted, delay = self.outcome.interrupted, _FIRST_LOOK
        was_open, looked_at = self._share.state.is_open, math.inf
        while True:
            shares = await self._find_all_shares()
            shares.pop(own, None)
            self._show_others(shares.values())
            registered = [id for id, share in shares.items() if share.is_registered]
            alive = await asyncio.to_thread(self.sharing.leases.find_alive, registered)
            counts = {id: shares[id].counts for id in alive}
            leaders = [id for id in alive if counts[id].get(LEADS)]
            at_work = {id for id in alive if not counts[id].get(ENDED)}
            heard = {id for id in alive if alive[id] > looked_at or counts[id].get(RECORDS)}
            if not leads and (
                heard.intersection(leaders)
                or (self.outcome.interrupted and heard.intersection(at_work))
            ):
                return None
            if not at_work and not leaders:
                if not leads and was_open and own not in await self._find_all_shares():
                    return None
                if leads and self._share.state.is_open:
                    await self._share.record()
                    self._records = self._share.state.is_open
                return list(shares.values())
            if self.outcome.interrupted and not was_interrupted:
                was_interrupted = True
                await self._share.write()  # the others halt
            looked_at = min(looked_at, self.environment.uptime())
            await asyncio.sleep(delay)
            delay = min(1.5 * delay, _LONGEST_LOOK)

    async def find_shares(self) -> list[RunShare]:
        """Return what the other runners of the run have done."""
        shares = await self._find_all_shares()
        return [share for id, share in shares.items() if id != self.sharing.runner]

    async def _find_all_shares(self) -> dict[str, RunShare]:
        """Return what each runner of the run has done, by its id."""
        assert self._shared
        shares = await asyncio.to_thread(self._store.find_shares, self._shared.id)
        return {share.runner: share for share in shares}

    def _show_others(self, shares: Iterable[RunShare]) -> None:
        """Add what the others have done since to the progress, and what it cost."""
        now = _sum_up(shares)
        new, self._shown = now - self._shown, now
        for kind in _KINDS:
            if new[kind]:
                self.environment.listener.advance(kind, int(new[kind]))
        if new["cost"] or new["tokens"]:
            self.environment.listener.spent(new["cost"], int(new["tokens"]))

    async def _note_progress(self) -> None:
        """Note what was done so far; halt when another runner has halted the run."""
        assert self._share
        await self._share.write()
        shares = await self.find_shares()
        self._show_others(shares)
        if not self.is_halted and any(map(is_halted_by, shares)):
            self.halt()

    # --- jobs: others may take over those of a process that has slept for a long time

    async def begin(self, job: Job) -> bool:
        """Set the job of the current task, and return whether no other run took it over."""
        _current_job.set(job)
        return await self._is_ours()

    def has_slept_since(self, job: Job) -> bool:
        """Return whether this process slept so long that another run may have taken over a job."""
        return job.sleeps != self.sharing.presence.count_sleeps()

    async def _is_ours(self) -> bool:
        """Return whether no other run took over the current job while this process slept."""
        job = _current_job.get()
        sleeps = self.sharing.presence.count_sleeps()
        if self._shared and sleeps != self._asked_at:
            # Others may have recorded the run, even if this job was claimed after the sleep.
            await self._note_progress()
            if self.is_halted:
                return False
            self._asked_at = sleeps
        if not self.has_slept_since(job):
            return True
        await self.writer.flush()
        return await run_in_thread(partial(self.sharing.leases.has, lease_key_of(job.item)))

    def account_of(self, item: Item) -> str:
        """Return the name of the account that an item's calls are counted for."""
        if isinstance(item, PlannedAsk):
            return self.answering[item.cell.candidate.id].account.name
        assert item.judge is not None
        return self.judging[item.judge.evaluator].account.name

    @property
    def is_halted(self) -> bool:
        """Return whether the run is halted."""
        return self.calls.is_halted()

    def halt(self) -> None:
        """Start no more work; calls in flight may finish, and `carry_out` then ends."""
        self.calls.halt()
        if self._execution is not None:
            self._execution.halt()


_KINDS = ("asked", "judged", "failed")


def _sum_up(shares: Iterable[RunShare]) -> Counter[str]:
    """Return the numbers of all of these runners together; the cost is in USD."""
    total: Counter[str] = Counter()
    for share in shares:
        counts = share.counts
        for kind in _KINDS:
            total[kind] += counts.get(kind, 0)
        total["cost"] += counts.get("cost", 0.0) + counts.get("judge_cost", 0.0)
        for _model, _role, spent in counts.get("spending", ()):
            total["tokens"] += spent.get("input_tokens", 0) + spent.get("output_tokens", 0)
    return total


# --- tells the user when the server of the store is away, and when it is back


_OUTAGE_LOOK = 1.0
_TOLD_AFTER = 3.0
"""Seconds after which an outage is worth a message."""


async def _tell_of_outages(store: Store, tell: Callable[[str], None]) -> None:
    """Tell of each outage of some seconds, and of its end, until this is cancelled."""
    while True:
        await asyncio.sleep(_OUTAGE_LOOK)
        if store.seconds_away < _TOLD_AFTER:
            continue
        tell(f"the store does not answer: waiting for it, for up to {PATIENCE_SECONDS:g} s")
        try:
            while store.seconds_away:
                await asyncio.sleep(_OUTAGE_LOOK)
        finally:
            if not store.seconds_away:
                tell("the store answers again")


# --- carries out one plan


class PlanExecution:
    """Carries out one plan."""

    def __init__(self, run: Executor, plan: Plan) -> None:
        self._run, self._accounting, self._writer = run, run.accounting, run.writer
        self._sharing = run.sharing
        self._progress = PlanProgress(plan, run.outcome, run.failures)
        self._judgements = JudgementQueue(run, self._progress)
        self._finished = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None
        """The task that does what needs no call; None before the plan is begun."""
        self._take = _item_source(run, self._progress)
        self._queues = {
            name: AccountQueue(
                run.calls.rate_limiter(account),
                self._work,
                partial(self._fetch, name),
                self._finish_if_done,
            )
            for name, account in run.accounts.items()
        }

    # --- the loop

    async def run(self, writing: asyncio.Task[None], heartbeat: asyncio.Task[None]) -> None:
        """Carry out the plan as far as possible; raises `StoreError` when results cannot be stored.

        It ends early when one of these tasks ends. When it is cancelled, calls in flight are
        cancelled, and finished results are stored.
        """
        checking = self._checking = asyncio.create_task(self._do_stored())
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
            first = asyncio.wait({stored, writing}, return_when=asyncio.FIRST_COMPLETED)
            await wait_uninterrupted(first)
            stored.cancel()

    async def _stop(self, tasks: set[asyncio.Task[Any]]) -> None:
        """Cancel these tasks and those of the queues."""
        self.halt()
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
        is_waiting = not self._run.calls.is_halted() and (
            self._sharing.is_waiting or not checking.done()
        )
        failed = checking.done() and not checking.cancelled() and checking.exception() is not None
        failed = failed or any(queue.error for queue in queues)
        if failed or (not is_waiting and all(queue.is_idle for queue in queues)):
            self._finished.set()

    # --- filling the queues

    async def _fetch(self, account: str, count: int) -> list[Job] | None:
        """Claim up to a number of next items of an account; returns None if none are left."""
        batch = await self._take(account, count)
        return await self._claim(batch) if batch else None

    async def _claim(self, items: Sequence[Item]) -> list[Job]:
        """Claim items; returns jobs for those that are open and that no other run works on."""
        # While the answer of the store is on its way, the process may sleep and lose the items.
        sleeps = self._sharing.presence.count_sleeps()
        claimed = await self._sharing.claim(items)
        self._run.contents.add(claimed.contents)
        jobs: list[Job] = []
        recorded: list[Job] = []
        for item in claimed.items:
            self._progress.begin(lease_key_of(item), item.count)
            is_recorded = isinstance(item, PlannedAsk) and item.cell.case.recorded
            listed = recorded if is_recorded else jobs
            listed += [Job(item, sleeps)] * item.count
        for key in claimed.done:
            self._writer.release_lease(key)
        if recorded:
            await self._take_recorded(recorded)
        judgements = await self._judgements.judge_others(claimed.sessions)
        await self._judge_groups()
        return jobs + (await self._claim(judgements) if judgements else [])

    async def _take_over(self) -> None:
        """Claim the work of other runs that have ended; their results count."""
        while True:
            await self._sharing.until_others_may_be_done()
            jobs = await self._claim(self._sharing.take_deferred())
            self._sharing.end_reclaiming()
            self._put(jobs)
            self._finish_if_done()

    async def _take_recorded(self, jobs: Sequence[Job]) -> None:
        """Store recorded answers that were claimed; their slow checks are made side by side."""
        slow: list[asyncio.Task[None]] = []
        # A run that stops at a failure stores an answer when the one before it is judged.
        waits = self._run.stops_at is not None
        take, newest = self._run.candidates.take_recorded, self._progress.plan.newest
        try:
            for job in jobs:
                assert isinstance(job.item, PlannedAsk)
                if self._run.calls.is_halted():
                    break
                if not await self._run.begin(job):
                    await self._claim_again(job)
                    continue
                question = job.item.question_id
                session = take(job.item.question, newest.get(question, 0))
                cells = self._progress.single_cells(question)
                if waits or not any(self._judgements.are_slow(it, (session,)) for it in cells):
                    await self._add_answer(question, session)
                else:
                    slow.append(asyncio.create_task(self._add_answer(question, session)))
            await asyncio.gather(*slow)
        finally:
            for task in slow:
                task.cancel()
        await self._writer.flush()

    async def _judge_groups(self) -> None:
        """Judge the groups whose answers are complete now."""
        if judgements := await self._judgements.judge_groups():
            await self._queue(judgements)

    async def _queue(self, items: Sequence[Item]) -> None:
        """Claim items, and queue their jobs."""
        self._put(await self._claim(items))

    def _put(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._queues[self._run.account_of(job.item)].put([job])

    def _put_unclaimed(self, judgements: Iterable[PlannedJudgement], session: Session) -> None:
        """Queue judgements of a new answer; no other run has it yet, so leases are taken later."""
        for judgement in judgements:
            key = lease_key_of(judgement)
            self._writer.take_lease(key)
            self._progress.begin(key, judgement.count)
            queue = self._queues[self._run.account_of(judgement)]
            kept = session if queue.backlog < batches.SMALL_SIZE else None
            sleeps = self._sharing.presence.count_sleeps()
            queue.put([Job(judgement, sleeps, kept)] * judgement.count)

    # --- work

    async def _work(self, job: Job) -> None:
        """Do one job, and queue the jobs that follow from it."""
        if not await self._run.begin(job):
            await self._claim_again(job)
            return
        try:
            if isinstance(job.item, PlannedAsk):
                await self._ask(job, job.item)
            else:
                await self._judgements.judge(job.item, job.session)
                await self._finish_call(lease_key_of(job.item))
        except LeaseLostError:
            await self._claim_again(job)
            return
        if self._accounting.outcome.over_budget:
            self._run.halt()
        # The next call is made when the reply to this one is in the store.
        await self._writer.flush()
        await self._judge_groups()

    async def _ask(self, job: Job, ask: PlannedAsk) -> None:
        question = ask.question_id
        newest = self._progress.plan.newest.get(question, 0)
        try:
            session = await self._run.candidates.ask(ask, newest)
        except CallFailed as failed:
            model = self._run.answering[ask.cell.candidate.id].model.id
            self._progress.fail(question)
            self._accounting.add_failure(failed, question=question, model=model)
            await self._finish_call(question)
        else:
            if ask.count == 1 and self._run.has_slept_since(job):
                # The answer is paid, so it is kept, but does not replace that of the other run.
                started = max(self._run.environment.now(), newest + 1)
                self._writer.put_session(session._replace(started=started))
                self._accounting.outcome.asked += 1
                await self._claim_again(job)
                return
            try:
                async with self._run.bursts:
                    await asyncio.sleep(0)
            finally:  # the answer is paid, so it is stored even when the run is cancelled
                await self._add_answer(question, session)

    async def _add_answer(self, question: str, session: Session) -> None:
        """Store an answer, make its checks, and queue the judgements that are left to models."""
        id = self._accounting.add_session(question, session)
        self._progress.answers[id] = session
        await self._judge_new(id, self._progress.cells_requiring_all(question), session)
        await self._finish_call(question)

    async def _judge_new(self, id: str, cells: Iterable[Cell], session: Session) -> None:
        """Make the checks of a new answer for these cells."""
        judgements = await self._judgements.check((id,), cells, (session,))
        self._put_unclaimed(judgements, session)

    async def _claim_again(self, job: Job) -> None:
        """Claim a job again that another run may have taken over."""
        key = lease_key_of(job.item)
        await self._writer.flush()
        if job.item.count > 1:
            # Other jobs of the item may be in progress: the next run does the rest.
            await self._finish_call(key)
        else:
            self._progress.finish_call(key)
            await self._queue([job.item])

    async def _finish_call(self, key: str) -> None:
        """Note that an answer or judgement with this key has arrived or failed."""
        if not self._progress.finish_call(key):
            return
        if self._progress.is_question(key):
            for cell, id, session in self._progress.take_oldest(key):
                await self._judge_new(id, [cell], session)
            self._progress.add_answered(key)
        self._writer.release_lease(key)

    # --- what needs no call: recorded answers, and the checks of stored sessions

    async def _do_stored(self) -> None:
        """Store recorded answers, make missing checks, and queue the judgements of models."""
        asks = [ask for ask in self._progress.plan.asks if ask.cell.case.recorded]
        part = self._sharing.starting_place() if asks else 0.0
        for batch in batches.in_batches(self._progress.take_open(_rotate(asks, part))):
            if not self._run.calls.is_halted():
                await self._queue(batch)
        at_once = _CLAIMED_AT_ONCE if self._sharing.is_expected else batches.SMALL_SIZE
        left: dict[Subject, list[Cell]] = {}
        for due in self._judgements.stored_due(at_once, self._sharing.starting_place):
            if not self._run.calls.is_halted():
                await self._check(due, left)
        while left and not self._run.calls.is_halted():
            await asyncio.sleep(_LOOK_SECONDS)
            due, left = left, {}
            await self._check(due, left)

    async def _check(self, due: DueSubjects, left: dict[Subject, list[Cell]]) -> None:
        """Make the checks of stored sessions; those that other runners make are added to left."""
        granted = set[str]()
        if self._sharing.is_expected:
            named = {f"{hashing.subject_of(subject)} {CHECKS}": subject for subject in due}
            keys = {hashing.hash_content(name): subject for name, subject in named.items()}
            granted, held = await self._sharing.claim_subjects([*keys])
            left |= {keys[key]: due[keys[key]] for key in held}
            due = {keys[key]: due[keys[key]] for key in keys if key in granted}
            self._judgements.find_new_votes(due)
        judgements = await self._judgements.judge_stored(due) if due else []
        for key in granted:
            self._writer.release_lease(key)
        await self._queue(judgements)


async def wait_uninterrupted(work: Awaitable[T]) -> T:
    """Wait until `work` has ended, even when the waiting task is cancelled."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


# --- hands out the items of a plan to the queues of accounts, in an order that several runners sh


def _rotate(items: Sequence[Item], part: float) -> Sequence[Item]:
    """Return items from a place on; `part` is the share of them before it."""
    start = int(len(items) * part)
    return [*items[start:], *items[:start]] if start else items


def _item_source(
    run: Executor, progress: PlanProgress
) -> Callable[[str, int], Awaitable[list[Item]]]:
    """Return a function that takes up to so many items of an account, and none at the end."""
    planned = group_by_account(progress.plan, run.account_of)
    if run.sharing.store.is_remote:
        return WorkSource(run, progress, planned).take
    part = run.sharing.starting_place()
    left = {name: progress.take_open(_rotate(each, part)) for name, each in planned.items()}

    async def take(account: str, count: int) -> list[Item]:
        return [*islice(left.get(account, iter(())), count)]

    return take


class WorkSource:
    """The items of a plan that are rows in the store."""

    def __init__(
        self, run: Executor, progress: PlanProgress, planned: Mapping[str, Sequence[Item]]
    ) -> None:
        """`planned` are the items by account."""
        self._sharing, self._progress, self._is_halted = run.sharing, progress, run.calls.is_halted
        self._accounts = run.accounts
        self._left = {
            account: {lease_key_of(item): item for item in items}
            for account, items in planned.items()
        }
        cells = (
            f"{cell.file} {cell.number} {cell.prompt} {' '.join(cell.questions)}"
            for cell in progress.plan.cells
        )  # so the batch has the same id in all runners
        self._rows = WorkRows(
            run.sharing.store, run.sharing.leases, hashing.hash_content("\n".join(cells))
        )
        self._offering = asyncio.Lock()
        self._failed: Mapping[str, Failure] | None = None
        """The newest failures of the questions before the items were offered; None until then."""

    async def take(self, account: str, count: int) -> list[Item]:
        """Return up to `count` items of an account; none when none are left.

        While others work on the last ones, it waits: an item of a runner that dies is free again.
        """
        left = self._left.get(account, {})
        delay = _FIRST_LOOK
        while left and not self._is_halted():
            await self._offer()
            place = self._accounts[account].place
            keys = await run_in_thread(partial(self._rows.take, place, count))
            taken = [left.pop(key) for key in keys if key in left]
            items = list(self._progress.take_open(taken))
            if unneeded := set(keys).difference(map(lease_key_of, items)):
                # A runner that planned earlier has offered what was done since; others would wait.
                await run_in_thread(partial(self._rows.delete, sorted(unneeded)))
            if items:
                return items
            if keys:
                continue
            if not await run_in_thread(partial(self._rows.is_left, place)):
                return await self._take_rest(left)
            await asyncio.sleep(delay)
            delay = min(1.5 * delay, _LONGEST_LOOK)
        return []

    async def _offer(self) -> None:
        async with self._offering:
            if self._failed is not None:
                return
            questions = [
                key
                for items in self._left.values()
                for key, item in items.items()
                if isinstance(item, PlannedAsk)
            ]
            self._failed = await asyncio.to_thread(self._sharing.store.find_failed, questions)
            offered = [
                OfferedItem(key, self._accounts[account].place)
                for account, items in self._left.items()
                for key in items
            ]
            await run_in_thread(partial(self._rows.offer, offered))

    async def _take_rest(self, left: dict[str, Item]) -> list[Item]:
        """Return items that others have done, whose results then count here.

        Those that have failed for other runners of a shared run are not tried again in it.
        """
        while left:
            keys = list(islice(left, batches.SIZE))
            items = [left.pop(key) for key in keys]
            failed: Mapping[str, Failure] = {}
            if self._sharing.is_expected:
                failed = await asyncio.to_thread(self._sharing.store.find_failed, keys)
            earlier = self._failed or {}
            for item in items:
                key = lease_key_of(item)
                if key in failed and failed[key] != earlier.get(key):
                    self._progress.fail(key, item.count)
            if found := list(self._progress.take_open(items)):
                return found
        return []


# --- queues the judgements of stored answers, of new answers, and of several answers together


DueSubjects = Mapping["Subject", list["Cell"]]
"""Subject -> the cells that may lack a judgement of it."""
Sessions = tuple["Session", ...]
"""The sessions of one subject, in its order."""


class JudgementQueue:
    """Makes the checks of a plan, and the queued judgements of models."""

    def __init__(self, run: Executor, progress: PlanProgress) -> None:
        self._run, self._accounting, self._progress = run, run.accounting, progress

    # --- checks

    def stored_due(self, at_once: int, find_start: Callable[[], float]) -> Iterator[DueSubjects]:
        """Yield the stored sessions without checks, this many at a time.

        `find_start` returns the part of them after which to begin, if there are any.
        """
        plan = self._progress.plan
        due: dict[Subject, list[Cell]] = {
            judgement.sessions: []
            for judgement in plan.judgements
            if judgement.sessions and judgement.judge is None
        }
        if not due:
            return
        for cell in plan.cells:
            for subject in cell.subjects(plan.sessions):
                if subject in due:
                    due[subject].append(cell)
        start = int(len(due) * find_start())
        subjects = iter([*islice(due, start, None), *islice(due, start)])
        while batch := list(islice(subjects, at_once)):
            yield {subject: due[subject] for subject in batch}

    async def judge_stored(self, due: DueSubjects) -> list[PlannedJudgement]:
        """Make the checks of stored sessions; returns the judgements left to models."""
        evaluations = {cell.case.evaluation for cells in due.values() for cell in cells}
        loaded, contents = await asyncio.to_thread(
            self._run.contents.load_uncached, due, evaluations
        )
        self._run.contents.add(contents)
        judgements = await self._check_all(due, loaded)
        await self._run.writer.flush()
        return judgements

    async def judge_others(
        self, sessions: Mapping[str, Mapping[str, Session]]
    ) -> list[PlannedJudgement]:
        """Make the checks of answers that other runs have stored since the plan was made.

        `sessions` are by question and id. Returns the judgements left to models.
        """
        judgements: list[PlannedJudgement] = []
        for question, loaded in sessions.items():
            if not self._run.sharing.is_expected:  # then the shares of the others tell
                self._run.environment.listener.advance("asked", len(loaded))
            counted = self._progress.plan.sessions[question]
            cells = self._progress.single_cells(question)
            due: dict[Subject, list[Cell]] = {
                (id,): [cell for cell in cells if counted.index(id) < cell.required_answers]
                for id in loaded
            }
            judgements += await self._check_all(due, loaded)
            if not self._progress.has_outstanding(question):
                self._progress.add_answered(question)
        return judgements

    async def judge_groups(self) -> list[PlannedJudgement]:
        """Make the checks of answers that are judged together and are all there by now.

        Returns the judgements left to models.
        """
        due = self._progress.take_answered()
        if not due:
            return []
        # Another run that works on the same answers may judge them, too.
        self.find_new_votes(due)
        await self._run.writer.flush()
        judgements: list[PlannedJudgement] = []
        for batch in batches.in_small_batches(due):
            judgements += await self.judge_stored({subject: due[subject] for subject in batch})
        return judgements

    def find_new_votes(self, subjects: Iterable[Subject]) -> None:
        """Let the votes of other runs on these subjects count."""
        votes = {subject: self._progress.votes(subject) for subject in map(subject_of, subjects)}
        self._run.sharing.find_new_votes(votes)

    async def _check_all(
        self, due: DueSubjects, loaded: Mapping[str, Session]
    ) -> list[PlannedJudgement]:
        judgements: list[PlannedJudgement] = []
        for ids, cells in due.items():
            judgements += await self.check(ids, cells, tuple([loaded[id] for id in ids]))
        return judgements

    async def check(
        self, ids: Subject, cells: Iterable[Cell], sessions: Sessions
    ) -> list[PlannedJudgement]:
        """Make the missing checks of a subject: they determine who judges.

        Returns the judgements that are left to models, without those that were queued before.
        """
        subject = subject_of(ids)
        judgements: list[PlannedJudgement] = []
        left_out = {*self._progress.plan.blocked}
        """Evaluation versions whose code is not trusted, or that could not be computed."""
        for cell in cells:
            if (evaluation := cell.case.evaluation) is None:
                continue
            missing = [*missing_judgements(cell, self._progress.votes(subject))]
            if missing and missing[0][0] is None:
                if evaluation in left_out or not await self._make_checks(cell, ids, sessions):
                    left_out.add(evaluation)
                    continue
                missing = []
                if "models" in cell.case.judged_by:
                    missing += missing_judgements(cell, self._progress.votes(subject))
                self._halt_at_failure(cell)
            for judge, count in missing:
                judgement = PlannedJudgement(cell, ids, judge, count)
                if self._progress.queue(lease_key_of(judgement)):
                    judgements.append(judgement)
        return judgements

    async def _make_checks(self, cell: Cell, ids: Subject, sessions: Sessions) -> bool:
        """Make the checks of a cell, and return whether that was possible.

        The answers are paid, so they are stored before slow checks. These are left to the next run
        when this one is halted. Checks that could not be run are logged.
        """
        evaluation, subject = cell.case.evaluation, subject_of(ids)
        assert evaluation is not None
        if is_slow := self.are_slow(cell, sessions):
            await self._run.writer.flush()
            if self._run.calls.is_halted():
                return False
        newest = self._progress.newest_vote(subject)
        judge = self._run.evaluators.judge_by_checks
        try:
            made = await judge(ids, sessions, evaluation, newest, is_slow=is_slow)
        except NotRunError as error:
            if not self._run.calls.is_halted():
                self._accounting.add_checks_not_run(error, subject, evaluation)
            return False
        self._accounting.add_evaluation(made)
        return True

    def are_slow(self, cell: Cell, sessions: Sessions) -> bool:
        """Return whether the checks of a cell run Python or may be slow for another reason."""
        evaluation = cell.case.evaluation
        return bool(cell.case.code) or (
            evaluation is not None and self._run.evaluators.are_slow(evaluation, sessions)
        )

    def _halt_at_failure(self, cell: Cell) -> None:
        """Halt the run if the verdict on a cell is one at which it stops."""
        progress, stops_at = self._progress, self._run.stops_at
        if stops_at and stops_at(cell, progress.plan, progress.outcome):
            progress.outcome.stopped_at_failure = True
            self._run.halt()

    # --- judgements of models

    async def judge(self, judgement: PlannedJudgement, session: Session | None) -> None:
        """Make a judgement that was queued; a failure is logged.

        `session` is its input if it is still in memory. Raises `LeaseLostError` when another run
        has taken over the judgement.
        """
        subject, judge, cell = judgement.subject, judgement.judge, judgement.cell
        assert subject
        assert judge
        assert cell.case.evaluation
        try:
            sessions = (session,) if session else await self._read(judgement.sessions)
            evaluation = await self._run.evaluators.judge_by_model(
                judge,
                judgement.sessions,
                sessions,
                cell.case.evaluation,
                self._progress.newest_vote(subject),
            )
        except CallFailed as failed:
            self._progress.fail(lease_key_of(judgement))
            self._accounting.add_failure(
                failed,
                subject=subject,
                evaluation=cell.case.evaluation,
                evaluator=judge.evaluator,
                model=self._run.judging[judge.evaluator].model.id,
            )
        except NotRunError as error:
            self._progress.fail(lease_key_of(judgement))
            self._accounting.add_checks_not_run(
                error, subject, cell.case.evaluation, judge.evaluator
            )
        else:
            self._accounting.add_evaluation(evaluation)
            self._halt_at_failure(cell)

    async def _read(self, ids: Subject) -> Sessions:
        """Return the sessions of a subject; those that the writer still has are stored first."""
        store = self._run.sharing.store
        find = partial(store.find_sessions, ids)
        found = await run_in_thread(find) if store.is_remote else find()
        if not all(id in found for id in ids):
            await self._run.writer.flush()
            found = store.load_sessions(ids)
        return tuple([found[id] for id in ids])


# --- processes the jobs of one account as fast as its rate limiter allows, independent of others


class AccountQueue:
    """The jobs of one account."""

    def __init__(
        self,
        limiter: RateLimiter,
        work: Callable[[Job], Awaitable[None]],
        fetch: Callable[[int], Awaitable[list[Job] | None]],
        on_change: Callable[[], None],
    ) -> None:
        """`fetch` returns up to this many jobs, or None when there are none left.

        `on_change` is called when a job has ended, or jobs were fetched.
        """
        self.limiter = limiter
        self._work = work
        self._fetch = fetch
        self._on_change = on_change
        self._urgent: deque[Job] = deque()
        self._fetched: deque[Job] = deque()
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

    def put(self, jobs: list[Job]) -> None:
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

    def _next(self) -> Job | None:
        jobs = self._urgent or self._fetched
        return jobs.popleft() if jobs else None

    async def _work_on(self, job: Job | None) -> None:
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


# --- the progress of a plan: outstanding, answered, queued and failed work


class PlanProgress:
    """The state of one plan while it is carried out; keys are those of `key_of`."""

    def __init__(self, plan: Plan, outcome: ExecutionCounts, failures: Counter[str]) -> None:
        """`failures` counts the failures of each key in this run; plans may share a key."""
        self.plan = plan
        self.outcome = outcome
        self._failures = failures
        self._outstanding: dict[str, int] = {}
        """Key -> how many of its answers or judgements are outstanding."""
        self._queued: set[str] = set()
        """Keys of all judgements that have been queued."""
        self.answers: dict[str, Session] = {}
        """New sessions, by id, of questions with outstanding answers."""
        self._answered: set[str] = set()
        """Questions of groups whose answers were completed since `take_answered`."""
        self._grouped: set[str] = set()
        """Questions whose answers are judged together with others."""
        self._cells: dict[str, list[Cell]] = {}
        """Question id -> the cells it answers."""
        self._single: dict[str, list[Cell]] = {}
        """Question id -> those of them that judge its answers one by one."""
        self._most_required: dict[str, int] = {}
        """Question id -> the most answers that one of these cells needs."""
        for cell in plan.cells:
            for question, _, count in cell.distinct_questions():
                self._cells.setdefault(question, []).append(cell)
                self._most_required[question] = max(count, self._most_required.get(question, 0))
            if len(cell.questions) > 1:
                self._grouped.update(cell.questions)
            else:
                self._single.setdefault(cell.questions[0], []).append(cell)

    # --- outstanding answers and judgements

    def begin(self, key: str, count: int) -> None:
        """Note that `count` answers or judgements are outstanding."""
        self._outstanding[key] = count

    def finish_call(self, key: str) -> bool:
        """Note that one answer or judgement has arrived or failed; returns if none is left."""
        self._outstanding[key] -= 1
        if self._outstanding[key]:
            return False
        del self._outstanding[key]
        return True

    def fail(self, key: str, count: int = 1) -> None:
        """Count failed answers or judgements, also of another runner: they are not tried again."""
        self._failures[key] += count

    def queue(self, key: str) -> bool:
        """Note that a judgement is queued; returns False if it already was."""
        if key in self._queued:
            return False
        self._queued.add(key)
        return True

    def take_open(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items that are still open with their open counts, and queue their judgements.

        Answers and judgements that have failed in this run are not tried again.
        """
        for item in items:
            if isinstance(item, PlannedAsk):
                if (count := item.count - self._failures[item.question_id]) > 0:
                    yield replace(item, count=count) if count < item.count else item
            elif (key := lease_key_of(item)) not in self._failures and self.queue(key):
                yield item

    # --- questions and their cells

    def is_question(self, key: str) -> bool:
        """Return whether a key is that of a question, not of a judgement."""
        return key in self._cells

    def has_outstanding(self, question: str) -> bool:
        """Return whether answers to a question are outstanding."""
        return question in self._outstanding

    def single_cells(self, question: str) -> Sequence[Cell]:
        """Return the cells that judge the answers to a question one by one."""
        return self._single.get(question, ())

    def cells_requiring_all(self, question: str) -> list[Cell]:
        """Return the cells among them that judge every answer."""
        most = self._most_required[question]
        return [cell for cell in self.single_cells(question) if cell.required_answers == most]

    def take_oldest(self, question: str) -> list[tuple[Cell, str, Session]]:
        """Return the answers, with ids, for cells that judge only some, once none is outstanding.

        These are the oldest answers, which are known only when all have arrived.
        """
        new = self.outcome.sessions.get(question, ())
        most = self._most_required[question]
        some = [cell for cell in self.single_cells(question) if cell.required_answers != most]
        oldest = []
        if some:
            stored = len(self.plan.sessions.get(question, ()))
            first = sorted(new, key=lambda sample: sample[:2])
            oldest = [
                (cell, sample.id, self.answers[sample.id])
                for cell in some
                for sample in first[: max(cell.required_answers - stored, 0)]
            ]
        for sample in new:
            del self.answers[sample.id]
        return oldest

    # --- questions whose answers are judged together

    def add_answered(self, question: str) -> None:
        """Note that no more answers to a question are expected."""
        if question in self._grouped:
            self._answered.add(question)

    def take_answered(self) -> dict[Subject, list[Cell]]:
        """Return the groups that can be judged now, with the cells that lack their judgement."""
        answered, self._answered = self._answered, set()
        cells = {
            (cell.file, cell.number, cell.prompt, cell.candidate.id): cell
            for question in answered
            for cell in self._cells[question]
            if len(cell.questions) > 1 and self._outstanding.keys().isdisjoint(cell.questions)
        }
        due: dict[Subject, list[Cell]] = {}
        for cell in cells.values():
            for subject in cell.subjects(self._answers_of(cell)):
                if any(missing_judgements(cell, self.votes(subject_of(subject)))):
                    due.setdefault(subject, []).append(cell)
        return due

    def _answers_of(self, cell: Cell) -> Mapping[str, Sequence[str]]:
        """Return the ids of the sessions of a cell by question, those that count first."""
        return {
            question: [
                *self.plan.sessions.get(question, ()),
                *(sample.id for sample in sorted(self.outcome.sessions.get(question, ()))),
            ]
            for question in dict.fromkeys(cell.questions)
        }

    # --- votes

    def votes(self, subject: str) -> list[Vote]:
        """Return the stored votes on a subject that count, then the new ones."""
        return [*self.plan.votes.get(subject, ()), *self.outcome.votes.get(subject, ())]

    def newest_vote(self, subject: str) -> int:
        """Return when the newest vote on a subject was made; 0 if there is none."""
        return max((vote.started for vote in self.votes(subject)), default=0)


def group_by_account(plan: Plan, account_of: Callable[[Item], str]) -> dict[str, list[Item]]:
    """Return the calls of a plan that can begin at once, by account: judgements, then questions."""
    to_check = {
        (judgement.sessions, judgement.cell.case.evaluation)
        for judgement in plan.judgements
        if judgement.judge is None
    }
    items: dict[str, list[Item]] = {}
    for judgement in plan.judgements:
        if not judgement.sessions or judgement.judge is None:
            continue  # a missing session is judged when it has arrived
        if (judgement.sessions, judgement.cell.case.evaluation) in to_check:
            continue  # whether a model judges depends on the checks
        items.setdefault(account_of(judgement), []).append(judgement)
    for ask in plan.asks:
        if not ask.cell.case.recorded:
            items.setdefault(account_of(ask), []).append(ask)
    return items
