"""Finds the results whose verdict changes without a call, by what is stored already."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evalstore.operations.earlier_index import EarlierIndex
from evalstore.operations.earlier_results import EarlierRuns
from evalstore.planning.path_history import PathHistory
from evalstore.planning.plan import Plan
from evalstore.planning.results import as_result, compute_results
from evalstore.reports.comparison import Pair, sort_pair
from evalstore.store.results import iterate_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.values import Case


@dataclass
class StoredOutcomes:
    """The results that have a verdict now, and another one in the newest run that judged them."""

    broke: Counter[str] = field(default_factory=Counter)
    """How many results of each file passed then, and fail now."""
    fixed: Counter[str] = field(default_factory=Counter)
    """How many failed then, and pass now."""
    undecided: int = 0
    """How many results were decided then, and are undecided now."""


class _Judged(NamedTuple):
    """A result with a verdict."""

    result: Result
    case: Case


def find_stored_outcomes(
    project: Project, plans: Iterable[Plan], files: Collection[str] | None = None
) -> StoredOutcomes:
    """Return what a run would find broken and fixed without asking or judging anything for it.

    `plans` are those of all cells, batch by batch, in the order of files and rows. Only results of
    these test files count; None: of all. The newest 100 runs are searched.
    """
    found = StoredOutcomes()
    earlier = _EarlierResults(project, files)
    for plan in plans:
        by_file = _judged_now(project, plan, files)
        earlier.keep_only(by_file.keys())
        for path, judged in by_file.items():
            left = judged
            for before in earlier.of(path):
                left = _compare(left, before, found)
                if not left:
                    break
    return found


class _EarlierResults:
    """The judged results of test files in earlier runs, newest first."""

    def __init__(self, project: Project, files: Collection[str] | None) -> None:
        nodes = project.reading.nodes
        cases = {node: project.reading.files[path] for path, node in nodes.items()}
        history = PathHistory(project.store, project.settings.paths["tests"], nodes, cases)
        self._store = project.store
        self._runs = EarlierRuns(project.store, history).before(
            None, set(nodes) if files is None else {*files}
        )
        self._entries: list[dict[str, str]] = []
        """The leaf of each file, of the runs that were read so far."""
        self._indexes: dict[tuple[str, str], EarlierIndex] = {}

    def keep_only(self, files: Collection[str]) -> None:
        """Forget the results of all other files."""
        for key in [key for key in self._indexes if key[0] not in files]:
            del self._indexes[key]

    def of(self, file: str) -> Iterator[EarlierIndex]:
        """Yield the results of a file in each run that has others than the newer ones."""
        number = 0
        while True:
            if number == len(self._entries):
                entries = next(self._runs, None)
                if entries is None:
                    return
                self._entries.append(entries.entries)
            leaf = self._entries[number].get(file)
            number += 1
            if leaf is not None:
                if (file, leaf) not in self._indexes:
                    self._indexes[file, leaf] = self._index(file, leaf)
                yield self._indexes[file, leaf]

    def _index(self, file: str, leaf: str) -> EarlierIndex:
        return EarlierIndex(
            result
            for batch in iterate_entries(self._store, {file: leaf})
            for result, _ in batch
            if result.verdict
        )


def _judged_now(
    project: Project, plan: Plan, files: Collection[str] | None
) -> dict[str, list[_Judged]]:
    """Return the results that have a verdict, by file."""
    cells = [cell for cell in plan.cells if files is None or cell.file in files]
    settled = Plan(cells, sessions=plan.sessions, votes=plan.votes)
    judged: dict[str, list[_Judged]] = {}
    for result in compute_results(settled, project.settings.verdict):
        if result.verdict:
            cell = result.cell
            judged.setdefault(cell.file, []).append(_Judged(as_result(result), cell.case))
    return judged


def _compare(results: list[_Judged], before: EarlierIndex, found: StoredOutcomes) -> list[_Judged]:
    """Sort results by how they changed; returns those that the earlier run has not judged."""
    left = []
    for judged in results:
        number = before.find(judged.result, judged.case.prompts)
        if number is None:
            left.append(judged)
            continue
        file = judged.result.file
        then = judged.result._replace(verdict=before.verdict(number))
        pair = Pair(then, judged.result)
        change = sort_pair(pair, answers=False)
        found.undecided += pair.is_now_undecided
        if change == "broke":
            found.broke[file] += 1
        elif change == "fixed":
            found.fixed[file] += 1
    return left
