"""Sorts the rows of test files by what a plan does about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from evalstore.core.values import Case
from evalstore.planning.cells.cells import Cell
from evalstore.planning.plan import Plan
from evalstore.planning.results import compute_results


@dataclass
class PlannedRows:
    """The rows of a test file that a plan is about, by the numbers of their cases."""

    cases: dict[int, Case] = field(default_factory=dict)
    """All of them."""
    asked: set[int] = field(default_factory=set)
    """Rows that need a new answer, even if another case asks the same question for them."""
    judged: set[int] = field(default_factory=set)
    """Rows with stored answers that need judgements, even if others are asked for."""
    failing: Counter[int] = field(default_factory=Counter)
    """How many results fail, by what is stored, of each row that needs nothing."""
    undecided: Counter[int] = field(default_factory=Counter)
    """How many are undecided."""
    waiting: set[int] = field(default_factory=set)
    """Rows that lack an answer or a judgement which the plan leaves out, such as until a file is
    trusted."""
    shared: str = ""
    """Where the first row that needs something gets it with another case, as a remark."""


def plan_rows(plan: Plan, files: Collection[str], rule: str) -> dict[str, PlannedRows]:
    """Return the rows of these files; `rule` is how votes become a verdict.

    In the plan of a batch, a row may get what it needs with a case of an earlier one.
    """
    rows = {file: PlannedRows() for file in files}
    asks = {id: place.file for id, place in plan.shared.asked.items()}
    asks |= {ask.question_id: ask.cell.file for ask in plan.asks}
    judgements = {key: place.file for key, place in plan.shared.judged.items()}
    for planned in plan.judgements:
        judgements[planned.cell.questions, planned.cell.case.evaluation] = planned.cell.file
    settled: list[Cell] = []
    for cell in plan.cells:
        here = rows.get(cell.file)
        if here is None:
            continue
        here.cases[cell.number] = cell.case
        asking = next((asks[question] for question in cell.questions if question in asks), None)
        judging = judgements.get((cell.questions, cell.case.evaluation))
        if asking:
            here.asked.add(cell.number)
            here.shared = here.shared or f"asked in {asking}"
        elif judging:
            here.judged.add(cell.number)
            here.shared = here.shared or f"judged in {judging}"
        else:
            settled.append(cell)
    for result in compute_results(Plan(settled, sessions=plan.sessions, votes=plan.votes), rule):
        if result.verdict == "fail":
            rows[result.cell.file].failing[result.cell.number] += 1
        if result.verdict == "undecided":
            rows[result.cell.file].undecided[result.cell.number] += 1
        if result.pending:
            rows[result.cell.file].waiting.add(result.cell.number)
    for each in rows.values():
        each.waiting.difference_update(each.asked, each.judged)
        for number in each.asked | each.judged | each.waiting:
            del each.failing[number], each.undecided[number]
    return rows
