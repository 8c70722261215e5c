"""Explains why a question or a judgement is in the plan: what differs from its nearest relative.

The nearest relative is the same file and row in the newest run in which it was different. Each
reason is a difference between two stored descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from evalstore.comparison.comparison import (
    differ_cases,
    former_prompts,
    judging_changed,
    prompts_of_unknown_text,
    recorded_answer,
    versions_compared,
)
from evalstore.comparison.version_diff import (
    CODE_CHANGED,
    NUMBERS,
    RECORDED_ANSWER,
    TOKEN_LIMIT,
    VERDICTS_WANTED,
    Difference,
    Find,
    Name,
    differ_evaluations,
    differ_models,
    differ_prompts,
    differ_tests,
    evaluation_parts,
    in_place,
    nowhere,
    number_change,
    shorten_line,
)
from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.display import plural, short
from evalstore.core.runs import RunCandidate
from evalstore.core.values import RECORDED, Failure, Json, Question, Vote
from evalstore.planning.cell_results import digest_told
from evalstore.planning.cells import Cell, FirstCase, Judge
from evalstore.planning.earlier_results import EarlierCases, KnownCase, takes_part
from evalstore.planning.failed_work import failed_judgements, failed_questions
from evalstore.planning.path_history import replaced_by
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement, with_verb
from evalstore.planning.project import Project
from evalstore.store.events import Place

_CODE = "the judge's code changed"
_NAMED = (
    *("tool ", "schema ", "file ", "special tag ", "model ", "check ", "instructions "),
    *("recorded answer", "conversation ", "order of ", "judged by"),
    *("judge prompt ", "judge model ", "judge temperature"),
    *NUMBERS,
    CODE_CHANGED,
    _CODE,
)
"""Beginnings of differences that are shown as they are."""

NEW_ROW = "new row"
"""The reason for a row that no earlier run had; a remark may follow."""


NEW_ANSWER = "new answer"
NEW_PROMPT = "system prompt is new"
"""The reason for a system prompt in whose place there was none before."""


class Reason(NamedTuple):
    """Why an item is in the plan, with the first difference."""

    text: str
    was: str | None = None
    now: str | None = None
    relative: str | None = None
    """Id of the question that is the nearest relative, when there is one."""
    also: tuple[str, ...] = ()
    """The parts of the case that were edited as well, such as `checks`."""
    of: str = ""
    """What was edited, if no test file was: `candidate openai/gpt-5.4-mini`, `attempts`."""

    @property
    def cause(self) -> str:
        """Return the text without its details, as in `test changed`."""
        return self.text.partition(": ")[0]

    def followed_by(self, remark: str) -> Reason:
        """Return the reason with a remark, such as where the answer is."""
        return self._replace(text=f"{self.text}; {remark}")


def describe_evaluator_change(
    find: Find, was: Json, now: Json, id: str = "", name: Name = nowhere
) -> Reason:
    """Return how two evaluators differ, as contents; `id` is the name of the new one.

    `name` returns those of prompts.
    """
    judge = f"judge {id}"
    if was.get("model") != now.get("model"):
        old, new = (find("model", each.get("model") or "") or {} for each in (was, now))
        is_same = old and all(old.get(name) == new.get(name) for name in ("provider", "code"))
        edits = [
            replace(it, subject=f"judge {it.subject}".replace(f"judge {CODE_CHANGED}", _CODE, 1))
            for it in (differ_models(old, new) if is_same else ())
        ]
        code = id or str(new.get("code") or now.get("model", "")[:8])
        reason = reason_of(edits, "judge") if edits else Reason(f"new judge {code}")
        return reason._replace(of=judge)
    if was.get("prompt") != now.get("prompt"):
        ids = [each.get("prompt") or "" for each in (was, now)]
        former, present = (name("prompt", each) for each in ids)
        if former and present and former != present:
            return Reason(in_place("judge prompt", present, former).subject, of=judge)
        prompt = f"judge prompt {present}" if present else "judge prompt"
        differences = differ_prompts(*(find("prompt", each) or {} for each in ids))
        reason = reason_of(differences, f"{prompt} changed")
        return reason._replace(of=prompt if present else judge)
    if was.get("reading") != now.get("reading"):
        return Reason("evalstore now reads replies of judges differently", of=judge)
    old, new = (each.get("temperature") for each in (was, now))
    return reason_of([number_change("judge temperature", old, new)])._replace(of=judge)


def reason_of(edits: list[Difference], subject: str = "", relative: str | None = None) -> Reason:
    """Return the first difference as a reason, with the number of the others."""
    if not edits:
        return Reason(subject, relative=relative)
    first, *rest = edits
    more = f" (and {plural(len(rest), 'more change')})" if rest else ""
    text = str(first) if first.subject.startswith(_NAMED) else f"{subject}: {first}"
    return Reason(text + more, first.was, first.now, relative)


T = TypeVar("T", "PlannedAsk", "PlannedJudgement")


class Explainer:
    """Explains the items of a plan."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._earlier = EarlierCases(project)
        self._questions = QuestionReasons(self._earlier)
        self.was_run = self._earlier.has

    def asks(self, plan: Plan) -> list[tuple[PlannedAsk, Reason]]:
        """Return every question with its reason."""
        failed = failed_questions(self._project, plan) if self._earlier.runs else {}
        return self._explain(plan, plan.asks, partial(self._questions.explain, failed=failed))

    def judgements(self, plan: Plan) -> list[tuple[PlannedJudgement, Reason]]:
        """Return every judgement with its reason."""
        failed = failed_judgements(self._project, plan) if plan.judgements else {}
        reasons = JudgementReasons(self._earlier, self._questions, plan, failed)
        return self._explain(plan, plan.judgements, reasons.explain)

    def carried(self, plan: Plan) -> list[tuple[PlannedJudgement, Reason]]:
        """Return every judgement that stored ones save, with the reason why it was missing."""
        reasons = JudgementReasons(self._earlier, self._questions, plan, {})
        return self._explain(plan, plan.carried, reasons.explain_carried)

    def _explain(
        self, plan: Plan, items: Sequence[T], explain: Callable[[T], Reason]
    ) -> list[tuple[T, Reason]]:
        """Return each item with its reason, after the versions of a batch were read together."""
        reasons: list[tuple[T, Reason]] = []
        for batch in in_batches(items):
            self._earlier.expect(item.cell for item in batch)
            self._earlier.versions.read_ahead(self._versions_needed(plan, batch))
            reasons += [(item, explain(item)) for item in batch]
        return reasons

    def _versions_needed(
        self, plan: Plan, items: Sequence[PlannedAsk | PlannedJudgement]
    ) -> Iterator[tuple[str, str | None]]:
        """Yield the versions that the reasons of items probably need, by kind and id."""
        for cell in {(item.cell.file, item.cell.number): item.cell for item in items}.values():
            others = (known.case for known in self._earlier.find(cell))
            if old := next((other for other in others if other != cell.case), None):
                yield from versions_compared(old, cell.case)
        for item in items:
            if isinstance(item, PlannedJudgement) and item.subject:
                yield from (
                    ("evaluation", vote.evaluation) for vote in plan.votes.get(item.subject, ())
                )
                yield "evaluation", item.cell.case.evaluation


# --- explains why a judgement is in the plan


class JudgementReasons:
    """The reasons of the judgements of one plan."""

    def __init__(
        self,
        earlier: EarlierCases,
        questions: QuestionReasons,
        plan: Plan,
        failed: Mapping[Place, Failure],
    ) -> None:
        """`failed` are the judgements whose newest call failed."""
        self._earlier = earlier
        self._find = earlier.find_version
        self._questions = questions
        self._votes = plan.votes
        self._failed = failed
        self._asked_by: dict[str, Cell | FirstCase] = {
            **{ask.question_id: ask.cell for ask in plan.asks},
            **plan.asked_earlier,
        }
        """The cases with which a run asks questions, by question."""

    def explain(self, judgement: PlannedJudgement) -> Reason:
        """Return why an answer is judged."""
        subject = judgement.subject
        if subject is None:
            cell = judgement.cell
            found = [self._asked_by[it] for it in cell.questions if it in self._asked_by]
            has_own = any((it.file, it.number) == (cell.file, cell.number) for it in found)
            reason = self._questions.explain_edit(cell) if found and not has_own else None
            if reason is None:
                return Reason(NEW_ANSWER)
            is_here = found[0].file == cell.file
            return reason.followed_by(f"asked in {'another row' if is_here else found[0].file}")
        if judgement.why:
            return Reason(with_verb("judged", judgement.why))
        evaluation = judgement.cell.case.evaluation
        assert evaluation is not None
        votes = self._votes.get(subject, [])
        here = [vote for vote in votes if vote.evaluation == evaluation]
        same = [vote for vote in here if vote.evaluator == judgement.evaluator]
        if same and judgement.judge:
            times = number_change(VERDICTS_WANTED, len(same), judgement.judge.times)
            return reason_of([times])._replace(of=VERDICTS_WANTED)
        votes = self._stored_votes(subject)
        if votes and all(vote.evaluation != evaluation for vote in votes):
            if judgement.judge and (told := self._told_the_same(evaluation, votes)):
                return self._other_evaluator(judgement, judgement.judge, told[-1], told=True)
            return _with_carried(self._evaluated_otherwise(judgement, votes), judgement, here)
        place = (subject, evaluation, judgement.evaluator)
        if place in self._failed:
            message = self._failed[place].message
            return Reason(f"retry of a failure: {shorten_line(message)}")
        by_others = [vote for vote in here if vote.evaluator != CHECKS]
        if by_others and judgement.judge:
            return self._other_evaluator(judgement, judgement.judge, by_others[-1])
        return self._judged_otherwise(judgement) or Reason("not judged yet")

    def explain_carried(self, judgement: PlannedJudgement) -> Reason:
        """Return why a judgement was missing for which a stored one is used again."""
        if judgement.why:
            return Reason(judgement.why)
        votes = self._stored_votes(judgement.subject or "")
        same = [vote for vote in votes if vote.evaluator == judgement.evaluator]
        here = [vote for vote in same if vote.evaluation == judgement.cell.case.evaluation]
        if here and judgement.judge:
            times = number_change(VERDICTS_WANTED, len(here), judgement.judge.times)
            return reason_of([times])._replace(of=VERDICTS_WANTED)
        return self._evaluated_otherwise(judgement, same or votes)

    def _stored_votes(self, subject: str) -> list[Vote]:
        """Return the votes on a subject without those that are carried over."""
        return [vote for vote in self._votes.get(subject, ()) if not vote.is_carried]

    def _told_the_same(self, evaluation: str, votes: Sequence[Vote]) -> list[Vote]:
        """Return the votes of models that were told what they are told of this version."""
        now = digest_told(self._find("evaluation", evaluation) or {})
        others = [vote for vote in votes if vote.evaluator != CHECKS and not vote.human]
        versions = {vote.evaluation for vote in others}
        told = {id: digest_told(self._find("evaluation", id) or {}) for id in versions}
        return [vote for vote in others if told[vote.evaluation] == now]

    def _judged_otherwise(self, judgement: PlannedJudgement) -> Reason | None:
        """Return the difference from the nearest answered relative; None if they are equal.

        That is the case in the newest run with an answer of the candidate.
        """
        cell, name = judgement.cell, self._earlier.project.name_of_version
        for known in self._earlier.find(cell):
            answering = (RECORDED, *(candidate.id for candidate in known.run.candidates))
            prompts = self._earlier.prompts_of(known.case)
            if cell.candidate.id not in answering or cell.prompt not in prompts:
                continue
            was = known.case._replace(prompts=cell.case.prompts)
            found = differ_cases(was, cell.case, self._find, name)
            differences = self._earlier.with_true_names(found, known, cell.file)
            if differences:
                return reason_of(differences, "case changed")
        return None

    def _before(self, judgement: PlannedJudgement, judge: Judge | None = None) -> KnownCase | None:
        """Return the case in the newest run with the candidate in which something was different.

        With `judge`, an evaluator that was different counts as well.
        """
        cell = judgement.cell
        new = self._find("evaluator", judge.evaluator) if judge else None
        for known in self._earlier.find(cell):
            if takes_part(known, cell) and (
                known.case.evaluation != cell.case.evaluation
                or self._earlier.asked_otherwise(known, cell)
                or (judge and all(new != old for _, old in self._earlier.evaluators_of(known)))
            ):
                return known
        return None

    def _evaluated_otherwise(self, judgement: PlannedJudgement, votes: Sequence[Vote]) -> Reason:
        """Return why an answer is judged that has only votes on other evaluation versions."""
        before = self._before(judgement)
        now = judgement.cell.case.evaluation
        if shared := self._became_equal(judgement.cell, before):
            return shared
        asked = self._earlier.asked_otherwise(before, judgement.cell) if before else ()
        was = before.case.evaluation if before and before.case.evaluation != now else None
        old, new = (self._find("evaluation", id) or {} for id in (was or votes[-1].evaluation, now))
        parts = evaluation_parts(old, new)
        if before and was is None:
            voted = {each.evaluation for each in votes}
            return self._undone(judgement, asked, parts or ("criteria",), voted)
        if "instructions" in parts:  # the checks are named with what else changed
            old, new = ({**each, "checks": []} for each in (old, new))
        name = self._earlier.project.name_of_version
        reason = reason_of(
            differ_evaluations(old, new, self._find, name),
            "instructions or checks changed",
        )
        return reason._replace(also=(*parts[1:], *asked))

    def _other_evaluator(
        self, judgement: PlannedJudgement, judge: Judge, vote: Vote, *, told: bool = False
    ) -> Reason:
        """Return why an answer is judged that has only votes by other evaluators.

        `told`: they are votes under other versions of which models are told the same.
        """
        cell, before = judgement.cell, self._before(judgement, judge)
        new = self._find("evaluator", judge.evaluator) or {}
        if shared := self._became_equal(cell, before):
            return shared
        judges = self._earlier.evaluators_of(before) if before else []
        if told and any(old == new for _, old in judges):
            return self._evaluated_otherwise(judgement, self._stored_votes(judgement.subject or ""))
        if before and any(old == new for _, old in judges):
            parts = self._earlier.asked_otherwise(before, cell)
            if before.case.evaluation != cell.case.evaluation:
                contents = (before.case.evaluation, cell.case.evaluation)
                old, now = (self._find("evaluation", id) or {} for id in contents)
                parts = (*parts, *evaluation_parts(old, now))
            return self._undone(judgement, parts, ("judge",), {vote.evaluation})
        nearest = [old for name, old in judges if name == judge.id]
        was = next(iter(nearest), None) or self._find("evaluator", vote.evaluator) or {}
        name = self._earlier.project.name_of_version
        return describe_evaluator_change(self._find, was, new, judge.id, name)

    def _became_equal(self, cell: Cell, before: KnownCase | None) -> Reason | None:
        """Return why a case asks a question of other cases; None if it asked it before."""
        if before and not self._earlier.asked_otherwise(before, cell):
            return None
        if any(self._earlier.has_asked(known, cell) for known in self._earlier.find(cell)):
            return None
        reason = self._questions.explain_edit(cell)
        return reason and reason.followed_by("the answer is stored")

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
        for known in self._earlier.find(cell):
            if known.case.evaluation in voted and self._earlier.has_asked(known, cell):
                return Reason(_is_again(parts, judged_by, known.run.id))
        return Reason(_is_again(parts, judged_by))


def _with_carried(reason: Reason, judgement: PlannedJudgement, votes: Sequence[Vote]) -> Reason:
    """Return the reason of checks, with the judges whose judgements are used again.

    `votes` are those that are carried over to the evaluation version.
    """
    evaluators = {vote.evaluator for vote in votes}
    judges = judgement.cell.judges
    names = dict.fromkeys(judge.id for judge in judges if judge.evaluator in evaluators)
    if judgement.judge or not names:
        return reason
    *first, last = names
    listed = f"{', '.join(first)} and {last}" if first else last
    used = "verdicts by {} are" if first or len(votes) > 1 else "verdict by {} is"
    return reason.followed_by(f"if the checks pass, the {used.format(listed)} reused")


def _is_again(parts: Sequence[str], judged_by: Sequence[str], run: str | None = None) -> str:
    """Return that these parts are those of a run again, and how its answers are judged now.

    Without `run`, the run is not known.
    """
    answers = f"again as in run {short(run)}, so its" if run else "changed back: stored"
    judges = f"the current {' and '.join(judged_by)}"
    return f"{' and '.join(parts)} {answers} answers are judged by {judges}"


# --- explains why a question is in the plan


V = TypeVar("V")


class QuestionReasons:
    """The reasons of questions, and of the edits that made them new."""

    def __init__(self, earlier: EarlierCases) -> None:
        self._earlier = earlier
        self._find = earlier.find_version

    def explain(self, ask: PlannedAsk, failed: Mapping[str, Failure]) -> Reason:
        """Return why a question is asked; `failed` are those whose newest call failed."""
        cell = ask.cell
        if ask.cut_at:
            limit = cell.case.limit or cell.candidate.limit
            return Reason(
                f"answer was cut at {ask.cut_at} tokens, limit is now {limit or 'none'}",
                str(ask.cut_at),
                str(limit) if limit else None,
                ask.question_id,
                of="" if cell.case.limit else TOKEN_LIMIT,
            )
        if ask.why:
            verb = "taken" if cell.case.recorded else "asked"
            return Reason(with_verb(verb, ask.why), relative=ask.question_id)
        if ask.question_id in failed:
            return Reason(f"retry of a failure: {shorten_line(failed[ask.question_id].message)}")
        total = cell.attempts * cell.questions.count(ask.question_id)
        if ask.count < total:
            have = total - ask.count
            unit = "attempts" if total == cell.attempts else "answers"
            more = number_change(unit, have, total)
            return reason_of([more], relative=ask.question_id)._replace(of="attempts")
        return self.explain_edit(cell, ask.number) or Reason(
            "not taken yet" if cell.case.recorded else "not answered yet"
        )

    def explain_edit(self, cell: Cell, number: int | None = None) -> Reason | None:
        """Return why a case asks a question that is new to it; None if no earlier run shows it.

        `number` is that of the conversation, without it the first new one counts.
        """
        is_known = False
        is_new = cell.candidate.id not in self._earlier.candidates
        for known in self._earlier.find(cell):
            is_known = True
            if not (is_new or takes_part(known, cell)):
                continue  # a run of other candidates: this one has its own history
            which = number
            if which is None:
                tests = enumerate(cell.case.tests)
                which = next((at for at, test in tests if test not in known.case.tests), 0)
            reason = self._differences(cell, which, known)
            if reason:
                return reason._replace(also=self._also_edited(cell, which, known, reason))
        if is_known:
            return None
        cases = self._earlier
        if any(cases.path_in(run.snapshot, cell.file) for run in cases.runs):
            return Reason(NEW_ROW)
        return Reason("new test")

    def _differences(self, cell: Cell, number: int, known: KnownCase) -> Reason | None:
        """Return the first difference from a relative; None when there is none."""
        case = known.case
        model = known.run.find_candidate(cell.candidate.id)
        prompts, relative = self._earlier.prompts_of(case), None
        if model:
            prompt = cell.prompt if cell.prompt in prompts else case.prompts[0]
            temperature = model.temperature if case.temperature is None else case.temperature
            relative = hashing.question_id(
                Question(case.tests[0], prompt, model.model, temperature, case.seed)
            )
        if cell.case.tests[number] not in case.tests:
            old = _at(case.tests, number)
            if len(case.tests) > 1 and old in cell.case.tests:
                return Reason("new conversation", relative=relative)
            differences = differ_tests(
                self._find("test", old) or {},
                self._find("test", cell.case.tests[number]) or {},
                self._find,
                self._earlier.project.name_of_version,
            )
            differences = self._earlier.with_true_names(differences, known, cell.file)
            return reason_of(differences, "test changed", relative)
        if cell.prompt not in prompts:
            replaced = former_prompts(case.prompts, cell.case.prompts).get(cell.prompt)
            name = self._earlier.project.name_of_version
            former, present = (name("prompt", id) if id else None for id in (replaced, cell.prompt))
            if replaced and present and former != present:
                changes = None if former else self._earlier.changes_since(known, cell.file)
                if former:
                    text = in_place("system prompt", present, former).subject
                    return Reason(text, relative=relative)
                if changes and changes.uses_another("system prompt", present):
                    text = replaced_by("system prompt", present, changes).subject
                    return Reason(text, relative=relative)
            if cell.prompt is None:
                return Reason("without a system prompt now", relative=relative)
            if replaced is None:
                return Reason(NEW_PROMPT, relative=relative)
            texts = (self._find("prompt", id) or {} for id in (replaced, cell.prompt))
            edits = differ_prompts(*texts)
            if cell.prompt in prompts_of_unknown_text(case.prompts, cell.case.prompts):
                changes = self._earlier.changes_since(known, cell.file)
                edits = edits if changes is None or changes.is_test_edited else []
            named = f"system prompt {present}" if present and not former else "system prompt"
            return reason_of(edits, f"{named} changed", relative)
        if cell.case.recorded:
            if case.recorded == cell.case.recorded:
                return None
            was, now = (recorded_answer(each, self._find) or "" for each in (case, cell.case))
            return reason_of([Difference(RECORDED_ANSWER, was, now)], RECORDED_ANSWER)
        if model is None:
            return Reason(f"new candidate {cell.candidate.id}", of=f"candidate {cell.candidate.id}")
        return next(self._model_changes(cell, model, relative), None)

    def _model_changes(
        self, cell: Cell, model: RunCandidate, relative: str | None = None
    ) -> Iterator[Reason]:
        """Yield how the candidate differs from what it was in a run: its model, its temperature."""
        candidate = f"candidate {cell.candidate.id}"
        if model.model != cell.question.model:
            differences = differ_models(
                self._find("model", model.model) or {},
                self._find("model", cell.question.model) or {},
            )
            yield reason_of(differences, "model changed", relative)._replace(of=candidate)
        if model.temperature != cell.candidate.temperature and cell.case.temperature is None:
            edit = number_change("temperature", model.temperature, cell.candidate.temperature)
            yield reason_of([edit], relative=relative)._replace(of=candidate)

    def _also_edited(
        self, cell: Cell, number: int, known: KnownCase, first: Reason
    ) -> tuple[str, ...]:
        """Return what else differs from a relative: parts of the case, and the candidate."""
        old, model = known.case, known.run.find_candidate(cell.candidate.id)
        judging = judging_changed(old, cell.case, self._find)
        if model is None:  # a new candidate is asked everything
            return judging if cell.case.recorded else ()
        is_test = cell.case.tests[number] not in old.tests
        is_prompt = cell.prompt not in self._earlier.prompts_of(old)
        prompt = ("system prompt",) if is_test and is_prompt else ()
        changes = (reason.cause for reason in self._model_changes(cell, model))
        return (*prompt, *judging, *(each for each in changes if each != first.cause))


def _at(ids: Sequence[V], number: int) -> V:
    """Return the id with this number, else the last."""
    return ids[min(number, len(ids) - 1)]
