"""Executes plans: makes calls within limits, and stores sessions and evaluations.

Each answer is stored and judged as soon as it arrives. A failure is logged, and its answer stays
missing, so that the next run asks for it again. A lease is taken on each question and judgement
first, so that runs on one store share the work. The clock and randomness are arguments.

`plan_execution` is the loop of one plan, `judgement_queue` queues its judgements, and
`plan_progress` counts what is left.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from evalstore.execution.accounting import Accounting
from evalstore.execution.candidates import CandidateCaller
from evalstore.execution.content_cache import ContentCache
from evalstore.execution.evaluators import EvaluatorCaller
from evalstore.execution.event_loop_fairness import BurstLimit
from evalstore.execution.execution_counts import ExecutionCounts
from evalstore.execution.model_calls import Endpoint, Limits, ModelCaller, RunEnvironment
from evalstore.execution.plan_execution import PlanExecution, wait_uninterrupted
from evalstore.execution.python_checks import Allows, CodeChecks
from evalstore.execution.run_resources import JobLeases, RunEndpoints, RunResources, StopsAt
from evalstore.execution.run_share import (
    ENDED,
    LEADS,
    ShareWriter,
)
from evalstore.execution.shared_budget import SharedBudget
from evalstore.execution.work_sharing import WorkSharing

if TYPE_CHECKING:
    from evalstore.execution.shared_work import SharedWork
    from evalstore.planning.plan import Plan
    from evalstore.store import Store
    from evalstore.store.shared_runs import RunShare

__all__ = ["Endpoint", "ExecutionCounts", "Executor", "Limits", "RunEnvironment"]

_FIRST_LOOK, _LONGEST_LOOK = 0.2, 2.0
"""Seconds until it is checked again whether other runners have ended."""


class _Background(NamedTuple):
    """The background tasks of all plans."""

    writing: asyncio.Task[None]
    heartbeat: asyncio.Task[None]


class Executor:
    """Executes plans, one after the other, as an asynchronous context manager.

    When the context ends, everything is stored and all leases are released.
    """

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
        self.sharing = WorkSharing(store, environment)
        accounting = Accounting(store, environment, self.sharing.runner)
        self.outcome = accounting.outcome
        leases = JobLeases(self.sharing, accounting.writer)
        self._share = (
            ShareWriter(store, shared, self.sharing.runner, self.outcome, self.halt)
            if shared
            else None
        )
        budget = None
        if shared and self._share:
            self.sharing.presence.on_beat = self._share.write
            accounting.writer.describe_counts = self._share.describe
            if shared.cost_limit is not None:
                budget = SharedBudget(self._share, shared.cost_limit)
        self._shared, self._store = shared, store
        calls = ModelCaller(limits, environment, leases.is_ours, budget)
        contents = ContentCache(store)
        self._python_checks = CodeChecks(contents, allows)
        callers = (contents, calls, accounting, environment)
        self._resources = RunResources(
            environment=environment,
            endpoints=RunEndpoints(candidates, judges),
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
        self._bursts = BurstLimit()
        self._background: _Background | None = None
        self._execution: PlanExecution | None = None
        """The execution of the current plan; None between plans."""

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
            await self._share.write()
        self._background = _Background(
            asyncio.create_task(self._resources.accounting.writer.run()),
            asyncio.create_task(self.sharing.presence.keep_alive()),
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Store finished results, release all leases and close the providers."""
        assert self._background is not None
        self._background.heartbeat.cancel()
        self._python_checks.close()
        writer = self._resources.accounting.writer
        try:
            await wait_uninterrupted(writer.finish(self._background.writing))
        finally:
            try:
                await wait_uninterrupted(asyncio.to_thread(self.sharing.release_all))
            finally:
                endpoints = self._resources.endpoints.all()
                for provider in {
                    id(endpoint.provider): endpoint.provider for endpoint in endpoints
                }.values():
                    await provider.close()

    async def carry_out(self, plan: Plan) -> None:
        """Carry out a plan as far as possible; raises `StoreError` when results cannot be stored.

        The outcome's sessions and votes are those of this plan. When it is cancelled, calls in
        flight are cancelled, and finished results are kept.
        """
        assert self._background is not None
        self.sharing.open(plan)
        self._resources.evaluators.forget_prepared()
        self.outcome.sessions.clear()
        self.outcome.votes.clear()
        if self.is_halted:
            return
        self._execution = PlanExecution(self._resources, plan, self._bursts)
        try:
            await self._execution.run(*self._background)
        finally:
            self._execution = None

    async def finish_shared(self) -> list[RunShare] | None:
        """Wait for the other runners of a shared run; returns their shares if it is complete.

        A runner that has joined does not wait for the one that has begun the run, if that is still
        alive and will record it: the result is None.
        """
        assert self._share
        assert self._shared
        await self._resources.accounting.writer.flush()
        await self._share.end()
        find_shares = partial(self._store.find_shares, self._shared.id)
        delay = _FIRST_LOOK
        while True:
            shares = await asyncio.to_thread(find_shares)
            alive = await asyncio.to_thread(
                self.sharing.find_alive, [share.runner for share in shares if share.is_registered]
            )
            others = [share for share in shares if share.runner in alive]
            if not self._shared.leads and any(share.counts.get(LEADS) for share in others):
                return None
            if all(share.counts.get(ENDED) for share in others) or self.outcome.interrupted:
                return [share for share in shares if share.runner != self.sharing.runner]
            await asyncio.sleep(delay)
            delay = min(1.5 * delay, _LONGEST_LOOK)

    @property
    def is_halted(self) -> bool:
        """Return whether the run is halted."""
        return self._resources.calls.is_halted()

    def halt(self) -> None:
        """Start no more work; calls in flight may finish, and `carry_out` then ends."""
        self._resources.calls.halt()
        if self._execution is not None:
            self._execution.halt()
