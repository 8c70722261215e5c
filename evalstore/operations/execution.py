"""Carries out a plan: within the budget, with the user's leave, until it is interrupted."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from evalstore.errors import STOPPED, EvalstoreError
from evalstore.execute import Executor, Limits, Outcome, Rim
from evalstore.operations.doors import Doors
from evalstore.operations.results import fails
from evalstore.wording import plural

if TYPE_CHECKING:
    from evalstore.cells import Candidate, Judge
    from evalstore.operations.desk import Desk
    from evalstore.operations.orders import Agreed, Orders
    from evalstore.operations.times import Clock
    from evalstore.operations.watching import Watcher
    from evalstore.plan import Plan

_GRACE_SECONDS = 10.0
_MUCH = 1.01
"""Times the price that was shown: so much may a run cost without another question."""
_NONCES_AT_ONCE = 256


class TooExpensiveError(EvalstoreError):
    """A run costs more than may be spent without asking, and nobody agreed."""

    exit_code = STOPPED


@dataclass
class Survey:
    """What a whole run would do, added up over its portions before anything is done."""

    asks: int = 0
    recorded: int = 0
    """Answers to take from files."""
    judgements: int = 0
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """By display id; only those that are asked."""
    judges: dict[str, Judge] = field(default_factory=dict)
    """By evaluator id; only those that judge."""

    def add(self, plan: Plan) -> None:
        """Add a portion."""
        self.asks += plan.ask_count
        self.recorded += plan.recorded_count
        self.judgements += plan.judge_count
        self.candidates |= {ask.cell.candidate.id: ask.cell.candidate for ask in plan.asks}
        self.judges |= {one.judge.evaluator: one.judge for one in plan.judgements if one.judge}

    @property
    def models(self) -> list[str]:
        """Display ids of all models that are called."""
        asked = [one.id for one in self.candidates.values()]
        return list(dict.fromkeys(asked + [one.id for one in self.judges.values()]))


def carry_out(
    desk: Desk,
    survey: Survey,
    plans: Iterable[Plan],
    finish: Callable[[Plan, Outcome], None],
    clock: Clock,
    orders: Orders,
    watcher: Watcher,
) -> Outcome:
    """Ask and judge what the plans say, and `finish` each; raises `EvalstoreError`.

    When the run is stopped the plans that are left are finished as they are.
    """
    if not survey.asks and not survey.recorded and not survey.judgements:
        nothing = Outcome()
        for plan in plans:
            finish(plan, nothing)
        return nothing
    settings = desk.settings
    doors = Doors(desk, watcher.agrees)
    doors.require_keys(survey.candidates, survey.judges)
    executor = Executor(
        desk.store,
        doors.candidates(survey.candidates),
        doors.judges(survey.judges),
        Limits(
            concurrency=orders.concurrency or settings.concurrency,
            timeout=orders.timeout or settings.timeout,
            retries=settings.retries if orders.retries is None else orders.retries,
            judge_tokens=settings.max_evaluation_output_tokens,
            max_cost=_most(desk, orders),
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
        ),
        Rim(
            now=clock,
            nonce=make_nonces().__next__,
            progress=watcher.advance,
            spent=watcher.spent,
            warn=watcher.note,
        ),
        stops_at=partial(fails, rule=settings.verdict) if orders.exit_first else None,
        allows=desk.code.allows,
    )
    for note in doors.notes:
        watcher.note(note)
    watcher.start(survey.asks, survey.judgements)
    longest = settings.max_time if orders.max_time is None else orders.max_time
    try:
        return asyncio.run(_run_until_stopped(executor, plans, finish, watcher, longest))
    finally:
        watcher.stop()


def make_nonces() -> Iterator[str]:
    """Endless 16 hexadecimal digits that nobody can guess; the system is asked for many at once."""
    while True:
        some = secrets.token_hex(8 * _NONCES_AT_ONCE)
        yield from (some[start : start + 16] for start in range(0, len(some), 16))


# --- money


def _most(desk: Desk, orders: Orders) -> float | None:
    return desk.settings.max_cost if orders.max_cost is None else orders.max_cost


def get_leave(
    desk: Desk, survey: Survey, price: Callable[[], float | None], orders: Orders, watcher: Watcher
) -> None:
    """Ask before much is spent; `price` estimates what the run will cost.

    Raises `TooExpensiveError` when the answer is no, and `EvalstoreError` when a bound on the
    cost could not be kept.
    """
    prices = {id: desk.price_of(id) for id in survey.models}
    unpriced = [id for id, one in prices.items() if one is None]
    if unpriced and _most(desk, orders) is not None:
        raise EvalstoreError(
            f"the price of '{unpriced[0]}' is not known, so no bound on the cost can be kept",
            hint="give it 'costs' in its model file, or leave --max-cost and 'maxCost' out",
        )
    most, bound = desk.settings.confirm_above, _most(desk, orders)
    if orders.yes or most is None or not any(one and one.is_any for one in prices.values()):
        return
    if bound is not None and bound <= most:
        return
    likely = price()
    likely = min(likely, bound) if likely is not None and bound is not None else likely
    if likely is None or likely <= most:
        return
    what = (
        f"this run would ask {survey.asks:,} answer{'s' * (survey.asks != 1)} "
        f"and make {survey.judgements:,} judgement{'s' * (survey.judgements != 1)}, "
        f"which is likely to cost {'up to ' if bound is not None else ''}${likely:,.2f}"
    )
    if not watcher.agrees(what):
        raise TooExpensiveError(
            f"{what}: more than the ${most:,.2f} that are spent without asking",
            hint="add --yes to do it, --max-cost to stop at a price, "
            "or set 'confirmAbove' in evalstore.yaml",
        )


def keep_to(
    agreed: Agreed,
    survey: Survey,
    todo: Iterable[object],
    price: Callable[[], float | None],
) -> None:
    """Raise when more, something else, or at another price would be done than was agreed to.

    Files may have been edited, and stored answers may have gone, since the plan was shown.
    """
    was, now = (agreed.asks, agreed.judgements), (survey.asks, survey.judgements)
    if any(one > shown for one, shown in zip(now, was, strict=True)):
        what = f"{_to_do(*now)}, and {_to_do(*was)} were shown"
    elif others := sum(one not in agreed.todo for one in todo):
        what = f"{others:,} of what would be done now {'was' if others == 1 else 'were'} not shown"
    elif agreed.price is None:
        return
    else:
        likely = price()
        if likely is not None and likely <= agreed.price * _MUCH + 1e-6:
            return
        cost = "nobody knows what" if likely is None else f"${likely:,.4f}"
        what = f"it would cost {cost}, and ${agreed.price:,.4f} were shown"
    raise EvalstoreError(
        f"the plan has changed: {what}", hint="nothing was done; look at the plan again"
    )


def _to_do(asks: int, judgements: int) -> str:
    return f"{plural(asks, 'answer')} to ask and {plural(judgements, 'judgement')} to make"


# --- time and signals


async def _run_until_stopped(
    executor: Executor,
    plans: Iterable[Plan],
    finish: Callable[[Plan, Outcome], None],
    watcher: Watcher,
    longest: float | None,
) -> Outcome:
    """Run; when time is up, or at SIGINT, calls in flight may finish; a second SIGINT ends all."""
    loop = asyncio.get_running_loop()
    outcome = executor.outcome
    doing: asyncio.Task[None] | None = None

    def cancel() -> None:
        if doing is not None:
            doing.cancel()

    def stop(why: str, hint: str = "") -> None:
        grace = f"for up to {_GRACE_SECONDS:.0f} s"
        watcher.note(f"{why}: finishing what is in flight {grace}{hint}")
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

    watcher.interruptible(partial(_call_in, loop, interrupt))
    if longest is not None:
        loop.call_later(longest, end)
    with _handling(loop, (signal.SIGINT, signal.SIGTERM), interrupt):
        async with executor:
            for plan in plans:
                doing = asyncio.create_task(executor.carry_out(plan))
                with suppress(asyncio.CancelledError):
                    await doing
                doing = None
                finish(plan, outcome)
    return outcome


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call it in the loop, from any thread; a loop that has ended needs no call."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


@contextmanager
def _handling(
    loop: asyncio.AbstractEventLoop,
    numbers: Collection[signal.Signals],
    handler: Callable[[], None],
) -> Iterator[None]:
    """Have signals handled in the loop, and give them back before it is closed.

    A loop that is closed first leaves Python a pipe for signals that is closed as well.
    """
    earlier = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        # Not in the main thread, or Windows: Ctrl-C then ends at once.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number, before in earlier.items():
            if loop.remove_signal_handler(number) and callable(before):
                signal.signal(number, before)
