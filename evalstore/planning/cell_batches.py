"""Iterates over the cells of a command in batches, so that very many need little memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from evalstore.planning.cells import Cell, Judge, SkippedPair
from evalstore.workspace.digest_set import DigestSet

FEW = 10_000
"""The number of cells that stay in memory, however large their files are."""


def batches(cells: Iterable[Cell], size: int, longest: int) -> Iterator[list[Cell]]:
    """Yield batches of at least `size` cells, except for the last; a file is in one batch.

    A file with more than `longest` cells is split between two of its cases.
    """
    batch: list[Cell] = []
    of_file = 0
    for cell in cells:
        is_same = bool(batch) and cell.file == batch[-1].file
        is_long = of_file >= longest and is_same and cell.index != batch[-1].index
        if is_long or (len(batch) >= size and not is_same):
            yield batch
            batch, of_file = [], 0
        batch.append(cell)
        of_file = of_file + 1 if is_same else 1
    if batch:
        yield batch


def take_out(cells: Collection[Cell]) -> Iterator[Cell]:
    """Iterate over the cells in their order; a list is emptied meanwhile, to free memory."""
    if not isinstance(cells, list):
        yield from cells
        return
    cells.reverse()
    while cells:
        yield cells.pop()


class StreamedCells(Collection[Cell]):
    """The cells of files with very many cases; unless they are few, each iteration builds them."""

    def __init__(self, generate: Callable[[], Iterator[Cell | SkippedPair]]) -> None:
        """`generate` returns an iterator over the cells; one is exhausted here for the summary."""
        self._generate = generate
        self._few: list[Cell] = []
        """All cells, when they are few."""
        self._count = 0
        self.skipped: list[SkippedPair] = []
        self.summary = Summary()
        finder = SharedQuestions()
        for cell in generate():
            if isinstance(cell, SkippedPair):
                self.skipped.append(cell)
            else:
                self._count += 1
                if self._count <= FEW:
                    self._few.append(cell)
                elif self._few:
                    self._few.clear()
                self.summary.add(cell)
                finder.add(cell)
        self.shared = finder.shared
        """Ids of the questions that several cells ask."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Cell]:
        if len(self._few) == self._count:
            return iter(self._few)
        return (cell for cell in self._generate() if isinstance(cell, Cell))

    def __contains__(self, cell: object) -> bool:
        return any(own == cell for own in self)


class Summary:
    """Facts about all cells of a command together."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self.judges: dict[int, tuple[Judge, ...]] = {}
        """The lists of judges of the cells, each by its `id()`."""
        self.unjudged: dict[str, None] = {}
        """Files with cells that models must judge and that have no judge."""
        self.has_others = False
        """Whether some cell has a judge, or does not need one."""
        for cell in cells:
            self.add(cell)

    def add(self, cell: Cell) -> None:
        """Add a cell."""
        self.judges[id(cell.judges)] = cell.judges
        judged_by = cell.case.judged_by
        if not cell.judges and cell.case.evaluation and "models" in judged_by:
            self.unjudged[cell.file] = None
            self.has_others = self.has_others or "checks" in judged_by
        else:
            self.has_others = True


def summarise_cells(cells: Collection[Cell]) -> Summary:
    """Return the summary of the cells of a command."""
    return cells.summary if isinstance(cells, StreamedCells) else Summary(cells)


def find_shared(cells: Collection[Cell]) -> set[str]:
    """Return the ids of the questions that several cells ask."""
    if isinstance(cells, StreamedCells):
        return cells.shared
    finder = SharedQuestions()
    for cell in cells:
        finder.add(cell)
    return finder.shared


class SharedQuestions:
    """Finds the questions that several cells ask; of the other questions it keeps digests."""

    def __init__(self) -> None:
        self.shared: set[str] = set()
        self._seen = DigestSet()

    def add(self, cell: Cell) -> None:
        """Add a cell; a question that it asks several times counts once."""
        for question in {*cell.questions}:
            if not self._seen.add(int(question[:16], 16)):
                self.shared.add(question)
