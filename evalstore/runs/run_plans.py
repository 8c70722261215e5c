"""Plans a run batch by batch, to save memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.planning.cells.cell_batches import batches, divide_evenly, find_shared, take_out
from evalstore.planning.estimate import estimate
from evalstore.planning.plan_price import add_up
from evalstore.planning.planner import plan_cells
from evalstore.planning.reasons.reasons import Explainer
from evalstore.runs.run_preview import PlanTotals
from evalstore.workspace.digest_set import IdSet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from evalstore.planning.plan import Plan
    from evalstore.planning.planner import Scope
    from evalstore.planning.project import Project


class Plans:
    """The plans of a scope, batch by batch, in the order of files and rows.

    Each is made when it is needed, and takes the results of the previous ones into account.
    `survey` makes them once more; a scope of one batch is planned only once.
    """

    def __init__(self, project: Project, scope: Scope) -> None:
        self._project = project
        self._scope = scope
        count, self._size = divide_evenly(len(scope.cells))
        self._only = plan_cells(project, scope, [*scope.cells], priced=True) if count == 1 else None
        self.shared = IdSet() if count == 1 else find_shared(scope.cells)
        """Ids of the questions that several batches may ask."""
        self._done = 0
        """How many of the first batches are done, as nothing was to be done for them."""
        self._is_done = False
        """Whether these are all batches."""

    def take(self) -> Iterator[Plan]:
        """Yield the plans to carry out; cells are removed from the scope as they are planned."""
        if self._only is not None:
            yield self._only
            return
        if self._is_done:
            return
        cells = batches(take_out(self._scope.cells), self._size)
        for batch in islice(cells, self._done, None):
            yield plan_cells(self._project, self._scope, batch, priced=True)

    def _once(self) -> Iterator[Plan]:
        """Yield the plans before any is carried out; a question of several is only in the first."""
        if self._only is not None:
            yield self._only
            return
        planned: dict[str, int] = {}
        judged = set[tuple[object, ...]]()
        for cells in batches(self._scope.cells, self._size):
            plan = plan_cells(self._project, self._scope, cells, priced=True)
            judgements, plan.judgements = plan.judgements, []
            for judgement in judgements:
                if self.shared.isdisjoint(judgement.cell.questions):
                    plan.judgements.append(judgement)
                elif (place := (*judgement.place, judgement.sessions)) not in judged:
                    judged.add(place)
                    plan.judgements.append(judgement)
            asks, plan.asks = plan.asks, []
            for ask in asks:
                question = ask.question_id
                before = planned.get(question, 0)
                if ask.count > before:
                    plan.asks.append(replace(ask, count=ask.count - before))
                    if question in self.shared:
                        planned[question] = ask.count
            yield plan

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
        explainer = Explainer(self._project)
        return add_up(
            estimate(self._project, explainer.asks(plan), plan.judgements) for plan in self._once()
        ).usd
