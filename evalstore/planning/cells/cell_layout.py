"""Knows how the cells of many cases follow each other, in a few bytes for each case."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, NamedTuple

from evalstore.workspace.digest_set import count_distinct, digest_of

if TYPE_CHECKING:
    from evalstore.planning.cells.cells import AlikeCases, PlacedCase


class Kind(NamedTuple):
    """What the cells of some cases of a file are made of."""

    placed: PlacedCase
    """One of the cases."""
    cells: int
    """The number of cells of each case."""
    tests: int
    """The number of different tests of each case that has cells."""


class AlikeCells(NamedTuple):
    """Neighbours in a file whose cells are made of the same."""

    kind: Kind
    number: int
    """The number in its file of the first case."""
    cases: int
    """How many cases there are."""
    start: int
    """The number of their first cell, among those of the command."""


class CellLayout:
    """The places of the cells of cases, in the order of files and rows."""

    def __init__(self, *, is_named: bool = False) -> None:
        """`is_named` says whether the names of the rows are noted, too."""
        self.tests = array("Q")
        """Digests of the different tests of each case that has cells."""
        self.count = 0
        """The number of cells."""
        self.is_regular = True
        """Whether neighbours have equally many tests: only then the tests of a case are known."""
        self.names: dict[str, RowNames] | None = {} if is_named else None
        """The names of the rows of each file."""
        self._kinds: list[Kind] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._places: dict[str, tuple[int, int]] = {}
        """The first stretch of each file, and the first one after it."""
        self._kind_of, self._numbers = array("L"), array("L")
        self._counts, self._starts = array("L"), array("L")

    def add(self, alike: AlikeCases) -> None:
        """Add neighbours, which follow those before."""
        placed, tests = alike.first, alike.tests
        case, size = placed.case, len(tests)
        cells = len(placed.candidates) * len(case.prompts)
        if self.names is not None:
            names = self.names.setdefault(placed.file, RowNames())
            is_judged = case.evaluation is not None
            names.add(case.prompts, alike.keys, alike.rows, is_judged=is_judged)
        asked = 0
        if cells:
            before = len(self.tests)
            self.tests.extend(digest_of(test) for of_case in tests for test in {*of_case})
            asked = len({*tests[0]})
            if len(self.tests) - before != asked * size or (
                asked > 1 and any(len({*of_case}) != asked for of_case in tests)
            ):
                self.is_regular = False
        kind = self._find_kind(placed, cells, asked)
        first, end = self._places.get(placed.file, (len(self._counts), len(self._counts)))
        is_next = first < end and self._numbers[-1] + self._counts[-1] == placed.number
        if is_next and self._kind_of[-1] == kind:
            self._counts[-1] += size
        else:
            self._kind_of.append(kind)
            self._numbers.append(placed.number)
            self._counts.append(size)
            self._starts.append(self.count)
            self._places[placed.file] = first, len(self._counts)
        self.count += cells * size

    def _find_kind(self, placed: PlacedCase, cells: int, tests: int) -> int:
        """Return the number of the kind of a case."""
        case = placed.case
        of = (placed.file, id(placed.candidates), id(placed.judges), len(case.prompts))
        number = self._known.setdefault(
            (*of, case.judged_by, case.evaluation is None, tests), len(self._kinds)
        )
        if number == len(self._kinds):
            self._kinds.append(Kind(placed, cells, tests))
        return number

    def stretches(self) -> Iterator[AlikeCells]:
        """Yield all of them, in their order."""
        return map(self._stretch, range(len(self._counts)))

    def find(self, file: str, number: int) -> AlikeCells | None:
        """Return the stretch that has a case of a file; None if there is none."""
        first, end = self._places.get(file, (0, 0))
        place = bisect_right(self._numbers, number, first, end) - 1
        if place < first or number >= self._numbers[place] + self._counts[place]:
            return None
        return self._stretch(place)

    def has(self, file: str) -> bool:
        """Return whether a file has cases."""
        return file in self._places

    def start_of(self, file: str) -> int:
        """Return the number of the first cell of a file that has cases."""
        return self._starts[self._places[file][0]]

    def _stretch(self, place: int) -> AlikeCells:
        kind = self._kinds[self._kind_of[place]]
        return AlikeCells(kind, self._numbers[place], self._counts[place], self._starts[place])

    def only(self, kept: bytes) -> tuple[array[int], list[Kind]]:
        """Return digests of the tests of the cases with a cell whose number in `kept` is not 0.

        Also, the kinds of these cases.
        """
        tests = array("Q")
        kinds: dict[int, Kind] = {}
        done = 0
        for kind, _, count, start in self.stretches():
            if not kind.cells:
                continue
            flags = kept[start : start + count * kind.cells]
            of_case = kind.tests
            own = self.tests[done : done + count * of_case]
            done += count * of_case
            if flags.count(0) == len(flags):
                continue
            kinds[id(kind)] = kind
            if kind.cells > 1:
                flags = join_flags(flags, kind.cells)
            for place in range(of_case):
                tests.extend(compress(own[place::of_case], flags))
        return tests, [*kinds.values()]


class RowNames:
    """Digests of what names the rows of a file; they hold for this process."""

    def __init__(self) -> None:
        self._keys, self._rows = array("q"), array("q")
        self._prompts = array("q")
        """Digests of the system prompts of each case: equal ones are paired by their numbers."""
        self.judged = bytearray()
        """1 for each case that has something to judge it by."""
        self._has_twins = False

    def add(
        self,
        prompts: Sequence[str | None],
        keys: Sequence[str],
        rows: Sequence[str],
        *,
        is_judged: bool,
    ) -> None:
        """Add neighbours with the same system prompts."""
        self._keys.extend(map(hash, keys))
        self._rows.extend(map(hash, rows))
        digest = 1 if len(prompts) == 1 else hash(tuple(prompts))
        self._prompts.extend([digest] * len(keys))
        self.judged += (b"\1" if is_judged else b"\0") * len(keys)
        self._has_twins = self._has_twins or len({*prompts}) < len(prompts)

    def __len__(self) -> int:
        return len(self._keys)

    def are_distinct(self) -> bool:
        """Return whether no name of a row is that of another, or a system prompt occurs twice."""
        if self._has_twins:
            return False
        keys, rows = (array("Q", names.tobytes()) for names in (self._keys, self._rows))
        return count_distinct(chain(keys, rows)) == 2 * len(self)

    def __eq__(self, other: object) -> bool:
        """Return whether the cells of both are paired by the numbers of cases and prompts."""
        if not isinstance(other, RowNames):
            return NotImplemented
        ours, others = ((it._keys, it._rows, it._prompts) for it in (self, other))
        return ours == others

    __hash__ = None  # type: ignore[assignment]


def join_flags(flags: bytes, size: int) -> bytes:
    """Return 1 for each so many numbers one of which is not 0, and else 0."""
    if size == 1:
        return flags
    parts = (flags[start : start + size] for start in range(0, len(flags), size))
    return bytes(any(part) for part in parts)
