"""Cases x models - what is stored = questions to ask and judgements to make.

Pure: everything is a set difference on ids. An answer is reused for as long as its
question stands, so a change of instructions alone leads to judgements but to no
question; and after a complete run nothing is left to do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from evalstore import hashing
from evalstore.selection import suits
from evalstore.values import RECORDED, Case, CaseFile, Evaluator, Question, Sample, Verdict, Vote
from evalstore.verdicts import wants_models

CHECKS = hashing.evaluator_id(Evaluator(checks=True))
"""The id of the evaluator that stands for the checks."""
UNSETTLED: tuple[Verdict, ...] = ("undecided", "error")
"""Verdicts of a judge that could not be read, and of a check that could not be computed."""


Subject = tuple[str, ...]
"""Ids of the sessions that are judged together, in the order of their conversations."""


class Bound(NamedTuple):
    """From when on stored answers, or stored judgements, count in one command."""

    since: float = -math.inf
    """Microseconds since 1970; infinity: none counts."""
    why: str = ""
    """The reason to ask, or to judge, in the place of one that does not count."""


EVER = Bound()
"""All count, however old."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that answers, with all a plan needs of it."""

    id: str
    model: str
    """Id of the model version."""
    temperature: float | None
    limit: int | None = None
    """Token limit of an answer."""
    attempts: int = 1
    lacks: Callable[[tuple[str, ...]], Sequence[str]] = lambda _needs: ()
    """Which of some capabilities the model is declared not to have."""
    required_tags: tuple[str, ...] = ()
    prohibited_tags: tuple[str, ...] = ()
    reachable: bool = True
    """Whether it may be called in this command."""


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


@dataclass(frozen=True, slots=True)
class Cell:
    """One case, put to one candidate with one system prompt: what gets a verdict."""

    file: str
    index: int
    """Of the case in its file."""
    case: Case
    prompt: str | None
    candidate: Candidate
    questions: tuple[str, ...]
    """Ids of the questions, one for each conversation of the case."""
    attempts: int
    """How often each conversation is held, and what comes of it judged."""
    judges: tuple[Judge, ...]

    @property
    def question(self) -> Question:
        """What the candidate is asked first."""
        return ask_of(self.case, self.prompt, self.candidate)

    @property
    def wanted(self) -> int:
        """How many answers."""
        return self.attempts * len(self.questions)

    def wanted_of(self, question: str) -> int:
        """How many answers to one question."""
        return self.attempts * self.questions.count(question)

    def asked(self) -> Iterator[tuple[str, int, int]]:
        """Each question once: its id, the number of its conversation, how many answers."""
        if len(self.questions) == 1:
            yield self.questions[0], 0, self.attempts
            return
        counts = Counter(self.questions)
        first = {id: number for number, id in reversed(list(enumerate(self.questions)))}
        for id, count in counts.items():
            yield id, first[id], self.attempts * count

    def subjects(self, answers: Mapping[str, Sequence[str]]) -> Iterator[Subject]:
        """What is judged, as far as all its answers are there: one session, or several together.

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
            found = [next(taken[id], None) for id in self.questions]
            if None not in found:
                yield tuple(id for id in found if id is not None)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A pair that is not asked because the model lacks a capability."""

    file: str
    row: str
    model: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """An answer to get; cells that share a question share it."""

    cell: Cell
    count: int
    cut_at: int | None = None
    """The lower token limit that cut the stored answer off."""
    why: str = ""
    """Why stored answers do not count in this command, when some do not."""
    number: int = 0
    """Of the conversation in its case."""

    @property
    def question_id(self) -> str:
        """The id of the question."""
        return self.cell.questions[self.number]

    @property
    def question(self) -> Question:
        """The question."""
        return ask_of(self.cell.case, self.cell.prompt, self.cell.candidate, self.number)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict to get on a session; `judge` None: by the checks."""

    cell: Cell
    sessions: Subject
    """Empty: they are still to be asked."""
    judge: Judge | None
    count: int = 1
    why: str = ""
    """Why stored judgements do not count in this command, when some do not."""

    @property
    def subject(self) -> str | None:
        """The id of what is judged; None: it is still to be asked."""
        return hashing.subject_of(self.sessions) if self.sessions else None

    @property
    def evaluator(self) -> str:
        """Id of the evaluator."""
        return self.judge.evaluator if self.judge else CHECKS


@dataclass
class Plan:
    """What a run would do."""

    cells: list[Cell] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    sessions: dict[str, list[str]] = field(default_factory=dict)
    """Question id -> ids of the stored sessions that count, oldest first."""
    newest: dict[str, int] = field(default_factory=dict)
    """Question id -> when its newest stored session started, whether it counts or not."""
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    """Id of a subject -> its stored votes that may count in this command."""
    passed_over: set[str] = field(default_factory=set)
    """Ids of the stored votes that do not."""
    oldest: int | None = None
    """When the oldest of the sessions that count started."""
    left_asks: int = 0
    """Answers that are missing and stay so, as their model may not be called in this command."""
    left_judgements: int = 0
    """Judgements of stored and coming answers, likewise."""
    blocked: set[str] = field(default_factory=set)
    """Ids of the evaluation versions that run Python files which are not trusted."""
    blocked_judgements: int = 0
    """Judgements that are missing and stay so because of that."""

    @property
    def questions(self) -> set[str]:
        """The ids of all questions."""
        return {id for cell in self.cells for id in cell.questions}

    def subjects(self) -> Iterator[str]:
        """The ids of all that can be judged already."""
        for cell in self.cells:
            if cell.case.evaluation is not None:
                yield from map(hashing.subject_of, cell.subjects(self.sessions))

    @property
    def ask_count(self) -> int:
        """How many answers a run would ask for."""
        return sum(ask.count for ask in self.asks)

    @property
    def judge_count(self) -> int:
        """How many judgements a run would make, at most: failed checks save the models'."""
        return sum(judgement.count for judgement in self.judgements)

    @property
    def reused(self) -> int:
        """How many stored answers count."""
        return sum(len(sessions) for sessions in self.sessions.values())


def ask_of(case: Case, prompt: str | None, candidate: Candidate, number: int = 0) -> Question:
    """The question that a conversation of a case puts to a candidate, with a system prompt."""
    temperature = candidate.temperature if case.temperature is None else case.temperature
    return Question(case.tests[number], prompt, candidate.model, temperature, case.seed)


def ask_all(case: Case, prompt: str | None, candidate: Candidate) -> tuple[str, ...]:
    """The ids of the questions of all conversations of a case."""
    if len(case.tests) == 1:
        return (hashing.question_id(ask_of(case, prompt, candidate)),)
    known = {
        test: hashing.question_id(ask_of(case, prompt, candidate, number))
        for number, test in enumerate(case.tests)
    }
    return tuple(known[test] for test in case.tests)


def portions(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    """The cells in parts of at least `size`, but for the last; those of a file stay together."""
    start = 0
    for number, cell in enumerate(cells):
        if number - start >= size and cell.file != cells[number - 1].file:
            yield cells[start:number]
            start = number
    if start < len(cells):
        yield cells[start:]


def lay_out(
    files: Mapping[str, CaseFile],
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    selected: Callable[[str, Case], bool],
    *,
    attempts: int | None = None,
) -> tuple[list[Cell], list[Skipped]]:
    """Every selected case with every candidate and system prompt it is meant for.

    `attempts` wins over what files and settings say.
    """
    cells: list[Cell] = []
    skipped: list[Skipped] = []
    shared: dict[tuple[Judge, ...], tuple[Judge, ...]] = {}
    for path, file in files.items():
        for index, case in enumerate(file.cases):
            if not selected(path, case):
                continue
            wanted_judges = _wanted_judges(judges, file, case)
            wanted_judges = shared.setdefault(wanted_judges, wanted_judges)
            for candidate in [_recorded(case.recorded)] if case.recorded else candidates:
                if not suits(case, candidate.required_tags, candidate.prohibited_tags):
                    continue
                lacks = candidate.lacks(case.needs) if case.needs else ()
                if lacks:
                    skipped.append(Skipped(path, case.row, candidate.id, tuple(lacks)))
                    continue
                for prompt in case.prompts:
                    cells.append(
                        Cell(
                            path,
                            index,
                            case,
                            prompt,
                            candidate,
                            ask_all(case, prompt, candidate),
                            1 if case.recorded else attempts or file.attempts or candidate.attempts,
                            wanted_judges,
                        )
                    )
    return cells, skipped


def _recorded(model: str) -> Candidate:
    """The candidate that stands for answers which a file brings itself."""
    return Candidate(RECORDED, model, None)


def _wanted_judges(judges: Sequence[Judge], file: CaseFile, case: Case) -> tuple[Judge, ...]:
    """The judges of a case; one that has several names has one voice."""
    wanted: dict[str, Judge] = {}
    for judge in judges:
        if _is_wanted(judge, file, case):
            for one in _with_prompts(judge, case.judge_prompts):
                wanted.setdefault(one.evaluator, one)
    return tuple(wanted.values())


@lru_cache(maxsize=1024)
def _with_prompts(judge: Judge, prompts: tuple[str, ...]) -> tuple[Judge, ...]:
    """The judge with each of these prompts, or with its own when there are none."""
    voices = [Evaluator(judge.model, prompt, judge.temperature) for prompt in prompts]
    return tuple(
        replace(judge, prompt=prompt, evaluator=hashing.evaluator_id(voice))
        for prompt, voice in zip(prompts, voices, strict=True)
    ) or (judge,)


def _is_wanted(judge: Judge, file: CaseFile, case: Case) -> bool:
    if file.evaluators is not None and judge.id not in file.evaluators:
        return False
    return suits(case, judge.required_tags, judge.prohibited_tags)


def limit_of(cell: Cell) -> int | None:
    """The token limit of an answer: the test's, else the settings'."""
    return cell.candidate.limit if cell.case.limit is None else cell.case.limit


def counts(sample: Sample, limit: int | None) -> bool:
    """Whether a stored answer counts: one cut off does only while the limit has not been raised."""
    return sample.limit is None or (limit is not None and limit <= sample.limit)


def plan_asks(plan: Plan, samples: Mapping[str, Sequence[Sample]], bound: Bound = EVER) -> None:
    """Fill in which stored sessions count, and the questions that have too few."""
    wanted: dict[str, tuple[Cell, int, int]] = {}
    for cell in plan.cells:
        for question, number, count in cell.asked():
            known = wanted.get(question)
            if known is None or known[2] < count:
                wanted[question] = (cell, number, count)
    for question, (cell, number, most) in wanted.items():
        limit = limit_of(cell)
        stored = samples.get(question, ())
        whole = [sample for sample in stored if counts(sample, limit)]
        counted = [sample for sample in whole if sample.started >= bound.since][:most]
        if counted:
            plan.sessions[question] = [sample.id for sample in counted]
            oldest = min(sample.started for sample in counted)
            plan.oldest = oldest if plan.oldest is None else min(plan.oldest, oldest)
        if stored:
            plan.newest[question] = max(sample.started for sample in stored)
        missing = most - len(counted)
        if missing and not cell.candidate.reachable:
            plan.left_asks += missing
        elif missing:
            cut = [one.limit for one in stored if one.limit and not counts(one, limit)]
            is_old = any(sample.started < bound.since for sample in whole)
            plan.asks.append(
                Ask(cell, missing, max(cut, default=None), bound.why if is_old else "", number)
            )


def plan_judgements(
    plan: Plan,
    votes: Mapping[str, Sequence[Vote]],
    bound: Bound = EVER,
    again: Collection[Verdict] = (),
    begun: float = math.inf,
) -> None:
    """Fill in the judgements that stored and coming sessions lack; each is listed once.

    Votes with a verdict of `again` from before the run has `begun` do not count, nor do those
    before the bound.
    """
    found: dict[tuple[str | Subject, str, str], Judgement] = {}
    asked = {ask.question_id: ask.count for ask in plan.asks}
    for cell in plan.cells:
        if cell.case.evaluation is None:
            continue
        complete = 0
        for sessions in cell.subjects(plan.sessions):
            complete += 1
            subject = hashing.subject_of(sessions)
            stored = votes.get(subject, ())
            counting = [
                vote
                for vote in stored
                if vote.started >= bound.since
                and not (vote.verdict in again and vote.started < begun)
            ]
            plan.votes[subject] = counting
            plan.passed_over |= {vote.id for vote in stored} - {vote.id for vote in counting}
            for judge, count in _lacking(cell, counting, before_checks=True):
                one = Judgement(cell, sessions, judge, count)
                why = _why_again(one, stored, bound, again)
                found.setdefault(
                    (subject, cell.case.evaluation, one.evaluator), replace(one, why=why)
                )
        coming = _coming(cell, plan, asked) - complete if complete < cell.attempts else 0
        if coming > 0:
            for judge, count in _lacking(cell, (), before_checks=True):
                one = Judgement(cell, (), judge, count * coming)
                key = (cell.questions, cell.case.evaluation, one.evaluator)
                known = found.get(key)
                if known is None or known.count < one.count:
                    found[key] = one
    for (about, evaluation, _), one in found.items():
        if evaluation in plan.blocked and (about, evaluation, CHECKS) in found:
            plan.blocked_judgements += one.count if one.judge is None else 0
        elif one.judge is None or one.judge.reachable:
            plan.judgements.append(one)
        else:
            plan.left_judgements += one.count


def _coming(cell: Cell, plan: Plan, asked: Mapping[str, int]) -> int:
    """How many subjects a cell will have when all is asked."""
    if len(cell.questions) == 1:
        question = cell.questions[0]
        have = len(plan.sessions.get(question, ())) + asked.get(question, 0)
        return min(have, cell.attempts)
    return min(
        cell.attempts,
        *(
            (len(plan.sessions.get(question, ())) + asked.get(question, 0))
            // (most // cell.attempts)
            for question, _, most in cell.asked()
        ),
    )


def _why_again(
    one: Judgement, stored: Iterable[Vote], bound: Bound, again: Collection[Verdict]
) -> str:
    """Why the newest vote in the place of a judgement does not count; empty if there is none."""
    why = ""
    for vote in stored:
        if (vote.evaluation, vote.evaluator) != (one.cell.case.evaluation, one.evaluator):
            continue
        if vote.verdict in again:
            why = f"retry of {_article(vote.verdict)}"
        elif vote.started < bound.since:
            why = bound.why
    return why


def _article(verdict: Verdict) -> str:
    return "an error of a check" if verdict == "error" else "an undecided judgement"


def missing_judgements(
    cell: Cell, stored: Iterable[Vote], *, before_checks: bool = False
) -> Iterator[tuple[Judge | None, int]]:
    """What a session lacks under the cell's evaluation version: by whom, and how often.

    Which models judge depends on what the checks say, so they are wanted once the checks are
    made, or when `before_checks`. Judges that may not be called in this
    command are left out.
    """
    for judge, count in _lacking(cell, stored, before_checks=before_checks):
        if judge is None or judge.reachable:
            yield judge, count


def _lacking(
    cell: Cell, stored: Iterable[Vote], *, before_checks: bool
) -> Iterator[tuple[Judge | None, int]]:
    votes = _decided_first(cell, stored)
    if "checks" in cell.case.judged_by:
        checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
        if checked is None:
            yield None, 1
            if not before_checks:
                return
        elif not wants_models(cell.case.judged_by, checked):
            return
    if "models" not in cell.case.judged_by:
        return
    for judge in cell.judges:
        have = sum(1 for vote in votes if vote.evaluator == judge.evaluator)
        if have < judge.times:
            yield judge, judge.times - have


def counted_votes(cell: Cell, stored: Iterable[Vote]) -> list[Vote]:
    """The votes on a session that count: under its evaluation version, by its judges.

    Of too many, `pass` and `fail` come before `undecided` and `error`, then the oldest: so a
    repeated judgement that can be read takes the place of one that could not, for ever and
    in every store it is merged into. `stored` is oldest first.
    """
    votes = _decided_first(cell, stored)
    counted: list[Vote] = []
    if "checks" in cell.case.judged_by:
        counted += [vote for vote in votes if vote.evaluator == CHECKS][:1]
    if "models" in cell.case.judged_by:
        for judge in cell.judges:
            counted += [vote for vote in votes if vote.evaluator == judge.evaluator][: judge.times]
    return counted


def _decided_first(cell: Cell, stored: Iterable[Vote]) -> list[Vote]:
    """The votes under the cell's evaluation version, in the order in which they count."""
    votes = [vote for vote in stored if vote.evaluation == cell.case.evaluation]
    if len(votes) > 1:
        votes.sort(key=lambda vote: vote.verdict in UNSETTLED)
    return votes
