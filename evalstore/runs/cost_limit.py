"""Compares the limit on the cost of a run with what its plan is likely to cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.status.status_report import CostLimit
from evalstore.runs.run_preview import most_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.planning.options import RunOptions
    from evalstore.planning.project import Project
    from evalstore.planning.status.status_report import Status

_ROUNDING = 1e-6
"""Allows for the rounding errors of floats, so that $0.30 of $0.80 are 15 of 40."""


def find_short_limit(
    project: Project,
    options: RunOptions,
    status: Status,
    models: Sequence[str],
    least: float | None,
) -> CostLimit | None:
    """Return the limit of a run of these models if its plan is likely to reach it, else None.

    Answers and their judgements are paid in turn, so it lasts for the same part of both. `least` is
    what a call may cost, if the limit allows none.
    """
    usd = most_cost(project, options)
    if usd is None:
        return None
    name = "maxCost" if options.max_cost is None else "--max-cost"
    if unpriced := tuple(id for id in models if not project.has_known_costs(id)):
        return CostLimit(usd, name, None, None, unpriced)
    if least is not None:
        return CostLimit(usd, name, 0, 0, call=least)
    if status.cost is None or status.cost <= usd:
        return None
    part = usd / status.cost
    by_models = status.judge - status.by_checks
    answers, judgements = (int(count * part + _ROUNDING) for count in (status.ask, by_models))
    return CostLimit(usd, name, answers, judgements)
