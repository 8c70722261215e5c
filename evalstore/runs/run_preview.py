"""Plans a run batch by batch, counts and prices its plan, and asks for confirmation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from evalstore.core.display import money, planned_judgements, plural
from evalstore.core.errors import STOPPED, EvalstoreError
from evalstore.core.hashing import ValueSet
from evalstore.core.runs import ProgressListener
from evalstore.planning.cells import Candidate, EarlierBatches, Judge, batches, is_short, limit_of
from evalstore.planning.estimate import PriceSums, count_by_checks, may_judge_less
from evalstore.planning.options import ApprovedPlan, RunOptions
from evalstore.planning.plan import Plan
from evalstore.planning.planner import Scope, plan_cells
from evalstore.planning.project import Project
from evalstore.planning.reasons import Explainer
from evalstore.workspace.model_files import PRICE_EXAMPLE

_MUCH = 1.01
"""A run may cost this many times the price that was shown without another confirmation."""


class TooExpensiveError(EvalstoreError):
    """A run costs more than may be spent without confirmation, and was not confirmed."""

    exit_code = STOPPED


@dataclass
class PlanTotals:
    """The totals of the plans of a run."""

    asks: int = 0
    recorded: int = 0
    """Answers to take from files."""
    waiting: int = 0
    """Answers of applications that are not trusted."""
    judgements: int = 0
    by_checks: int = 0
    """The part of the judgements that calls no model."""
    may_judge_less: bool = False
    """Whether failed checks may save some of the judgements."""
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """The candidates that are asked, by display id."""
    judges: dict[str, Judge] = field(default_factory=dict)
    """The judges that judge, by evaluator id."""
    sizes: set[tuple[str, int | None]] = field(default_factory=set)
    """The candidates that are asked, each with the token limits of its answers."""
    first_judges: set[str] = field(default_factory=set)
    """The judges that judge stored answers."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self.asks or self.recorded or self.judgements)

    def add(self, plan: Plan) -> None:
        """Add a batch."""
        self.asks += plan.ask_count
        self.recorded += plan.recorded_count
        self.waiting += sum(ask.count for ask in plan.waiting_asks)
        self.judgements += plan.judge_count
        self.by_checks += count_by_checks(plan)
        self.may_judge_less = self.may_judge_less or may_judge_less(plan)
        asked = [ask.cell for ask in plan.asks if not ask.cell.case.recorded]
        self.sizes |= {(cell.candidate.id, limit_of(cell)) for cell in asked}
        self.first_judges |= {it.judge.id for it in plan.judgements if it.judge and it.sessions}
        self.candidates |= {cell.candidate.id: cell.candidate for cell in asked}
        self.judges |= {
            judgement.judge.evaluator: judgement.judge
            for judgement in plan.judgements
            if judgement.judge
        }

    @property
    def models(self) -> list[str]:
        """Return display ids of all models that are called."""
        candidates = [candidate.id for candidate in self.candidates.values()]
        return list(dict.fromkeys(candidates + [judge.id for judge in self.judges.values()]))


def most_cost(project: Project, options: RunOptions) -> float | None:
    """Return the most that may be spent, in USD; None if there is no limit."""
    return project.settings.max_cost if options.max_cost is None else options.max_cost


def get_leave(
    project: Project,
    survey: PlanTotals,
    price: Callable[[], float | None],
    options: RunOptions,
    listener: ProgressListener,
) -> None:
    """Ask for confirmation of a high cost; `price` estimates the cost of the run in USD.

    Raises `TooExpensiveError` when the user declines, and `EvalstoreError` when a limit on the
    cost cannot be kept.
    """
    prices = {id: project.price_of(id) for id in survey.models}
    unpriced = [id for id in prices if not project.has_known_costs(id)]
    if unpriced and most_cost(project, options) is not None:
        raise EvalstoreError(
            f"the price of '{unpriced[0]}' is not known, so no bound on the cost can be kept",
            hint=f"give it a price in its model file, as in '{PRICE_EXAMPLE}' (what an "
            "application reports comes too late), or leave --max-cost and 'maxCost' out",
        )
    most, bound = project.settings.confirm_above, most_cost(project, options)
    if (
        options.yes
        or most is None
        or not any(model_price and model_price.is_any for model_price in prices.values())
    ):
        return
    if bound is not None and bound <= most:
        return
    likely = price()
    likely = min(likely, bound) if likely is not None and bound is not None else likely
    if likely is None or likely <= most:
        return
    judgements = planned_judgements(
        survey.judgements, survey.by_checks, may_be_less=survey.may_judge_less
    )
    question = (
        f"this run would ask for {plural(survey.asks, 'answer')} and give {judgements}, "
        f"which is likely to cost {'up to ' if bound is not None else ''}{_usd(likely)}"
    )
    answer = listener.agrees(question)
    if answer is False:
        raise TooExpensiveError("not confirmed: nothing was asked or judged")
    if answer is None:
        raise TooExpensiveError(
            f"{question}: more than the {_usd(most)} allowed without confirmation",
            hint="add --yes or --max-cost USD, or set 'confirmAbove' in evalstore.yaml",
        )


def keep_to(
    agreed: ApprovedPlan,
    survey: PlanTotals,
    todo: Iterable[Hashable],
    price: Callable[[], float | None],
) -> None:
    """Raise `EvalstoreError` when the plan or its price differs from the approved plan.

    Files may have been edited since the plan was shown, and stored answers may be gone.
    """
    was, now = (agreed.asks, agreed.judgements), (survey.asks, survey.judgements)
    if any(count > shown for count, shown in zip(now, was, strict=True)):
        change = f"{_to_do(*now)}; the plan that was shown had {_to_do(*was)}"
    elif others := sum(item not in agreed.todo for item in todo):
        change = f"{plural(others, 'item')} of the new plan were not shown before"
    elif agreed.price is None:
        return
    else:
        likely = price()
        if likely is not None and likely <= agreed.price * _MUCH + 1e-6:
            return
        cost = "an unknown amount" if likely is None else f"${likely:,.4f}"
        change = f"it would cost {cost} rather than ${agreed.price:,.4f}"
    raise EvalstoreError(
        f"the plan has changed: {change}", hint="nothing was done; look at the plan again"
    )


def _to_do(asks: int, judgements: int) -> str:
    return f"{plural(asks, 'answer')} to ask and {plural(judgements, 'verdict')} to make"


def _usd(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else money(amount)


# --- plans a run batch by batch, to save memory


class Plans:
    """The plans of a scope, batch by batch, in the order of files and rows.

    Each is made when it is needed, and takes the results of the previous ones into account.
    `survey` makes them once more; a scope of one batch is planned only once.
    """

    def __init__(self, project: Project, scope: Scope) -> None:
        self._project = project
        self._scope = scope
        is_one = is_short(len(scope.cells))
        self._only = plan_cells(project, scope, [*scope.cells], priced=True) if is_one else None
        self.shared = ValueSet() if is_one else scope.cells.shared
        """Ids of the questions that several batches may ask."""
        self._done = 0
        """How many of the first batches are done, as nothing was to be done for them."""
        self._is_done = False
        """Whether these are all batches."""

    def take(self) -> Iterator[Plan]:
        """Return the plans to carry out."""
        return iter(()) if self._is_done else self._make(self._done)

    def _once(self) -> Iterator[Plan]:
        """Return the plans before any is carried out; a question of several is in the first."""
        return self._make(earlier=EarlierBatches(self.shared))

    def _make(self, done: int = 0, earlier: EarlierBatches | None = None) -> Iterator[Plan]:
        """Yield the plans, without the first ones that are done."""
        if self._only is not None:
            yield self._only
            return
        for cells in islice(batches(self._scope.cells), done, None):
            yield plan_cells(self._project, self._scope, cells, priced=True, earlier=earlier)

    def survey(self, finish: Callable[[Plan], object]) -> PlanTotals:
        """Return the totals of all plans.

        The plans at the beginning for which nothing is to be done are finished at once: `take`
        leaves them out.
        """
        survey = PlanTotals()
        is_empty = self._only is None
        for plan in self._once():
            is_empty = is_empty and not (plan.asks or plan.judgements or plan.waiting_asks)
            survey.add(plan)
            if is_empty:
                finish(plan)
                self._done += 1
        self._is_done = is_empty
        return survey

    def todo(self) -> Iterator[Hashable]:
        """Yield all items of the plans."""
        for plan in self._once():
            yield from plan.todo()

    def price(self) -> float | None:
        """Return the estimated cost in USD; None if a price is not known."""
        explainer, prices = Explainer(self._project), PriceSums(self._project)
        for plan in self._once():
            prices.add(explainer.asks(plan), plan.judgements)
        return prices.finish().usd
