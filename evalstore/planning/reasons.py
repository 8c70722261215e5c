"""Explains why a question or a judgement is in the plan: what differs from its nearest relative.

The nearest relative is the same file and row in the newest run in which it was different. Each
reason is a difference between two stored descriptions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from evalstore import hashing
from evalstore.planning.age_limit import AT_REQUEST
from evalstore.planning.failed_work import failed_judgements, failed_questions
from evalstore.planning.known_cases import KnownCase, KnownCases
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement
from evalstore.planning.reason import (
    NEW_ROW,
    Reason,
    describe_evaluator_change,
    describe_prompt_change,
    reason_of,
)
from evalstore.planning.shared_questions import QuestionSharing, place_of
from evalstore.planning.undone_edits import (
    asked_otherwise,
    evaluators_of,
    first_new,
    is_again,
    takes_part,
)
from evalstore.planning.version_reader import VersionReader, in_batches
from evalstore.reports.case_edits import differ_cases, judging_changed, versions_compared
from evalstore.reports.version_diff import (
    Difference,
    differ_evaluations,
    differ_models,
    differ_tests,
    evaluation_parts,
    shorten_line,
)
from evalstore.values import RECORDED, Case, Question

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell, Judge
    from evalstore.planning.project import Project
    from evalstore.results import Failure, Vote
    from evalstore.runs import RunCandidate
    from evalstore.store.failures import Place

_FEW_PROMPTS = 8
"""The most system prompts of a case that are searched without a set."""

T = TypeVar("T")


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
        self.was_run = self._known.has
        self._shared = QuestionSharing(Plan())

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
        self._shared = QuestionSharing(plan)
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
            before = self._before(judgement)
            yield from (("evaluation", now), ("evaluation", votes[-1].evaluation))
            yield "evaluation", before.case.evaluation if before else None

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
            verb = "taken" if cell.case.recorded else "asked"
            return Reason(_with_verb(verb, ask.why), relative=ask.question_id)
        if ask.question_id in failed:
            return Reason(f"retry of a failure: {shorten_line(failed[ask.question_id].message)}")
        total = cell.required_answers_of(ask.question_id)
        if ask.count < total:
            have = total - ask.count
            unit = "attempts" if total == cell.attempts else "answers"
            return Reason(f"{unit} {have} -> {total}", str(have), str(total), ask.question_id)
        return self._edited(cell, ask.number) or Reason(
            "not taken yet" if cell.case.recorded else "not answered yet"
        )

    def _edited(self, cell: Cell, number: int | None = None) -> Reason | None:
        """Return why a case asks a question that is new to it; None if no earlier run shows it.

        `number` is that of the conversation, without it the first new one counts.
        """
        is_known = False
        is_new = not self._known.ever_had(cell.candidate.id)
        for known in self._known.find(cell.file, cell.case):
            is_known = True
            if not (is_new or takes_part(known, cell)):
                continue  # a run of other candidates: this one has its own history
            which = first_new(cell.case, known.case) if number is None else number
            reason = self._differences(cell, which, known)
            if reason:
                return reason._replace(also=self._also_edited(cell, which, known))
        if is_known:
            return None
        if any(self._known.path_in(run.snapshot, cell.file) for run in self._known.runs):
            return Reason(NEW_ROW)
        return Reason("new test")

    def _differences(self, cell: Cell, number: int, known: KnownCase) -> Reason | None:
        """Return the first difference from a relative; None when there is none."""
        case = known.case
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
            return reason_of(differences, "test changed", relative)
        if cell.prompt not in self._prompts_of(case):
            number = cell.prompt_number
            before = case.prompts[number] if number < len(case.prompts) else None
            replaced = None if before in self._prompts_of(cell.case) else before
            return describe_prompt_change(self.find, replaced, cell.prompt, relative)
        if cell.case.recorded:
            if case.recorded == cell.case.recorded:
                return None
            was, now = self._recorded(case), self._recorded(cell.case)
            return reason_of([Difference("recorded answer", was, now)], "recorded answer")
        if model is None:
            return Reason(f"new candidate {cell.candidate.id}")
        if model.model != cell.question.model:
            differences = differ_models(
                self.find("model", model.model) or {},
                self.find("model", cell.question.model) or {},
            )
            return reason_of(differences, "model changed", relative)
        if model.temperature != cell.candidate.temperature and cell.case.temperature is None:
            was, now = str(model.temperature), str(cell.candidate.temperature)
            return Reason(f"model option temperature {was} -> {now}", was, now, relative)
        return None

    def _also_edited(self, cell: Cell, number: int, known: KnownCase) -> tuple[str, ...]:
        """Return the parts of the case that differ from a relative beside the first difference."""
        old = known.case
        if not (cell.case.recorded or known.run.find_candidate(cell.candidate.id)):
            return ()  # a new candidate is asked everything
        is_test = cell.case.tests[number] not in old.tests
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
            other = self._shared.asked_by(judgement.cell)
            reason = self._edited(judgement.cell) if other else None
            if other is None or reason is None:
                return Reason("new answer")
            return reason.followed_by(f"asked in {place_of(other, judgement.cell)}")
        if judgement.why:
            return Reason(_with_verb("judged", judgement.why))
        evaluation = judgement.cell.case.evaluation
        assert evaluation is not None
        votes = plan.votes.get(subject, [])
        here = [vote for vote in votes if vote.evaluation == evaluation]
        same = [vote for vote in here if vote.evaluator == judgement.evaluator]
        if same and judgement.judge:
            was, now = str(len(same)), str(judgement.judge.times)
            return Reason(f"evaluationsPerEvaluator {was} -> {now}", was, now)
        if not here and votes:
            return self._evaluated_otherwise(judgement, votes)
        place = (subject, evaluation, judgement.evaluator)
        if place in failed:
            message = failed[place].message
            return Reason(f"retry of a failure: {shorten_line(message)}")
        by_others = [vote for vote in here if vote.evaluator != CHECKS]
        if by_others and judgement.judge:
            return self._other_evaluator(judgement, judgement.judge, by_others[-1])
        return self._judged_otherwise(judgement) or Reason("not judged yet")

    def _judged_otherwise(self, judgement: PlannedJudgement) -> Reason | None:
        """Return the difference from the nearest answered relative; None if they are equal."""
        for old in self._relatives(judgement):
            name = self.project.name_of_version
            differences = list(differ_cases(old, judgement.cell.case, self.find, name))
            if differences:
                return reason_of(differences, "case changed")
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

    def _before(self, judgement: PlannedJudgement, judge: Judge | None = None) -> KnownCase | None:
        """Return the case in the newest run with the candidate in which something was different.

        With `judge`, an evaluator that was different counts as well.
        """
        cell = judgement.cell
        new = self.find("evaluator", judge.evaluator) if judge else None
        for known in self._known.find(cell.file, cell.case):
            if takes_part(known, cell) and (
                known.case.evaluation != cell.case.evaluation
                or self._asked_otherwise(known, cell)
                or (judge and all(new != old for _, old in evaluators_of(known, self.find)))
            ):
                return known
        return None

    def _evaluated_otherwise(self, judgement: PlannedJudgement, votes: Sequence[Vote]) -> Reason:
        """Return why an answer is judged that has only votes on other evaluation versions."""
        before = self._before(judgement)
        now = judgement.cell.case.evaluation
        if shared := self._became_equal(judgement.cell, before):
            return shared
        asked = self._asked_otherwise(before, judgement.cell) if before else ()
        was = before.case.evaluation if before and before.case.evaluation != now else None
        old, new = (self.find("evaluation", id) or {} for id in (was or votes[-1].evaluation, now))
        parts = evaluation_parts(old, new)
        if before and was is None:
            voted = {each.evaluation for each in votes}
            return self._undone(judgement, asked, parts or ("criteria",), voted)
        if "instructions" in parts:  # the checks are named with what else changed
            old, new = ({**each, "checks": []} for each in (old, new))
        reason = reason_of(differ_evaluations(old, new, self.find), "evaluation changed")
        return reason._replace(also=(*parts[1:], *asked))

    def _other_evaluator(self, judgement: PlannedJudgement, judge: Judge, vote: Vote) -> Reason:
        """Return why an answer is judged that has only votes by other evaluators."""
        cell, before = judgement.cell, self._before(judgement, judge)
        new = self.find("evaluator", judge.evaluator) or {}
        if shared := self._became_equal(cell, before):
            return shared
        judges = evaluators_of(before, self.find) if before else []
        if before and any(old == new for _, old in judges):
            parts = self._asked_otherwise(before, cell)
            if before.case.evaluation != cell.case.evaluation:
                contents = (before.case.evaluation, cell.case.evaluation)
                old, now = (self.find("evaluation", id) or {} for id in contents)
                parts = (*parts, *evaluation_parts(old, now))
            return self._undone(judgement, parts, ("evaluator",), {vote.evaluation})
        nearest = [old for name, old in judges if name == judge.id]
        was = next(iter(nearest), None) or self.find("evaluator", vote.evaluator) or {}
        return describe_evaluator_change(self.find, was, new, judge.id)

    def _became_equal(self, cell: Cell, before: KnownCase | None) -> Reason | None:
        """Return why a case asks a question of other cases; None if it asked it before."""
        if before and not self._asked_otherwise(before, cell):
            return None
        if any(self._has_asked(known, cell) for known in self._known.find(cell.file, cell.case)):
            return None
        reason = self._edited(cell)
        if reason is None:
            return None
        for other in self._shared.others(cell):
            known_cases = self._known.find(other.file, other.case)
            if any(self._has_asked(known, other) for known in known_cases):
                return reason.followed_by(f"answered in {place_of(other, cell)}")
        return reason.followed_by("the answer is stored")

    def _has_asked(self, known: KnownCase, cell: Cell) -> bool:
        """Return whether an earlier run asked what a cell asks."""
        return takes_part(known, cell) and not self._asked_otherwise(known, cell)

    def _undone(
        self,
        judgement: PlannedJudgement,
        parts: Sequence[str],
        judged_by: Sequence[str],
        voted: Collection[str],
    ) -> Reason:
        """Return that an undone edit brings back an answer, which is judged by what is new.

        `voted` are the evaluation versions under which the answer has votes.
        """
        cell = judgement.cell
        for known in self._known.find(cell.file, cell.case):
            if known.case.evaluation in voted and self._has_asked(known, cell):
                return Reason(is_again(parts, judged_by, known.run.id))
        return Reason(is_again(parts, judged_by))

    def _asked_otherwise(self, known: KnownCase, cell: Cell) -> tuple[str, ...]:
        return asked_otherwise(known, cell, self._prompts_of(known.case))


def _with_verb(verb: str, why: str) -> str:
    return f"{verb} {why}" if why == AT_REQUEST else why


def _at(ids: Sequence[T], number: int) -> T:
    """Return the id with this number, else the last."""
    return ids[min(number, len(ids) - 1)]
