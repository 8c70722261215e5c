"""The cells of a command: each is a case, one of its system prompts and a candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from evalstore.checks.judging.reply_parser import model_that_judges
from evalstore.core import hashing
from evalstore.core.values import RECORDED, Case, CaseFile, Question
from evalstore.planning.selection import suits
from evalstore.store.trees.case_files import StoredCases

Subject = tuple[str, ...]
"""Ids of the sessions that are judged together, in the order of their conversations."""


@dataclass(frozen=True, slots=True)
class Candidate:
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


@dataclass(frozen=True, slots=True)
class Judge:
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
_SharedJudges = dict[tuple[Judge, ...], tuple[Judge, ...]]


class PlacedCase(NamedTuple):
    """A case with what its cells are made of."""

    file: str
    attempts: int | None
    """Those of the file."""
    number: int
    """The number of the case in its file."""
    case: Case
    candidates: Sequence[_Choice]
    """Those that its tags suit."""
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
    settled: Mapping[str, Collection[int]] = MappingProxyType({}),
    rows_in: Callable[[str], Collection[str] | None] = lambda _: None,
    read_ahead: Callable[[str, Numbered], Numbered] = lambda _, cases: cases,
) -> Iterator[PlacedCase]:
    """Iterate over every selected case with what its cells are made of.

    The parts of long files that begin at the cases with the numbers in `settled` are left out.
    Without `by_row`, cases of a file with the same tags that are all recorded, or all not, are
    selected together. `rows_in` returns the labels of the only rows of a file that may be selected.
    `read_ahead` returns those of the cases of a file that may be.
    """
    shared: _SharedJudges = {}
    for path, file in files.items():
        finder = _Finder(path, file, candidates, judges, shared, None if by_row else selected)
        attempts, made_of = file.attempts, None
        last: tuple[object, ...] = ()
        cases: Numbered = _numbered_cases(file, settled.get(path, ()), rows_in(path))
        for number, case in read_ahead(path, cases) if by_row else cases:
            if by_row and not selected(path, case):
                continue
            alike = (case.tags, case.judge_prompts, case.needs, case.recorded)
            if alike != last:
                last, made_of = alike, finder.find(case)
            if made_of is not None:
                yield PlacedCase(path, attempts, number, case, *made_of)


def _numbered_cases(
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


class _Finder:
    """Finds the candidates and judges of the cases of a file; alike cases share them."""

    def __init__(
        self,
        path: str,
        file: CaseFile,
        candidates: Sequence[Candidate],
        judges: Sequence[Judge],
        shared: _SharedJudges,
        selected: Callable[[str, Case], bool] | None,
    ) -> None:
        """`selected` returns whether cases with the same tags are selected; None if all are."""
        self._path, self._file, self._selected = path, file, selected
        self._candidates, self._judges, self._shared = candidates, judges, shared
        self._known: dict[tuple[object, ...], _MadeOf | None] = {}

    def find(self, case: Case) -> _MadeOf | None:
        """Return what the cells of a case are made of; None if it is not selected."""
        alike = (case.tags, case.judge_prompts, case.needs, case.recorded)
        if alike not in self._known:
            self._known[alike] = self._make(case)
        return self._known[alike]

    def _make(self, case: Case) -> _MadeOf | None:
        if self._selected is not None and not self._selected(self._path, case):
            return None
        judges = _judges_of(self._judges, self._file, case)
        candidates = [_recorded(case.recorded)] if case.recorded else self._candidates
        return _choose(candidates, case), self._shared.setdefault(judges, judges)


def cells_with(placed: PlacedCase, candidate: Candidate, attempts: int | None) -> list[Cell]:
    """Return the cells of a case with a candidate that lacks nothing for it."""
    path, of_file, number, case, _, judges = placed
    times = 1 if case.recorded else attempts or of_file or candidate.attempts
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
        replace(judge, prompt=prompt, evaluator=hashing.evaluator_id(voice))
        for prompt, voice in zip(prompts, voices, strict=True)
    ) or (judge,)


def limit_of(cell: Cell) -> int | None:
    """Return the token limit of an answer: the test's, else the settings'."""
    return cell.candidate.limit if cell.case.limit is None else cell.case.limit
