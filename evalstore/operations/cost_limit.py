"""Compares the limit on the cost of a run with what its plan is likely to cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.operations.run_preview import most_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.operations.status_report import Status
    from evalstore.planning.options import RunOptions
    from evalstore.planning.project import Project

_ROUNDING = 1e-6
"""Allows for the rounding errors of floats, so that $0.30 of $0.80 are 15 of 40."""


class CostLimit(NamedTuple):
    """A limit on the cost that is less than what a plan is likely to cost, or cannot be kept."""

    usd: float
    name: str
    """What sets it: `--max-cost`, or the setting `maxCost`."""
    answers: int | None
    """About how many of the answers it lasts for; None when it cannot be kept."""
    judgements: int | None
    """The same of the judgements by models."""
    unpriced: tuple[str, ...] = ()
    """The models whose price is not known, so that a run with the limit does not begin."""


def find_short_limit(
    project: Project, options: RunOptions, status: Status, models: Sequence[str]
) -> CostLimit | None:
    """Return the limit of a run of these models if its plan is likely to reach it, else None.

    Answers and their judgements are paid in turn, so it lasts for the same part of both.
    """
    usd = most_cost(project, options)
    if usd is None:
        return None
    name = "maxCost" if options.max_cost is None else "--max-cost"
    if unpriced := tuple(id for id in models if project.price_of(id) is None):
        return CostLimit(usd, name, None, None, unpriced)
    if status.cost is None or status.cost <= usd:
        return None
    part = usd / status.cost
    by_models = status.judge - status.by_checks
    answers, judgements = (int(count * part + _ROUNDING) for count in (status.ask, by_models))
    return CostLimit(usd, name, answers, judgements)
