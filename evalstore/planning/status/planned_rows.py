"""Finds what a plan does about rows, and results whose verdict changes without a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice

from evalstore.comparison.comparison import Pair, sort_pair
from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.planning.cells.cells import Cell
from evalstore.planning.cells.earlier_results import EarlierRuns, find_cells, is_judged
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.planning.results import as_result, compute_results
from evalstore.store.rows.row_results import RowResults

_Settled = tuple[int, "str | None", str]
"""The number of a case, its system prompt and a verdict."""


@dataclass
class PlannedRows:
    """The rows of a test file that a plan is about, by the numbers of their cases."""

    cases: dict[int, Case] = field(default_factory=dict)
    """All of them."""
    asked: set[int] = field(default_factory=set)
    """Rows that need a new answer, even if another case asks the same question for them."""
    judged: set[int] = field(default_factory=set)
    """Rows with stored answers that need judgements, even if others are asked for."""
    verdicts: Counter[_Settled] = field(default_factory=Counter)
    """How many results have a verdict, by what is stored: of each row and system prompt."""
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
        if result.verdict:
            place = result.cell.number, result.cell.prompt, result.verdict
            rows[result.cell.file].verdicts[place] += 1
        if result.pending:
            rows[result.cell.file].waiting.add(result.cell.number)
    for each in rows.values():
        each.waiting.difference_update(each.asked, each.judged)
    return rows


# --- results whose verdict changes without a call, by what is stored already


@dataclass
class StoredOutcomes:
    """The results that have a verdict now, and another one in the newest run that judged them."""

    broke: Counter[str] = field(default_factory=Counter)
    """How many results of each file passed then, and fail now."""
    fixed: Counter[str] = field(default_factory=Counter)
    """How many failed then, and pass now."""
    undecided: int = 0
    """How many results were decided then, and are undecided now."""


_Judged = tuple["Result", tuple[str | None, ...]]
"""A result with a verdict, and the system prompts of its case."""


def find_stored_outcomes(
    project: Project, plans: Iterable[Plan], files: Collection[str] | None = None
) -> StoredOutcomes:
    """Return what a run would find broken and fixed without asking or judging anything for it.

    `plans` are those of all cells, batch by batch, in the order of files and rows. Only results of
    these test files count; None: of all. The newest 100 runs are searched.
    """
    found, rows = StoredOutcomes(), RowResults(project.store)
    known: list[Mapping[str, str]] = []
    newer = _iterate_entries(project, files)
    for plan in plans:
        left = [*_judged_now(project, plan, files)]
        for number in count() if left else ():
            if number == len(known):
                known += islice(newer, 1)
            if not left or number == len(known):
                break
            left = _compare(rows, known[number], left, found)
    return found


def _iterate_entries(
    project: Project, files: Collection[str] | None
) -> Iterator[Mapping[str, str]]:
    """Yield the results of test files that each earlier run has and newer ones have not."""
    nodes = project.reading.nodes
    cases = {node: project.reading.files[path] for path, node in nodes.items()}
    history = PathHistory(project.store, project.settings.paths["tests"], nodes, cases)
    paths = set(nodes) if files is None else {*files}
    for _, entries in EarlierRuns(project.store, history).before(None, paths):
        if entries:
            yield entries


def _judged_now(project: Project, plan: Plan, files: Collection[str] | None) -> Iterator[_Judged]:
    """Yield the results that have a verdict."""
    cells = [cell for cell in plan.cells if files is None or cell.file in files]
    settled = Plan(cells, sessions=plan.sessions, votes=plan.votes)
    for result in compute_results(settled, project.settings.verdict):
        if result.verdict:
            yield as_result(result), result.cell.case.prompts


def _compare(
    rows: RowResults, entries: Mapping[str, str], judged: list[_Judged], found: StoredOutcomes
) -> list[_Judged]:
    """Sort results by how they changed; returns those that the earlier run has not judged."""
    left = []
    earlier = find_cells(rows, entries, judged, is_judged)
    for each, was in zip(judged, earlier, strict=True):
        if was is None:
            left.append(each)
            continue
        now = each[0]
        pair = Pair(was[0], now)
        change = sort_pair(pair, answers=False)
        found.undecided += pair.is_now_undecided
        if change == "broke":
            found.broke[now.file] += 1
        elif change == "fixed":
            found.fixed[now.file] += 1
    return left
