"""Carries out a plan: within the budget, with the user's leave, until it is interrupted."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from evalstore.errors import STOPPED, EvalstoreError
from evalstore.execute import Executor, Limits, Outcome, Rim
from evalstore.operations.doors import Doors
from evalstore.operations.explain import Explainer
from evalstore.operations.status import estimate
from evalstore.operations.times import now, today
from evalstore.pricing import find

if TYPE_CHECKING:
    from evalstore.operations.desk import Desk
    from evalstore.operations.orders import Orders, Wanted
    from evalstore.operations.watching import Watcher
    from evalstore.plan import Plan

_GRACE_SECONDS = 10.0
_NONCES_AT_ONCE = 256


class TooExpensiveError(EvalstoreError):
    """A run costs more than may be spent without asking, and nobody agreed."""

    exit_code = STOPPED


def carry_out(desk: Desk, plan: Plan, wanted: Wanted, orders: Orders, watcher: Watcher) -> Outcome:
    """Ask and judge what the plan says.

    Raises `TooExpensiveError` before anything is asked when the price needs a leave that is not
    given, and `EvalstoreError` when `max_cost` could not be kept.
    """
    if not plan.asks and not plan.judgements:
        return Outcome()
    settings = desk.settings
    most = settings.max_cost if orders.max_cost is None else orders.max_cost
    unpriced = find_unpriced(desk, plan)
    if most is not None and unpriced:
        raise EvalstoreError(
            f"the price of '{unpriced[0]}' is not known, so no bound on the cost can be kept",
            hint="give it 'costs' in its model file, or leave --max-cost and 'maxCost' out",
        )
    get_leave(desk, plan, wanted, orders, watcher)
    doors = Doors(desk)
    executor = Executor(
        desk.store,
        plan,
        doors.candidates(plan),
        doors.judges(plan),
        Limits(
            concurrency=orders.concurrency or settings.concurrency,
            timeout=orders.timeout or settings.timeout,
            retries=settings.retries if orders.retries is None else orders.retries,
            judge_tokens=settings.max_evaluation_output_tokens,
            max_cost=most,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
        ),
        Rim(
            now=now,
            nonce=make_nonces().__next__,
            progress=watcher.advance,
            spent=watcher.spent,
            warn=watcher.note,
        ),
    )
    for note in doors.notes:
        watcher.note(note)
    watcher.start(plan.ask_count, plan.judge_count)
    longest = settings.max_time if orders.max_time is None else orders.max_time
    try:
        return asyncio.run(_run_until_stopped(executor, watcher, longest))
    finally:
        watcher.stop()


def make_nonces() -> Iterator[str]:
    """Endless 16 hexadecimal digits that nobody can guess; the system is asked for many at once."""
    while True:
        some = secrets.token_hex(8 * _NONCES_AT_ONCE)
        yield from (some[start : start + 16] for start in range(0, len(some), 16))


# --- money


def _participants(plan: Plan) -> dict[str, None]:
    """Display ids of all models that the plan calls."""
    asked = [ask.cell.candidate.id for ask in plan.asks]
    return dict.fromkeys(asked + [one.judge.id for one in plan.judgements if one.judge])


def find_unpriced(desk: Desk, plan: Plan) -> list[str]:
    """The models of a plan whose price is not known today."""
    day = today()
    return [
        id
        for id in _participants(plan)
        if find(desk.find_model(id, "price"), desk.reading.currencies, day) is None
    ]


def get_leave(desk: Desk, plan: Plan, wanted: Wanted, orders: Orders, watcher: Watcher) -> None:
    """Ask before much is spent; raises `TooExpensiveError` when the answer is no."""
    most = desk.settings.confirm_above
    if orders.yes or most is None or _costs_nothing(desk, plan):
        return
    explainer = Explainer(desk)
    price = estimate(desk, explainer.asks(plan), explainer.judgements(plan), wanted)
    if price is None or price <= most:
        return
    what = (
        f"this run would ask {plan.ask_count:,} answers and make {plan.judge_count:,} judgements, "
        f"which is likely to cost ${price:,.2f}"
    )
    if not watcher.agrees(what):
        raise TooExpensiveError(
            f"{what}: more than the ${most:,.2f} that are spent without asking",
            hint="add --yes to do it, --max-cost to stop at a price, "
            "or set 'confirmAbove' in evalstore.yaml",
        )


def _costs_nothing(desk: Desk, plan: Plan) -> bool:
    """Whether no model of the plan has a price; free and unknown ones need no leave."""
    day = today()
    for id in _participants(plan):
        price = find(desk.find_model(id, "price"), desk.reading.currencies, day)
        if price and (
            price.per_call or price.per_hour or price.per_input_token or price.per_output_token
        ):
            return False
    return True


# --- time and signals


async def _run_until_stopped(
    executor: Executor, watcher: Watcher, longest: float | None
) -> Outcome:
    """Run; when time is up, or at SIGINT, calls in flight may finish; a second SIGINT ends all."""
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(executor.run())
    presses = 0

    def interrupt() -> None:
        nonlocal presses
        presses += 1
        executor.outcome.interrupted = True
        if presses == 1:
            watcher.note(
                f"interrupted: finishing what is in flight for up to {_GRACE_SECONDS:.0f} s "
                "(again to stop now)"
            )
            executor.halt()
            loop.call_later(_GRACE_SECONDS, task.cancel)
        else:
            task.cancel()

    def end() -> None:
        if not task.done():
            executor.outcome.over_budget = True
            watcher.note(f"time is up ({longest:g} s): finishing what is in flight")
            executor.halt()
            loop.call_later(_GRACE_SECONDS, task.cancel)

    for number in (signal.SIGINT, signal.SIGTERM):
        _handle(loop, number, interrupt)
    if longest is not None:
        loop.call_later(longest, end)
    try:
        return await task
    except asyncio.CancelledError:
        if not executor.outcome.over_budget:
            executor.outcome.interrupted = True
        return executor.outcome


def _handle(
    loop: asyncio.AbstractEventLoop, number: signal.Signals, handler: Callable[[], None]
) -> None:
    try:
        loop.add_signal_handler(number, handler)
    except (NotImplementedError, RuntimeError, ValueError):
        return  # not the main thread, or Windows: Ctrl-C then ends at once
