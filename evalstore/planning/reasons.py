"""Explains why a question or a judgement is in the plan: what differs from its nearest relative.

The nearest relative is the same file and row in the newest run in which it was different. Each
reason is a difference between two stored descriptions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evalstore import hashing
from evalstore.planning.failed_work import failed_judgements, failed_questions
from evalstore.planning.known_cases import KnownCase, KnownCases
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement
from evalstore.planning.version_reader import VersionReader, in_batches
from evalstore.reports.case_edits import differ_cases, judging_changed, versions_compared
from evalstore.reports.version_diff import (
    CODE_CHANGED,
    Difference,
    Find,
    differ_evaluations,
    differ_models,
    differ_prompts,
    differ_tests,
    evaluation_parts,
    shorten_line,
)
from evalstore.values import RECORDED, Case, Json, Question

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell
    from evalstore.planning.project import Project
    from evalstore.results import Failure
    from evalstore.runs import RunCandidate
    from evalstore.store.failures import Place

_NAMED = (
    *("tool ", "schema ", "file ", "special tag ", "model ", "check ", "instructions "),
    *("recorded answer", "repetitions", "conversation ", "order of ", "judged by"),
    "evaluator prompt ",
    CODE_CHANGED,
    "the evaluator's code changed",
)
"""Beginnings of differences that are shown as they are."""
_FEW_PROMPTS = 8
"""The most system prompts of a case that are searched without a set."""

T = TypeVar("T")


class Reason(NamedTuple):
    """Why an item is in the plan, with the first difference."""

    text: str
    was: str | None = None
    now: str | None = None
    relative: str | None = None
    """Id of the question that is the nearest relative, when there is one."""
    also: tuple[str, ...] = ()
    """The parts of the case that were edited as well, such as `checks`."""


@dataclass
class Explainer:
    """Explains the items of one plan."""

    project: Project
    _prompts: dict[int, tuple[Case, Collection[str | None]]] = field(default_factory=dict)
    """By the `id()` of a case with many: the case, which keeps the id in use, and its prompts."""

    def __post_init__(self) -> None:
        """Prepare the readers of versions and of earlier cases."""
        project = self.project
        self._known = KnownCases(project)
        self._versions = VersionReader(project.store, project.reading.contents, project.contents)
        self.find = self._versions.find

    def asks(self, plan: Plan) -> list[tuple[PlannedAsk, Reason]]:
        """Return every question with its reason."""
        failed = failed_questions(self.project, plan) if self._known.runs else {}
        reasons: list[tuple[PlannedAsk, Reason]] = []
        for batch in in_batches(plan.asks):
            self._versions.read_ahead(version for ask in batch for version in self._compared(ask))
            reasons += [(ask, self._ask(ask, failed)) for ask in batch]
        return reasons

    def judgements(self, plan: Plan) -> list[tuple[PlannedJudgement, Reason]]:
        """Return every judgement with its reason."""
        failed = failed_judgements(self.project, plan) if plan.judgements else {}
        reasons: list[tuple[PlannedJudgement, Reason]] = []
        for batch in in_batches(plan.judgements):
            self._versions.read_ahead(
                version for judgement in batch for version in self._judged(judgement, plan)
            )
            reasons += [
                (judgement, self._judgement(judgement, plan, failed)) for judgement in batch
            ]
        return reasons

    # --- contents

    def _compared(self, ask: PlannedAsk) -> Iterator[tuple[str, str | None]]:
        """Yield the versions that the reason of a question probably needs, by kind and id."""
        case = ask.cell.case
        for known in self._known.find(ask.cell.file, case):
            old = known.case
            if case.tests[ask.number] not in old.tests:
                yield from (("test", case.tests[ask.number]), ("test", _at(old.tests, ask.number)))
            elif case.prompts != old.prompts:
                yield "prompt", ask.cell.prompt
                yield "prompt", _at(old.prompts, ask.cell.prompt_number)
            elif case.recorded != old.recorded:
                yield from (("model", case.recorded), ("model", old.recorded))
            else:
                continue
            if case.evaluation != old.evaluation:
                yield from (("evaluation", case.evaluation), ("evaluation", old.evaluation))
            return

    def _judged(self, judgement: PlannedJudgement, plan: Plan) -> Iterator[tuple[str, str | None]]:
        """Yield the versions that the reason of a judgement probably needs, by kind and id."""
        votes = plan.votes.get(judgement.subject, ()) if judgement.subject else ()
        now = judgement.cell.case.evaluation
        if judgement.subject and not votes:
            old = next(
                (old for old in self._relatives(judgement) if old != judgement.cell.case), None
            )
            yield from versions_compared(old, judgement.cell.case) if old else ()
        elif votes and now and all(vote.evaluation != now for vote in votes):
            yield "evaluation", now
            yield "evaluation", self._evaluation_before(judgement, votes[-1].evaluation)

    # --- reasons

    def _ask(self, ask: PlannedAsk, failed: dict[str, Failure]) -> Reason:
        cell = ask.cell
        if ask.cut_at:
            limit = cell.case.limit or cell.candidate.limit
            return Reason(
                f"answer was cut at {ask.cut_at} tokens, limit is now {limit or 'none'}",
                str(ask.cut_at),
                str(limit) if limit else None,
                ask.question_id,
            )
        if ask.why:
            return Reason(ask.why, relative=ask.question_id)
        if ask.question_id in failed:
            return Reason(f"retry of a failure: {shorten_line(failed[ask.question_id].message)}")
        total = cell.required_answers_of(ask.question_id)
        if ask.count < total:
            have = total - ask.count
            unit = "attempts" if total == cell.attempts else "answers"
            return Reason(f"{unit} {have} -> {total}", str(have), str(total), ask.question_id)
        is_known = False
        for known in self._known.find(cell.file, cell.case):
            is_known = True
            reason = self._differences(ask, known)
            if reason:
                return reason._replace(also=self._also_edited(ask, known))
        if is_known:
            return Reason("not taken yet" if cell.case.recorded else "not answered yet")
        if any(self._known.path_in(run.snapshot, cell.file) for run in self._known.runs):
            return Reason("new row")
        return Reason("new test")

    def _differences(self, ask: PlannedAsk, known: KnownCase) -> Reason | None:
        """Return the first difference from a relative; None when there is none."""
        case, cell, number = known.case, ask.cell, ask.number
        model = known.run.find_candidate(cell.candidate.id)
        relative = self._relative(cell, case, model)
        if cell.case.tests[number] not in case.tests:
            old = _at(case.tests, number)
            if len(case.tests) > 1 and old in cell.case.tests:
                return Reason("new conversation", relative=relative)
            differences = differ_tests(
                self.find("test", old) or {},
                self.find("test", cell.case.tests[number]) or {},
                self.find,
                self.project.name_of_version,
            )
            return _reason(differences, "test changed", relative)
        if cell.prompt not in self._prompts_of(case):
            position = cell.prompt_number
            before = case.prompts[position] if position < len(case.prompts) else None
            if before is None or cell.prompt is None:
                return Reason(
                    "system prompt is new" if cell.prompt else "without a system prompt now",
                    relative=relative,
                )
            differences = differ_prompts(
                self.find("prompt", before) or {}, self.find("prompt", cell.prompt) or {}
            )
            return _reason(differences, "system prompt changed", relative)
        if cell.case.recorded:
            if case.recorded == cell.case.recorded:
                return None
            was, now = self._recorded(case), self._recorded(cell.case)
            return _reason([Difference("recorded answer", was, now)], "recorded answer")
        if model is None:
            return Reason(f"new candidate {cell.candidate.id}")
        if model.model != cell.question.model:
            differences = differ_models(
                self.find("model", model.model) or {},
                self.find("model", cell.question.model) or {},
            )
            return _reason(differences, "model changed", relative)
        if model.temperature != cell.candidate.temperature and cell.case.temperature is None:
            was, now = str(model.temperature), str(cell.candidate.temperature)
            return Reason(f"model option temperature {was} -> {now}", was, now, relative)
        return None

    def _also_edited(self, ask: PlannedAsk, known: KnownCase) -> tuple[str, ...]:
        """Return the parts of the case that differ from a relative beside the first difference."""
        cell, old = ask.cell, known.case
        if not (cell.case.recorded or known.run.find_candidate(cell.candidate.id)):
            return ()  # a new candidate is asked everything
        is_test = cell.case.tests[ask.number] not in old.tests
        is_prompt = cell.prompt not in self._prompts_of(old)
        prompt = ("system prompt",) if is_test and is_prompt else ()
        return (*prompt, *judging_changed(old, cell.case, self.find))

    def _recorded(self, case: Case) -> str:
        """Return the recorded answers of a case, joined."""
        version = self.find("model", case.recorded) if case.recorded else None
        return "\n".join(version["options"]["answers"]) if version else ""

    def _prompts_of(self, case: Case) -> Collection[str | None]:
        """Return the system prompts of an earlier case, as a set when they are many."""
        if len(case.prompts) <= _FEW_PROMPTS:
            return case.prompts
        if id(case) not in self._prompts:
            self._prompts[id(case)] = case, frozenset(case.prompts)
        return self._prompts[id(case)][1]

    def _relative(self, cell: Cell, case: Case, model: RunCandidate | None) -> str | None:
        if model is None:
            return None
        prompt = cell.prompt if cell.prompt in self._prompts_of(case) else case.prompts[0]
        temperature = model.temperature if case.temperature is None else case.temperature
        return hashing.question_id(
            Question(case.tests[0], prompt, model.model, temperature, case.seed)
        )

    def _judgement(
        self, judgement: PlannedJudgement, plan: Plan, failed: dict[Place, Failure]
    ) -> Reason:
        subject = judgement.subject
        if subject is None:
            return Reason("new answer")
        if judgement.why:
            return Reason(judgement.why)
        evaluation = judgement.cell.case.evaluation
        assert evaluation is not None
        votes = plan.votes.get(subject, [])
        here = [vote for vote in votes if vote.evaluation == evaluation]
        same = [vote for vote in here if vote.evaluator == judgement.evaluator]
        if same and judgement.judge:
            was, now = str(len(same)), str(judgement.judge.times)
            return Reason(f"evaluationsPerEvaluator {was} -> {now}", was, now)
        if not here and votes:
            relative = self._evaluation_before(judgement, votes[-1].evaluation)
            old, new = (self.find("evaluation", id) or {} for id in (relative, evaluation))
            reason = _reason(differ_evaluations(old, new, self.find), "evaluation changed")
            return reason._replace(also=evaluation_parts(old, new)[1:])
        place = (subject, evaluation, judgement.evaluator)
        if place in failed:
            message = failed[place].message
            return Reason(f"retry of a failure: {shorten_line(message)}")
        by_others = [vote for vote in here if vote.evaluator != CHECKS]
        if by_others and judgement.judge:
            old = self.find("evaluator", by_others[-1].evaluator) or {}
            new = self.find("evaluator", judgement.judge.evaluator) or {}
            return describe_evaluator_change(self.find, old, new, judgement.judge.id)
        return self._judged_otherwise(judgement) or Reason("not judged yet")

    def _judged_otherwise(self, judgement: PlannedJudgement) -> Reason | None:
        """Return the difference from the nearest answered relative; None if they are equal."""
        for old in self._relatives(judgement):
            name = self.project.name_of_version
            differences = list(differ_cases(old, judgement.cell.case, self.find, name))
            if differences:
                return _reason(differences, "case changed")
        return None

    def _relatives(self, judgement: PlannedJudgement) -> Iterator[Case]:
        """Yield the case of a judgement in runs with an answer of the candidate, newest first."""
        cell = judgement.cell
        for known in self._known.find(cell.file, cell.case):
            ids = [candidate.id for candidate in known.run.candidates]
            if cell.candidate.id in (*ids, RECORDED) and cell.prompt in self._prompts_of(
                known.case
            ):
                yield replace(known.case, prompts=cell.case.prompts)

    def _evaluation_before(self, judgement: PlannedJudgement, newest: str) -> str:
        """Return the previous evaluation version of the case, else the newest of the session."""
        for known in self._known.find(judgement.cell.file, judgement.cell.case):
            if known.case.evaluation and known.case.evaluation != judgement.cell.case.evaluation:
                return known.case.evaluation
        return newest


def describe_evaluator_change(find: Find, was: Json, now: Json, id: str = "") -> Reason:
    """Return how two evaluators differ, as contents; `id` is the name of the new one."""
    if was.get("model") != now.get("model"):
        models = [find("model", each.get("model") or "") or {} for each in (was, now)]
        name = id or str(models[1].get("code") or now.get("model", "")[:8])
        return _other_model(*models) or Reason(f"new evaluator {name}")
    if was.get("prompt") != now.get("prompt"):
        prompts = (find("prompt", each.get("prompt", "")) or {} for each in (was, now))
        return _reason(differ_prompts(*prompts), "evaluator prompt changed")
    return Reason(
        f"evaluator temperature {was.get('temperature')} -> {now.get('temperature')}",
        str(was.get("temperature")),
        str(now.get("temperature")),
    )


def _other_model(was: Json, now: Json) -> Reason | None:
    """Return what changed of the model of an evaluator; None for another model."""
    if not was or any(was.get(name) != now.get(name) for name in ("provider", "code")):
        return None
    differences = [
        replace(each, subject=each.subject.replace(CODE_CHANGED, "the evaluator's code changed", 1))
        for each in differ_models(was, now)
    ]
    return _reason(differences, "evaluator") if differences else None


def _reason(differences: list[Difference], subject: str, relative: str | None = None) -> Reason:
    if not differences:
        return Reason(subject, relative=relative)
    first, *rest = differences
    more = f" (and {len(rest)} more)" if rest else ""
    text = str(first) if first.subject.startswith(_NAMED) else f"{subject}: {first}"
    return Reason(text + more, first.was, first.now, relative)


def _at(ids: Sequence[T], number: int) -> T:
    """Return the id with this number, else the last."""
    return ids[min(number, len(ids) - 1)]
