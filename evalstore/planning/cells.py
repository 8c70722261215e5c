"""The cells of a command: each is a case, one of its system prompts and a candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from evalstore import hashing
from evalstore.planning.selection import suits
from evalstore.store.case_files import StoredCases
from evalstore.values import RECORDED, Case, CaseFile, Evaluator, Question

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


@dataclass(frozen=True, slots=True)
class Cell:
    """One case for one candidate with one system prompt; each cell gets a verdict."""

    file: str
    index: int
    """The index of the case in its file."""
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

    def required_answers_of(self, question: str) -> int:
        """Return how many answers to one question the cell needs."""
        return self.attempts * self.questions.count(question)

    def distinct_questions(self) -> Iterator[tuple[str, int, int]]:
        """Yield each question once: its id, the number of its conversation, and of its answers."""
        if len(self.questions) == 1:
            yield self.questions[0], 0, self.attempts
            return
        counts = Counter(self.questions)
        first = {id: number for number, id in reversed(list(enumerate(self.questions)))}
        for id, count in counts.items():
            yield id, first[id], self.attempts * count

    def subjects(self, answers: Mapping[str, Sequence[str]]) -> Iterator[Subject]:
        """Yield the subjects that have all answers: single sessions, or several judged together.

        `answers` are the ids of sessions by question, those that count first.
        """
        if len(self.questions) == 1:
            for session in answers.get(self.questions[0], ())[: self.attempts]:
                yield (session,)
            return
        counts = Counter(self.questions)
        for attempt in range(self.attempts):
            taken = {
                id: iter(answers.get(id, ())[attempt * count : (attempt + 1) * count])
                for id, count in counts.items()
            }
            sessions = [next(taken[id], None) for id in self.questions]
            if None not in sessions:
                yield tuple(id for id in sessions if id is not None)


@dataclass(frozen=True, slots=True)
class SkippedPair:
    """A case and a model that are skipped because the model lacks a capability."""

    file: str
    row: str
    model: str
    lacks: tuple[str, ...]


def ask_of(case: Case, prompt: str | None, candidate: Candidate, number: int = 0) -> Question:
    """Return the question of a conversation of a case to a candidate, with a system prompt."""
    temperature = candidate.temperature if case.temperature is None else case.temperature
    return Question(case.tests[number], prompt, candidate.model, temperature, case.seed)


def ask_all(case: Case, prompt: str | None, candidate: Candidate) -> tuple[str, ...]:
    """Return the ids of the questions of all conversations of a case."""
    if len(case.tests) == 1:
        return (hashing.question_id(ask_of(case, prompt, candidate)),)
    known = {
        test: hashing.question_id(ask_of(case, prompt, candidate, number))
        for number, test in enumerate(case.tests)
    }
    return tuple(known[test] for test in case.tests)


def build_cells(
    files: Mapping[str, CaseFile],
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    selected: Callable[[str, Case], bool],
    *,
    attempts: int | None = None,
    most: int | None = None,
) -> tuple[list[Cell], list[SkippedPair]]:
    """Return the cells of every selected case, for each candidate and system prompt that suit it.

    `attempts` overrides files and settings. With `most`, only the first so many of the cases
    that have a candidate.
    """
    cells: list[Cell] = []
    skipped: list[SkippedPair] = []
    for cell in generate_cells(files, candidates, judges, selected, attempts=attempts, most=most):
        if isinstance(cell, SkippedPair):
            skipped.append(cell)
        else:
            cells.append(cell)
    return cells, skipped


def generate_cells(
    files: Mapping[str, CaseFile],
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    selected: Callable[[str, Case], bool],
    *,
    attempts: int | None = None,
    most: int | None = None,
    settled: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> Iterator[Cell | SkippedPair]:
    """Iterate over what `build_cells` returns, building each cell when it is needed.

    The parts of long files that begin at the cases with the numbers in `settled` are left out.
    """
    taken = 0
    shared: dict[tuple[Judge, ...], tuple[Judge, ...]] = {}
    for path, file in files.items():
        known: dict[tuple[tuple[str, ...], ...], tuple[Judge, ...]] = {}
        for index, case in _cases_of(file, settled.get(path, ())):
            if not selected(path, case):
                continue
            is_taken = False
            if (alike := (case.tags, case.judge_prompts)) not in known:
                case_judges = _judges_of(judges, file, case)
                known[alike] = shared.setdefault(case_judges, case_judges)
            case_judges = known[alike]
            for candidate in [_recorded(case.recorded)] if case.recorded else candidates:
                if not suits(case, candidate.required_tags, candidate.prohibited_tags):
                    continue
                lacks = candidate.lacks(case.needs) if case.needs else ()
                if lacks:
                    is_taken = True
                    yield SkippedPair(path, case.row, candidate.id, tuple(lacks))
                    continue
                for number, prompt in enumerate(case.prompts):
                    is_taken = True
                    yield Cell(
                        path,
                        index,
                        case,
                        prompt,
                        candidate,
                        ask_all(case, prompt, candidate),
                        1 if case.recorded else attempts or file.attempts or candidate.attempts,
                        case_judges,
                        number,
                    )
            taken += is_taken
            if taken == most:
                return


def _cases_of(file: CaseFile, settled: Collection[int]) -> Iterator[tuple[int, Case]]:
    """Yield the cases of a file with their numbers, except those of settled parts."""
    if settled and isinstance(file.cases, StoredCases):
        return file.cases.iterate_outside(settled)
    return enumerate(file.cases)


def _recorded(model: str) -> Candidate:
    """Return the candidate of answers that a test file contains."""
    return Candidate(RECORDED, model, None)


def _judges_of(judges: Sequence[Judge], file: CaseFile, case: Case) -> tuple[Judge, ...]:
    """Return the judges of a case; an evaluator with several names judges once."""
    by_evaluator: dict[str, Judge] = {}
    for judge in judges:
        if _is_judge_of(judge, file, case):
            for version in _with_prompts(judge, case.judge_prompts):
                by_evaluator.setdefault(version.evaluator, version)
    return tuple(by_evaluator.values())


@lru_cache(maxsize=1024)
def _with_prompts(judge: Judge, prompts: tuple[str, ...]) -> tuple[Judge, ...]:
    """Return the judge with each of these prompts, or with its own when there are none."""
    voices = [Evaluator(judge.model, prompt, judge.temperature) for prompt in prompts]
    return tuple(
        replace(judge, prompt=prompt, evaluator=hashing.evaluator_id(voice))
        for prompt, voice in zip(prompts, voices, strict=True)
    ) or (judge,)


def _is_judge_of(judge: Judge, file: CaseFile, case: Case) -> bool:
    if file.evaluators is not None and judge.id not in file.evaluators:
        return False
    return suits(case, judge.required_tags, judge.prohibited_tags)


def limit_of(cell: Cell) -> int | None:
    """Return the token limit of an answer: the test's, else the settings'."""
    return cell.candidate.limit if cell.case.limit is None else cell.case.limit
