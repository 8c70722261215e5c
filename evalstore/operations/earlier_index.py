"""Finds the results of long files that are not as they were in an earlier run, in little memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.files.filed_sequence import PackedSequence, keep_values
from evalstore.reports.cell_places import is_of_cell, places_of
from evalstore.reports.placed_results import unpack_result
from evalstore.results import Result
from evalstore.values import VERDICTS
from evalstore.workspace.digest_set import DigestMap, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from evalstore.values import Verdict

_VERDICTS: tuple[Verdict | None, ...] = (None, *VERDICTS)


class EarlierIndex:
    """Finds the result of a cell in an earlier run as `ResultIndex` does; it keeps few bytes each.

    A judged result is looked for among judged ones, each other one among all.
    """

    def __init__(self, results: Iterable[Result]) -> None:
        self._judged, self._others = DigestMap(), DigestMap()
        """The numbers of the results with a verdict, and of those without, by place."""
        self._prompts, self._outcomes = array("Q"), array("Q")
        """Digests of the system prompt, and of verdict, answers and judgements of each result."""
        self._verdicts = bytearray()
        for number, result in enumerate(results):
            numbers = self._judged if result.verdict else self._others
            for place in places_of(result):
                numbers.put(digest_of_value(place), number)
            self._prompts.append(digest_of_value(result.prompt))
            self._outcomes.append(_digest_outcome(result))
            self._verdicts.append(_VERDICTS.index(result.verdict))

    def find(self, result: Result, prompts: Collection[str | None]) -> int | None:
        """Return the number of the result of the same cell; None if there is none.

        `prompts` are the case's current system prompts.
        """
        for place in places_of(result):
            number = self._find(digest_of_value(place), is_judged=bool(result.verdict))
            if number is not None and is_of_cell(
                self._prompts[number],
                digest_of_value(result.prompt),
                map(digest_of_value, prompts),
            ):
                return number
        return None

    def verdict(self, number: int) -> Verdict | None:
        """Return the verdict of the result with a number."""
        return _VERDICTS[self._verdicts[number]]

    def is_as_before(self, result: Result, number: int) -> bool:
        """Return whether the earlier result has the same verdict, answers and judgements."""
        return self._outcomes[number] == _digest_outcome(result)

    def __len__(self) -> int:
        return len(self._prompts)

    def _find(self, digest: int, *, is_judged: bool) -> int | None:
        """Return the number of the last result at a place; None if there is none."""
        judged = self._judged.get(digest)
        if is_judged or (other := self._others.get(digest)) is None:
            return judged
        return other if judged is None else max(judged, other)


class CurrentResult(NamedTuple):
    """A result that is looked for in earlier runs."""

    result: Result
    prompts: tuple[str | None, ...]
    """The current system prompts of its case."""


Match = tuple[CurrentResult, Result | None]
"""A result, and that of the same cell in an earlier run, if there is one."""


def keep_current(results: Iterable[CurrentResult]) -> Sequence[CurrentResult]:
    """Return the results as a list, or if there are many in a temporary file."""
    return keep_values(results, _pack, _unpack)


def _pack(current: CurrentResult) -> tuple[Any, ...]:
    return tuple(current.result), current.prompts


def _unpack(values: Sequence[Any]) -> CurrentResult:
    return CurrentResult(unpack_result(values[0]), tuple(values[1]))


class ChangedResults:
    """The results that are not as they were in an earlier run, each with the earlier one."""

    def __init__(
        self, now: Iterable[CurrentResult], before: Callable[[], Iterator[Result]]
    ) -> None:
        """`now` is read once; `before` reads the results of the earlier run."""
        self.is_any_same = False
        """Whether others are as they were."""
        self._numbers = array("q")
        """The number of the earlier result of each; -1 for those without one."""
        index = EarlierIndex(before())
        self._now = PackedSequence(self._leave_out_same(now, index), tuple, _unpack)
        is_wanted = bytearray(len(index))
        for number in self._numbers:
            if number >= 0:
                is_wanted[number] = 1
        self._wanted = array("q", compress(range(len(index)), is_wanted))
        """The numbers of the earlier results."""
        found = compress(before(), is_wanted) if self._wanted else ()
        self._was = PackedSequence(found, tuple, unpack_result)

    def _leave_out_same(
        self, now: Iterable[CurrentResult], index: EarlierIndex
    ) -> Iterator[CurrentResult]:
        """Yield those that are not as they were, and note the numbers of the earlier ones."""
        for current in now:
            number = index.find(*current)
            if number is not None and index.is_as_before(current.result, number):
                self.is_any_same = True
            else:
                self._numbers.append(-1 if number is None else number)
                yield current

    def __iter__(self) -> Iterator[Match]:
        """Yield the results in their order; each part of the file is read once for a batch."""
        left = zip(self._now, self._numbers, strict=True)
        while batch := list(islice(left, _AT_ONCE)):
            numbers = sorted({number for _, number in batch if number >= 0})
            found = {each: self._was[bisect_left(self._wanted, each)] for each in numbers}
            for current, number in batch:
                yield current, found.get(number)


_AT_ONCE = 2_000
"""Results that are in memory together."""


def _digest_outcome(result: Result) -> int:
    return digest_of_value((result.verdict, result.sessions, result.evaluations))
