"""Finds how many answers cells need to the questions that they share with other cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.cells import limit_of
from evalstore.workspace.digest_set import DigestMap, digest_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from evalstore.planning.cell_batches import StreamedCells
    from evalstore.planning.cells import Cell


class SharedNeeds:
    """The first cell that needs most answers to each shared question; of it few bytes are kept."""

    def __init__(self, cells: StreamedCells) -> None:
        """`cells` are read once."""
        self._shared = cells.shared
        self._numbers = DigestMap()
        """The number of the need of each question."""
        self._cells: list[Cell] = []
        """A cell for each need, which has its number of answers as attempts."""
        self._known: dict[Hashable, int] = {}
        for cell in cells:
            for question, count in self._needs_of([cell]):
                digest = digest_of(question)
                number = self._numbers.get(digest)
                if number is None or self._cells[number].attempts < count:
                    self._numbers.put(digest, self._number(cell, count))

    def cells_for(self, batch: Iterable[Cell]) -> list[Cell]:
        """Return a cell for each shared question of a batch, which needs what all cells do."""
        numbers = (
            (question, self._numbers.get(digest_of(question)))
            for question in dict(self._needs_of(batch))
        )
        return [
            self._cells[number]._replace(questions=(question,))
            for question, number in numbers
            if number is not None
        ]

    def _needs_of(self, cells: Iterable[Cell]) -> Iterator[tuple[str, int]]:
        """Yield the questions of cells that share some, each with how many answers one needs."""
        for cell in cells:
            if not self._shared.isdisjoint(cell.questions):
                yield from ((id, count) for id, _, count in cell.distinct_questions())

    def _number(self, cell: Cell, count: int) -> int:
        """Return the number of a need: how many answers, up to which limit, and who gives them."""
        candidate = cell.candidate
        need = count, limit_of(cell), candidate.reachable, candidate.trust_needed
        number = self._known.setdefault(need, len(self._cells))
        if number == len(self._cells):
            self._cells.append(cell._replace(attempts=count))
        return number
