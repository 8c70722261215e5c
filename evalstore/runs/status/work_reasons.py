"""Counts what a plan asks and judges, with which models and why, and keeps no list of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from evalstore.planning.plan import PlanItem

Grounds = tuple[str, tuple[str, ...]]
"""A reason, and what else was edited."""


@dataclass
class KindReasons:
    """The items of a kind, by model and by reason."""

    total: int = 0
    by_checks: int = 0
    models: Counter[str] = field(default_factory=Counter)
    """Answers by candidate, or judgements by evaluator."""
    reasons: Counter[Grounds] = field(default_factory=Counter)
    first: dict[Grounds, PlanItem] = field(default_factory=dict)
    """Reason -> the first item that has it."""
    differing: set[Grounds] = field(default_factory=set)
    """The reasons whose values are not the same in all items."""

    def add(self, item: PlanItem) -> None:
        """Add an item."""
        is_judgement = item.kind == "judge"
        is_by_checks = item.evaluator == "checks"
        self.total += item.count
        self.by_checks += item.count if is_by_checks else 0
        self.models[item.evaluator or item.model if is_judgement else item.model] += item.count
        reason = item.reason, item.also
        self.reasons[reason] += item.count
        example = self.first.setdefault(reason, item)
        if (item.was, item.now) != (example.was, example.now):
            self.differing.add(reason)


class WorkReasons:
    """Takes the items of a plan, batch by batch, and counts them."""

    def __init__(self) -> None:
        self.kinds: dict[str, KindReasons] = {}
        """By the kind of the items."""

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Count the items of the next batch."""
        for item in chain(asks, judgements):
            if item.kind not in self.kinds:
                self.kinds[item.kind] = KindReasons()
            self.kinds[item.kind].add(item)

    def finish(self) -> list[PlanItem]:
        """Return no items."""
        return []
