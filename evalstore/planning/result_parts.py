"""Divides the results of a run into the parts of long test files, for what is added up of each."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalstore.store.case_files import StoredCases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalstore.planning.results import CellResult
    from evalstore.store.case_files import CasePart
    from evalstore.values import CaseFile


class PartResults(NamedTuple):
    """The results of a part of a long file, in the order of its cells."""

    file: str
    cases: str
    """The node of its cases."""
    results: list[CellResult]
    costs: list[dict[str, float]]
    """Those of the sessions and votes of the results, in USD by id."""

    def joined_costs(self) -> dict[str, float]:
        """Return the costs as one."""
        if len(self.costs) == 1:
            return self.costs[0]
        return {id: usd for each in self.costs for id, usd in each.items()}


class PartRecorder(Protocol):
    """What is told of every part that is finished."""

    def add_part(self, part: PartResults, results: str) -> None:
        """Add a part whose results have this node."""


class ResultParts:
    """Divides results, which come in the order of their cells, and tells recorders of each part."""

    def __init__(self, files: Mapping[str, CaseFile], recorders: Sequence[PartRecorder]) -> None:
        self._recorders = recorders
        self._left: dict[str, Iterator[CasePart]] = {
            path: file.cases.parts()
            for path, file in files.items()
            if recorders and isinstance(file.cases, StoredCases)
        }
        """The parts of each file that are not reached yet."""
        self._waiting: deque[PartResults] = deque()
        """The parts whose results have no node yet; the last one may get more results."""
        self._file, self._end = "", 0

    @property
    def is_any(self) -> bool:
        """Return whether there are files with parts."""
        return bool(self._left)

    def add(self, results: Sequence[CellResult], costs: dict[str, float]) -> None:
        """Add results; `costs` are those of their sessions and votes."""
        start, count = 0, len(results)
        while start < count and self._left:
            cell = results[start].cell
            if cell.file != self._file:
                self._file, self._end = cell.file, 0
            parts = self._left.get(cell.file)
            if parts is not None and cell.number >= self._end:
                part = next(part for part in parts if cell.number < part.first + part.size)
                self._end = part.first + part.size
                self._waiting.append(PartResults(cell.file, part.node, [], []))
            stop = start + 1
            while stop < count:
                cell = results[stop].cell
                if cell.file != self._file or (parts is not None and cell.number >= self._end):
                    break
                stop += 1
            if parts is not None:
                self._waiting[-1].results.extend(results[start:stop])
                self._waiting[-1].costs.append(costs)
            start = stop

    def note_results(self, file: str, cases: str, results: str) -> None:
        """Note the node of the results of the next part, whose last cell has been added."""
        if self._waiting and self._waiting[0][:2] == (file, cases):
            part = self._waiting.popleft()
            for recorder in self._recorders:
                recorder.add_part(part, results)
