"""Keeps which answers results have, about 80 bytes of each, and finds those of the same cells."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from evalstore.reports.cell_places import is_of_cell, places_of
from evalstore.store.ids import as_bytes
from evalstore.values import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalstore.results import Result
    from evalstore.values import Verdict

_VERDICTS: tuple[Verdict | None, ...] = (None, *VERDICTS)
_CODES = {verdict: code for code, verdict in enumerate(_VERDICTS)}
_PLACES = range(4)
"""The places at which a cell is looked for, in their order."""
_DIGITS = 32
"""The hexadecimal digits of an id."""


class CellAnswers:
    """The places, the verdicts and the answers of results, by their number.

    Places, and lists of system prompts, are known by digests that hold for this process.
    """

    def __init__(self) -> None:
        self._places = tuple(array("q") for _ in _PLACES)
        self._prompts = array("q")
        self._case_prompts = array("l")
        """The number of the system prompts of the case of each result."""
        self._distinct: dict[tuple[str | None, ...], int] = {}
        self._digests: list[frozenset[int]] = []
        """The digests of these system prompts, by their number."""
        self._files = array("l")
        self._verdicts = bytearray()
        self._answers = bytearray()
        """The ids of the answers of all results, one after the other."""
        self._ends = array("Q", [0])

    def __len__(self) -> int:
        return len(self._verdicts)

    def add(self, result: Result, prompts: tuple[str | None, ...], file: int) -> None:
        """Add a result, with all system prompts of its case and the number of its file.

        Raises `StoreError` for the id of an answer that is none.
        """
        for column, place in zip(self._places, places_of(result), strict=True):
            column.append(hash(place))
        self._prompts.append(hash(result.prompt))
        number = self._distinct.setdefault(prompts, len(self._digests))
        if number == len(self._digests):
            self._digests.append(frozenset(map(hash, prompts)))
        self._case_prompts.append(number)
        self._files.append(file)
        self._verdicts.append(_CODES[result.verdict])
        for id in result.sessions:
            self._answers += as_bytes(id) or b""
        self._ends.append(len(self._answers))

    def file(self, number: int) -> int:
        """Return the number of the file of the result with a number."""
        return self._files[number]

    def verdict(self, number: int) -> Verdict | None:
        """Return the verdict of the result with a number."""
        return _VERDICTS[self._verdicts[number]]

    def answers(self, number: int) -> set[str]:
        """Return the ids of the answers of the result with a number."""
        start, end = self._ends[number : number + 2]
        digits = self._answers[start:end].hex()
        return {digits[place : place + _DIGITS] for place in range(0, len(digits), _DIGITS)}

    def find_same(self, earlier: CellAnswers, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield those of these results whose cells an earlier run has, each with the number there.

        The rules are those of `ResultIndex`; of several results at a place the last one counts.
        """
        left: Sequence[int] = array("l", numbers)
        for place in _PLACES:
            if not left:
                return
            known = {digest: number for number, digest in enumerate(earlier._places[place])}
            waiting = array("l")
            for number in left:
                found = known.get(self._places[place][number])
                if found is not None and self._is_of_cell(number, earlier._prompts[found]):
                    yield number, found
                else:
                    waiting.append(number)
            left = waiting

    def _is_of_cell(self, number: int, prompt: int) -> bool:
        prompts = self._digests[self._case_prompts[number]]
        return is_of_cell(prompt, self._prompts[number], prompts)
