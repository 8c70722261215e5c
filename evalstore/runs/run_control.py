"""Carries out the plans of a run within its limits, until it is interrupted."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

from evalstore.core.clock import Clock
from evalstore.core.runs import ProgressListener
from evalstore.planning.cell_results import compute_results
from evalstore.planning.cells import Cell
from evalstore.planning.options import RunOptions
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.executor import Executor
from evalstore.runs.execution.key_access import ProviderPool, find_refusal, require_set
from evalstore.runs.execution.model_calls import Limits, RunEnvironment
from evalstore.runs.execution.sharing.run_share import SharedWork
from evalstore.runs.run_preview import PlanTotals, most_cost
from evalstore.store.shared_runs import RunShare

_GRACE_SECONDS = 10.0


def stopping_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop a run; without a hang-up if it is ignored, as by nohup."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hangs_up else ()))


def carry_out_plans(
    project: Project,
    survey: PlanTotals,
    plans: Iterable[Plan],
    finish: Callable[[Plan, ExecutionCounts], None],
    clock: Clock,
    options: RunOptions,
    listener: ProgressListener,
    shared: SharedWork | None = None,
) -> tuple[ExecutionCounts, list[RunShare] | None]:
    """Carry out the plans, and call `finish` after each; raises `EvalstoreError`.

    When the run is stopped, `finish` is called for the remaining plans as they are. Returns also
    the shares of the other runners of a `shared` run; None if another one will record it.
    """
    settings = project.settings
    folder = project.location.keys_folder or project.workspace.root
    agrees = listener.agrees
    providers = ProviderPool(folder, project.reading, lambda question: bool(agrees(question)))
    models = {id: project.find_model(id, "models") for id in survey.models}
    if refused := find_refusal(providers.keys, models.values()):
        raise refused
    require_set(models.values(), providers.environment)
    executor = Executor(
        project.store,
        {
            id: providers.endpoint(models[candidate.id], "candidate", None)
            for id, candidate in survey.candidates.items()
        },
        {
            id: providers.endpoint(models[judge.id], "evaluator", judge.temperature)
            for id, judge in survey.judges.items()
        },
        Limits(
            concurrency=options.concurrency or settings.concurrency,
            timeout=options.timeout or settings.timeout,
            retries=settings.retries if options.retries is None else options.retries,
            judge_tokens=settings.max_evaluation_output_tokens,
            max_cost=most_cost(project, options),
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
        ),
        RunEnvironment(
            now=clock,
            nonce=lambda: os.urandom(8).hex(),
            listener=listener,
        ),
        stops_at=partial(fails, rule=settings.verdict) if options.exit_first else None,
        allows=project.code.allows,
        shared=shared,
    )
    for note in providers.notes:
        listener.note(note)
    listener.start(survey.asks, survey.judgements)
    longest = settings.max_time if options.max_time is None else options.max_time
    if longest is not None and shared:
        longest = max(longest - shared.elapsed, 0.0)
    try:
        with _StopSignals() as signals:
            shares = asyncio.run(
                _run_until_stopped(
                    executor, plans, finish, listener, longest, signals, shared, providers.notes
                )
            )
        executor.outcome.interrupted |= signals.have_come
        return executor.outcome, shares
    finally:
        listener.stop()
        if shared and shared.launcher:
            shared.launcher.stop()


async def _run_until_stopped(
    executor: Executor,
    plans: Iterable[Plan],
    finish: Callable[[Plan, ExecutionCounts], None],
    listener: ProgressListener,
    longest: float | None,
    signals: _StopSignals,
    shared: SharedWork | None,
    notes: Collection[str],
) -> list[RunShare] | None:
    """Run until the time limit or SIGINT, then finish calls in flight; another SIGINT ends them.

    Returns the shares of the other runners; None if another one will record the run.
    """
    loop = asyncio.get_running_loop()
    outcome = executor.outcome
    doing: asyncio.Task[Any] | None = None

    def cancel() -> None:
        if doing is not None:
            doing.cancel()

    def stop(why: str, hint: str = "") -> None:
        grace = f"for up to {_GRACE_SECONDS:.0f} s"
        listener.note(f"{why}: finishing what is in flight {grace}{hint}")
        executor.halt()
        loop.call_later(_GRACE_SECONDS, cancel)

    def interrupt() -> None:
        if outcome.interrupted:
            cancel()
            return
        outcome.interrupted = True
        stop("interrupted", " (again to stop now)")

    def end() -> None:
        if not executor.is_halted:
            outcome.over_budget = outcome.time_is_up = True
            stop(f"time is up ({longest:g} s)")

    signals.handle = partial(_call_in, loop, interrupt)
    listener.interruptible(signals.handle)
    if signals.have_come:
        interrupt()
    if longest is not None:
        loop.call_later(longest, end)
    async with executor:
        if shared and shared.launcher:
            # Not earlier: runners that know of no other one would record the run at its end.
            await asyncio.to_thread(shared.launcher.start, shared.id, notes)
        for plan in plans:
            doing = asyncio.create_task(executor.carry_out(plan))
            with suppress(asyncio.CancelledError):
                await doing
            doing = None
            finish(plan, outcome)
        if not shared:
            return []
        waiting = asyncio.create_task(executor.finish_shared())
        doing = waiting
        try:
            shares = await waiting
        except asyncio.CancelledError:
            shares = await executor.find_shares() if shared.leads else None
        executor.leaves_run = shares is None
        return shares


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Schedule a call in the loop, from any thread; does nothing when the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


class _StopSignals:
    """The signals that stop a run, in the main thread; at the end the earlier handlers are back.

    One that comes while the loop is being closed is only noted: it would leave it half open.
    """

    def __init__(self) -> None:
        self.have_come = False
        self.handle: Callable[[], None] = lambda: None
        """Called for each."""
        self._earlier: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in stopping_signals():
            earlier = signal.getsignal(number)
            # Not in another thread, nor in place of a handler that Python has not set.
            with suppress(ValueError):
                if earlier is not None:
                    signal.signal(number, self._come)
                    self._earlier[number] = earlier
        return self

    def __exit__(self, *_error: object) -> None:
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)

    def _come(self, *_signal: object) -> None:
        self.have_come = True
        self.handle()


def fails(cell: Cell, plan: Plan, outcome: ExecutionCounts, rule: str) -> bool:
    """Return whether a cell has a failing verdict; False while answers or votes are missing."""
    alone = replace(plan, cells=[cell])
    (result,) = compute_results(alone, rule, outcome.sessions, outcome.votes)
    return result.verdict in ("fail", "error")
