"""The cells of a command batch by batch, so that very many of them need little memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from evalstore.planning.cells import Cell, Judge, SkippedPair
from evalstore.workspace.digest_set import DigestSet

FEW = 10_000
"""Up to so many cells stay in memory, however large their files are."""


def batches(cells: Iterable[Cell], size: int, longest: int) -> Iterator[list[Cell]]:
    """The cells in parts of at least `size`, but for the last; those of a file stay together.

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
    """The cells in their order; those of a list are removed from it on the way."""
    if not isinstance(cells, list):
        yield from cells
        return
    cells.reverse()
    while cells:
        yield cells.pop()


class StreamedCells(Collection[Cell]):
    """The cells of files with very many cases; each iteration makes them anew, if they are many."""

    def __init__(self, lay_out: Callable[[], Iterator[Cell | SkippedPair]]) -> None:
        """`lay_out` makes an iterator over them; one is exhausted now, for the summary."""
        self._lay_out = lay_out
        self._few: list[Cell] = []
        """All of them, when they are few."""
        self._count = 0
        self.skipped: list[SkippedPair] = []
        self.summary = Summary()
        finder = SharedQuestions()
        for cell in lay_out():
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
        self.shared = finder.found
        """Ids of the questions that several of them ask."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Cell]:
        if len(self._few) == self._count:
            return iter(self._few)
        return (cell for cell in self._lay_out() if isinstance(cell, Cell))

    def __contains__(self, cell: object) -> bool:
        return any(own == cell for own in self)


class Summary:
    """What a command must know of all its cells together."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self.judges: dict[int, tuple[Judge, ...]] = {}
        """The lists of judges that cells have, each by what identifies it in memory."""
        self.unjudged: dict[str, None] = {}
        """Files with cells that models must judge, and no judge is there for them."""
        self.has_others = False
        """Whether there is a cell that something judges, or that no model must judge."""
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


def summarise(cells: Collection[Cell]) -> Summary:
    """What a command must know of all its cells together."""
    return cells.summary if isinstance(cells, StreamedCells) else Summary(cells)


def find_shared(cells: Collection[Cell]) -> set[str]:
    """The ids of the questions that several cells ask."""
    if isinstance(cells, StreamedCells):
        return cells.shared
    finder = SharedQuestions()
    for cell in cells:
        finder.add(cell)
    return finder.found


class SharedQuestions:
    """Finds the questions that several cells ask; digests stand for the others."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._seen = DigestSet()

    def add(self, cell: Cell) -> None:
        """Add a cell; it asks each of its questions once."""
        for question in {*cell.questions}:
            if not self._seen.add(int(question[:16], 16)):
                self.found.add(question)
