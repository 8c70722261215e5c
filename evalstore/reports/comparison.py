"""Pairs the cells of two sides, and sorts the pairs into broken, fixed, changed, new and gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from evalstore.reports.cell_places import find_match, places_of
from evalstore.reports.paired_tests import ClusterSum, RateChange, change_of, sum_of
from evalstore.reports.statistics import (
    Counts,
    Questions,
    Rate,
    add_verdict,
    count_by_file,
    rate_of_files,
    sum_counts,
)
from evalstore.results import Result

if TYPE_CHECKING:
    from evalstore.reports.cell_places import Place, PlaceKey
    from evalstore.values import Case

Change = Literal["broke", "fixed", "changed", "new", "gone", "unchanged"]
OTHER_JUDGEMENT = "another judgement"
"""The reason for another verdict on the same answer when nothing was edited."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell on both sides; one side is None for a cell that is new or gone."""

    was: Result | None
    now: Result | None

    @property
    def either(self) -> Result:
        """Return the newer result, else the older one."""
        result = self.now or self.was
        assert result is not None
        return result

    @property
    def has_same_verdict(self) -> bool:
        """Return whether both sides have a result, with the same verdict."""
        return bool(self.was and self.now and self.was.verdict == self.now.verdict)

    @property
    def is_now_pending(self) -> bool:
        """Return whether it was judged on the first side and is pending on the second."""
        return bool(self.was and self.now and self.was.verdict and self.now.is_missing)

    @property
    def is_pending(self) -> bool:
        """Return whether it is pending on both sides."""
        return bool(self.was and self.now and self.was.is_missing and self.now.is_missing)

    def swapped(self) -> Pair:
        """Return the pair with the sides exchanged."""
        return Pair(self.now, self.was)


@dataclass(frozen=True, slots=True)
class EqualPart:
    """Unchanged results of a file, in sums."""

    file: str
    results: int
    clusters: tuple[tuple[Counts, int], ...]
    """The counts of the verdicts on a case, and how many cases have these."""


@dataclass
class Comparison:
    """All pairs, by how they changed."""

    broke: list[Pair] = field(default_factory=list)
    """Passed before, but not now."""
    fixed: list[Pair] = field(default_factory=list)
    """Did not pass before, but does now."""
    changed: list[Pair] = field(default_factory=list)
    """Otherwise another verdict, or another answer with the same verdict."""
    same_answer: list[Pair] = field(default_factory=list)
    """Asked something else, with the same verdict and, word for word, the same answer."""
    new: list[Pair] = field(default_factory=list)
    gone: list[Pair] = field(default_factory=list)
    unchanged: list[Pair] = field(default_factory=list)
    equal: list[EqualPart] = field(default_factory=list, kw_only=True)
    """Other results that are unchanged, in sums."""
    order: Callable[[Pair], Any] = field(
        default=lambda _pair: 0, repr=False, compare=False, kw_only=True
    )
    """The sort key of pairs."""

    @property
    def flips(self) -> list[Pair]:
        """Return the pairs with another verdict or another answer."""
        return [*self.broke, *self.fixed, *self.changed]

    @property
    def changed_or_same(self) -> list[Pair]:
        """Return the changed pairs and those with the same answer to another question."""
        return sorted([*self.changed, *self.same_answer], key=self.order)

    @property
    def on_both_sides(self) -> list[Pair]:
        """Return the pairs that both sides have and that are not unchanged."""
        return [*self.flips, *self.same_answer]

    @property
    def differing(self) -> list[Result]:
        """Return both sides of all pairs that are not unchanged."""
        pairs = self.differing_pairs
        return [result for pair in pairs for result in (pair.was, pair.now) if result]

    @property
    def differing_pairs(self) -> list[Pair]:
        """Return all pairs that are not unchanged."""
        return [*self.on_both_sides, *self.new, *self.gone]

    @property
    def pending(self) -> int:
        """Return how many of the changed pairs were judged and are pending on the second side."""
        return sum(1 for pair in self.changed if pair.is_now_pending)

    def count_as_unchanged(self, is_equal: Callable[[Pair], bool]) -> None:
        """Move the changed pairs with the same verdict and equal answers to the unchanged ones."""
        changed, self.changed = self.changed, []
        for pair in changed:
            is_unchanged = pair.has_same_verdict and is_equal(pair)
            (self.unchanged if is_unchanged else self.changed).append(pair)
        self.unchanged.sort(key=self.order)

    def set_apart_same_answers(self, is_same: Callable[[Pair], bool]) -> None:
        """Move the changed pairs with the same answers to other questions out of the changed."""
        changed, self.changed = self.changed, []
        for pair in changed:
            (self.same_answer if is_same(pair) else self.changed).append(pair)

    @property
    def pairs(self) -> list[Pair]:
        """Return pairs judged on both sides."""
        return [
            pair
            for group in (self.on_both_sides, self.unchanged)
            for pair in group
            if pair.was and pair.now and pair.was.verdict and pair.now.verdict
        ]

    @property
    def unchanged_count(self) -> int:
        """Return how many pairs are unchanged."""
        return len(self.unchanged) + sum(part.results for part in self.equal)

    @property
    def judged_and_unchanged(self) -> int:
        """Return how many of the unchanged pairs are judged on both sides."""
        pairs = sum(1 for pair in self.unchanged if pair.was and pair.was.verdict)
        return pairs + sum(sum_counts(part.clusters).judged for part in self.equal)

    def rates(self) -> tuple[Rate, Rate]:
        """Return the pass rates of both sides over the pairs that are judged on both."""
        pairs = self.pairs
        was, now = ([pair.was for pair in pairs], [pair.now for pair in pairs])
        return _rate(was, self.equal), _rate(now, self.equal)

    def change(self) -> RateChange:
        """Return the change of the pass rate over the pairs, with its p-value and interval.

        Files are compared; of a single file its rows.
        """
        pairs: dict[tuple[str, str], int] = {}
        gained: dict[tuple[str, str], int] = {}
        for pair in self.pairs:
            assert pair.was
            assert pair.now
            row = pair.now.file, pair.now.row
            pairs[row] = pairs.get(row, 0) + 1
            if pair.was.verdict != pair.now.verdict:
                gain = (pair.now.verdict == "pass") - (pair.was.verdict == "pass")
                gained[row] = gained.get(row, 0) + gain
        files: dict[str, Counter[tuple[int, int]]] = {}
        for row, count in pairs.items():
            files.setdefault(row[0], Counter())[count, gained.get(row, 0)] += 1
        for part in self.equal:
            for counts, times in part.clusters:
                if counts.judged:
                    files.setdefault(part.file, Counter())[counts.judged, 0] += times
        by_file = [
            {ClusterSum(*sums): times for sums, times in listed.items()}
            for listed in files.values()
        ]
        if len(by_file) == 1 and sum(by_file[0].values()) > 1:
            return change_of(by_file[0], "row")
        return change_of(map(sum_of, by_file))

    def swapped(self) -> Comparison:
        """Return the same pairs with the sides exchanged."""
        return Comparison(
            *(
                [pair.swapped() for pair in group]
                for group in (
                    self.fixed,
                    self.broke,
                    self.changed,
                    self.same_answer,
                    self.gone,
                    self.new,
                    self.unchanged,
                )
            ),
            equal=self.equal,
            order=self.order,
        )


def _rate(side: Iterable[Result | None], equal: Iterable[EqualPart]) -> Rate:
    questions: Questions = {}
    none = Counts()
    for result in side:
        if result:
            question = result.file, result.row
            questions[question] = add_verdict(questions.get(question, none), result.verdict)
    by_file = count_by_file(questions)
    for part in equal:
        by_file.setdefault(part.file, Counter()).update(dict(part.clusters))
    return rate_of_files(by_file.values())


def compare(
    was: Iterable[Result], now: Iterable[Result], candidates: Callable[[str], Any] = str
) -> Comparison:
    """Pair two sides: same file, same row, same prompt, same model.

    Rows are paired by their values, else by their label; system prompts by their content, else,
    when they were edited, by their number. Pairs are in the order of the rows of the newer side;
    `candidates` is the sort key of candidates.
    """
    old = list(was)
    new = list(now)
    order = order_of_rows([*new, *old], candidates)
    pairs: list[Pair] = []
    for place_of in (_by("key", "prompt"), _by("row", "prompt"), *_BY_NUMBER):
        waiting: dict[Place, list[Result]] = {}
        for result in old:
            waiting.setdefault(place_of(result), []).append(result)
        left: list[Result] = []
        for result in new:
            partners = waiting.get(place_of(result))
            if partners:
                pairs.append(Pair(partners.pop(0), result))
            else:
                left.append(result)
        old = [result for partners in waiting.values() for result in partners]
        new = left
    pairs += [Pair(None, result) for result in new]
    pairs += [Pair(result, None) for result in old]
    comparison = Comparison(order=order)
    for pair in sorted(pairs, key=order):
        add_pair(pair, comparison)
    return comparison


def order_of_rows(
    results: Iterable[Result], candidates: Callable[[str], Any]
) -> Callable[[Pair], Any]:
    """Return the sort key of pairs: by file, by the place of the row in it, by candidate."""
    places: dict[tuple[str, str], int] = {}
    for result in results:
        places.setdefault((result.file, result.row), len(places))

    def order(pair: Pair) -> Any:
        result = pair.either
        return result.file, places[result.file, result.row], candidates(result.model)

    return order


def _by(row: str, prompt: str) -> Callable[[Result], Place]:
    """Return the function from a result to its place, by attributes of row and system prompt."""
    return lambda result: (result.file, result.model, getattr(result, row), getattr(result, prompt))


_BY_NUMBER = (_by("key", "prompt_number"), _by("row", "prompt_number"))


class ResultIndex:
    """Finds the result of a cell in a run, by the rules of `compare`."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._places: dict[PlaceKey, Result] = {}
        for result in results:
            for place in places_of(result):
                self._places[place] = result

    def find(self, result: Result, prompts: Collection[str | None]) -> Result | None:
        """Return the result of the same cell; `prompts` are the case's current system prompts."""
        return find_match(self._places.get, result, prompts)


def _cell_of(result: Result) -> tuple[str, str, str, int]:
    return result.file, result.row, result.model, result.prompt_number


class CellIndex:
    """Finds the cell of a run that is the same as a newer one, with its case."""

    def __init__(self, cells: Iterable[tuple[Result, Case]]) -> None:
        cells = list(cells)
        self._index = ResultIndex(result for result, _ in cells)
        self._cases = {_cell_of(result): case for result, case in cells}

    def find(self, result: Result, prompts: Collection[str | None]) -> tuple[Result, Case] | None:
        """Return the same cell by the rules of `ResultIndex`.

        To go on in an older run, search that for the returned result and the prompts of its case.
        """
        match = self._index.find(result, prompts)
        return (match, self._cases[_cell_of(match)]) if match else None


def change_of_tests(was: Result, now: Result) -> list[str]:
    """Return, in words, the changes of the tests of a case and of how often each is asked."""
    old, new = Counter(was.tests), Counter(now.tests)
    if old.keys() != new.keys():
        return ["test changed"]
    if len(new) == 1 and old != new:
        return [f"repetitions {len(was.tests)} -> {len(now.tests)}"]
    if old != new:
        return ["repetitions changed"]
    if was.tests != now.tests:
        return ["order of the conversations changed"]
    attempts = [result.required_answers // len(result.tests) for result in (was, now)]
    return [f"attempts {attempts[0]} -> {attempts[1]}"] if attempts[0] != attempts[1] else []


def sort_pair(pair: Pair, *, answers: bool = True) -> Change:
    """Return how a pair changed; without `answers`, only the verdict counts."""
    was, now = pair.was, pair.now
    if was is None:
        return "new"
    if now is None:
        return "gone"
    if was.verdict == "pass" and now.verdict in ("fail", "undecided", "error"):
        return "broke"
    if now.verdict == "pass" and was.verdict in ("fail", "undecided", "error"):
        return "fixed"
    if was.verdict != now.verdict or (answers and was.sessions != now.sessions):
        return "changed"
    return "unchanged"


def add_pair(pair: Pair, comparison: Comparison, *, answers: bool = True) -> None:
    """Add a pair to the group it belongs to; without `answers`, only other verdicts differ."""
    group: list[Pair] = getattr(comparison, sort_pair(pair, answers=answers))
    group.append(pair)
