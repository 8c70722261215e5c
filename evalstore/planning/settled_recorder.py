"""Records which parts of very long test files a run leaves settled, for the plans after it."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evalstore.comparison.statistics import count_rows
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import UNSETTLED
from evalstore.planning.planner import Scope
from evalstore.planning.project import Project
from evalstore.planning.results import CellResult
from evalstore.planning.settled_parts import (
    CACHE,
    Contexts,
    SettledCache,
    SettledPart,
    can_settle,
    long_files,
)
from evalstore.store.driver import Extent
from evalstore.store.trees.tree_nodes import CasePart, StoredCases
from evalstore.workspace.digest_set import digest_of


def measure_extent(project: Project, selection: SelectionOptions) -> Extent | None:
    """Return how far the store reaches before a command is planned.

    None where no parts are recorded, and for a store that cannot tell what is new in it.
    """
    if can_settle(project, selection) and long_files(project):
        return project.store.measure_extent()
    return None


class _Part(NamedTuple):
    """The results of a part of a long file, in the order of its cells."""

    file: str
    cases: str
    """The node of its cases."""
    results: list[CellResult]
    usd: dict[str, float]
    """The costs of their sessions and votes by id."""


class SettledRecorder:
    """Adds up the parts of long files from the results of a run."""

    def __init__(self, project: Project, scope: Scope, selection: SelectionOptions) -> None:
        self._project, self._settled = project, scope.settled
        self._contexts: dict[str, str] = {}
        """By file; those whose parts are not recorded are left out."""
        self._left: dict[str, Iterator[CasePart]] = {}
        """The parts of each of these files that are not reached yet."""
        self._waiting: deque[_Part] = deque()
        """The parts whose results have no node yet; the last one may get more results."""
        self._file, self._end = "", 0
        self._finished: list[SettledPart] = []
        self._stored = (0, 0)
        files = long_files(project) if can_settle(project, selection) else {}
        if not files:
            return
        contexts = Contexts(project, selection)
        skipped = {pair.file for pair in scope.cells.skipped}
        for path, file in files.items():
            if path not in skipped and isinstance(file.cases, StoredCases):
                self._contexts[path] = contexts.of(file)
                self._left[path] = file.cases.parts()

    @property
    def has_parts(self) -> bool:
        """Return whether there are files with parts."""
        return bool(self._left)

    def add(self, results: Sequence[CellResult], costs: Mapping[str, float]) -> None:
        """Add results, in the order of their cells.

        `costs` are those of their sessions and votes, in USD by id.
        """
        for result in results if self._left else ():
            cell = result.cell
            if cell.file != self._file:
                self._file, self._end = cell.file, 0
            parts = self._left.get(cell.file)
            if parts is None:
                continue
            if cell.number >= self._end:
                part = next(part for part in parts if cell.number < part.first + part.size)
                self._end = part.first + part.size
                self._waiting.append(_Part(cell.file, part.node, [], {}))
            part_results = self._waiting[-1]
            part_results.results.append(result)
            for id in (*result.sessions, *(vote.id for vote in result.votes)):
                if id in costs:
                    part_results.usd[id] = costs[id]

    def note_results(self, file: str, cases: str, results: str) -> None:
        """Note the node of the results of the next part, whose last cell has been added.

        The part is left out if something is missing.
        """
        if self._waiting and self._waiting[0][:2] == (file, cases):
            part = self._waiting.popleft()
            if not any(map(_is_open, part.results)):
                self._finished.append(_sum_up(part, self._contexts[file], results))

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


def _sum_up(part: _Part, context: str, results: str) -> SettledPart:
    """Return the sums of a part, which lacks nothing."""
    listed = part.results
    cells = [result.cell for result in listed]
    verdicts = count_rows([cell.case.row for cell in cells], [each.verdict for each in listed])
    words = Counter(
        (cell.candidate.id, each.verdict) for cell, each in zip(cells, listed, strict=True)
    )
    sessions = {id for result in listed for id in result.sessions}
    undecided = {
        vote.id
        for result in listed
        for vote in result.votes
        if vote.verdict in UNSETTLED and not any(each.human for each in result.votes)
    }
    return SettledPart(
        context,
        part.cases,
        results,
        cells=len(cells),
        cases=sum(verdicts.values()),
        answers=len(sessions),
        undecided=len(undecided),
        saved=sum(part.usd.values()),
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
