"""Finds the results whose verdict changes without a call, by what is stored already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice

from evalstore.comparison.comparison import Pair, sort_pair
from evalstore.core.results import Result
from evalstore.planning.cells.earlier_results import EarlierRuns
from evalstore.planning.cells.same_cells import find_cells, is_judged
from evalstore.planning.plan import Plan
from evalstore.planning.project import Project
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.planning.results import as_result, compute_results
from evalstore.store.rows.row_results import RowResults


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
