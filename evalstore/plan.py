"""Cases x models - what is stored = questions to ask and judgements to make.

Pure: everything is a set difference on ids. An answer is reused for as long as its
question stands, so a change of instructions alone leads to judgements but to no
question; and after a complete run nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evalstore import hashing
from evalstore.selection import suits
from evalstore.values import Case, CaseFile, Evaluator, Question, Sample, Vote

CHECKS = hashing.identify(hashing.describe_evaluator(Evaluator(checks=True)))[0]
"""The id of the evaluator that stands for the checks."""


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


@dataclass(frozen=True, slots=True)
class Cell:
    """One case, put to one candidate with one system prompt: what gets a verdict."""

    file: str
    index: int
    """Of the case in its file."""
    case: Case
    prompt: str | None
    candidate: Candidate
    question: Question
    question_id: str
    wanted: int
    """How many answers."""
    judges: tuple[Judge, ...]


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


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict to get on a session; `judge` None: by the checks."""

    cell: Cell
    session: str | None
    """None: the session is still to be asked."""
    judge: Judge | None
    count: int = 1


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
    """Session id -> its stored votes."""

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
    for path, file in files.items():
        for index, case in enumerate(file.cases):
            if not selected(path, case):
                continue
            wanted_judges = tuple(judge for judge in judges if _is_wanted(judge, file, case))
            for candidate in candidates:
                if not suits(case, candidate.required_tags, candidate.prohibited_tags):
                    continue
                lacks = candidate.lacks(case.needs) if case.needs else ()
                if lacks:
                    skipped.append(Skipped(path, case.row, candidate.id, tuple(lacks)))
                    continue
                for prompt in case.prompts:
                    temperature = (
                        candidate.temperature if case.temperature is None else case.temperature
                    )
                    question = Question(
                        case.tests[0], prompt, candidate.model, temperature, case.seed
                    )
                    cells.append(
                        Cell(
                            path,
                            index,
                            case,
                            prompt,
                            candidate,
                            question,
                            hashing.question_id(question),
                            attempts or file.attempts or candidate.attempts,
                            wanted_judges,
                        )
                    )
    return cells, skipped


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


def plan_asks(plan: Plan, samples: Mapping[str, Sequence[Sample]]) -> None:
    """Fill in which stored sessions count, and the questions that have too few."""
    wanted: dict[str, Cell] = {}
    for cell in plan.cells:
        known = wanted.get(cell.question_id)
        if known is None or known.wanted < cell.wanted:
            wanted[cell.question_id] = cell
    for question, cell in wanted.items():
        limit = limit_of(cell)
        stored = samples.get(question, ())
        counted = [sample.id for sample in stored if counts(sample, limit)][: cell.wanted]
        if counted:
            plan.sessions[question] = counted
        if stored:
            plan.newest[question] = max(sample.started for sample in stored)
        missing = cell.wanted - len(counted)
        if missing:
            cut = [one.limit for one in stored if one.limit and not counts(one, limit)]
            plan.asks.append(Ask(cell, missing, max(cut, default=None)))


def plan_judgements(plan: Plan, votes: Mapping[str, Sequence[Vote]]) -> None:
    """Fill in the judgements that stored and coming sessions lack; each is listed once."""
    found: dict[tuple[str, str, str], Judgement] = {}
    asked = {ask.cell.question_id: ask.count for ask in plan.asks}
    for cell in plan.cells:
        if cell.case.evaluation is None:
            continue
        sessions = plan.sessions.get(cell.question_id, ())[: cell.wanted]
        for session in sessions:
            stored = votes.get(session, ())
            plan.votes[session] = list(stored)
            for judge, count in missing_judgements(cell, stored, assume_checks_pass=True):
                key = (session, cell.case.evaluation, judge.evaluator if judge else CHECKS)
                found.setdefault(key, Judgement(cell, session, judge, count))
        coming = min(asked.get(cell.question_id, 0), cell.wanted - len(sessions))
        if coming:
            for judge, count in missing_judgements(cell, (), assume_checks_pass=True):
                key = (cell.question_id, cell.case.evaluation, judge.evaluator if judge else CHECKS)
                known = found.get(key)
                if known is None or known.count < count * coming:
                    found[key] = Judgement(cell, None, judge, count * coming)
    plan.judgements += found.values()


def missing_judgements(
    cell: Cell, stored: Iterable[Vote], *, assume_checks_pass: bool = False
) -> Iterator[tuple[Judge | None, int]]:
    """What a session lacks under the cell's evaluation version: by whom, and how often.

    Models judge only when the checks leave the verdict open, so they are wanted once the
    checks have passed, or when `assume_checks_pass`.
    """
    votes = [vote for vote in stored if vote.evaluation == cell.case.evaluation]
    if "checks" in cell.case.judged_by:
        checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
        if checked is None:
            yield None, 1
            if not assume_checks_pass:
                return
        elif checked != "pass":
            return
    if "models" not in cell.case.judged_by:
        return
    for judge in cell.judges:
        have = sum(1 for vote in votes if vote.evaluator == judge.evaluator)
        if have < judge.times:
            yield judge, judge.times - have


def counted_votes(cell: Cell, stored: Iterable[Vote]) -> list[Vote]:
    """The votes on a session that count: under its evaluation version, by its judges, the oldest.

    `stored` is oldest first.
    """
    votes = [vote for vote in stored if vote.evaluation == cell.case.evaluation]
    counted: list[Vote] = []
    if "checks" in cell.case.judged_by:
        counted += [vote for vote in votes if vote.evaluator == CHECKS][:1]
    if "models" in cell.case.judged_by:
        for judge in cell.judges:
            counted += [vote for vote in votes if vote.evaluator == judge.evaluator][: judge.times]
    return counted
