"""Records which parts of very long test files a run leaves settled, for the plans after it."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

from evalstore.planning.settled_cache import CACHE, SettledCache, SettledPart
from evalstore.planning.settled_parts import Contexts, can_settle, long_files
from evalstore.reports.statistics import count_rows
from evalstore.workspace.digest_set import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.planner import Scope
    from evalstore.planning.project import Project
    from evalstore.planning.result_parts import PartResults
    from evalstore.planning.results import CellResult
    from evalstore.store.driver import Extent


def measure_extent(project: Project, selection: SelectionOptions) -> Extent | None:
    """Return how far the store reaches before a command is planned.

    None where no parts are recorded, and for a store that cannot tell what is new in it.
    """
    if can_settle(project, selection) and long_files(project):
        return project.store.measure_extent()
    return None


class SettledRecorder:
    """Adds up the parts of long files from the results of a run."""

    def __init__(self, project: Project, scope: Scope, selection: SelectionOptions) -> None:
        self._project, self._settled = project, scope.settled
        self._contexts: dict[str, str] = {}
        """By file; those whose parts are not recorded are left out."""
        self._finished: list[SettledPart] = []
        self._stored = (0, 0)
        files = long_files(project) if can_settle(project, selection) else {}
        if not files:
            return
        contexts = Contexts(project, selection)
        skipped = {pair.file for pair in scope.skipped}
        for path, file in files.items():
            if path not in skipped:
                self._contexts[path] = contexts.of(file)

    def add_part(self, part: PartResults, results: str) -> None:
        """Add a part whose results have this node; it is left out if something is missing."""
        context = self._contexts.get(part.file)
        if context is not None and not any(map(_is_open, part.results)):
            self._finished.append(_sum_up(part, context, results))

    def count(self, sessions: int, votes: int) -> None:
        """Count the sessions and votes that the run has stored for the results of a batch."""
        self._stored = (self._stored[0] + sessions, self._stored[1] + votes)

    def save(self, before: Extent) -> None:
        """Write the cache, after the run is recorded.

        `before` is how far the store reached before the plans were made. If it has got other rows
        since than those that are counted, the results may lack these: an answer, judgement or label
        of another program, or a surplus answer. Then all that is new counts as not seen.
        """
        if not self._contexts:
            return
        store, workspace = self._project.store, self._project.workspace
        after = store.measure_extent()
        if after is None:
            return
        grown = store.count_added(before, after)
        path = workspace.private / CACHE
        if not self._finished and grown == (0, 0) and path.exists():
            return
        parts = {part.key: part for part in (*self._settled, *self._finished)}
        extent = after if grown == self._stored else before
        SettledCache(store.file or (), extent, parts).write(path)


def _is_open(result: CellResult) -> bool:
    """Return whether a result lacks something, or may be judged by more models."""
    cell = result.cell
    if result.verdict is None and result.pending:
        return True
    return not cell.judges and "models" in cell.case.judged_by and bool(cell.case.evaluation)


def _sum_up(part: PartResults, context: str, results: str) -> SettledPart:
    """Return the sums of a part, which lacks nothing."""
    listed = part.results
    cells = [result.cell for result in listed]
    verdicts = count_rows([cell.case.row for cell in cells], [each.verdict for each in listed])
    words = Counter(
        (cell.candidate.id, each.verdict) for cell, each in zip(cells, listed, strict=True)
    )
    sessions = {id for result in listed for id in result.sessions}
    usd = part.joined_costs()
    return SettledPart(
        context,
        part.cases,
        results,
        cells=len(cells),
        cases=sum(verdicts.values()),
        answers=len(sessions),
        saved=_add_costs(listed, usd) if usd else 0.0,
        has_code=any(cell.case.code for cell in cells),
        words=[(model, verdict, count) for (model, verdict), count in words.items()],
        clusters=[(*counts, times) for counts, times in verdicts.items()],
        prompts=[*dict.fromkeys((cell.prompt, cell.prompt_number) for cell in cells)],
        attempts=[
            (cell.case.row, cell.prompt_number, cell.candidate.id, list(each.attempts))
            for cell, each in zip(cells, listed, strict=True)
            if each.attempts and any(verdict != "pass" for verdict in each.attempts)
        ],
        questions=array(
            "Q", map(digest_of, dict.fromkeys(id for each in cells for id in each.questions))
        ),
    )


def _add_costs(results: Iterable[CellResult], costs: Mapping[str, float]) -> float:
    """Return what the answers and votes of results have cost, each once."""
    ids = dict.fromkeys(
        id for result in results for id in (*result.sessions, *(vote.id for vote in result.votes))
    )
    return sum(costs[id] for id in ids if id in costs)
