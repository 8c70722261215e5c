"""Iterates over the cells of a command in batches, so that many need little memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain, compress
from math import ceil

from evalstore.comparison.comparison import PlacedCell
from evalstore.core.values import Case
from evalstore.planning.cells.cells import Cell, Judge, PlacedCase, SkippedPair, cells_with
from evalstore.workspace.digest_set import DigestSet, IdSet, digest_of

BATCH = 4_000
"""About the number of cells that are planned and carried out together, to save memory."""


def batches(cells: Iterable[Cell], size: int | None = None) -> Iterator[list[Cell]]:
    """Yield batches of at least `size` cells, except for the last; a file is in one batch.

    A file whose cells have more attempts than two batches is split between two of its cases.
    """
    batch: list[Cell] = []
    of_file, file, number = 0, "", -1
    for cell in cells:
        if cell.file == file:
            is_full = of_file >= 2 * BATCH and cell.number != number
            of_file += cell.attempts
        else:
            is_full = len(batch) >= (size or BATCH)
            of_file, file = cell.attempts, cell.file
        if is_full:
            yield batch
            batch, of_file = [], cell.attempts
        number = cell.number
        batch.append(cell)
    if batch:
        yield batch


def is_short(count: int) -> bool:
    """Return whether so many cells may be in memory together."""
    return count <= 2 * BATCH


def divide_evenly(count: int) -> tuple[int, int]:
    """Return in how many batches this many cells are planned, and the size of each."""
    number = max(1, round(count / BATCH))
    return number, ceil(count / number)


class StreamedCells(Collection[Cell]):
    """The cells of many cases; unless they are few, each iteration builds them."""

    def __init__(
        self,
        place_cases: Callable[[], Iterator[PlacedCase]],
        attempts: int | None = None,
        *,
        kept: bytes | None = None,
    ) -> None:
        """`place_cases` returns an iterator over the cases; one is exhausted here for the summary.

        `attempts` overrides those of files and settings. `kept` has a number for each cell that
        the cases have: 0 where it is left out. No pairs are skipped then.
        """
        self._place_cases, self._attempts = place_cases, attempts
        self._kept = kept
        self._few: list[Cell] = []
        """All cells, when they are few."""
        self._count = 0
        self.skipped: list[SkippedPair] = []
        self.judges: dict[int, tuple[Judge, ...]] = {}
        """The lists of judges of the cells, each by its `id()`."""
        self.unjudged: dict[str, None] = {}
        """Files with cells that models must judge and that have no judge."""
        self.has_others = False
        """Whether some cell has a judge, or does not need one."""
        self.shared = IdSet()
        """Ids of questions: all that the cells of several cases ask are among them."""
        self._summarise()

    def keep(self, kept: Iterable[int]) -> StreamedCells:
        """Return only the cells for which a number is not 0; there is one for each, in order."""
        if self._kept is not None:
            numbers = iter(kept)
            kept = (next(numbers) if was else 0 for was in self._kept)
        return StreamedCells(self._place_cases, self._attempts, kept=bytes(kept))

    def cases(self) -> Iterator[tuple[str, Case, int, int]]:
        """Yield those with cells or skipped pairs: the file, the case, and how many of both."""
        for placed, flags in self._placed():
            lacking = 0
            if self._kept is None:
                lacking = sum(1 for _, lacks in placed.candidates if lacks)
            count = len(flags) - flags.count(0)
            if count or lacking:
                yield placed.file, placed.case, count, lacking

    def places(self, files: Container[str]) -> Iterator[tuple[int, PlacedCell]]:
        """Yield the place of each cell of some test files, with the number of the cell."""
        number = 0
        for placed, flags in self._placed():
            if placed.file in files:
                case = placed.case
                places = (
                    PlacedCell(placed.file, case.row, case.key, candidate.id, prompt, case.prompts)
                    for candidate, lacks in placed.candidates
                    if not lacks
                    for prompt in case.prompts
                )
                yield from enumerate(compress(places, flags), number)
            number += len(flags) - flags.count(0)

    def _placed(self) -> Iterator[tuple[PlacedCase, Sequence[int]]]:
        """Yield each case, with a number for each of its cells: 0 where it is left out."""
        start = 0
        every: dict[int, bytes] = {}
        for placed in self._place_cases():
            able = sum(1 for _, lacks in placed.candidates if not lacks)
            count = able * len(placed.case.prompts)
            if self._kept is None:
                yield placed, every.setdefault(count, b"\1" * count)
            else:
                yield placed, self._kept[start : start + count]
                start += count

    def _summarise(self) -> None:
        """Summarise the cells."""
        tests = DigestSet()
        for placed, flags in self._placed():
            case = placed.case
            if self._kept is None:
                self.skipped += (
                    SkippedPair(placed.file, case.row, candidate.id, ", ".join(lacks))
                    for candidate, lacks in placed.candidates
                    if lacks
                )
            if not any(flags):
                continue
            self._count += len(flags) - flags.count(0)
            if is_short(self._count):
                self._few += compress(self._make(placed), flags)
            elif self._few:
                self._few.clear()
            self._note_judges(placed.file, case, placed.judges)
            asked = case.tests if len(case.tests) == 1 else {*case.tests}
            if [test for test in asked if not tests.add(digest_of(test))]:
                for cell in compress(self._make(placed), flags):
                    for id in cell.questions:
                        self.shared.add(id)

    def _note_judges(self, file: str, case: Case, judges: tuple[Judge, ...]) -> None:
        self.judges[id(judges)] = judges
        if not judges and case.evaluation and "models" in case.judged_by:
            self.unjudged[file] = None
            self.has_others = self.has_others or "checks" in case.judged_by
        else:
            self.has_others = True

    def _make(self, placed: PlacedCase) -> list[Cell]:
        """Return the cells of a case."""
        attempts, candidates = self._attempts, placed.candidates
        if len(candidates) == 1 and not candidates[0][1]:  # the most frequent case
            return cells_with(placed, candidates[0][0], attempts)
        made = [cells_with(placed, each, attempts) for each, lacks in candidates if not lacks]
        return [cell for cells in made for cell in cells]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Cell]:
        if len(self._few) == self._count:
            return iter(self._few)
        if self._kept is None:
            return chain.from_iterable(map(self._make, self._place_cases()))
        return chain.from_iterable(
            compress(self._make(placed), flags) for placed, flags in self._placed() if any(flags)
        )

    def __contains__(self, cell: object) -> bool:
        return any(own == cell for own in self)
