"""Counts the labels on planned cases that were given, or removed, since a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.planning.plan import Plan
    from evalstore.store import Store

_Subject = tuple[str, tuple[str, ...]]
"""An evaluation version, and the sessions that are judged by it."""


class NewLabels:
    """Counts them in the plans of all cells, batch by batch."""

    def __init__(self, store: Store, since: int) -> None:
        """`since` is when the run ended."""
        self._since = since
        self._labels = store.find_labels()
        if not self._labels or self._labels[-1].at <= since:
            self._labels = []
        self._places: set[_Subject] = {
            (label.evaluation.evaluation, label.evaluation.sessions) for label in self._labels
        }
        self._planned: set[_Subject] = set()

    def add(self, plan: Plan) -> None:
        """Add the plan of a batch."""
        if not self._labels:
            return
        for cell in plan.cells:
            if cell.case.evaluation:
                for subject in cell.subjects(plan.sessions):
                    place = cell.case.evaluation, tuple(subject)
                    if place in self._places:
                        self._planned.add(place)

    def count(self) -> int:
        """Return how many labels there are, after all plans were added."""
        words: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for label in self._labels:
            place = label.evaluation.evaluation, label.evaluation.sessions
            if place in self._planned:
                before_and_now = words.setdefault((label.person, *place), ["none", "none"])
                before_and_now[1:] = [label.id]
                if label.evaluation.verdict == "none":
                    before_and_now[1:] = ["none"]
                if label.at <= self._since:
                    before_and_now[:1] = before_and_now[1:]
        return sum(1 for before, now in words.values() if before != now)
