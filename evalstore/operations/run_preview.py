"""What a run would do before it does anything: counted, priced, and agreed to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.errors import STOPPED, EvalstoreError

if TYPE_CHECKING:
    from evalstore.operations.progress import ProgressListener
    from evalstore.planning.cells import Candidate, Judge
    from evalstore.planning.options import ApprovedPlan, RunOptions
    from evalstore.planning.plan import Plan
    from evalstore.planning.project import Project

_MUCH = 1.01
"""Times the price that was shown: so much may a run cost without another question."""


class TooExpensiveError(EvalstoreError):
    """A run costs more than may be spent without asking, and the cost was not confirmed."""

    exit_code = STOPPED


@dataclass
class PlanTotals:
    """What a whole run would do, added up over its batches before anything is done."""

    asks: int = 0
    recorded: int = 0
    """Answers to take from files."""
    judgements: int = 0
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """By display id; only those that are asked."""
    judges: dict[str, Judge] = field(default_factory=dict)
    """By evaluator id; only those that judge."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.asks or self.recorded or self.judgements)

    def add(self, plan: Plan) -> None:
        """Add a batch."""
        self.asks += plan.ask_count
        self.recorded += plan.recorded_count
        self.judgements += plan.judge_count
        self.candidates |= {ask.cell.candidate.id: ask.cell.candidate for ask in plan.asks}
        self.judges |= {
            judgement.judge.evaluator: judgement.judge
            for judgement in plan.judgements
            if judgement.judge
        }

    @property
    def models(self) -> list[str]:
        """Display ids of all models that are called."""
        asked = [candidate.id for candidate in self.candidates.values()]
        return list(dict.fromkeys(asked + [judge.id for judge in self.judges.values()]))


def most_cost(project: Project, options: RunOptions) -> float | None:
    """What may be spent, in USD; None: as much as it takes."""
    return project.settings.max_cost if options.max_cost is None else options.max_cost


def get_leave(
    project: Project,
    survey: PlanTotals,
    price: Callable[[], float | None],
    options: RunOptions,
    listener: ProgressListener,
) -> None:
    """Ask before much is spent; `price` estimates what the run will cost.

    Raises `TooExpensiveError` when the answer is no, and `EvalstoreError` when a bound on the
    cost could not be kept.
    """
    prices = {id: project.price_of(id) for id in survey.models}
    unpriced = [id for id, one in prices.items() if one is None]
    if unpriced and most_cost(project, options) is not None:
        raise EvalstoreError(
            f"the price of '{unpriced[0]}' is not known, so no bound on the cost can be kept",
            hint="give it 'costs' in its model file, or leave --max-cost and 'maxCost' out",
        )
    most, bound = project.settings.confirm_above, most_cost(project, options)
    if options.yes or most is None or not any(one and one.is_any for one in prices.values()):
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
    if not listener.agrees(what):
        raise TooExpensiveError(
            f"{what}: more than the ${most:,.2f} that are spent without asking",
            hint="add --yes to do it, --max-cost to stop at a price, "
            "or set 'confirmAbove' in evalstore.yaml",
        )


def keep_to(
    agreed: ApprovedPlan,
    survey: PlanTotals,
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
        cost = "an unknown amount" if likely is None else f"${likely:,.4f}"
        what = f"it would cost {cost}, and ${agreed.price:,.4f} were shown"
    raise EvalstoreError(
        f"the plan has changed: {what}", hint="nothing was done; look at the plan again"
    )


def _to_do(asks: int, judgements: int) -> str:
    return f"{plural(asks, 'answer')} to ask and {plural(judgements, 'judgement')} to make"
