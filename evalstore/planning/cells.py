"""The cells of a command, in batches: each is a case, one of its system prompts and a candidate.

Batches let many cells need little memory; each knows what those before it ask and judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import lru_cache
from itertools import chain, compress
from typing import NamedTuple

from evalstore.checks.judge_replies import model_that_judges
from evalstore.comparison.comparison import PlacedCell
from evalstore.core import hashing
from evalstore.core.hashing import ValueSet
from evalstore.core.values import RECORDED, Case, CaseFile, Question
from evalstore.planning.selection import suits
from evalstore.store.trees.tree_nodes import StoredCases

Subject = tuple[str, ...]
"""Ids of the sessions that are judged together, in the order of their conversations."""


class Candidate(NamedTuple):
    """A model that answers, with the facts that a plan needs."""

    id: str
    model: str
    """Id of the model version."""
    temperature: float | None
    limit: int | None = None
    """Token limit of an answer."""
    attempts: int = 1
    lacks: Callable[[tuple[str, ...]], Sequence[str]] = lambda _needs: ()
    """Returns those of the given capabilities that the model is declared not to have."""
    required_tags: tuple[str, ...] = ()
    prohibited_tags: tuple[str, ...] = ()
    reachable: bool = True
    """Whether it may be called in this command."""
    trust_needed: str = ""
    """The id of the model, if it is not called only because its application is not trusted."""


class Judge(NamedTuple):
    """A model that judges with one evaluator prompt."""

    id: str
    evaluator: str
    """Id of the evaluator."""
    prompt: str
    """Id of the evaluator prompt's version."""
    times: int = 1
    required_tags: tuple[str, ...] = ()
    prohibited_tags: tuple[str, ...] = ()
    reachable: bool = True
    """Whether it may be called in this command."""
    model: str = ""
    """Id of the model version."""
    temperature: float | None = None
    trust_needed: str = ""
    """The id of the model, if it is not called only because its application is not trusted."""


class Cell(NamedTuple):
    """One case for one candidate with one system prompt; each cell gets a verdict."""

    file: str
    number: int
    """The number of the case in its file."""
    case: Case
    prompt: str | None
    candidate: Candidate
    questions: tuple[str, ...]
    """Ids of the questions, one for each conversation of the case."""
    attempts: int
    """How often each conversation is held and judged."""
    judges: tuple[Judge, ...]
    prompt_number: int
    """The number of the system prompt among those of the case."""

    @property
    def question(self) -> Question:
        """Return the first question to the candidate."""
        return ask_of(self.case, self.prompt, self.candidate)

    @property
    def required_answers(self) -> int:
        """Return how many answers the cell needs."""
        return self.attempts * len(self.questions)

    def distinct_questions(self) -> Sequence[tuple[str, int, int]]:
        """Return each question once: its id, the number of its conversation, and of its answers."""
        questions, attempts = self.questions, self.attempts
        if len(questions) == 1:
            return ((questions[0], 0, attempts),)
        counts = Counter(questions)
        first = {id: number for number, id in reversed(list(enumerate(questions)))}
        return [(id, first[id], attempts * count) for id, count in counts.items()]

    def subjects(self, answers: Mapping[str, Sequence[str]]) -> Sequence[Subject]:
        """Return the subjects that have all answers: single sessions, or several judged together.

        `answers` are the ids of sessions by question, those that count first.
        """
        if len(self.questions) == 1:
            sessions = answers.get(self.questions[0], ())[: self.attempts]
            return [(session,) for session in sessions]
        return list(self._subjects_of_several(answers))

    def _subjects_of_several(self, answers: Mapping[str, Sequence[str]]) -> Iterator[Subject]:
        counts = Counter(self.questions)
        for attempt in range(self.attempts):
            taken = {
                id: iter(answers.get(id, ())[attempt * count : (attempt + 1) * count])
                for id, count in counts.items()
            }
            sessions = [next(taken[id], None) for id in self.questions]
            if None not in sessions:
                yield tuple(id for id in sessions if id is not None)

    def count_subjects(
        self, answers: Mapping[str, Sequence[str]], planned: Mapping[str, int]
    ) -> int:
        """Return how many subjects there will be when the planned answers are there, too."""
        if len(self.questions) == 1:
            (question,) = self.questions
            return min(self.attempts, len(answers.get(question, ())) + planned.get(question, 0))
        return min(
            self.attempts,
            *(
                (len(answers.get(question, ())) + planned.get(question, 0))
                // (most // self.attempts)
                for question, _, most in self.distinct_questions()
            ),
        )


_Choice = tuple[Candidate, tuple[str, ...]]
"""A candidate, and the capabilities that it lacks: with any it is skipped."""


_MadeOf = tuple[Sequence[_Choice], tuple[Judge, ...]]
"""The candidates and the judges of cells."""
Numbered = Iterable[tuple[int, Case]]
"""Cases with their numbers."""


class PlacedCase(NamedTuple):
    """A case with what its cells are made of."""

    file: str
    attempts: int | None
    """Those of the file."""
    number: int
    """The number of the case in its file."""
    case: Case
    candidates: Sequence[_Choice]
    """Those that its tags suit; for a recorded answer, that of a case like it."""
    judges: tuple[Judge, ...]


class SkippedPair(NamedTuple):
    """A case and a model that are skipped because the model lacks a capability."""

    file: str
    row: str
    model: str
    lacks: str
    """The capabilities, as a list in words."""


def ask_of(case: Case, prompt: str | None, candidate: Candidate, number: int = 0) -> Question:
    """Return the question of a conversation of a case to a candidate, with a system prompt."""
    temperature = candidate.temperature if case.temperature is None else case.temperature
    return Question(case.tests[number], prompt, candidate.model, temperature, case.seed)


def ask_all(case: Case, prompt: str | None, candidate: Candidate) -> tuple[str, ...]:
    """Return the ids of the questions of all conversations of a case."""
    temperature = candidate.temperature if case.temperature is None else case.temperature
    tests, model, seed = case.tests, candidate.model, case.seed
    if len(tests) == 1:
        return (hashing.id_of_question(tests[0], prompt, model, temperature, seed),)
    shared = (prompt, model, temperature, seed)
    known = {test: hashing.id_of_question(test, *shared) for test in dict.fromkeys(tests)}
    return tuple(known[test] for test in tests)


def place_cases(
    files: Mapping[str, CaseFile],
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    selected: Callable[[str, Case], bool],
    *,
    by_row: bool = True,
    read: Callable[[str, CaseFile], Numbered] = lambda _, file: enumerate(file.cases),
) -> Iterator[PlacedCase]:
    """Iterate over every selected case with what its cells are made of.

    Without `by_row`, cases of a file with the same tags that are all recorded, or all not, are
    selected together. `read` returns those of a file that may be selected.
    """
    shared: dict[tuple[Judge, ...], tuple[Judge, ...]] = {}
    for path, file in files.items():
        known: dict[tuple[object, ...], _MadeOf | None] = {}
        for number, case in read(path, file):
            if by_row and not selected(path, case):
                continue
            alike = (case.tags, case.judge_prompts, case.needs, case.recorded is None)
            if alike not in known:
                of_case = _judges_of(judges, file, case)
                choices = [_recorded(case.recorded)] if case.recorded else candidates
                known[alike] = _choose(choices, case), shared.setdefault(of_case, of_case)
                if not (by_row or selected(path, case)):
                    known[alike] = None
            if (made_of := known[alike]) is not None:
                yield PlacedCase(path, file.attempts, number, case, *made_of)


def numbered_cases(
    file: CaseFile, settled: Collection[int], rows: Collection[str] | None
) -> Iterator[tuple[int, Case]]:
    """Yield the cases of a file with their numbers, except those of settled parts.

    With `rows`, a long file that has no such parts only yields those with one of these labels.
    """
    if isinstance(file.cases, StoredCases):
        if settled:
            return file.cases.iterate_outside(settled)
        if rows is not None:
            return file.cases.labelled(rows)
    return enumerate(file.cases)


def take_first(cases: Iterable[PlacedCase], most: int | None) -> Iterator[PlacedCase]:
    """Yield the cases until `most` of them have cells, and read no others; all if it is None."""
    taken = 0
    for placed in cases:
        yield placed
        taken += any(lacks or placed.case.prompts for _, lacks in placed.candidates)
        if taken == most:
            return


def cells_with(placed: PlacedCase, candidate: Candidate, attempts: int | None) -> list[Cell]:
    """Return the cells of a case with a candidate that lacks nothing for it."""
    path, of_file, number, case, _, judges = placed
    times = attempts or of_file or candidate.attempts
    if case.recorded:
        candidate, times = _recorded(case.recorded), 1
    cells = []
    for of_case, prompt in enumerate(case.prompts):
        asked = ask_all(case, prompt, candidate)
        cells.append(Cell(path, number, case, prompt, candidate, asked, times, judges, of_case))
    return cells


def _choose(candidates: Iterable[Candidate], case: Case) -> list[_Choice]:
    """Return the candidates that the tags of a case suit, each with what it lacks for it."""
    return [
        (candidate, tuple(candidate.lacks(case.needs)) if case.needs else ())
        for candidate in candidates
        if suits(case, candidate.required_tags, candidate.prohibited_tags)
    ]


def _recorded(model: str) -> Candidate:
    """Return the candidate of answers that a test file contains."""
    return Candidate(RECORDED, model, None)


def _judges_of(judges: Sequence[Judge], file: CaseFile, case: Case) -> tuple[Judge, ...]:
    """Return the judges of a case; an evaluator with several names judges once."""
    by_evaluator: dict[str, Judge] = {}
    for judge in judges:
        is_named = file.evaluators is None or judge.id in file.evaluators
        if is_named and suits(case, judge.required_tags, judge.prohibited_tags):
            for version in _with_prompts(judge, case.judge_prompts):
                by_evaluator.setdefault(version.evaluator, version)
    return tuple(by_evaluator.values())


@lru_cache(maxsize=1024)
def _with_prompts(judge: Judge, prompts: tuple[str, ...]) -> tuple[Judge, ...]:
    """Return the judge with each of these prompts, or with its own when there are none."""
    voices = [model_that_judges(judge.model, prompt, judge.temperature) for prompt in prompts]
    return tuple(
        judge._replace(prompt=prompt, evaluator=hashing.evaluator_id(voice))
        for prompt, voice in zip(prompts, voices, strict=True)
    ) or (judge,)


def limit_of(cell: Cell) -> int | None:
    """Return the token limit of an answer: the test's, else the settings'."""
    return cell.candidate.limit if cell.case.limit is None else cell.case.limit


BATCH = 4_000
"""About the number of cells that are planned and carried out together, to save memory."""


def batches(cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Yield batches of at least `BATCH` cells, except for the last; a file is in one batch.

    A file whose cells have more attempts than two batches is split between two of its cases.
    """
    batch: list[Cell] = []
    of_file, file, number = 0, "", -1
    for cell in cells:
        if cell.file == file:
            is_full = of_file >= 2 * BATCH and cell.number != number
            of_file += cell.attempts
        else:
            is_full = len(batch) >= BATCH
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
        self.shared = ValueSet()
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
        tests = ValueSet()
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
            self.judges[id(placed.judges)] = placed.judges
            if not placed.judges and case.evaluation and "models" in case.judged_by:
                self.unjudged[placed.file] = None
                self.has_others = self.has_others or "checks" in case.judged_by
            else:
                self.has_others = True
            asked = case.tests if len(case.tests) == 1 else {*case.tests}
            if [test for test in asked if not tests.add(test)]:
                for cell in compress(self._make(placed), flags):
                    self.shared.update(cell.questions)

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


class FirstCase(NamedTuple):
    """Where the first case is that asks or judges something."""

    file: str
    number: int
    """The number of the case in its file."""


class EarlierBatches:
    """Knows what the plans of earlier batches have, which a later one must not count again.

    The first case that asks a question has it, and likewise each judgement; one that needs more has
    the rest.
    """

    def __init__(self, shared: ValueSet) -> None:
        """`shared` has the questions that several cases may ask."""
        self.shared = shared
        self._known: dict[Hashable, tuple[FirstCase, int]] = {}
        self._reused: dict[str, int] = {}
        """How many stored answers to each question count."""

    def find(self, key: Hashable, cell: Cell, count: int) -> tuple[FirstCase | None, int]:
        """Return the earlier case of an item of a plan, if any, and how much of it is new."""
        if self.shared.isdisjoint(cell.questions):
            return None, count
        first, known = self._known.get(key, (None, 0))
        here = first or FirstCase(cell.file, cell.number)
        self._known[key] = here, max(known, count)
        return first, max(0, count - known)

    def count_reused(self, sessions: Mapping[str, Sequence[str]]) -> int:
        """Return how many of these answers, by question, counted before; the others do now."""
        before = 0
        for question, ids in sessions.items() if self.shared else ():
            if question in self.shared:
                known = self._reused.get(question, 0)
                before += min(known, len(ids))
                self._reused[question] = max(known, len(ids))
        return before
