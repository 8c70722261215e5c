"""Finds which results of long files are as they were in an earlier run, without keeping these."""

from __future__ import annotations

from array import array
from itertools import compress
from typing import TYPE_CHECKING

from evalstore.reports.cell_places import is_of_cell, places_of
from evalstore.workspace.digest_set import DigestMap, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from evalstore.results import Result
    from evalstore.values import Case


class EarlierIndex:
    """Finds the result of a cell in an earlier run as `ResultIndex` does; it keeps few bytes each.

    A judged result is looked for among judged ones, each other one among all.
    """

    def __init__(self, results: Iterable[Result]) -> None:
        self._judged, self._others = DigestMap(), DigestMap()
        """The numbers of the results with a verdict, and of those without, by place."""
        self._prompts, self._outcomes = array("Q"), array("Q")
        """Digests of the system prompt, and of verdict, answers and judgements of each result."""
        for number, result in enumerate(results):
            numbers = self._judged if result.verdict else self._others
            for place in places_of(result):
                numbers.put(digest_of_value(place), number)
            self._prompts.append(digest_of_value(result.prompt))
            self._outcomes.append(_digest_outcome(result))
        self.met = bytearray(len(self._prompts))
        """1 for each result that was met while one was looked for that is not as it was."""

    def is_as_before(self, result: Result, prompts: Collection[str | None]) -> bool:
        """Return whether a result has the same verdict, answers and judgements in the earlier run.

        `prompts` are the case's current system prompts.
        """
        met: list[int] = []
        for place in places_of(result):
            number = self._find(digest_of_value(place), is_judged=bool(result.verdict))
            if number is None:
                continue
            met.append(number)
            found = self._prompts[number]
            if is_of_cell(found, digest_of_value(result.prompt), map(digest_of_value, prompts)):
                if self._outcomes[number] == _digest_outcome(result):
                    return True
                break
        for number in met:
            self.met[number] = 1
        return False

    def _find(self, digest: int, *, is_judged: bool) -> int | None:
        """Return the number of the last result at a place; None if there is none."""
        judged = self._judged.get(digest)
        if is_judged or (other := self._others.get(digest)) is None:
            return judged
        return other if judged is None else max(judged, other)


def leave_out_same(
    now: Iterator[tuple[Result, Case]], before: Callable[[], Iterator[Result]]
) -> tuple[list[tuple[Result, Case]], list[Result], bool]:
    """Return the results that are not as they were, and the earlier ones they are compared with.

    Also, whether others are left out. `before` reads the results of the earlier run.
    """
    index = EarlierIndex(before())
    is_any_same = False
    left = []
    for result, case in now:
        if index.is_as_before(result, case.prompts):
            is_any_same = True
        else:
            left.append((result, case))
    met = [*compress(before(), index.met)] if any(index.met) else []
    return left, met, is_any_same


def _digest_outcome(result: Result) -> int:
    return digest_of_value((result.verdict, result.sessions, result.evaluations))
