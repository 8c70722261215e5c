"""Finds what became of the test of a shown result, and what a run would do about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError
from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.planning.cells import Cell
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.planner import make_plan
from evalstore.planning.project import Project
from evalstore.planning.reasons import Explainer
from evalstore.planning.status_report import results_at
from evalstore.results.growing_results import cell_of
from evalstore.store.trees.tree_nodes import StoredCases


class PlannedWork(NamedTuple):
    """What a run would do about a result that is answered and judged already."""

    kind: str
    """`ask` or `judge`."""
    reason: str
    """The reason as `status` gives it."""

    @property
    def text(self) -> str:
        """Return `a run would ask it again: system prompt changed: line 1: a -> b`."""
        return f"a run would {self.kind} it again: {self.reason}"


def find_planned_work(
    location: Location, result: Result, prompts: Collection[str | None]
) -> PlannedWork | None:
    """Return what a run would do about a result; None if nothing, or if files have errors.

    `prompts` are the system prompts that its case had.
    """
    if result.is_missing:
        return None
    try:
        with open_project(location) as project:
            if result.file not in project.reading.files:
                return None
            path = f"{project.workspace.root / result.file}"
            path = f"{path}::{result.row}" if result.row else path
            plan = make_plan(project, SelectionOptions((path,)))
            explainer, find = Explainer(project), former_results([result], prompts)
            for kind, explain in (("ask", explainer.asks), ("judge", explainer.judgements)):
                for planned, reason in explain(plan):
                    if find(planned.cell.case, planned.cell):
                        also = f"; also changed: {', '.join(reason.also)}" if reason.also else ""
                        return PlannedWork(kind, reason.text + also)
    except EvalstoreError:
        return None  # 'check' lists errors of files; what is stored can be shown all the same
    return None


def find_edit(location: Location, file: str, node: str) -> str:
    """Return in words what became of a test file; empty if its cases still have this node."""
    with open_project(location) as project:
        unread = _unread(project, file)
        is_same = project.reading.nodes.get(file) == node
        return unread or ("" if is_same else "its cases have changed since")


def find_edit_of(location: Location, result: Result) -> str:
    """Return in words what became of the test of a result, or that other answers count now.

    Empty if it is the same.
    """
    with open_project(location) as project:
        if unread := _unread(project, result.file):
            return unread
        cases = project.reading.files[result.file].cases
        if isinstance(cases, StoredCases):
            cases = [case for _, case in cases.labelled([result.row])]
        case = next((case for case in cases if case.row == result.row), None)
        if case is None:
            return "the row is gone now"
        if (case.tests[0], case.evaluation) != (result.test, result.evaluation):
            return "the test has changed since"
        if result.prompt not in case.prompts:
            return "the system prompt has changed since"
        with suppress(EvalstoreError):  # as for 'find_planned_work'
            for now in results_at(project, [(result.file, result.row)]):
                is_same = (now.prompt, now.model) == (result.prompt, result.model)
                if is_same and now.verdict and now.sessions != result.sessions:
                    answer = "another answer" if len(now.sessions) == 1 else "other answers"
                    return f"the workspace counts {answer} now: {now.verdict}"
        return ""


def _unread(project: Project, file: str) -> str:
    """Return why the cases that a test file has now are not known; empty if they are."""
    if file not in project.reading.tests:
        return "the test file is gone now"
    return "" if file in project.reading.files else "the test file has errors now"


def former_results(
    results: Iterable[Result], prompts: Collection[str | None]
) -> Callable[[Case, Cell | Result], Result | None]:
    """Return what finds that of these results which a cell had when these were recorded.

    An edited system prompt is at the number of the former one; `prompts`, which were there before,
    are not edited ones, wherever they are now.
    """
    by_prompt = {(each.file, each.row, each.model, each.prompt): each for each in results}
    by_number = {cell_of(each): each for each in by_prompt.values()}

    def find(case: Case, cell: Cell | Result) -> Result | None:
        model = cell.model if isinstance(cell, Result) else cell.candidate.id
        found = by_prompt.get((cell.file, case.row, model, cell.prompt))
        if found or cell.prompt in prompts:
            return found
        former = by_number.get((cell.file, case.row, cell.prompt_number, model))
        return former if former and former.prompt not in case.prompts else None

    return find
