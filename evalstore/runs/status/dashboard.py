"""The state of the workspace in a few figures: its verdicts, pending work, and what broke last.

Its figures are those of `stats @work`, `status` and `diff`. No model is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from evalstore.comparison.statistics import Clusters, Counts, Rate, count_rows, rate_of_words
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import CellKey, Verdict, order_counts
from evalstore.planning.cell_results import as_result
from evalstore.planning.open_project import open_project, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.planner import require_sound, resolve_scope
from evalstore.planning.project import Project
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.planning.status_report import Status, compute_workspace
from evalstore.results.compare.diff import find_broken_now
from evalstore.results.flips.verdict_changes import (
    BrokenCase,
    find_broken_cases,
)
from evalstore.runs.status.status import status as read_status
from evalstore.store.driver import UnwantedError, refuse_unwanted
from evalstore.store.trees.tree_nodes import StoredCases

_UNDECIDED = " (undecided now)"
"""Behind the name of a case that broke, and neither fails nor is fixed now."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The state of the workspace."""

    rate: Rate | None = None
    """The pass rate of the workspace as it is now; None when it cannot be read."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """The verdicts of the workspace that the rate counts, and how many are pending."""
    status: Status | None = None
    """The pending work; None when the workspace cannot be read."""
    broken: tuple[BrokenCase, ...] | None = ()
    """The newest first; None when the settings cannot be read."""
    problem: EvalstoreError | None = None
    """Why the workspace cannot be read."""


def read_dashboard(location: Location) -> Dashboard:
    """Compute the state of the workspace.

    A workspace that cannot be read is a `problem` of the result. Raises `EvalstoreError` for a
    store that cannot be read.
    """
    try:
        workspace = open_workspace(location)
    except EvalstoreError as problem:
        return Dashboard(broken=None, problem=problem)
    pending: Status | None = None
    broken: dict[CellKey, BrokenCase] | None = None
    try:
        pending = read_status(location, SelectionOptions(), whole=False)
        with open_project(location, workspace=workspace) as project:
            require_sound(project, SelectionOptions())
            broke = find_broken_now(project) if pending.broke else ()
            broken = find_broken_cases(location, workspace, broke, project)
            rate, words, verdicts = _read_workspace(project, broken)
    except UnwantedError:
        raise
    except EvalstoreError as problem:
        broken = find_broken_cases(location, workspace) if broken is None else broken
        return Dashboard(status=pending, broken=tuple(broken.values()), problem=problem)
    left = tuple(
        case._replace(name=f"{case.name}{_UNDECIDED * (verdicts[cell] == 'undecided')}")
        for cell, case in broken.items()
        if verdicts.get(cell, "pass") != "pass"
    )
    return Dashboard(rate, order_counts(words), pending, left)


def _read_workspace(
    project: Project, broken: Collection[CellKey]
) -> tuple[Rate, Counter[str], Mapping[CellKey, Verdict | None]]:
    """Return the pass rate and the verdicts of the workspace, and those on cells that broke."""
    rows, words = Clusters(), dict[str, Counter[str]]()
    left: dict[CellKey, Verdict | None] = {}
    files = {file for file, *_ in broken}
    scope = resolve_scope(project, SelectionOptions(), settled=_without(broken, project))
    for _, results in compute_workspace(project, scope):
        refuse_unwanted()
        places = [(result.cell.file, result.cell.case.row) for result in results]
        for counts, times in count_rows(places, [each.verdict for each in results]).items():
            rows.add(counts, times)
        for result in results:
            if result.word:
                words.setdefault(result.cell.file, Counter())[result.word] += 1
            if result.cell.file in files and (cell := as_result(result).cell) in broken:
                left[cell] = result.verdict
    for path, _, part in scope.settled.places():
        for *sums, times in part.clusters:
            rows.add(Counts(*sums), times)
        for _, verdict, count in part.words:
            if verdict:
                words.setdefault(path, Counter())[verdict] += count
    return rate_of_words(words.values(), rows), sum(words.values(), Counter()), left


def _without(broken: Collection[CellKey], project: Project) -> SettledParts:
    """Return the settled parts of files without those that contain cells that broke."""
    settled = find_settled(project, SelectionOptions())
    rows: dict[str, set[str]] = {}
    for file, row, *_ in broken if settled else ():
        rows.setdefault(file, set()).add(row)
    left_out = set[str]()
    for file, names in rows.items():
        cases = project.reading.files[file].cases if file in settled.by_file else ()
        if isinstance(cases, StoredCases):
            named = project.store.find_named_leaves(names)
            left_out.update(id for id, below in cases.divide() if not named.isdisjoint(below))
    places = settled.places()
    return settled.only(
        [(path, first) for path, first, part in places if part.node not in left_out]
    )
