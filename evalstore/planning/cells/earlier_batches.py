"""Knows what the batches of a plan before the current one ask and judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evalstore.planning.cells.cells import limit_of
from evalstore.workspace.digest_set import DigestMap, digest_of, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from evalstore.planning.cells.cells import Cell
    from evalstore.workspace.digest_set import IdSet

_BITS_OF_NUMBER = 32
_BITS_OF_TERMS = 12


class WholePlanError(Exception):
    """What is asked for cannot be told batch by batch: all cells must be planned together."""


class FirstCase(NamedTuple):
    """Where the first case is that asks or judges something."""

    file: str
    number: int
    """The number of the case in its file."""


class EarlierBatches:
    """Finds what earlier batches ask and judge, which the current one must not count again.

    The first case that asks a question has it, and likewise each judgement. Cells that share a
    question must need equally many answers to it, also where it is that of one conversation of
    several: else the plan of a batch depends on later ones.
    """

    def __init__(self, shared: IdSet) -> None:
        """`shared` has the questions that several cases may ask."""
        self.shared = shared
        self._files: dict[str, int] = {}
        """The number of each file, in the order of the batches."""
        self._names: list[str] = []
        self._terms: dict[Hashable, int] = {}
        """The number of each way in which answers are required."""
        self._asked, self._judged = DigestMap(), DigestMap()
        self._start = 0
        """The code of the first case of the current batch."""

    def begin(self, cells: Iterable[Cell]) -> dict[str, FirstCase]:
        """Begin a batch; returns the questions that earlier ones ask, and the first case of each.

        Raises `WholePlanError` if its needs of one of them differ: see `_add`.
        """
        is_first = True
        known: dict[str, FirstCase] = {}
        for cell in cells:
            if is_first:
                self._start, is_first = self._encode(cell), False
            if self.shared.isdisjoint(cell.questions):
                continue
            for question, _, count in cell.distinct_questions():
                if question in self.shared:
                    first = self._add(question, count, cell)
                    if first < self._start:
                        known[question] = self._decode(first)
        return known

    def _add(self, question: str, count: int, cell: Cell) -> int:
        """Add how many answers to a question a cell needs; returns the code of the first case.

        Raises `WholePlanError` if another cell needs another number of them, or has another token
        limit, or a candidate that can be called or is trusted where the other is not.
        """
        candidate = cell.candidate
        terms = self._terms.setdefault(
            (count, limit_of(cell), candidate.reachable, candidate.trust_needed), len(self._terms)
        )
        if terms >> _BITS_OF_TERMS:
            raise WholePlanError
        code = self._asked.add(digest_of(question), self._encode(cell) << _BITS_OF_TERMS | terms)
        first, its_terms = code >> _BITS_OF_TERMS, code & (1 << _BITS_OF_TERMS) - 1
        if its_terms != terms:
            raise WholePlanError
        return first

    def find_judged(self, key: Hashable, cell: Cell) -> FirstCase | None:
        """Return the case of an earlier batch for which a judgement is planned; None if new."""
        if self.shared.isdisjoint(cell.questions):
            return None
        first = self._judged.add(digest_of_value(key), self._encode(cell))
        return self._decode(first) if first < self._start else None

    def _encode(self, cell: Cell) -> int:
        """Return the place of a cell as a whole number, which is larger for later cells."""
        if cell.file not in self._files:
            self._files[cell.file] = len(self._names)
            self._names.append(cell.file)
        return self._files[cell.file] << _BITS_OF_NUMBER | cell.number

    def _decode(self, code: int) -> FirstCase:
        return FirstCase(self._names[code >> _BITS_OF_NUMBER], code & (1 << _BITS_OF_NUMBER) - 1)


@dataclass
class EarlierWork:
    """What earlier batches do for the cells of a batch."""

    earlier: EarlierBatches | None = None
    """The batches before; None for a plan of all cells."""
    questions: dict[str, FirstCase] = field(default_factory=dict)
    """The questions that they ask -> the first case of each."""
    asked: dict[str, FirstCase] = field(default_factory=dict)
    """Those of them that lack answers, which a run would ask for."""
    judged: dict[tuple[tuple[str, ...], str | None], FirstCase] = field(default_factory=dict)
    """Questions and evaluation version of the judgements that they make -> the case."""
    _places: dict[tuple[tuple[str, ...], str], FirstCase | None] = field(default_factory=dict)

    def takes(self, key: tuple[Hashable, str, str], cell: Cell, *, is_made: bool) -> bool:
        """Return whether an earlier batch has a judgement, which is noted if it `is_made` there.

        `key` is what is judged, its evaluation version and its evaluator. Raises `WholePlanError`
        if earlier batches have only some of the judgements of an answer.
        """
        if self.earlier is None:
            return False
        here = cell.questions, key[1]
        place = self.earlier.find_judged(key, cell)
        if self._places.setdefault(here, place) != place:
            raise WholePlanError
        if place and is_made:
            self.judged[here] = place
        return place is not None
