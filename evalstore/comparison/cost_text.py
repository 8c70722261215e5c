"""Formats the costs of runs, for the command line and all pages alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalstore.core.display import cost_text, money

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.core.values import Json

SIMULATED = "costs of scripted models are simulated"


def spending_text(spending: Json) -> str:
    """Return the cost of the calls of one model."""
    return cost_text(spending["cost"], [spending])


def shared_cost_text(cost: float | None, spending: Sequence[Json]) -> str:
    """Return the cost of a run, and its parts if it has two: `$0.07 (answers $0.05, …)`.

    There are no parts if nothing was judged by models, or if no cost is known.
    """
    text = cost_text(cost, spending)
    parts = [
        (name, [each for each in spending if each["part"] == part])
        for name, part in (("answers", "candidate"), ("judging", "evaluator"))
    ]
    if cost == 0 or text == money(None) or not all(calls for _, calls in parts):
        return text
    listed = ", ".join(f"{name} {_sum_text(calls)}" for name, calls in parts)
    return f"{text} ({listed})" if cost is not None else f"{text}: {listed}"


def sum_costs(runs: Iterable[Run]) -> tuple[float | None, list[Json]]:
    """Return the cost of runs, None if that of one is not known, and that of their calls."""
    total: float | None = 0.0
    spending: list[Json] = []
    for run in runs:
        total = None if total is None or run.cost is None else total + run.cost
        spending += run.spending
    return total, spending


def _sum_text(spending: Sequence[Json]) -> str:
    """Return the cost of the calls of several models, which is a part of a marked cost."""
    costs = [each["cost"] for each in spending]
    unmarked = [{**each, "simulated": False} for each in spending]
    return cost_text(None if None in costs else sum(costs), unmarked, brief=True)
