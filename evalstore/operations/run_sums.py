"""Adds up the results of the parts of long files while a run is recorded, for `stats` after it."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from evalstore.operations.measured_results import CostReader
from evalstore.operations.part_sums import CACHE, PartSums, read_sums
from evalstore.operations.part_table import PartTable, ResultPlaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalstore.operations.part_sums import By
    from evalstore.planning.project import Project
    from evalstore.planning.result_parts import PartResults
    from evalstore.planning.results import CellResult
    from evalstore.planning.settled_parts import SettledParts
    from evalstore.reports.group_totals import Spending

_DIMENSIONS = ("model", "prompt", "tag")
GROUPINGS: tuple[By, ...] = tuple(
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
    """Adds up the parts of long files from the results of a run."""

    def __init__(self, project: Project, settled: SettledParts) -> None:
        """`settled` are parts whose sums are kept if they are known."""
        self._project, self._settled = project, settled
        prices = CostReader(project.store, contents=project.contents)
        self._unknown = _Defaults(lambda model: 0.0 if prices.is_free(model) else None)
        self._unknown_of_judges = _Defaults(
            lambda evaluator: 0.0 if prices.is_free(prices.model_of(evaluator)) else None
        )
        self._finished: dict[str, PartSums] = {}
        """The sums by node of the results."""

    def add_part(self, part: PartResults, results: str) -> None:
        """Add a part whose results have this node.

        It is left out if a verdict on an attempt is missing.
        """
        if not any(map(_lacks_attempts, part.results)):
            self._finished[results] = self._add_up(part)

    def _add_up(self, part: PartResults) -> PartSums:
        costs, results = part.joined_costs(), part.results
        usd, seconds = costs.usd, costs.seconds
        unknown, unknown_of_judges = self._unknown, self._unknown_of_judges
        places = ResultPlaces(GROUPINGS)
        table = PartTable(
            places=[
                places.find(cell.candidate.id, cell.prompt, cell.case.tags)
                for result in results
                for cell in (result.cell,)
            ],
            rows=[result.cell.case.row for result in results],
            verdicts=[result.verdict for result in results],
            sessions=[result.sessions for result in results],
            judgements=[[vote.id for vote in result.votes] for result in results],
            attempts=[result.attempts for result in results],
        )
        answers: dict[str, Spending] = {
            id: (usd.get(id, unknown[result.cell.candidate.model]), seconds.get(id))
            for result in results
            for id in result.sessions
        }
        judgements: dict[str, Spending] = {
            vote.id: (usd.get(vote.id, unknown_of_judges[vote.evaluator]), None)
            for result in results
            for vote in result.votes
        }
        return table.add_up(places, answers, judgements)

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


def _lacks_attempts(result: CellResult) -> bool:
    """Return whether a verdict on an attempt is missing."""
    cell = result.cell
    return result.verdict is None and cell.attempts > 1 and bool(cell.case.evaluation)
