"""Executes plans: makes calls within limits, and stores sessions and evaluations.

Each answer is stored and judged as soon as it arrives. A failure is logged, and its answer stays
missing, so that the next run asks for it again. A lease is taken on each question and judgement
first, so that runs on one store share the work. The clock and randomness are arguments.

`plan_execution` is the loop of one plan with its judgements, and `plan_progress` counts what is
left.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple, Self

from evalstore.core import hashing
from evalstore.core.errors import StoreError
from evalstore.planning.plan import Plan
from evalstore.runs.execution.candidates import CandidateCaller
from evalstore.runs.execution.content_cache import ContentCache
from evalstore.runs.execution.evaluators import Allows, CodeChecks, EvaluatorCaller
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.limits.accounting import Accounting
from evalstore.runs.execution.limits.budget import SharedBudget
from evalstore.runs.execution.limits.retry_policy import ModelKey
from evalstore.runs.execution.model_calls import Endpoint, Limits, ModelCaller, RunEnvironment
from evalstore.runs.execution.plan_execution import PlanExecution, wait_uninterrupted
from evalstore.runs.execution.run_resources import JobLeases, RunEndpoints, RunResources, StopsAt
from evalstore.runs.execution.sharing.run_share import SharedWork, ShareWriter, is_halted_by
from evalstore.runs.execution.sharing.work_sharing import WorkSharing
from evalstore.store import Store
from evalstore.store.costs import OutputTokens
from evalstore.store.driver import PATIENCE_SECONDS
from evalstore.store.run_documents import ENDED, LEADS, RECORDS
from evalstore.store.shared_runs import RunShare

__all__ = ["Endpoint", "ExecutionCounts", "Executor", "Limits", "RunEnvironment"]

_FIRST_LOOK, _LONGEST_LOOK = 0.2, 2.0
"""Seconds until it is checked again whether other runners have ended."""


_PER_ITERATION = 8
"""The number of answers that are taken in one iteration of the event loop: others wait."""


class _Background(NamedTuple):
    """The background tasks of all plans."""

    writing: asyncio.Task[None]
    heartbeat: asyncio.Task[None]
    outages: asyncio.Task[None]


class Executor:
    """Executes plans, one after the other, as an asynchronous context manager.

    When the context ends, everything is stored and all leases are released.
    """

    leaves_run = False
    """Whether another runner will record the shared run."""

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
        self.sharing = WorkSharing(store, environment, is_expected=shared is not None)
        accounting = Accounting(store, environment, self.sharing.runner)
        self.outcome = accounting.outcome
        leases = JobLeases(self.sharing, accounting.writer)
        self._shared, self._store = shared, store
        self._share = self._make_share(accounting)
        if shared:
            leases.may_go_on = self._may_go_on
        endpoints = RunEndpoints(candidates, judges)
        calls = self._make_caller(limits, environment, leases, endpoints)
        contents = ContentCache(store)
        self._python_checks = CodeChecks(contents, allows)
        callers = (contents, calls, accounting, environment)
        self._resources = RunResources(
            environment=environment,
            endpoints=endpoints,
            calls=calls,
            accounting=accounting,
            sharing=self.sharing,
            leases=leases,
            contents=contents,
            candidates=CandidateCaller(candidates, *callers),
            evaluators=EvaluatorCaller(judges, *callers, limits.judge_tokens, self._python_checks),
            stops_at=stops_at,
            halt=self.halt,
            failures=Counter(),
        )
        self._bursts = asyncio.Semaphore(_PER_ITERATION)
        self._others = OthersProgress(environment)
        self._records = False
        """Whether this runner has begun a shared run and will record it now."""
        self._background: _Background | None = None
        self._execution: PlanExecution | None = None
        """The execution of the current plan; None between plans."""

    def _make_share(self, accounting: Accounting) -> ShareWriter | None:
        """Return what writes the share of this runner; None if the run is not shared."""
        if not self._shared:
            return None
        self.sharing.repeats_failures = False
        runner = self.sharing.runner
        share = ShareWriter(self._store, self._shared, runner, self.outcome, self.halt)
        self.sharing.presence.on_beat = self._note_progress
        accounting.writer.describe_counts = share.describe
        accounting.writer.note_stored = share.note_stored
        accounting.writer.exclusive = share.writing
        return share

    def _make_caller(
        self, limits: Limits, environment: RunEnvironment, leases: JobLeases, models: RunEndpoints
    ) -> ModelCaller:
        """Return what makes the calls; with a limit, it knows how long answers are."""
        budget = None
        if self._share and self._shared and self._shared.cost_limit is not None:
            limit = self._shared.cost_limit  # of all runners together
            budget = SharedBudget(self._share, limit, self.sharing.stopped.find)
        caller = ModelCaller(limits, environment, leases.is_ours, budget)
        is_limited = budget is not None or limits.max_cost is not None
        accounts = (caller.rate_limiter(end.account) for end in models.all())
        if is_limited or any(account.tokens_per_minute < math.inf for account in accounts):
            versions = [
                (hashing.identify(hashing.describe_model(end.version))[0], end.key)
                for end in models.candidates.values()
            ]
            judges = [(id, end.key) for id, end in models.judges.items()]
            caller.note_outputs(_find_sizes(self._store, versions, judges))
        return caller

    async def __aenter__(self) -> Self:
        """Start the background tasks."""
        accounts = {end.account.name: end.account for end in self._resources.endpoints.all()}
        limiters = [
            (account.place, self._resources.calls.rate_limiter(account))
            for account in accounts.values()
        ]
        if limited := [placed for placed in limiters if placed[1].is_limited]:
            await self.sharing.presence.share_accounts(limited)
        if self._share:
            # From now on the one that records the run waits for this runner.
            await asyncio.to_thread(self.sharing.leases.register)
            await self._share.write()
            if self._shared and not self._shared.leads:
                self._others.begin(await self.find_shares())
        self._background = _Background(
            asyncio.create_task(self._resources.accounting.writer.run()),
            asyncio.create_task(self.sharing.presence.keep_alive()),
            asyncio.create_task(_tell_of_outages(self._store, self._resources.environment.warn)),
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Store finished results, release all leases and close the providers."""
        assert self._background is not None
        ended = {self._background.heartbeat, self._background.outages}
        for task in ended:
            task.cancel()
        await wait_uninterrupted(asyncio.wait(ended))
        self._python_checks.close()
        writer = self._resources.accounting.writer
        try:
            await wait_uninterrupted(writer.finish(self._background.writing))
        finally:
            try:
                if self._share and (kind or self.leaves_run):
                    with suppress(StoreError):  # nor can the leases be released then
                        await wait_uninterrupted(self._share.leave())
                await wait_uninterrupted(
                    asyncio.to_thread(self.sharing.release_all, stays=self._records)
                )
            finally:
                endpoints = self._resources.endpoints.all()
                for provider in {
                    id(endpoint.provider): endpoint.provider for endpoint in endpoints
                }.values():
                    await provider.close()

    async def carry_out(self, plan: Plan) -> None:
        """Carry out a plan as far as possible; raises `StoreError` when results cannot be stored.

        The outcome's sessions, votes and costs are those of this plan. When it is cancelled, calls
        in flight are cancelled, and finished results are kept.
        """
        assert self._background is not None
        self.sharing.open(plan)
        self.outcome.sessions.clear()
        self.outcome.votes.clear()
        self.outcome.costs.clear()
        if self.is_halted:
            return
        self._execution = PlanExecution(self._resources, plan, self._bursts)
        try:
            await self._execution.run(self._background.writing, self._background.heartbeat)
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
        await self._resources.accounting.writer.flush()
        await self._share.end()
        # Others wait for what this runner has taken, and it waits for them.
        await asyncio.to_thread(self.sharing.release_items)
        was_interrupted, delay = self.outcome.interrupted, _FIRST_LOOK
        was_open, looked_at = self._share.is_open, math.inf
        while True:
            shares = await self._find_all_shares()
            shares.pop(own, None)
            self._others.show(shares.values())
            registered = [id for id, share in shares.items() if share.is_registered]
            alive = await asyncio.to_thread(self.sharing.leases.find_alive, registered)
            counts = {id: shares[id].counts for id in alive}
            leaders = [id for id in alive if counts[id].get(LEADS)]
            at_work = {id for id in alive if not counts[id].get(ENDED)}
            if leads and at_work:
                at_work -= await self.sharing.stopped.find(at_work)
            heard = {id for id in alive if alive[id] > looked_at or counts[id].get(RECORDS)}
            if not leads and (
                heard.intersection(leaders)
                or (self.outcome.interrupted and heard.intersection(at_work))
            ):
                return None
            if not at_work and not leaders:
                if not leads and was_open and own not in await self._find_all_shares():
                    return None
                if leads and self._share.is_open:
                    await self._share.record()
                    self._records = self._share.is_open
                return list(shares.values())
            if self.outcome.interrupted and not was_interrupted:
                was_interrupted = True
                await self._share.write()  # the others halt
            looked_at = min(looked_at, self._resources.environment.uptime())
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

    async def _note_progress(self) -> None:
        """Note what was done so far; halt when another runner has halted the run."""
        assert self._share
        await self._share.write()
        shares = await self.find_shares()
        self._others.show(shares)
        if not self.is_halted and any(map(is_halted_by, shares)):
            self.halt()

    async def _may_go_on(self) -> bool:
        """Return whether the run is not over: others may record one that is silent for long."""
        await self._note_progress()
        return not self.is_halted

    @property
    def is_halted(self) -> bool:
        """Return whether the run is halted."""
        return self._resources.calls.is_halted()

    def halt(self) -> None:
        """Start no more work; calls in flight may finish, and `carry_out` then ends."""
        self._resources.calls.halt()
        if self._execution is not None:
            self._execution.halt()


def _find_sizes(
    store: Store, models: Iterable[tuple[str, ModelKey]], evaluators: Iterable[tuple[str, ModelKey]]
) -> dict[ModelKey, OutputTokens]:
    """Return the output tokens of the newest answers and judgements of each model.

    Models without any are left out; of one that answers and judges, the larger numbers count.
    `models` are ids of model versions, `evaluators` those of evaluators, each with its model's key.
    """
    sizes: dict[ModelKey, OutputTokens] = {}
    for kind, makers in (("session", [*models]), ("judgement", [*evaluators])):
        found = store.find_output_tokens(kind, [id for id, _ in makers])
        for id, key in makers:
            tokens, known = found.get(id), sizes.get(key, OutputTokens(0, 0))
            if tokens:
                most = max(known.most, tokens.most)
                sizes[key] = OutputTokens(max(known.mean, tokens.mean), most)
    return sizes


# --- shows what the other runners of a shared run have done while this one takes part in it


_KINDS = ("asked", "judged", "failed")


class OthersProgress:
    """What the others had done when it was last shown."""

    def __init__(self, environment: RunEnvironment) -> None:
        self._environment = environment
        self._shown: Counter[str] = Counter()

    def begin(self, shares: Iterable[RunShare]) -> None:
        """Leave out what was done before this runner made its plan."""
        self._shown = _sum_up(shares)

    def show(self, shares: Iterable[RunShare]) -> None:
        """Add what was done since to the progress, and what it cost."""
        now = _sum_up(shares)
        new, self._shown = now - self._shown, now
        for kind in _KINDS:
            if new[kind]:
                self._environment.progress(kind, int(new[kind]))
        if new["cost"] or new["tokens"]:
            self._environment.spent(new["cost"], int(new["tokens"]))


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


_LOOK_SECONDS = 1.0
_TOLD_AFTER = 3.0
"""Seconds after which an outage is worth a message."""


async def _tell_of_outages(store: Store, tell: Callable[[str], None]) -> None:
    """Tell of each outage of some seconds, and of its end, until this is cancelled."""
    is_told = False

    def look() -> None:
        nonlocal is_told
        if not is_told and store.seconds_away >= _TOLD_AFTER:
            is_told = True
            tell(f"the store does not answer: waiting for it, for up to {PATIENCE_SECONDS:g} s")
        elif is_told and not store.seconds_away:
            is_told = False
            tell("the store answers again")

    try:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            look()
    finally:
        look()
