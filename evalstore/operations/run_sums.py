"""Adds up the results of the parts of long files while a run is recorded, for `stats` after it."""

from __future__ import annotations

from array import array
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from evalstore.operations.measured_results import CostReader
from evalstore.operations.part_sums import CACHE, PartSums, keys_of, read_sums, without_file
from evalstore.planning.results import as_result
from evalstore.planning.settled_parts import long_files
from evalstore.reports.group_totals import CallFacts, GroupTotals
from evalstore.store.case_files import StoredCases
from evalstore.workspace.digest_set import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from evalstore.operations.part_sums import By, Key
    from evalstore.planning.project import Project
    from evalstore.planning.results import CellResult
    from evalstore.planning.settled_parts import SettledParts
    from evalstore.results import KnownCosts
    from evalstore.store.case_files import CasePart
    from evalstore.values import Verdict

_DIMENSIONS = ("model", "prompt", "tag")
_GROUPINGS: tuple[By, ...] = tuple(
    by for count in range(len(_DIMENSIONS) + 1) for by in combinations(_DIMENSIONS, count)
)
"""The groupings that are written, sorted; those by file follow from them."""


class _Defaults(dict[str, "float | None"]):
    """Costs by the id of who is called; each is computed once."""

    def __init__(self, find: Callable[[str], float | None]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, id: str) -> float | None:
        self[id] = self._find(id)
        return self[id]


class SumsRecorder:
    """Adds up the parts of long files from the results of a run, in the order of its cells."""

    def __init__(self, project: Project, settled: SettledParts) -> None:
        """`settled` are parts whose sums are kept if they are known."""
        self._project, self._settled = project, settled
        prices = CostReader(project.store, contents=project.contents)
        self._unknown = _Defaults(lambda model: 0.0 if prices.is_free(model) else None)
        self._unknown_of_judges = _Defaults(
            lambda evaluator: 0.0 if prices.is_free(prices.model_of(evaluator)) else None
        )
        self._parts: dict[str, Iterator[CasePart]] = {
            path: file.cases.parts()
            for path, file in long_files(project).items()
            if isinstance(file.cases, StoredCases)
        }
        """The parts of each file that are not reached yet."""
        self._done: dict[tuple[str, str], PartSums] = {}
        """The sums whose results have no node yet, by file and node of the cases."""
        self._finished: dict[str, PartSums] = {}
        """The sums by node of the results."""
        self._file, self._end = "", 0
        self._node = ""
        self._part: _PartTotals | None = None

    @property
    def is_any(self) -> bool:
        """Return whether there are files whose parts are added up."""
        return bool(self._parts)

    def add(self, results: Iterable[CellResult], costs: KnownCosts) -> None:
        """Add results; `costs` are those of their sessions and votes."""
        if not self._parts:
            return
        for result in results:
            cell = result.cell
            if cell.file != self._file:
                self._close()
                self._file, self._end = cell.file, 0
            if cell.file not in self._parts:
                continue
            if cell.number >= self._end:
                self._close()
                part = next(
                    part for part in self._parts[cell.file] if cell.number < part.first + part.size
                )
                self._end, self._node = part.first + part.size, part.node
                self._part = _PartTotals(self._unknown, self._unknown_of_judges)
            if self._part is not None:
                self._part.add(result, costs)

    def _close(self) -> None:
        if self._part is not None and self._part.is_known:
            self._done[self._file, self._node] = self._part.finish()
        self._part = None

    def note_results(self, file: str, cases: str, results: str) -> None:
        """Note the node of the results of a part of a file, whose last cell has been added."""
        if (self._file, self._node) == (file, cases):
            self._close()
        sums = self._done.pop((file, cases), None)
        if sums is not None:
            self._finished[results] = sums

    def save(self) -> None:
        """Write the sums, after the run is recorded."""
        if not self._finished:
            return
        workspace = self._project.workspace
        rule = self._project.settings.verdict
        cache = read_sums(workspace.private / CACHE, workspace.boundary, rule)
        for node, sums in self._finished.items():
            cache.put(node, sums)
        cache.write({*self._finished, *(part.results for part in self._settled)})


class _Added(NamedTuple):
    """A result with what is added up of it."""

    place: int
    """The number of what it is grouped by."""
    file: str
    row: str
    verdict: Verdict | None
    answers: Sequence[CallFacts]
    judgements: Sequence[CallFacts]
    attempts: Sequence[Verdict]


class _PartTotals:
    """The results of a part so far."""

    def __init__(self, unknown: _Defaults, unknown_of_judges: _Defaults) -> None:
        """Both have the cost of calls whose price is not known."""
        self._unknown, self._unknown_of_judges = unknown, unknown_of_judges
        self.is_known = True
        """Whether all facts are known: verdicts on attempts are not, where one is missing."""
        self._places: dict[tuple[object, ...], int] = {}
        self._keys: list[dict[By, list[Key]]] = []
        """The groups of each place, by grouping."""
        self._results: list[_Added] = []

    def add(self, result: CellResult, costs: KnownCosts) -> None:
        """Add a result."""
        cell = result.cell
        case = cell.case
        if cell.attempts > 1 and case.evaluation and result.verdict is None:
            self.is_known = False
        alike = cell.candidate.id, cell.prompt, case.tags
        place = self._places.get(alike)
        if place is None:
            place = self._places[alike] = len(self._keys)
            sample = as_result(result)
            self._keys.append(
                {
                    by: [without_file(by, key) for key in keys_of(by, sample, case)]
                    for by in _GROUPINGS
                }
            )
        usd, seconds = costs.usd, costs.seconds
        unknown = self._unknown[cell.candidate.model]
        answers = [CallFacts(id, usd.get(id, unknown), seconds.get(id)) for id in result.sessions]
        judgements = [
            CallFacts(vote.id, usd.get(vote.id, self._unknown_of_judges[vote.evaluator]))
            for vote in result.votes
        ]
        self._results.append(
            _Added(place, cell.file, case.row, result.verdict, answers, judgements, result.attempts)
        )

    def finish(self) -> PartSums:
        """Return the sums."""
        known: dict[frozenset[int], list[Any]] = {}
        groups: dict[By, dict[Key, list[Any]]] = {}
        for by in _GROUPINGS:
            members: dict[Key, set[int]] = {}
            for place, keys in enumerate(self._keys):
                for key in keys[by]:
                    members.setdefault(key, set()).add(place)
            groups[by] = {}
            for key, listed in members.items():
                places = frozenset(listed)
                if places not in known:
                    known[places] = self._add_up(places)
                groups[by][key] = known[places]
        sessions = {digest_of(answer.id) for added in self._results for answer in added.answers}
        return PartSums(array("Q", sessions), groups)

    def _add_up(self, places: frozenset[int]) -> list[Any]:
        """Return the sums of the results at these places."""
        totals = GroupTotals()
        for added in self._results:
            if added.place in places:
                totals.add_result(*added[1:])
        return totals.sums()
