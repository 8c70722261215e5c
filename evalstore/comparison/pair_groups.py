"""Pairs the results of two sides by their numbers, keeps groups of pairs, and compares answers.

A pair is made when it is read: of many pairs only the numbers of their results are in memory.

Keeps the results of a side of a comparison, with columns of what pairs and counts them.

Of many results only the columns are in memory, about 60 bytes each; they are in a file.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple, TypeVar

from evalstore.core import batches
from evalstore.core.batches import in_batches
from evalstore.core.hashing import digest_of_value
from evalstore.core.values import VERDICTS, CellKey, ComparedSession, Result, Session, Verdict
from evalstore.files.temporary_list import (
    FiledSequence,
    NumberedSequence,
    PackedSequence,
    keep_values,
)
from evalstore.store import Store

_VERDICTS: tuple[Verdict | None, ...] = (None, *VERDICTS)
PLACES = (("key", "prompt"), ("row", "prompt"), ("key", "prompt_number"), ("row", "prompt_number"))
"""By which names of row and system prompt results are paired; the first that has a partner counts.

Rows are paired by their values, else by their label; system prompts by their content, else, when
they were edited, by their number. Those that are left over are paired in their order.
"""


class PlacedResults(NumberedSequence[Result]):
    """Results in their order, which are named by their numbers."""

    def __init__(self, results: Iterable[Result] = ()) -> None:
        """`results` are read once."""
        self.places: tuple[array[int], ...] = tuple(array("q") for _ in PLACES)
        """Digests of the places of each result, that hold for this process."""
        self.rows = array("q")
        """Digests of file and row."""
        self.files = array("I")
        """The number of the file among `file_names`."""
        self.models = array("I")
        """The number of the candidate among `model_names`."""
        self.attempts = array("q")
        """The number of attempts that are required."""
        self.file_names: dict[str, int] = {}
        self.model_names: dict[str, int] = {}
        self.prompts: dict[tuple[str, str | None], int] = {}
        """The number of each system prompt of a file in the last of its results."""
        self.missing = bytearray()
        """1 for each result that lacks an answer or a judgement."""
        self.answers = array("q")
        """Digests of the ids of the answers of each result."""
        self._verdicts = bytearray()
        self._rename: Callable[[str], str] | None = None
        self._results = keep_values(self._note(results), tuple, unpack_result)
        self._names = [*self.file_names]

    def _note(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yield the results, after adding them to the columns."""
        add_places = [column.append for column in self.places]
        files, models = self.file_names, self.model_names
        for result in results:
            file, row, _, prompt_number, prompt, model = result[:6]
            for add, place in zip(add_places, digests_of(result), strict=True):
                add(place)
            self.rows.append(hash((file, row)))
            self.files.append(files.setdefault(file, len(files)))
            self.models.append(models.setdefault(model, len(models)))
            self.attempts.append(result.required_answers // len(result.tests))
            self.answers.append(hash(result.sessions))
            self._verdicts.append(_VERDICTS.index(result.verdict))
            self.prompts[file, prompt] = prompt_number
            self.missing.append(result.is_missing)
            yield result

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return map(self._named, self._results)

    def read_one(self, number: int) -> Result:
        """Return the result with a number."""
        return self._named(self._results[number])

    def read(self, numbers: Sequence[int]) -> list[Result]:
        """Return the results with these numbers, in this order."""
        return [self.read_one(number) for number in numbers]

    def with_names(self, rename: Callable[[str], str]) -> PlacedResults:
        """Return the same results with other names of their files."""
        if all(rename(name) == name for name in self.file_names):
            return self
        renamed = copy(self)
        renamed._rename = rename
        renamed._names = [rename(name) for name in self.file_names]
        return renamed

    def _named(self, result: Result) -> Result:
        if self._rename is None or (name := self._rename(result.file)) == result.file:
            return result
        return result._replace(file=name)

    def file_name(self, number: int) -> str:
        """Return the test file of the result with a number."""
        return self._names[self.files[number]]

    def verdict(self, number: int) -> Verdict | None:
        """Return the verdict of the result with a number."""
        return _VERDICTS[self._verdicts[number]]

    def places_at(self, stage: int, numbers: Iterable[int]) -> Iterator[int]:
        """Yield the digests of places of results at one of `PLACES`; after these, of their rows."""
        if stage < len(PLACES):
            return map(self.places[stage].__getitem__, numbers)
        names = [*self.model_names]
        return (hash((self.rows[it], names[self.models[it]])) for it in numbers)

    def find_unplaced(self, other: PlacedResults) -> bytearray:
        """Return 1 for each result that has no place in common with any of another side."""
        left = bytearray(b"\1") * len(self)
        for own, others in zip(self.places, other.places, strict=True):
            if 1 not in left:
                break
            known = {*others}
            for number, place in enumerate(own):
                if left[number] and place in known:
                    left[number] = 0
        return left

    def places_where(self, *, missing: bool) -> set[int]:
        """Return the digests of the places of the results that lack something, or of the others."""
        return {
            place
            for column in self.places
            for place, lacks in zip(column, self.missing, strict=True)
            if bool(lacks) is missing
        }

    def has_place(self, number: int, places: set[int]) -> bool:
        """Return whether one of the places of a result is among these."""
        return any(column[number] in places for column in self.places)


def digests_of(result: Result) -> tuple[int, ...]:
    """Return the digests of the places of a result."""
    file, row, key, prompt_number, prompt, model = result[:6]
    return (
        hash((file, model, key, prompt)),
        hash((file, model, row, prompt)),
        hash((file, model, key, prompt_number)),
        hash((file, model, row, prompt_number)),
    )


def digest_of_cell(result: Result) -> int:
    """Return the digest of the cell of a result: its file, row, system prompt and candidate."""
    return hash((result.file, result.model, result.row, result.prompt_number))


def unpack_result(values: Sequence[Any]) -> Result:
    """Return a result that was kept as JSON."""
    kept = *values[:10], *map(tuple, values[10:12]), values[12], tuple(values[13]), values[14]
    return Result._make(kept)


Change = Literal["broke", "fixed", "changed", "new", "gone", "unchanged"]
OTHER_JUDGEMENT = "judged again"
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
    def is_now_undecided(self) -> bool:
        """Return whether it is undecided on the second side and was not on the first."""
        verdicts = [each and each.verdict for each in (self.was, self.now)]
        return verdicts[1] == "undecided" != verdicts[0]


def sort_pair(pair: Pair, *, answers: bool = True) -> Change:
    """Return how a pair changed; without `answers`, only the verdict counts.

    An undecided verdict neither breaks nor fixes anything.
    """
    was, now = pair.was, pair.now
    if was is None:
        return "new"
    if now is None:
        return "gone"
    if was.verdict == "pass" and now.verdict in ("fail", "error"):
        return "broke"
    if now.verdict == "pass" and was.verdict in ("fail", "error"):
        return "fixed"
    if was.verdict != now.verdict or (answers and was.sessions != now.sessions):
        return "changed"
    return "unchanged"


NONE = -1
"""The number of a result that a side does not have."""
Numbers = tuple[int, int]
"""The numbers of the results of both sides of a pair."""


class Sides(NamedTuple):
    """The results of both sides, and the sort key of each, by its number."""

    was: PlacedResults
    now: PlacedResults
    keys_was: Sequence[int]
    keys_now: Sequence[int]

    def key(self, numbers: Numbers) -> int:
        """Return the sort key of a pair: by file, by the place of the row in it, by candidate."""
        was, now = numbers
        return self.keys_was[was] if now == NONE else self.keys_now[now]

    def is_unchanged(self, numbers: Numbers) -> bool:
        """Return whether both sides have the same verdict on the same answers."""
        old, new = numbers
        return (
            NONE not in numbers
            and self.was.answers[old] == self.now.answers[new]
            and self.was.verdict(old) == self.now.verdict(new)
        )

    def read(self, numbers: Sequence[Numbers]) -> list[Pair]:
        """Return the pairs with these numbers; they are in memory together."""
        was = iter(self.was.read([old for old, _ in numbers if old != NONE]))
        now = iter(self.now.read([new for _, new in numbers if new != NONE]))
        return [
            Pair(None if old == NONE else next(was), None if new == NONE else next(now))
            for old, new in numbers
        ]


class PairGroup(FiledSequence[Pair]):
    """Pairs that changed alike; it is compared, copied and pickled as a list of them."""

    def __init__(self, sides: Sides, numbers: Iterable[Numbers] = ()) -> None:
        self.sides = sides
        self._was, self._now = array("l"), array("l")
        for both in numbers:
            self.append(both)

    def append(self, numbers: Numbers) -> None:
        """Add a pair, by the numbers of its results."""
        self._was.append(numbers[0])
        self._now.append(numbers[1])

    def __len__(self) -> int:
        return len(self._was)

    def __iter__(self) -> Iterator[Pair]:
        for batch in in_batches(self.numbers()):
            yield from self.sides.read(batch)

    def read_one(self, number: int) -> Pair:
        """Return the pair with a number."""
        return self.sides.read([(self._was[number], self._now[number])])[0]

    def numbers(self) -> Iterator[Numbers]:
        """Yield the numbers of the results of each pair."""
        return zip(self._was, self._now, strict=True)

    def judged(self) -> Iterator[Numbers]:
        """Yield the numbers of those pairs that are judged on both sides."""
        was, now = self.sides.was, self.sides.now
        for old, new in self.numbers():
            if old != NONE and new != NONE and was.verdict(old) and now.verdict(new):
                yield old, new

    def file_names(self) -> set[str]:
        """Return the test files of the pairs."""
        was, now = self.sides.was, self.sides.now
        return {
            was.file_name(old) if new == NONE else now.file_name(new) for old, new in self.numbers()
        }

    def rows(self) -> Iterator[tuple[str, int]]:
        """Yield the test file of each pair, and the digest of file and row."""
        was, now = self.sides.was, self.sides.now
        for old, new in self.numbers():
            side, number = (was, old) if new == NONE else (now, new)
            yield side.file_name(number), side.rows[number]

    def split_pending(self) -> tuple[PairGroup, PairGroup]:
        """Return the pairs that are not now pending, and those that are."""
        was, now = self.sides.was, self.sides.now
        settled, pending = PairGroup(self.sides), PairGroup(self.sides)
        for both in self.numbers():
            is_judged = NONE not in both and was.verdict(both[0]) is not None
            (pending if is_judged and now.missing[both[1]] else settled).append(both)
        return settled, pending

    def count_missing(self) -> int:
        """Return how many pairs are pending on both sides."""
        was, now = self.sides.was.missing, self.sides.now.missing
        return sum(
            1 for old, new in self.numbers() if NONE not in (old, new) and was[old] and now[new]
        )

    def count_new(self) -> Counter[Verdict | None]:
        """Return how many pairs of which only the newer side has a result have which verdict."""
        return Counter(self.sides.now.verdict(new) for old, new in self.numbers() if old == NONE)

    def new_failures_first(self) -> PairGroup:
        """Return the pairs, first those of which only the newer side has a result, which fails."""
        find, passed = self.sides.now.verdict, (None, "pass")
        is_later = [old != NONE or find(new) in passed for old, new in self.numbers()]
        return self._only(sorted(range(len(self)), key=is_later.__getitem__))

    def new_failures(self) -> PairGroup:
        """Return those of which only the newer side has a result, which does not pass."""
        words = self.count_new()
        count = words.total() - words[None] - words["pass"]
        return self.new_failures_first()._only(range(count))

    def in_order(self) -> PairGroup:
        """Return the pairs in the order of the rows of the newer side."""
        keys = array("q", map(self.sides.key, self.numbers()))
        return self._only(sorted(range(len(self)), key=keys.__getitem__))

    def swapped(self) -> PairGroup:
        """Return the same pairs with the sides exchanged."""
        was, now, keys_was, keys_now = self.sides
        numbers = zip(self._now, self._was, strict=True)
        return PairGroup(Sides(now, was, keys_now, keys_was), numbers)

    def batches(self) -> Iterator[list[tuple[Numbers, Pair | None]]]:
        """Yield the pairs with their numbers in batches; those with one sort key are together.

        Of an unchanged pair only the numbers are given.
        """
        batch: list[Numbers] = []
        for _, alike in groupby(self.numbers(), self.sides.key):
            if len(batch) >= batches.SIZE:
                yield self._read(batch)
                batch = []
            batch += alike
        if batch:
            yield self._read(batch)

    def _read(self, numbers: Sequence[Numbers]) -> list[tuple[Numbers, Pair | None]]:
        differing = [each for each in numbers if not self.sides.is_unchanged(each)]
        pairs = dict(zip(differing, self.sides.read(differing), strict=True))
        return [(each, pairs.get(each)) for each in numbers]

    def _only(self, places: Iterable[int]) -> PairGroup:
        return PairGroup(self.sides, ((self._was[place], self._now[place]) for place in places))


# --- pairing


def order_pairs(
    was: PlacedResults,
    now: PlacedResults,
    numbers: tuple[Sequence[int], Sequence[int]],
    pairs: Iterable[Numbers],
    candidates: Callable[[str], Any],
) -> PairGroup:
    """Return pairs of two sides in the order of the rows of the newer one.

    `numbers` are those of the results that are compared, `candidates` is a sort key.
    """
    return PairGroup(Sides(was, now, *_sort_keys(was, now, numbers, candidates)), pairs).in_order()


def pair_by_places(
    was: PlacedResults, now: PlacedResults, old: Sequence[int], new: Sequence[int]
) -> Iterator[Numbers]:
    """Yield the numbers of pairs of these results: same file, same row, same prompt, same model."""
    for stage in range(len(PLACES) + 1):
        waiting: dict[int, list[int]] = {}
        for number, place in zip(old, was.places_at(stage, old), strict=True):
            waiting.setdefault(place, []).append(number)
        left = array("l")
        for number, place in zip(new, now.places_at(stage, new), strict=True):
            if partners := waiting.get(place):
                yield partners.pop(0), number
            else:
                left.append(number)
        old, new = array("l", chain.from_iterable(waiting.values())), left
    for number in new:
        yield NONE, number
    for number in old:
        yield number, NONE


def _sort_keys(
    was: PlacedResults,
    now: PlacedResults,
    numbers: tuple[Sequence[int], Sequence[int]],
    candidates: Callable[[str], Any],
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the sort key of each result: by file, by its row in the newer side, by candidate.

    Rows that the newer side lacks come after the others. What is not among the numbers has none.
    """
    names = sorted({*was.file_names, *now.file_names})
    files = {name: rank for rank, name in enumerate(names)}
    listed = sorted({*was.model_names, *now.model_names}, key=candidates)
    groups = enumerate(groupby(listed, key=candidates))
    models = {model: rank for rank, (_, alike) in groups for model in alike}
    """The rank of each candidate; the same for those with the same sort key."""
    places: dict[int, int] = {}
    keys: list[Sequence[int]] = []
    most_rows, most_models = len(was) + len(now) + 1, len(models) + 1
    for side, chosen in ((now, numbers[1]), (was, numbers[0])):
        file_ranks = [files[name] * most_rows for name in side.file_names]
        model_ranks = [models[name] for name in side.model_names]
        of_side = array("q", bytes(8 * len(side)))
        for number in chosen:
            place = places.setdefault(side.rows[number], len(places))
            of_side[number] = (file_ranks[side.files[number]] + place) * most_models + model_ranks[
                side.models[number]
            ]
        keys.append(of_side)
    return keys[1], keys[0]


# --- whether the answers of pairs are equal, and which were given first


Compared = TypeVar("Compared")
OLDER = "older answers count"
"""The reason of a change whose answers were stored before those of the other side."""
OLDER_MEANS = "after a run with --refresh, a run without it counts the oldest answers again"
ASKED_AGAIN = "asked again"
"""The reason of a change of answers to the same question, which nothing but chance explains."""


def has_other_sessions(pair: Pair) -> bool:
    """Return whether both sides of a pair have answers, and not the same ones."""
    was, now = (side.sessions if side else () for side in (pair.was, pair.now))
    return bool(was and now) and was != now


def asks_the_same(pair: Pair) -> bool:
    """Return whether both sides of a pair are about the same tests and system prompt."""
    was, now = ((side.tests, side.prompt) if side else None for side in (pair.was, pair.now))
    return was == now


def has_other_answers(pair: Pair) -> bool:
    """Return whether both sides of a pair ask the same and have different sessions."""
    return has_other_sessions(pair) and asks_the_same(pair)


def sessions_to_compare(pairs: Iterable[Pair]) -> set[str]:
    """Return the ids of the sessions of all pairs with the same question and other answers."""
    sides = ((pair.was, pair.now) for pair in pairs if has_other_answers(pair))
    return {id for side in sides for result in side if result for id in result.sessions}


def has_equal_texts(pair: Pair, sessions: Mapping[str, ComparedSession]) -> bool:
    """Return whether both sides asked the same and were answered alike, word for word."""
    sides = _sides(pair, sessions)
    if sides is None:
        return False
    was, now = sides
    return [(each.question, each.turns) for each in was] == [
        (each.question, each.turns) for each in now
    ]


def age_of_answers(pair: Pair, sessions: Mapping[str, Session | ComparedSession]) -> str:
    """Return `older answers count`, or `asked again`, if the second side has other answers.

    Empty if it does not ask the same.
    """
    sides = _sides(pair, sessions)
    if sides is None:
        return ""
    was, now = sides
    questions = {session.question for session in was}
    gained = [session.started for session in now if session not in was]
    lost = [session.started for session in was if session not in now]
    if not (gained and lost) or questions != {session.question for session in now}:
        return ""
    return OLDER if max(gained) < min(lost) else ASKED_AGAIN


def _sides(
    pair: Pair, sessions: Mapping[str, Compared]
) -> tuple[Sequence[Compared], Sequence[Compared]] | None:
    """Return the sessions of both sides; None unless they differ and all are known."""
    if not has_other_answers(pair):
        return None
    assert pair.was
    assert pair.now
    if not sessions.keys() >= {*pair.was.sessions, *pair.now.sessions}:
        return None
    was, now = ([sessions[id] for id in side.sessions] for side in (pair.was, pair.now))
    return was, now


def cause_texts(causes: Iterable[tuple[str, int]], *numbers: int) -> list[str]:
    """Return how many results changed by each cause, or the one cause of all of them.

    `numbers` are those of each kind of change. The others changed by edits, which is said only
    beside other causes.
    """
    total = sum(numbers)
    of_these = f"of these {total:,}, " if sum(map(bool, numbers)) > 1 else ""
    counts, single = Counter[str](), dict[str, str]()
    for cause, count in causes:
        plural = (
            f"{cause} ".replace(" a ", " ").replace("label ", "labels ").replace("counts", "count")
        )
        plural = plural.rstrip()
        counts[plural] += count
        single[plural] = cause
    listed = [
        (cause if count > 1 else single[cause], count)
        for cause, count in counts.items()
        if cause and count
    ]
    if [count for _, count in listed] == [total]:
        return [listed[0][0]]
    rest = total - sum(count for _, count in listed)
    edited = [("by an edit" if rest == 1 else "by edits", rest)] if listed and rest > 0 else []
    return [
        f"{'' if number else of_these}{count:,} {'as ' * cause.startswith(OLDER)}{cause}"
        for number, (cause, count) in enumerate((*edited, *listed))
    ]


Sessions = tuple[str, ...]
"""The sessions of one side of a pair."""


def find_same_answers(
    store: Store, pairs: Iterable[Pair], known: Mapping[str, ComparedSession] | None = None
) -> frozenset[tuple[Sessions, Sessions]]:
    """Return the sessions of pairs with other sessions and, word for word, the same answers.

    Sessions that are `known` are not read again.
    """
    sides = (sessions_of(pair) for pair in pairs)
    known, others = known or {}, [it for it in sides if it[0] != it[1] and len({*map(len, it)}) < 2]
    ids = dict.fromkeys(id for was, now in others for id in (*was, *now))
    sessions = {**known, **store.find_compared(id for id in ids if id not in known)}
    turns = {id: [*sessions[id].turns] for id in ids if id in sessions}
    return frozenset(
        (was, now)
        for was, now in others
        if all(
            old in turns and turns[old] == turns.get(new) for old, new in zip(was, now, strict=True)
        )
    )


def sessions_of(pair: Pair) -> tuple[Sessions, Sessions]:
    """Return the sessions of both sides of a pair; none for a side without a result."""
    was, now = (side.sessions if side else () for side in (pair.was, pair.now))
    return was, now


def same_answer_text(count: int) -> str:
    """Return how many pairs have the same answer to another question."""
    return f"{count:,} with the same answer"


class GrowingResults(PackedSequence["Result"]):
    """A list of results in the order in which they were added."""

    def __init__(self) -> None:
        super().__init__((), tuple, unpack_result)
        self.cells = array("Q")
        """A digest of the cell of each."""

    def append(self, result: Result) -> None:
        """Add a result."""
        self.cells.append(digest_of_value(result.cell))
        self.extend([result])


class CellMarks:
    """A word for each cell that has results in one of several lists; the last such list counts."""

    def __init__(self, lists: Iterable[tuple[str, GrowingResults]] = ()) -> None:
        self._words = {digest: word for word, results in lists for digest in results.cells}
        """By the digests of the cells."""

    def put(self, cell: CellKey, word: str) -> None:
        """Set the word of a cell."""
        self._words[digest_of_value(cell)] = word

    def of(self, cell: CellKey) -> str:
        """Return the word of a cell; empty for others."""
        return self._words.get(digest_of_value(cell), "")
