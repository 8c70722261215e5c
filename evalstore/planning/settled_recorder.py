"""Records which parts of very long test files a run leaves settled, for the plans after it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalstore.planning.settled_cache import CACHE, SettledCache, SettledPart
from evalstore.planning.settled_parts import Contexts, can_settle, long_files
from evalstore.reports.statistics import Counts, Questions, add_verdict
from evalstore.store.case_files import StoredCases
from evalstore.workspace.digest_set import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.planner import Scope
    from evalstore.planning.project import Project
    from evalstore.planning.results import CellResult
    from evalstore.store.case_files import CasePart
    from evalstore.store.driver import Extent
    from evalstore.values import Verdict

_NONE = Counts()


def measure_extent(project: Project, selection: SelectionOptions) -> Extent | None:
    """Return how far the store reaches before a command is planned.

    None where no parts are recorded, and for a store that cannot tell what is new in it.
    """
    if can_settle(project, selection) and long_files(project):
        return project.store.measure_extent()
    return None


class SettledRecorder:
    """Adds up the parts of long files from the results of a run, in the order of its cells."""

    def __init__(self, project: Project, scope: Scope, selection: SelectionOptions) -> None:
        self._project, self._settled = project, scope.settled
        self._parts: dict[str, Iterator[CasePart]] = {}
        """The parts of each file that are not reached yet."""
        self._contexts: dict[str, str] = {}
        self._done: dict[tuple[str, str], SettledPart] = {}
        """The settled parts whose results are not known yet, by file and node of their cases."""
        self._finished: list[SettledPart] = []
        self._stored = (0, 0)
        self._file = ""
        self._end = 0
        self._sums: _PartSums | None = None
        """Those of the current part; None before the first one of a file."""
        files = long_files(project) if can_settle(project, selection) else {}
        if not files:
            return
        contexts = Contexts(project, selection)
        skipped = {pair.file for pair in scope.skipped}
        for path, file in files.items():
            if path not in skipped and isinstance(file.cases, StoredCases):
                self._parts[path] = file.cases.parts()
                self._contexts[path] = contexts.of(file)

    @property
    def is_any(self) -> bool:
        """Return whether there are files whose parts are recorded."""
        return bool(self._parts)

    def add(self, results: Iterable[CellResult], costs: Mapping[str, float]) -> None:
        """Add results; `costs` are those of the sessions and votes that were not free."""
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
                self._end = part.first + part.size
                self._sums = _PartSums(SettledPart(self._contexts[cell.file], part.node))
            if self._sums is not None:
                self._sums.add(result, costs)

    def _close(self) -> None:
        if self._sums is not None and self._sums.is_settled:
            part = self._sums.finish()
            self._done[self._file, part.node] = part
        self._sums = None

    def note_results(self, file: str, cases: str, results: str) -> None:
        """Note the node of the results of a part of a file, whose last cell has been added."""
        if self._sums is not None and (self._file, self._sums.part.node) == (file, cases):
            self._close()
        part = self._done.pop((file, cases), None)
        if part is not None:
            part.results = results
            self._finished.append(part)

    def count(self, sessions: int, votes: int) -> None:
        """Count the sessions and votes that the run has stored for the results of a batch."""
        self._stored = (self._stored[0] + sessions, self._stored[1] + votes)

    def save(self, before: Extent) -> None:
        """Write the cache, after the run is recorded.

        `before` is how far the store reached before the plans were made. If it has got other rows
        since than those that are counted, the results may lack these: an answer, judgement or label
        of another program, or a surplus answer. Then all that is new counts as not seen.
        """
        if not self._parts:
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


class _PartSums:
    """The sums of a part so far."""

    def __init__(self, part: SettledPart) -> None:
        self.part = part
        self.is_settled = True
        self._words: Counter[tuple[str, Verdict | None]] = Counter()
        self._prompts: dict[tuple[str | None, int], None] = {}
        self._cases: Questions = {}
        self._questions: dict[str, None] = {}
        self._sessions: set[str] = set()
        self._votes: set[str] = set()

    def add(self, result: CellResult, costs: Mapping[str, float]) -> None:
        """Add a result; the part is not settled if something is missing."""
        cell, part = result.cell, self.part
        case = cell.case
        lacks_judge = not cell.judges and case.evaluation and "models" in case.judged_by
        if lacks_judge or result.pending:
            self.is_settled = False
            return
        self._words[cell.candidate.id, result.verdict] += 1
        self._prompts[cell.prompt, cell.prompt_number] = None
        place = cell.file, case.row
        self._cases[place] = add_verdict(self._cases.get(place, _NONE), result.verdict)
        for question in cell.questions:
            self._questions[question] = None
        part.cells += 1
        part.has_code = part.has_code or bool(case.code)
        if result.attempts and any(verdict != "pass" for verdict in result.attempts):
            place_of = case.row, cell.prompt_number, cell.candidate.id
            part.attempts.append((*place_of, list(result.attempts)))
        if costs:
            self._add_costs(result, costs)
        self._sessions.update(result.sessions)

    def _add_costs(self, result: CellResult, costs: Mapping[str, float]) -> None:
        """Add what the answers and votes of a result have cost, each once."""
        for known, ids in (
            (self._sessions, result.sessions),
            (self._votes, [vote.id for vote in result.votes]),
        ):
            self.part.saved += sum(costs[id] for id in ids if id in costs and id not in known)
            known.update(ids)

    def finish(self) -> SettledPart:
        """Return the part with all its sums."""
        part = self.part
        part.cases, part.answers = len(self._cases), len(self._sessions)
        part.words = [(model, verdict, count) for (model, verdict), count in self._words.items()]
        counts = Counter(self._cases.values())
        part.clusters = [(*each, times) for each, times in counts.items()]
        part.prompts = [*self._prompts]
        part.questions.extend(map(digest_of, self._questions))
        return part
