"""Knows what the batches of a plan before the current one ask and judge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from evalstore.planning.cells.cells import Cell, limit_of
from evalstore.workspace.digest_set import IdSet


class WholePlanError(Exception):
    """What is asked for cannot be told batch by batch: all cells must be planned together."""


class FirstCase(NamedTuple):
    """Where the first case is that asks or judges something."""

    file: str
    number: int
    """The number of the case in its file."""
    batch: int
    """The number of its batch."""


class EarlierBatches:
    """Finds what earlier batches ask and judge, which the current one must not count again.

    The first case that asks a question has it, and likewise each judgement. Cells that share a
    question must need equally many answers to it, also where it is that of one conversation of
    several: else the plan of a batch depends on later ones.
    """

    def __init__(self, shared: IdSet) -> None:
        """`shared` has the questions that several cases may ask."""
        self.shared = shared
        self._batch = 0
        self._asked: dict[str, tuple[FirstCase, tuple[object, ...]]] = {}
        """The first case of each question, and in which way it requires answers."""
        self._judged: dict[Hashable, FirstCase] = {}

    def begin(self, cells: Iterable[Cell]) -> dict[str, FirstCase]:
        """Begin a batch; returns the questions that earlier ones ask, and the first case of each.

        Raises `WholePlanError` if another cell needs another number of answers, or has another
        token limit, or a candidate that can be called or is trusted where the other is not.
        """
        self._batch += 1
        known: dict[str, FirstCase] = {}
        for cell in cells:
            if self.shared.isdisjoint(cell.questions):
                continue
            reachable, trust_needed = cell.candidate.reachable, cell.candidate.trust_needed
            for question, _, count in cell.distinct_questions():
                if question in self.shared:
                    terms = count, limit_of(cell), reachable, trust_needed
                    first, known_terms = self._asked.setdefault(question, (self._at(cell), terms))
                    if known_terms != terms:
                        raise WholePlanError
                    if first.batch < self._batch:
                        known[question] = first
        return known

    def find_judged(self, key: Hashable, cell: Cell) -> FirstCase | None:
        """Return the case of an earlier batch for which a judgement is planned; None if new."""
        if self.shared.isdisjoint(cell.questions):
            return None
        first = self._judged.setdefault(key, self._at(cell))
        return first if first.batch < self._batch else None

    def _at(self, cell: Cell) -> FirstCase:
        return FirstCase(cell.file, cell.number, self._batch)


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
