"""Pairs the cells of two sides, and sorts the pairs into broken, fixed, changed, new and gone.

Pairs the test files of two trees of cases by id, path and content.

The id of a test file is the `id` of its frontmatter, else its path without the suffix. A file
that is gone while a new one has the same content was renamed; so was one whose cases are mostly the
same, if no other file is as similar.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

from evalstore.comparison.pair_groups import OTHER_JUDGEMENT as OTHER_JUDGEMENT
from evalstore.comparison.pair_groups import Change as Change
from evalstore.comparison.pair_groups import (
    Numbers,
    PairGroup,
    PlacedResults,
    Sides,
    order_pairs,
    pair_by_places,
)
from evalstore.comparison.pair_groups import Pair as Pair
from evalstore.comparison.pair_groups import sort_pair as sort_pair
from evalstore.comparison.statistics import (
    ClusterSum,
    Counts,
    Rate,
    RateChange,
    add_verdict,
    change_of,
    change_of_files,
    rate_of_files,
    sum_counts,
)
from evalstore.comparison.version_diff import (
    RECORDED_ANSWER,
    Difference,
    Find,
    Name,
    differ_evaluations,
    differ_prompts,
    differ_tests,
    evaluation_parts,
    in_place,
    number_change,
    recorded_text,
)
from evalstore.core.batches import in_batches
from evalstore.core.display import ROW_NUMBER
from evalstore.core.values import SPECIAL_TAGS, Case, CaseFile, Json, Result
from evalstore.store.trees.case_chunks import find_same, is_tree
from evalstore.workspace.folder import default_id


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

    sides: Sides = field(repr=False, compare=False)
    broke: PairGroup
    """Passed before, but not now."""
    fixed: PairGroup
    """Did not pass before, but does now."""
    changed: PairGroup
    """Otherwise another verdict, or another answer with the same verdict."""
    same_answer: PairGroup
    """Asked something else, with the same verdict and, word for word, the same answer."""
    new: PairGroup
    gone: PairGroup
    unchanged: PairGroup
    equal: list[EqualPart] = field(default_factory=list, kw_only=True)
    """Other results that are unchanged, in sums."""
    by_verdict: bool = field(default=False, kw_only=True)
    """Whether verdicts have chosen the cases, so that nothing follows about others."""

    @cached_property
    def flips(self) -> PairGroup:
        """Return the pairs with another verdict or another answer."""
        return self._join(self.broke, self.fixed, self.changed)

    @cached_property
    def changed_or_same(self) -> PairGroup:
        """Return the changed pairs and those with the same answer to another question."""
        return self._join(self.changed, self.same_answer).in_order()

    @property
    def is_equal(self) -> bool:
        """Return whether all pairs are unchanged."""
        return not any(self._differing_groups)

    @property
    def differing_pairs(self) -> Iterator[Pair]:
        """Yield all pairs that are not unchanged."""
        return chain.from_iterable(self._differing_groups)

    @property
    def differing(self) -> Iterator[Result]:
        """Yield both sides of all pairs that are not unchanged."""
        return (
            result for pair in self.differing_pairs for result in (pair.was, pair.now) if result
        )

    @property
    def _differing_groups(self) -> tuple[PairGroup, ...]:
        return self.broke, self.fixed, self.changed, self.same_answer, self.new, self.gone

    @property
    def pending(self) -> int:
        """Return how many of the changed pairs were judged and are pending on the second side."""
        return len(self.changed.split_pending()[1])

    @cached_property
    def now_undecided(self) -> PairGroup:
        """Return those of the changed pairs that are undecided on the second side alone."""
        was, now = self.sides.was.verdict, self.sides.now.verdict
        numbers = self.changed.numbers()
        listed = (both for both in numbers if now(both[1]) == "undecided" != was(both[0]))
        return PairGroup(self.sides, listed)

    def _judged(self) -> Iterator[Numbers]:
        for group in (self.broke, self.fixed, self.changed, self.same_answer, self.unchanged):
            yield from group.judged()

    @property
    def unchanged_count(self) -> int:
        """Return how many pairs are unchanged."""
        return len(self.unchanged) + sum(part.results for part in self.equal)

    @property
    def judged_and_unchanged(self) -> int:
        """Return how many of the unchanged pairs are judged on both sides."""
        was = self.sides.was
        pairs = sum(1 for old, _ in self.unchanged.numbers() if was.verdict(old))
        return pairs + sum(sum_counts(part.clusters).judged for part in self.equal)

    def attempts(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers of attempts on both sides of each pair that both have judged."""
        was, now = self.sides.was.attempts, self.sides.now.attempts
        return ((was[old], now[new]) for old, new in self._judged())

    @property
    def rates_text(self) -> str:
        """Return the pass rates of both sides, or counts if verdicts have chosen the cases."""
        was, now = self.rates
        if self.by_verdict:
            counts = (f"{rate.passed:,} of {rate.judged:,}" for rate in (was, now))
            return f"passed {' -> '.join(counts)}"
        return f"pass rate {was.text} -> {now.text}"

    @cached_property
    def rates(self) -> tuple[Rate, Rate]:
        """Return the pass rates of both sides over the pairs that are judged on both."""
        was, now = self.sides.was, self.sides.now
        rates = (
            _rate(was, (old for old, _ in self._judged()), self.equal),
            _rate(now, (new for _, new in self._judged()), self.equal),
        )
        return (
            (rates[0].without_interval(), rates[1].without_interval()) if self.by_verdict else rates
        )

    def change(self) -> RateChange:
        """Return the change of the pass rate over the pairs, with its p-value and interval.

        There is neither if verdicts have chosen the cases: those that failed pass more often when
        they are asked again.

        Files are compared; of a single file its rows.
        """
        was, now = self.sides.was, self.sides.now
        names = [*now.file_names]
        sums: dict[str, dict[int, tuple[int, int]]] = {}
        shared: dict[tuple[int, int], tuple[int, int]] = {}
        for old, new in self._judged():
            rows = sums.setdefault(names[now.files[new]], {})
            gain = (now.verdict(new) == "pass") - (was.verdict(old) == "pass")
            count, gained = rows.get(now.rows[new], (0, 0))
            known = count + 1, gained + gain
            rows[now.rows[new]] = shared.setdefault(known, known)
        files = {file: Counter(rows.values()) for file, rows in sums.items()}
        for part in self.equal:
            for counts, times in part.clusters:
                if counts.judged:
                    files.setdefault(part.file, Counter())[counts.judged, 0] += times
        by_file = [
            {ClusterSum(*sums): times for sums, times in listed.items()}
            for listed in files.values()
        ]
        change = change_of_files(by_file)
        if self.by_verdict:  # nothing follows for other cases
            return replace(change, low=None, high=None, method=None, p=1.0)
        return change

    def findings(self, change: RateChange) -> Mapping[str, str]:
        """Return the results of `tests` in words; by an empty name if there is none."""
        tests = self.tests(change)
        too_few = f"too few {change.unit}s changed to test whether it is chance"
        return {name: test.finding for name, test in tests.items()} or {"": too_few}

    def tests(self, change: RateChange) -> Mapping[str, RateChange]:
        """Return `change`, of all candidates, by an empty name.

        Where some candidates got better and others worse, which would cancel out, that of each:
        the p-values of those that can be significant are corrected for their number (Holm).
        Nothing if none of them can be.
        """
        was, now = self.sides.was, self.sides.now
        places, names = now.files if change.unit == "file" else now.rows, [*now.model_names]
        gains = {name: Counter[int]() for name in names}
        for group in (self.broke, self.fixed, self.changed):
            for old, new in group.judged():
                gain = (now.verdict(new) == "pass") - (was.verdict(old) == "pass")
                gains[names[now.models[new]]][places[new]] += gain
        totals = {name: counted.total() for name, counted in gains.items() if any(counted.values())}
        if not min(totals.values(), default=0) < 0 < max(totals.values(), default=0):
            return {"": change}
        each = {name: [ClusterSum(1, gain) for gain in gains[name].values()] for name in totals}
        tests = {name: change_of(sums, change.unit) for name, sums in each.items()}
        able = sorted((test.p, name) for name, test in tests.items() if test.can_be_significant)
        if not able:
            return {}
        holm = accumulate((min(1.0, p * (len(able) - at)) for at, (p, _) in enumerate(able)), max)
        for (_, name), p in zip(able, holm, strict=True):
            tests[name] = replace(tests[name], low=None, p=p, tests=len(able))
        return tests

    def _join(self, *groups: PairGroup) -> PairGroup:
        return PairGroup(self.sides, chain.from_iterable(group.numbers() for group in groups))


def _rate(side: PlacedResults, numbers: Iterable[int], equal: Iterable[EqualPart]) -> Rate:
    """Return the pass rate of the results with these numbers, and of those of equal parts."""
    names = [*side.file_names]
    none = Counts()
    questions: dict[str, dict[int, Counts]] = {}
    for number in numbers:
        rows = questions.setdefault(names[side.files[number]], {})
        row = side.rows[number]
        rows[row] = add_verdict(rows.get(row, none), side.verdict(number))
    by_file = {file: Counter(rows.values()) for file, rows in questions.items()}
    for part in equal:
        by_file.setdefault(part.file, Counter()).update(dict(part.clusters))
    return rate_of_files(by_file.values())


def empty_groups(sides: Sides) -> dict[str, PairGroup]:
    """Return the groups of a comparison by name, in its order, without pairs."""
    return {name: PairGroup(sides) for name in _GROUPS}


_GROUPS = ("broke", "fixed", "changed", "same_answer", "new", "gone", "unchanged")


def pair_results(
    was: PlacedResults,
    now: PlacedResults,
    old: Sequence[int],
    new: Sequence[int],
    candidates: Callable[[str], Any] = str,
) -> PairGroup:
    """Pair results of two sides by their numbers: same file, row, system prompt and candidate.

    Rows are paired by their values, else by their label; system prompts as `former_prompts` does.
    Pairs are in the order of the rows of the newer side, then by the sort key of `candidates`.
    """
    return order_pairs(was, now, (old, new), pair_by_places(was, now, old, new), candidates)


def sort_pairs(pairs: PairGroup, *, answers: bool = True) -> Comparison:
    """Return the pairs by how they changed; without `answers`, only other verdicts differ."""
    groups = empty_groups(pairs.sides)
    for batch in pairs.batches():
        for numbers, pair in batch:
            groups[sort_pair(pair, answers=answers) if pair else "unchanged"].append(numbers)
    return Comparison(pairs.sides, *groups.values())


class PlacedCell(NamedTuple):
    """What names a cell, without the ids of its questions."""

    file: str
    row: str
    key: str
    model: str
    prompt: str | None
    prompts: tuple[str | None, ...]
    """All system prompts of its case."""


class CellIndex:
    """Finds the cell of a run that is the same as a newer one, by the rules of `pair_results`."""

    def __init__(self, cells: Iterable[tuple[Result, Case]]) -> None:
        """Index the cells; the last of several results at a place counts."""
        self._cells: dict[tuple[str, str, str], dict[str | None, tuple[Result, Case]]] = {}
        """The cells of a case and a candidate, by system prompt."""
        self._former: dict[int, Mapping[str | None, str | None]] = {}
        """What `former_prompts` returned, by the digest of both lists."""
        for cell in cells:
            result = cell[0]
            for name in (result.key, result.row):
                place = result.file, result.model, name
                self._cells.setdefault(place, {})[result.prompt] = cell

    def find(
        self, cell: Result | PlacedCell, prompts: Iterable[str | None]
    ) -> tuple[Result, Case] | None:
        """Return the same cell; `prompts` are the case's current system prompts, in order.

        To go on in an older run, search that for the returned result and the prompts of its case.
        """
        for name in (cell.key, cell.row):
            cells = self._cells.get((cell.file, cell.model, name), {})
            prompt = cell.prompt
            if cells and prompt not in cells:
                _, case = next(reversed(cells.values()))
                prompts = tuple(prompts)
                both = case.prompts, prompts
                if (digest := hash(both)) not in self._former:
                    self._former[digest] = former_prompts(*both)
                prompt = self._former[digest].get(prompt, prompt)
            if prompt in cells:
                return cells[prompt]
        return None


@lru_cache(256)  # the cases of a file have the same system prompts
def former_prompts(
    was: tuple[str | None, ...], now: tuple[str | None, ...]
) -> Mapping[str | None, str | None]:
    """Return for each system prompt of a case the one that the case had in its place before.

    One that stayed the same has its own, wherever it is. The others have those with their number,
    the rest in order.
    """
    kept = {*was} & {*now}
    new = {number: prompt for number, prompt in enumerate(now) if prompt not in kept}
    old = {number: prompt for number, prompt in enumerate(was) if prompt not in kept}
    pairs = {new.pop(number): old.pop(number) for number in sorted(new.keys() & old.keys())}
    pairs |= zip(new.values(), old.values(), strict=False)
    return pairs | {prompt: prompt for prompt in kept}


@lru_cache(256)
def prompts_of_unknown_text(
    was: tuple[str | None, ...], now: tuple[str | None, ...]
) -> Collection[str | None]:
    """Return the new system prompts of a case that have the number of one that it still has.

    If the test file was not edited, prompt files exchanged what is in them, so that the prompts
    with which `former_prompts` pairs these are of other files.
    """
    kept = {*was} & {*now}
    new = ((old, id) for old, id in zip(was, now, strict=False) if id not in kept)
    return {id for old, id in new if old in kept}


@lru_cache(256)
def numbers_now(
    was: tuple[str | None, ...], now: tuple[str | None, ...]
) -> Mapping[str | None, int]:
    """Return for each system prompt of a case, unless it is gone, its number there now."""
    return {former: now.index(prompt) for prompt, former in former_prompts(was, now).items()}


def change_of_tests(was: Result, now: Result) -> list[str]:
    """Return, in words, the changes of the tests of a case and of how often each is asked."""
    if was.tests != now.tests:
        old, new = Counter(was.tests), Counter(now.tests)
        if old.keys() != new.keys() or old == new:  # other conversations, or another order
            return ["test changed"]
        is_one = len(new) == 1
        change = number_change("repetitions", len(was.tests), len(now.tests))
        return [str(change) if is_one else "repetitions changed"]
    attempts = [result.required_answers // len(result.tests) for result in (was, now)]
    return [str(number_change("attempts", *attempts))] if attempts[0] != attempts[1] else []


Leaves = Mapping[str, str]
"""From the paths of test files to the leaves of their cases."""
Load = Callable[[Collection[str]], Mapping[str, CaseFile]]
"""Returns the cases of test files by leaf; may return others, too."""


def pair_files(
    was: Leaves, now: Leaves, folder: str, load_was: Load, load_now: Load
) -> dict[str, str]:
    """Return the earlier path of each test file, by its current path; new files are left out.

    Files that are equal at the same path are not read. `folder` is that of the test files.
    """
    pairs = {path: path for path, leaf in now.items() if was.get(path) == leaf}
    old = {path: leaf for path, leaf in was.items() if path not in pairs}
    new = {path: leaf for path, leaf in now.items() if path not in pairs}
    if not old or not new:
        return pairs
    if old.keys() == new.keys() and len(new) == 1:
        return pairs | {path: path for path in new}
    files_was, files_now = load_was([*old.values()]), load_now([*new.values()])
    before = _by_id(old, files_was, folder)
    for id, path in _by_id(new, files_now, folder).items():
        if id in before:
            pairs[path] = before[id]
            del old[before[id]], new[path]
    for path in [path for path in new if path in old]:
        pairs[path] = path
        del old[path], new[path]
    by_leaf = {leaf: path for path, leaf in reversed(old.items())}
    for path, leaf in new.items():
        match = leaf if leaf in by_leaf else None
        if match is None and is_tree(files_now[leaf]):  # of an old store, it has another id
            trees = {id: files_was[id] for id in by_leaf if is_tree(files_was[id])}
            match = find_same(leaf, files_now[leaf], trees)
        if match is not None:
            pairs[path] = by_leaf.pop(match)
    used = set(pairs.values())
    old = {path: leaf for path, leaf in old.items() if path not in used}
    new = {path: leaf for path, leaf in new.items() if path not in pairs}
    return {**pairs, **pair_alike(files_was, files_now, old, new)} if old and new else pairs


def _by_id(leaves: Leaves, files: Mapping[str, CaseFile], folder: str) -> dict[str, str]:
    """Return the paths of files by their ids; an id of several files is left out."""
    ids = {path: files[leaf].id or default_id(path, folder) for path, leaf in leaves.items()}
    counts = Counter(ids.values())
    return {id: path for path, id in ids.items() if counts[id] == 1}


_MOST_SHARED = 20
"""Rows or tests that more files share do not tell which file is which."""


def pair_alike(
    files_was: Mapping[str, CaseFile], files_now: Mapping[str, CaseFile], was: Leaves, now: Leaves
) -> dict[str, str]:
    """Return the earlier paths of files with mostly the same tests, else mostly the same rows.

    At least half of the cases on both sides must be equal, and no other file may be as similar.
    Files with two different ids in their frontmatter are never paired. `files_was` and
    `files_now` are the cases of these files, by leaf.
    """
    pairs: dict[str, str] = {}
    for features in (_tests, _rows):
        old = {path: files_was[leaf] for path, leaf in was.items() if path not in pairs.values()}
        new = {path: files_now[leaf] for path, leaf in now.items() if path not in pairs}
        pairs |= _pair_by(features, old, new)
    return pairs


def _tests(file: CaseFile) -> Counter[Hashable]:
    return Counter(tuple(sorted(set(case.tests))) for case in file.cases)


def _rows(file: CaseFile) -> Counter[Hashable]:
    """Return the rows of a file; the row of a file with a single case says nothing about it."""
    return Counter(case.key for case in file.cases) if len(file.cases) > 1 else Counter()


def _pair_by(
    features: Callable[[CaseFile], Counter[Hashable]],
    was: Mapping[str, CaseFile],
    now: Mapping[str, CaseFile],
) -> dict[str, str]:
    """Pair files that are each other's only best match by these features."""
    old = {path: features(file) for path, file in was.items()}
    new = {path: features(file) for path, file in now.items()}
    holders: dict[Hashable, list[str]] = {}
    for path, counts in old.items():
        for feature in counts:
            holders.setdefault(feature, []).append(path)
    equal: Counter[tuple[str, str]] = Counter()
    for path, counts in new.items():
        for feature, count in counts.items():
            others = holders.get(feature, [])
            for other in others if len(others) <= _MOST_SHARED else ():
                equal[other, path] += min(count, old[other][feature])
    likely: dict[tuple[str, str], float] = {}
    for (before, path), count in equal.items():
        ids = {was[before].id, now[path].id} - {None}
        size = max(old[before].total(), new[path].total())
        if 2 * count >= size and len(ids) < 2:
            likely[before, path] = count / size
    from_old = _best((before, path, share) for (before, path), share in likely.items())
    from_new = _best((path, before, share) for (before, path), share in likely.items())
    return {path: before for path, before in from_new.items() if from_old.get(before) == path}


def _best(matches: Iterable[tuple[str, str, float]]) -> dict[str, str]:
    """Return the only best match of each path; a path with several best matches is left out."""
    shares: dict[str, dict[str, float]] = {}
    for path, other, share in matches:
        shares.setdefault(path, {})[other] = share
    best: dict[str, str] = {}
    for path, by_other in shares.items():
        first = max(by_other, key=by_other.__getitem__)
        if list(by_other.values()).count(by_other[first]) == 1:
            best[path] = first
    return best


EXCHANGED = " exchanged"
"""Ends the difference that the same prompts are in another order."""
_SETTINGS = ("attempts", "evaluators", "threshold", "id")
"""The fields of a test file that are not fields of its cases."""
_OPTIONS = ("temperature", "seed", "limit")
"""The fields of a case that are options of its test versions, too."""


class PairedCases:
    """Pairs the cases of two versions of a file by their keys, else by the labels of their rows.

    Of very long files few cases are in memory, and the digests of the names of the others.
    """

    def __init__(self, was: CaseFile, now: CaseFile) -> None:
        self._was, self._now = was.cases, now.cases
        self._keys, self._rows = array("q"), array("q")
        for case in was.cases:
            self._keys.append(hash(case.key))
            self._rows.append(hash(case.row))
        self._by_key = {digest: number for number, digest in enumerate(self._keys)}
        self._by_row = {digest: number for number, digest in enumerate(self._rows)}
        self._met_keys, self._met_rows = (bytearray(len(self._keys)) for _ in range(2))
        """1 where the newer version has a case with that key, or that label."""

    def __iter__(self) -> Iterator[tuple[Case | None, Case]]:
        """Yield each case of the newer version with its earlier version, or None."""
        for batch in in_batches(self._now):
            numbers: list[int | None] = []
            for case in batch:  # note its names, too
                key, row = hash(case.key), hash(case.row)
                for digest in (key, row):
                    if (number := self._by_key.get(digest)) is not None:
                        self._met_keys[number] = 1
                    if (number := self._by_row.get(digest)) is not None:
                        self._met_rows[number] = 1
                numbers.append(self._by_key.get(key, self._by_row.get(row)))
            wanted = sorted({number for number in numbers if number is not None})
            found = {number: self._was[number] for number in wanted}
            for number, case in zip(numbers, batch, strict=True):
                yield None if number is None else found[number], case

    def gone(self) -> Iterator[Case]:
        """Yield the cases that the newer version lacks, after all its cases were read."""
        for number, (key, row) in enumerate(zip(self._keys, self._rows, strict=True)):
            if not (self._met_keys[self._by_key[key]] or self._met_rows[self._by_row[row]]):
                yield self._was[number]


def differ_pair(
    was: Case | None, now: Case, find: Find, name: Name, *, is_same_list: bool = False
) -> Iterator[Difference]:
    """Yield the differences between two versions of a case; `was` is None for a new case.

    With `is_same_list` the test file names the same prompt files in the same order.
    """
    if was is None:
        yield Difference(f"{_row_name(now)} is new")
    elif was != now:
        unknown = prompts_of_unknown_text(was.prompts, now.prompts) if is_same_list else ()
        yield from differ_cases(was, now, find, name, unknown)
        old, new = (", ".join(sorted({*case.tags} - {*SPECIAL_TAGS})) for case in (was, now))
        if old != new:
            yield Difference("tags", old or None, new or None)
        rows = [ROW_NUMBER.sub("", case.row) for case in (was, now)]
        if was.key == now.key and rows[0] != rows[1]:
            yield Difference("row renamed", *rows)


def _row_name(case: Case) -> str:
    """Return the name of a row; the only row of a file has no label."""
    return f"row {case.row}" if case.row else "the only row"


def differ_otherwise(was: CaseFile, now: CaseFile, gone: Iterable[Case]) -> Iterator[Difference]:
    """Yield the cases that are gone, and the differences in the settings of a test file."""
    for case in gone:
        yield Difference(f"{_row_name(case)} is gone")
    for setting in _SETTINGS:
        yield from _differ(setting, was, now)


def versions_compared(was: Case, now: Case) -> Iterator[tuple[str, str | None]]:
    """Yield the kinds and ids of the versions that `differ_cases` compares."""
    for kind, old, new in (
        ("test", was.tests, now.tests),
        ("evaluation", (was.evaluation,), (now.evaluation,)),
        ("prompt", was.prompts, now.prompts),
        ("prompt", was.judge_prompts, now.judge_prompts),
        ("model", (was.recorded,), (now.recorded,)),
    ):
        if old != new:
            yield from ((kind, id) for id in (*old, *new))


def differ_cases(
    was: Case, now: Case, find: Find, name: Name, unknown: Collection[str | None] = ()
) -> Iterator[Difference]:
    """Yield the differences between two versions of a case, except for labels and plain tags.

    Of the system prompts whose former text is `unknown` it is said that they changed.
    """
    if was.tests != now.tests:
        yield from differ_conversations(was.tests, now.tests, find, name)
    if set(was.tests) == set(now.tests):
        for option in _OPTIONS:
            yield from _differ(option, was, now)
    if was.evaluation != now.evaluation:
        yield from differ_evaluations(*_evaluations(was, now, find), find, name)
    yield from _differ_prompts("system prompt", was.prompts, now.prompts, find, name, unknown)
    yield from _differ_prompts("judge prompt", was.judge_prompts, now.judge_prompts, find, name)
    yield from _differ("judged by", was, now)
    if was.recorded != now.recorded:
        yield Difference(RECORDED_ANSWER, *(recorded_answer(case, find) for case in (was, now)))


def _evaluations(was: Case | Result, now: Case | Result, find: Find) -> tuple[Json, Json]:
    """Return the contents of two evaluation versions; empty where there is none."""
    ids = was.evaluation, now.evaluation
    old, new = (find("evaluation", id) or {} if id else {} for id in ids)
    return old, new


def judging_changed(was: Case, now: Case, find: Find) -> tuple[str, ...]:
    """Return which parts of how a case is judged differ: instructions, checks, judge prompt."""
    parts = evaluation_parts(*_evaluations(was, now, find))
    return (*parts, "judge prompt") if was.judge_prompts != now.judge_prompts else parts


def differ_results(was: Result, now: Result, find: Find, name: Name) -> Iterator[Difference]:
    """Yield the differences between the versions of a case that two results are about."""
    if was.tests != now.tests:
        yield from differ_conversations(was.tests, now.tests, find, name)
    if was.evaluation != now.evaluation:
        yield from differ_evaluations(*_evaluations(was, now, find), find, name)
    yield from _differ_prompts("system prompt", (was.prompt,), (now.prompt,), find, name)


def differ_conversations(
    was: Sequence[str], now: Sequence[str], find: Find, name: Name
) -> Iterator[Difference]:
    """Yield the differences between the conversations of a case, with their repetitions.

    `was` and `now` are the ids of the test versions; a repeated conversation has several entries.
    """
    if len(was) == len(now) == 1 and was != now:
        yield from differ_tests(find("test", was[0]) or {}, find("test", now[0]) or {}, find, name)
        return
    before, after = Counter(was), Counter(now)
    old = [id for id in before if id not in after]
    is_single = len(before) == len(after) == 1
    changed = dict(zip((id for id in after if id not in before), old, strict=False))
    for number, id in enumerate(after, 1):
        partner = id if id in before else changed.get(id)
        place = "" if is_single else f"conversation {number}, "
        if partner is None:
            yield Difference(f"conversation {number} is new")
            continue
        if partner != id:
            content = find("test", partner) or {}
            for difference in differ_tests(content, find("test", id) or {}, find, name):
                yield replace(difference, subject=place + difference.subject)
        if before[partner] != after[id]:
            yield Difference(f"{place}repetitions", str(before[partner]), str(after[id]))
    gone = set(old[len(changed) :])
    for number, id in enumerate(before, 1):
        if id in gone:
            yield Difference(f"conversation {number} is gone")
    if before == after and tuple(was) != tuple(now):
        yield Difference("order of the conversations")


def _differ_prompts(
    subject: str,
    was: tuple[str | None, ...],
    now: tuple[str | None, ...],
    find: Find,
    name: Name,
    unknown: Collection[str | None] = (),
) -> Iterator[Difference]:
    """Yield new and removed prompts; one in the place of another is an edit."""
    if was == now:
        return
    if {*was} == {*now}:
        yield Difference(f"{subject}s{EXCHANGED}")
    pairs = former_prompts(was, now)
    edited = [(before, id) for id in now if id and (before := pairs.get(id)) != id]
    followed = {pairs.get(id) for id in now if id}
    gone = [id for id in was if id and id not in followed]
    for before, after in [*edited, *((id, None) for id in gone)]:
        if before and after:
            texts = (find("prompt", id) or {} for id in (before, after))
            edits = [Difference("changed")] if after in unknown else differ_prompts(*texts)
            former, present = name("prompt", before), name("prompt", after)
            if former and present and former != present:
                yield in_place(subject, present, former)
                continue
            named = present or former
            start = f"{subject} {named}: " if named else f"{subject} "
            for edit in edits:
                yield replace(edit, subject=f"{start}{edit.subject}")
        else:
            id = after or before or ""
            shown = name("prompt", id) or id[:8]
            yield Difference(f"{subject} {shown} is {'new' if after else 'gone'}")
    if (None in was) != (None in now):
        yield Difference(f"case without {subject} is {'new' if None in now else 'gone'}")


def _differ(field: str, was: Case | CaseFile, now: Case | CaseFile) -> Iterator[Difference]:
    """Yield the difference in one field, if there is one."""
    old, new = (getattr(version, field.replace(" ", "_")) for version in (was, now))
    if old != new:
        yield Difference(field, _as_text(old), _as_text(new))


def _as_text(value: Json) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return value if value is None or isinstance(value, str) else json.dumps(value)


def recorded_answer(case: Case, find: Find) -> str | None:
    """Return the recorded answers of a case, joined; None when it has none."""
    version = find("model", case.recorded) if case.recorded else None
    return recorded_text(version) if version else None


def prompts_compared(
    was: Case, now: Case
) -> Iterator[tuple[str, tuple[str | None, ...], tuple[str | None, ...]]]:
    """Yield the system prompts and the judge prompts of two versions of a case, with their kind."""
    yield "system prompt", was.prompts, now.prompts
    yield "judge prompt", was.judge_prompts, now.judge_prompts
