"""Finds what a run would do about a shown result, such as after an edit of its test."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError
from evalstore.planning.open_project import open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.planner import make_plan
from evalstore.planning.reasons import Explainer

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell
    from evalstore.planning.options import Location
    from evalstore.planning.reason import Reason
    from evalstore.results import Result


class PlannedWork(NamedTuple):
    """What a run would do about a result that is answered and judged already."""

    kind: str
    """`ask` or `judge`."""
    reason: str
    """The reason as `status` gives it."""

    @property
    def text(self) -> str:
        """Return `a run would ask it again: system prompt changed: text line 1: a -> b`."""
        return f"a run would {self.kind} it again: {self.reason}"


def find_planned_work(location: Location, result: Result) -> PlannedWork | None:
    """Return what a run would do about a result; None if nothing, or if files have errors."""
    if result.is_missing:
        return None
    try:
        with open_project(location) as project:
            if result.file not in project.reading.files:
                return None
            path = f"{project.workspace.root / result.file}"
            path = f"{path}::{result.row}" if result.row else path
            plan = make_plan(project, SelectionOptions((path,)))
            explainer = Explainer(project)
            for ask, reason in explainer.asks(plan):
                if _is_of(ask.cell, result):
                    return PlannedWork("ask", _text(reason))
            for judgement, reason in explainer.judgements(plan):
                if _is_of(judgement.cell, result):
                    return PlannedWork("judge", _text(reason))
    except EvalstoreError:
        return None  # 'check' lists errors of files; what is stored can be shown all the same
    return None


def _is_of(cell: Cell, result: Result) -> bool:
    """Return whether a cell is that of a result, whose system prompt may have been edited."""
    number = cell.case.prompts.index(cell.prompt) if cell.prompt in cell.case.prompts else 0
    place = cell.candidate.id, cell.case.row, number
    return place == (result.model, result.row, result.prompt_number)


def _text(reason: Reason) -> str:
    return f"{reason.text}; also changed: {', '.join(reason.also)}" if reason.also else reason.text
