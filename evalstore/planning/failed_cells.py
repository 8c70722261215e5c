"""Finds the cells that did not pass when they last ran, among many, in little memory."""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.errors import NothingSelectedError
from evalstore.planning.numbered_results import NumberedResults
from evalstore.planning.path_history import PathHistory
from evalstore.reports.cell_places import is_of_cell, places_of
from evalstore.store.path_trees import read_tree
from evalstore.store.results import iterate_entries
from evalstore.workspace.digest_set import DigestMap, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

    from evalstore.planning.cell_batches import PlacedCell, StreamedCells
    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store

_AT_ONCE = 250_000
"""The most cells that are looked for in a run at once: their places are in memory meanwhile."""
_KNOWN, _FAILED = 2, 1
_PROMPT_BITS = (1 << 64) - 4
"""What is kept of a result, as one number: whether there is one, whether it failed, and a digest of
its system prompt."""


def find_failed(project: Project, cells: StreamedCells, *, hint: str) -> bytearray:
    """Return 1 for each cell that did not pass in the newest run that has it, and 0 for the others.

    Rows are paired by their values, else by their label. Raises `NothingSelectedError` when there
    are none.
    """
    failed, waiting, is_first = bytearray(len(cells)), bytearray(b"\1" * len(cells)), True
    reading = project.reading
    leaves = {leaf: reading.files[path] for path, leaf in reading.nodes.items()}
    history = PathHistory(project.store, project.settings.paths["tests"], reading.nodes, leaves)
    layout = cells.layout
    numbered = NumberedResults(project, layout) if layout else None
    for run in project.store.find_recent_runs():
        is_first = False
        if not any(waiting):
            break
        history.step(run.snapshot)
        results = _RunResults(project.store, run, history)
        if layout and numbered:
            results.leave_out(
                path
                for path, leaf in results.leaves()
                if not layout.has(path) or numbered.look_up(path, leaf, waiting, failed)
            )
        if results.files:
            _look_up(results, cells, waiting, failed)
    if cells and not any(failed):
        words = "there is no run yet" if is_first else "nothing failed when it last ran"
        raise NothingSelectedError(f"nothing is selected: {words}", hint=hint)
    return failed


class _RunResults:
    """The results of a run under the current paths of their test files."""

    def __init__(self, store: Store, run: Run, history: PathHistory) -> None:
        self._store = store
        self._leaves: dict[str, tuple[str, str]] = {}
        """By the current path of a test file: its path in the run, and the node of its results."""
        for name, leaf in read_tree(run.results, store.load_nodes).items():
            if (path := history.newest_path(name)) is not None:
                self._leaves[path] = name, leaf

    @property
    def files(self) -> Set[str]:
        """Return the files that have results."""
        return self._leaves.keys()

    def leaves(self) -> list[tuple[str, str]]:
        """Return the node of the results of each file, with its path."""
        return [(path, leaf) for path, (_, leaf) in self._leaves.items()]

    def leave_out(self, files: Iterable[str]) -> None:
        """Leave out the results of some files."""
        for file in files:
            del self._leaves[file]

    def read(self, files: Iterable[str]) -> Iterator[Result]:
        """Yield the results of files with these paths, which the run has."""
        known = {path: self._leaves[path] for path in files}
        paths = {name: path for path, (name, _) in known.items()}
        for batch in iterate_entries(self._store, dict(known.values())):
            for result, _ in batch:
                path = paths[result.file]
                yield result if path == result.file else result._replace(file=path)


def _look_up(
    results: _RunResults, cells: StreamedCells, waiting: bytearray, failed: bytearray
) -> None:
    """Note which of the cells that are waiting failed in a run; those that it has wait no more."""
    files = results.files
    for part in _in_parts(waiting):
        wanted = _WantedResults()
        met: set[str] = set()
        for number, cell in cells.places(files):
            if number < len(part) and part[number]:
                met.add(cell.file)
                wanted.want(cell)
        is_any = False
        for result in results.read(met):
            is_any = wanted.note(result) or is_any
        if not is_any:
            continue
        for number, cell in cells.places(met):
            if number < len(part) and part[number]:
                has_failed = wanted.find(cell)
                if has_failed is not None:
                    waiting[number], failed[number] = 0, has_failed


def _in_parts(waiting: Sequence[int]) -> Iterator[bytes]:
    """Yield the places of 1 in `waiting` in parts, each with at most so many of them."""
    places = (number for number, is_waiting in enumerate(waiting) if is_waiting)
    start = 0
    while some := array("Q", islice(places, _AT_ONCE)):
        yield bytes(start) + bytes(waiting[start : some[-1] + 1])
        start = some[-1] + 1


class _WantedResults:
    """The results of some cells in a run, found as `CellIndex` does; of each it keeps a number.

    The last of several results of a cell counts.
    """

    def __init__(self) -> None:
        self._numbers = DigestMap()

    def want(self, cell: PlacedCell) -> None:
        """Add a cell whose result is wanted."""
        for place in places_of(cell):
            self._numbers.add(digest_of_value(place), 0)

    def note(self, result: Result) -> bool:
        """Keep a result if it may be wanted; returns whether it is."""
        number = digest_of_value(result.prompt) & _PROMPT_BITS | _KNOWN | _has_failed(result)
        is_wanted = False
        for place in places_of(result):
            is_wanted = self._numbers.replace(digest_of_value(place), number) or is_wanted
        return is_wanted

    def find(self, cell: PlacedCell) -> bool | None:
        """Return whether the result of a cell failed; None if there is none."""
        prompt = _digest_prompt(cell.prompt)
        for place in places_of(cell):
            number = self._numbers.get(digest_of_value(place))
            if number and is_of_cell(
                number & _PROMPT_BITS, prompt, map(_digest_prompt, cell.prompts)
            ):
                return bool(number & _FAILED)
        return None


def _digest_prompt(prompt: str | None) -> int:
    return digest_of_value(prompt) & _PROMPT_BITS


def _has_failed(result: Result) -> bool:
    """Return whether a result has failed; an answered case without an evaluation has not."""
    if result.verdict is None:
        return result.evaluation is not None or len(result.sessions) < result.required_answers
    return result.verdict != "pass"
