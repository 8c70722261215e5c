"""The plan of a run: the questions to ask and the judgements to make.

They are those of all cells without those that are stored: a set difference on ids. An answer is
reused as long as its question is the same, so new instructions lead to judgements, but not to
questions. After a complete run the plan is empty.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from evalstore.checks.aggregation import wants_models
from evalstore.core import hashing
from evalstore.core.values import Evaluator, Question, Sample, Verdict, Vote, Word
from evalstore.files.temporary_list import FiledSequence, PackedSequence
from evalstore.planning.cells import Cell, FirstCase, Judge, Subject, ask_of, limit_of
from evalstore.store.driver import refuse_unwanted
from evalstore.store.events import Place


class AgeLimit(NamedTuple):
    """The time from which stored answers, or judgements, count in a command."""

    since: float = -math.inf
    """Microseconds since 1970; with infinity, none of them count."""
    why: str = ""
    """Why an older one is replaced."""

    def why_again(
        self, place: tuple[str | None, str], stored: Iterable[Vote], again: Collection[Word]
    ) -> str:
        """Return why the vote that a judgement replaces does not count; empty if there is none.

        `place` is its evaluation version and evaluator; votes with a verdict of `again` are
        replaced.
        """
        why = ""
        for vote in stored:
            if (vote.evaluation, vote.evaluator) != place:
                continue
            if vote.verdict in again:
                is_error = vote.verdict == "error"
                why = f"retry of {'an error of a check' if is_error else 'an undecided verdict'}"
            elif vote.started < self.since:
                why = self.why
        return why


AT_REQUEST = "again at your request"
"""Why everything is replaced with `--refresh`; a reason puts `asked` or `judged` before it."""
EVER = AgeLimit()
"""The limit with which all of them count."""


def with_verb(verb: str, why: str) -> str:
    """Return why an older one is replaced, with what is done again where the text needs it."""
    return f"{verb} {why}" if why == AT_REQUEST else why


CHECKS = hashing.evaluator_id(Evaluator(checks=True))
"""The id of the evaluator that stands for the checks."""
UNSETTLED: tuple[Verdict, ...] = ("undecided", "error")
"""Verdicts of a judge that could not be read, and of a check that could not be computed."""


@dataclass(frozen=True, slots=True)
class PlannedAsk:
    """Answers to get to one question; cells with the same question share them."""

    cell: Cell
    count: int
    cut_at: int | None = None
    """The lower token limit that cut the stored answer off."""
    why: str = ""
    """Why some stored answers do not count in this command; empty when all do."""
    number: int = 0
    """The number of the conversation in its case."""

    @property
    def question_id(self) -> str:
        """Return the id of the question."""
        return self.cell.questions[self.number]

    place = key = question_id
    """What identifies it among the items of several plans."""

    @property
    def question(self) -> Question:
        """Return the question."""
        return ask_of(self.cell.case, self.cell.prompt, self.cell.candidate, self.number)


JudgementPlace = tuple[tuple[str, ...], str | None, str]
"""The questions, evaluation version and evaluator of a judgement."""


@dataclass(frozen=True, slots=True)
class PlannedJudgement:
    """Judgements to make of a subject; by the checks when `judge` is None."""

    cell: Cell
    sessions: Subject
    """Empty when they have not been asked yet."""
    judge: Judge | None
    count: int = 1
    why: str = ""
    """Why some stored judgements do not count in this command; empty when all do."""

    @property
    def subject(self) -> str | None:
        """Return the id of the subject; None when it has not been asked yet."""
        return hashing.subject_of(self.sessions) if self.sessions else None

    @property
    def evaluator(self) -> str:
        """Return the id of the evaluator."""
        return self.judge.evaluator if self.judge else CHECKS

    @property
    def place(self) -> JudgementPlace:
        """Return what identifies it among the judgements of a plan."""
        return self.cell.questions, self.cell.case.evaluation, self.evaluator

    @property
    def key(self) -> Hashable:
        """Return what identifies it among the items of several plans."""
        return self.place, self.sessions

    @property
    def stored_place(self) -> Place | None:
        """Return what identifies its votes in the store; None when nothing can be judged yet."""
        subject = self.subject
        return (subject, self.cell.case.evaluation, self.evaluator) if subject else None


@dataclass
class Plan:
    """What a run would do."""

    cells: list[Cell] = field(default_factory=list)
    asks: list[PlannedAsk] = field(default_factory=list)
    judgements: list[PlannedJudgement] = field(default_factory=list)
    carried: list[PlannedJudgement] = field(default_factory=list)
    """Judgements that stored votes save, where nothing else is to be done about the subject."""
    sessions: dict[str, list[str]] = field(default_factory=dict)
    """Question id -> ids of the stored sessions that count, oldest first."""
    newest: dict[str, int] = field(default_factory=dict)
    """Question id -> when its newest stored session started, whether it counts or not."""
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    """Id of a subject -> its stored votes that may count in this command."""
    passed_over: set[str] = field(default_factory=set)
    """Ids of the stored votes that do not count in this command."""
    costs: dict[str, float] = field(default_factory=dict)
    """The costs of the stored sessions and votes in USD, by id, if the plan was to have them."""
    asks_left: list[PlannedAsk] = field(default_factory=list)
    """Missing answers of models that may not be called in this command."""
    judgements_left: list[PlannedJudgement] = field(default_factory=list)
    """Missing judgements of evaluators that may not be called."""
    unjudged: int = 0
    """How many answers must be judged by models, and have no evaluator."""
    blocked: set[str] = field(default_factory=set)
    """Ids of the evaluation versions that run Python files which are not trusted."""
    waiting_judgements: list[PlannedJudgement] = field(default_factory=list)
    """Missing judgements by their checks, and by models whose applications are not trusted."""
    waiting: set[str] = field(default_factory=set)
    """Ids of the evaluation versions of those judgements."""
    waiting_asks: list[PlannedAsk] = field(default_factory=list)
    """Missing answers of models whose applications are not trusted."""
    waiting_models: set[str] = field(default_factory=set)
    """Ids of the models that would answer or judge if their applications were trusted."""
    asked_earlier: dict[str, FirstCase] = field(default_factory=dict)
    """Questions for which earlier batches ask -> the first case of each."""
    judged_earlier: dict[JudgementPlace, FirstCase] = field(default_factory=dict)
    """The places of judgements that earlier batches make -> the first case of each."""
    reused_earlier: int = 0
    """How many of the stored answers that count do so in an earlier batch, too."""

    @property
    def questions(self) -> set[str]:
        """Return the ids of all questions."""
        return {id for cell in self.cells for id in cell.questions}

    def subjects(self) -> Iterator[str]:
        """Yield the ids of the subjects that can be judged already."""
        for cell in self.cells if self.sessions else ():
            if cell.case.evaluation is not None:
                one = self.only_session(cell)
                yield from (one,) if one else map(hashing.subject_of, cell.subjects(self.sessions))

    def only_session(
        self, cell: Cell, new: Mapping[str, Sequence[Sample]] = MappingProxyType({})
    ) -> str | None:
        """Return the stored session of a cell that needs no other; None for all other cells.

        Without a stored one, it is the only one of its `new` ones.
        """
        if cell.attempts > 1 or len(cell.questions) > 1:
            return None
        if sessions := self.sessions.get(cell.questions[0]):
            return sessions[0]
        fresh = new.get(cell.questions[0], ())
        return fresh[0].id if len(fresh) == 1 else None

    def todo(self) -> Iterator[Hashable]:
        """Yield the ids of the questions to ask, and the places of the judgements to make."""
        yield from (ask.place for ask in self.asks)
        yield from (judgement.place for judgement in self.judgements)

    @property
    def ask_count(self) -> int:
        """Return how many answers a run would ask for."""
        return sum(ask.count for ask in self.asks if not ask.cell.case.recorded)

    @property
    def recorded_count(self) -> int:
        """Return how many answers a run would take from test files."""
        return sum(ask.count for ask in self.asks if ask.cell.case.recorded)

    @property
    def judge_count(self) -> int:
        """Return the most judgements that a run would make; failed checks can save some."""
        return sum(judgement.count for judgement in self.judgements)

    @property
    def reused(self) -> int:
        """Return how many stored answers count."""
        return sum(map(len, self.sessions.values())) - self.reused_earlier

    @property
    def left_asks(self) -> int:
        """Return how many missing answers are of models that may not be called."""
        return sum(ask.count for ask in self.asks_left)

    @property
    def left_judgements(self) -> int:
        """Return how many missing judgements nobody may make."""
        return self.unjudged + sum(judgement.count for judgement in self.judgements_left)

    @property
    def blocked_judgements(self) -> int:
        """Return how many missing judgements wait for files to be trusted."""
        return sum(judgement.count for judgement in self.waiting_judgements)


def counts(sample: Sample, limit: int | None) -> bool:
    """Return whether a stored answer counts; one that was cut off counts unless the limit rose."""
    return sample.limit is None or (limit is not None and limit <= sample.limit)


def plan_asks(plan: Plan, samples: Mapping[str, Sequence[Sample]], bound: AgeLimit = EVER) -> None:
    """Add to the plan the stored sessions that count and the questions that have too few."""
    most_required: dict[str, tuple[Cell, int, int]] = {}
    for cell in plan.cells:
        for question, number, count in cell.distinct_questions():
            known = most_required.get(question)
            if known is None or known[2] < count:
                most_required[question] = (cell, number, count)
    for question, (cell, number, most) in most_required.items():
        stored = samples.get(question, ())
        if most == len(stored) == 1 and stored[0].limit is None:  # the most frequent case
            ((started, id, _),) = stored
            if started >= bound.since:
                plan.sessions[question], plan.newest[question] = [id], started
                continue
        missing, cut, is_old = most, None, False
        if stored:
            limit = limit_of(cell)
            whole = [sample for sample in stored if counts(sample, limit)]
            counted = [sample for sample in whole if sample.started >= bound.since][:most]
            if counted:
                plan.sessions[question] = [sample.id for sample in counted]
            plan.newest[question] = max(sample.started for sample in stored)
            missing = most - len(counted)
            limits = (sample.limit for sample in stored if not counts(sample, limit))
            cut = max(filter(None, limits), default=None)
            is_old = len(whole) > sum(sample.started >= bound.since for sample in whole)
        if missing and cell.candidate.trust_needed:
            plan.waiting_asks.append(PlannedAsk(cell, missing, number=number))
            plan.waiting_models.add(cell.candidate.trust_needed)
        elif missing and not cell.candidate.reachable:
            plan.asks_left.append(PlannedAsk(cell, missing, number=number))
        elif missing:
            plan.asks.append(PlannedAsk(cell, missing, cut, bound.why if is_old else "", number))


def plan_judgements(
    plan: Plan,
    votes: Mapping[str, Sequence[Vote]],
    bound: AgeLimit = EVER,
    again: Collection[Verdict] = (),
    begun: float = math.inf,
    carry: Callable[[Plan, Missing], None] = lambda _plan, _missing: None,
) -> None:
    """Add to the plan the judgements that stored and future sessions lack, each once.

    Votes with a verdict of `again` from before the run has `begun`, or from before the bound, do
    not count. `carry` takes out judgements for which there are votes to carry over.
    """
    missing: Missing = {}
    planned = {ask.question_id: ask.count for ask in plan.asks}
    for cell in plan.cells:
        if cell.case.evaluation is None:
            continue
        session = plan.only_session(cell) if plan.sessions else None
        if session and session not in plan.votes and not again:
            stored = votes.get(session, ())
            if is_checked(cell, stored) and stored[0].started >= bound.since:
                plan.votes[session] = [*stored]  # the most frequent case
                continue
        complete = 0
        for sessions in cell.subjects(plan.sessions) if plan.sessions else ():
            complete += 1
            subject = hashing.subject_of(sessions)
            stored = votes.get(subject, ())
            counting = plan.votes.get(subject)
            if counting is None:
                counting = plan.votes[subject] = [
                    vote
                    for vote in stored
                    if vote.human
                    or (
                        vote.started >= bound.since
                        and not (vote.verdict in again and vote.started < begun)
                    )
                ]
                if len(counting) < len(stored):
                    plan.passed_over |= {each.id for each in stored} - {
                        each.id for each in counting
                    }
            for judge, count in _lacking(cell, counting, before_checks=True):
                judgement = PlannedJudgement(cell, sessions, judge, count)
                place = (cell.case.evaluation, judgement.evaluator)
                why = bound.why_again(place, stored, again)
                missing.setdefault(
                    (subject, cell.case.evaluation, judgement.evaluator),
                    replace(judgement, why=why),
                )
            plan.unjudged += lacks_evaluator(cell, counting)
        all_then = cell.count_subjects(plan.sessions, planned) if complete < cell.attempts else 0
        coming = all_then - complete
        if coming > 0:
            for judge, count in _lacking(cell, (), before_checks=True):
                judgement = PlannedJudgement(cell, (), judge, count * coming)
                key = (cell.questions, cell.case.evaluation, judgement.evaluator)
                known = missing.get(key)
                if known is None or known.count < judgement.count:
                    missing[key] = judgement
    carry(plan, missing)
    _add_judgements(plan, missing)


Missing = dict[tuple[str | Subject, str, str], PlannedJudgement]
"""By what is judged, its evaluation version and its evaluator."""


def _add_judgements(plan: Plan, missing: Missing) -> None:
    """Add missing judgements to those to make, those that wait for trust, or those left."""
    for key, judgement in missing.items():
        about, evaluation, _ = key
        is_blocked = evaluation in plan.blocked and (about, evaluation, CHECKS) in missing
        if is_blocked:
            plan.waiting_judgements += [judgement] if judgement.judge is None else []
            plan.waiting.add(evaluation)
        elif judgement.judge is None or judgement.judge.reachable:
            plan.judgements.append(judgement)
        elif judgement.judge.trust_needed:
            plan.waiting_judgements.append(judgement)
            plan.waiting_models.add(judgement.judge.trust_needed)
        else:
            plan.judgements_left.append(judgement)


def missing_judgements(cell: Cell, stored: Iterable[Vote]) -> Iterator[tuple[Judge | None, int]]:
    """Yield the judgements that a subject lacks: each judge (None: the checks) with how many.

    Which models judge depends on the verdict of the checks, so models are included when the
    checks are made. Judges that may not be called in this command are left out.
    """
    for judge, count in _lacking(cell, stored, before_checks=False):
        if judge is None or judge.reachable:
            yield judge, count


def _lacking(
    cell: Cell, stored: Iterable[Vote], *, before_checks: bool
) -> Iterator[tuple[Judge | None, int]]:
    votes = _votes_of(cell, stored) if stored else ()
    if any(vote.human for vote in votes):
        return
    if "checks" in cell.case.judged_by:
        checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
        if checked is None:
            yield None, 1
            if not before_checks:
                return
        elif not wants_models(cell.case.judged_by, checked):
            return
    for judge in cell.judges if "models" in cell.case.judged_by else ():
        have = sum(1 for vote in votes if vote.evaluator == judge.evaluator)
        if have < judge.times:
            yield judge, judge.times - have


def is_checked(cell: Cell, stored: Sequence[Vote]) -> bool:
    """Return whether only the checks judge a case and have the only vote, so nothing is missing."""
    case = cell.case
    if len(stored) != 1 or case.judged_by != ("checks",):
        return False
    vote = stored[0]
    return vote.evaluator == CHECKS and vote.evaluation == case.evaluation and not vote.human


def lacks_evaluator(cell: Cell, stored: Iterable[Vote]) -> bool:
    """Return whether a model must judge a subject and the case has no evaluator."""
    if cell.judges or "models" not in cell.case.judged_by:
        return False
    votes = _votes_of(cell, stored)
    if any(vote.human for vote in votes):
        return False
    if "checks" not in cell.case.judged_by:
        return True
    checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
    return checked is not None and wants_models(cell.case.judged_by, checked)


def counted_votes(cell: Cell, stored: Iterable[Vote]) -> list[Vote]:
    """Return the votes on a subject that count: by people and by the judges of the case.

    The last label of each person counts, unless it removes the label. Of too many votes of a
    judge, the first in `decided_first` do. `stored` is oldest first.
    """
    votes = _votes_of(cell, stored)
    counted = [vote for vote in votes if vote.human]
    if "checks" in cell.case.judged_by:
        counted += decided_first(vote for vote in votes if vote.evaluator == CHECKS)[:1]
    if "models" in cell.case.judged_by:
        for judge in cell.judges:
            cast = [vote for vote in votes if vote.evaluator == judge.evaluator]
            counted += sorted(decided_first(cast)[: judge.times], key=cast.index)
    return counted


def _votes_of(cell: Cell, stored: Iterable[Vote]) -> Sequence[Vote]:
    """Return the votes of the cell's evaluation version: `pass` and `fail` before the others.

    Of each person only the last label is included, and none when it removes the label.
    """
    evaluation = cell.case.evaluation
    votes = [vote for vote in stored if vote.evaluation == evaluation]
    if len(votes) < 2 and not any(vote.human for vote in votes):  # the most frequent case
        return votes
    if people := sorted(vote for vote in votes if vote.human):
        last = {vote.evaluator: vote for vote in people}.values()
        words = [vote for vote in last if vote.verdict != "none"]
        votes = [*words, *(vote for vote in votes if not vote.human)]
    return sorted(votes, key=lambda vote: vote.verdict in UNSETTLED)


def decided_first(votes: Iterable[Vote]) -> list[Vote]:
    """Return votes of a judge, oldest first, in the order in which they count.

    First `pass` and `fail`, the oldest first; then `undecided` and `error`, the newest first. So a
    repeated judgement replaces an unreadable one in every store.
    """
    return sorted(
        votes,
        key=lambda vote: (
            (True, -vote.started) if vote.verdict in UNSETTLED else (False, vote.started)
        ),
    )


@dataclass(frozen=True, slots=True)
class PlanItem:
    """An item of a plan, as commands print it."""

    JSON_FIELDS = (
        *("kind", "file", "row", "prompt", "prompt_name", "model", "evaluator", "count"),
        *("reason", "was", "now", "also"),
    )
    kind: str
    """`ask`, `record` (take an answer from a test file) or `judge`"""
    file: str
    row: str
    prompt: str | None
    model: str
    evaluator: str | None
    count: int
    reason: str
    was: str | None
    now: str | None
    prompt_name: str | None = field(default=None, metadata={"json_optional": True})
    """The name of the system prompt; None without one."""
    of: str = ""
    """What was edited, if no test file was: `candidate openai/gpt-5.4-mini`, `attempts`."""
    also: tuple[str, ...] = field(default=(), metadata={"json_optional": True})
    """The parts of the case that were edited as well, such as `checks`."""


_FIELDS = tuple(field.name for field in fields(PlanItem))
_values_of = attrgetter(*_FIELDS)
"""Returns the values of the fields of an item; `also` is the last."""


class FiledItems(FiledSequence[PlanItem]):
    """Keeps items in a temporary file without a name, which goes when the program ends.

    The questions of all batches come before the judgements. They can be read by several threads,
    and are copied and pickled as a list.
    """

    def __init__(self) -> None:
        self._asks = PackedSequence[PlanItem]((), _values_of, _item_of)
        self._judgements = PackedSequence[PlanItem]((), _values_of, _item_of)

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Add the items of the next batch."""
        self._asks.extend(asks)
        self._judgements.extend(judgements)

    def __len__(self) -> int:
        return len(self._asks) + len(self._judgements)

    def __iter__(self) -> Iterator[PlanItem]:
        yield from self._asks
        yield from self._judgements

    def read_one(self, number: int) -> PlanItem:
        """Return the item with a number."""
        asks = len(self._asks)
        return self._asks[number] if number < asks else self._judgements[number - asks]

    def of_kind(self, kind: str) -> Sequence[PlanItem]:
        """Return the items among which those of a kind are."""
        return self._judgements if kind == "judge" else self._asks


def _item_of(values: Sequence[Any]) -> PlanItem:
    return PlanItem(*(*values[:-1], tuple(values[-1])))


# --- sums the items that are equal, such as those of the rows of a group


def summed(items: Iterable[PlanItem]) -> list[PlanItem]:
    """Return the items with the counts of equal ones, such as rows of a group, added up."""
    counts: Counter[PlanItem] = Counter()
    for item in items:
        counts[replace(item, count=1)] += item.count
    return [replace(item, count=count) for item, count in counts.items()]


class SummedItems(PackedSequence[PlanItem]):
    """The items of a kind with the counts of equal ones added up, and their totals.

    Equal ones are of one cell, and stand together.
    """

    def __init__(self, items: Sequence[PlanItem], kind: str) -> None:
        """Add up the items."""
        self.kind = kind
        self.total = self.by_checks = 0
        self.files: dict[str, None] = {}
        self.models: dict[str, None] = {}
        """The names of the candidates and the evaluators."""
        listed = items.of_kind(kind) if isinstance(items, FiledItems) else items
        super().__init__(self._add_up(listed), _values_of, _item_of)

    def _add_up(self, items: Iterable[PlanItem]) -> Iterator[PlanItem]:
        for (kind, *_), same in groupby(
            items, attrgetter("kind", "file", "row", "prompt", "model")
        ):
            listed = list(same)
            if kind != self.kind:
                continue
            refuse_unwanted()
            for item in listed if len(listed) == 1 else summed(listed):
                self.total += item.count
                self.by_checks += item.count if item.evaluator == "checks" else 0
                self.files[item.file] = None
                self.models |= dict.fromkeys(filter(None, (item.model, item.evaluator)))
                yield item
