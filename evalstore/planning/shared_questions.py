"""Finds the other cases of a plan that ask the same question, and so share its answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from evalstore.planning.earlier_batches import FirstCase, WholePlanError

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell
    from evalstore.planning.plan import Plan, PlannedAsk

_MOST = 5
"""The most cases that are remembered for a question."""


class QuestionSharing:
    """The questions of a plan with the cases that ask them; read when the first one is needed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @cached_property
    def _cells(self) -> dict[str, list[Cell]]:
        cells: dict[str, list[Cell]] = {}
        for cell in self._plan.cells:
            for question in dict.fromkeys(cell.questions):
                known = cells.setdefault(question, [])
                if len(known) < _MOST:
                    known.append(cell)
        return cells

    @cached_property
    def _asks(self) -> dict[str, PlannedAsk]:
        return {ask.question_id: ask for ask in self._plan.asks}

    def others(self, cell: Cell) -> Iterator[Cell]:
        """Yield other cases that ask a question of a cell.

        Raises `WholePlanError` if some may be in other batches.
        """
        earlier = self._plan.shared.earlier
        if earlier and not earlier.shared.isdisjoint(cell.questions):
            raise WholePlanError
        for question in cell.questions:
            for other in self._cells.get(question, ()):
                if not _is_same_case(cell, other):
                    yield other

    def asked_by(self, cell: Cell) -> Cell | FirstCase | None:
        """Return the other case with which a run asks the questions of a cell; None if its own."""
        before = self._plan.shared.asked
        found: list[Cell | FirstCase] = []
        for question in cell.questions:
            if question in before:
                found.append(before[question])
            elif question in self._asks:
                found.append(self._asks[question].cell)
        if any(_is_same_case(cell, other) for other in found):
            return None
        return found[0] if found else None


def place_of(other: Cell | FirstCase, cell: Cell) -> str:
    """Return where another case is: its file, or that it is a row of the same file."""
    return other.file if other.file != cell.file else "another row"


def _is_same_case(cell: Cell, other: Cell | FirstCase) -> bool:
    return (cell.file, cell.number) == (other.file, other.number)
