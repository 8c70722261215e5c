"""Explains why a question is in the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from evalstore.comparison.candidate_edits import number_or_none
from evalstore.comparison.case_edits import judging_changed, recorded_answer
from evalstore.comparison.version_diff import (
    RECORDED_ANSWER,
    Difference,
    differ_models,
    differ_tests,
    in_place,
    shorten_line,
)
from evalstore.core import hashing
from evalstore.core.results import Failure
from evalstore.core.runs import RunCandidate
from evalstore.core.values import Case, Question
from evalstore.planning.age_limit import with_verb
from evalstore.planning.cells.cells import Cell
from evalstore.planning.cells.earlier_cases import EarlierCases, takes_part
from evalstore.planning.cells.known_cases import KnownCase
from evalstore.planning.plan import PlannedAsk
from evalstore.planning.reasons.reason import (
    NEW_ROW,
    TOKEN_LIMIT,
    Reason,
    describe_prompt_change,
    reason_of,
)
from evalstore.planning.reasons.source_changes import replaced_by

T = TypeVar("T")


class QuestionReasons:
    """The reasons of questions, and of the edits that made them new."""

    def __init__(self, earlier: EarlierCases) -> None:
        self._earlier = earlier
        self._find = earlier.find_version

    def versions_needed(self, ask: PlannedAsk) -> Iterator[tuple[str, str | None]]:
        """Yield the versions that the reason of a question probably needs, by kind and id."""
        case = ask.cell.case
        for known in self._earlier.find(ask.cell):
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
        total = cell.required_answers_of(ask.question_id)
        if ask.count < total:
            have = total - ask.count
            unit = "attempts" if total == cell.attempts else "answers"
            text = f"{unit} {have} -> {total}"
            return Reason(text, str(have), str(total), ask.question_id, of="attempts")
        return self.explain_edit(cell, ask.number) or Reason(
            "not taken yet" if cell.case.recorded else "not answered yet"
        )

    def explain_edit(self, cell: Cell, number: int | None = None) -> Reason | None:
        """Return why a case asks a question that is new to it; None if no earlier run shows it.

        `number` is that of the conversation, without it the first new one counts.
        """
        is_known = False
        is_new = not self._earlier.known.ever_had(cell.candidate.id)
        for known in self._earlier.find(cell):
            is_known = True
            if not (is_new or takes_part(known, cell)):
                continue  # a run of other candidates: this one has its own history
            which = _first_new(cell.case, known.case) if number is None else number
            reason = self._differences(cell, which, known)
            if reason:
                return reason._replace(also=self._also_edited(cell, which, known, reason))
        if is_known:
            return None
        cases = self._earlier.known
        if any(cases.path_in(run.snapshot, cell.file) for run in cases.runs):
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
                self._find("test", old) or {},
                self._find("test", cell.case.tests[number]) or {},
                self._find,
                self._earlier.project.name_of_version,
            )
            differences = self._earlier.with_true_names(differences, known, cell.file)
            return reason_of(differences, "test changed", relative)
        if cell.prompt not in self._earlier.prompts_of(case):
            replaced = self._replaced_prompt(cell, case)
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
            edited = None if former else present
            return describe_prompt_change(self._find, replaced, cell.prompt, relative, edited)
        if cell.case.recorded:
            if case.recorded == cell.case.recorded:
                return None
            was, now = (recorded_answer(each, self._find) or "" for each in (case, cell.case))
            return reason_of([Difference(RECORDED_ANSWER, was, now)], RECORDED_ANSWER)
        if model is None:
            return Reason(f"new candidate {cell.candidate.id}", of=f"candidate {cell.candidate.id}")
        return next(self._model_changes(cell, model, relative), None)

    def _replaced_prompt(self, cell: Cell, case: Case) -> str | None:
        """Return the system prompt in whose place that of a cell is; None if there was none.

        It is the one with its number, or in another order, the only one that is gone.
        """
        before, now = (self._earlier.prompts_of(each) for each in (case, cell.case))
        number = cell.prompt_number
        if number < len(case.prompts) and case.prompts[number] not in now:
            return case.prompts[number]
        if len(case.prompts) != len(cell.case.prompts):
            return None
        gone = [id for id in case.prompts if id not in now]
        new = [id for id in cell.case.prompts if id not in before]
        return gone[0] if len(gone) == len(new) == 1 else None

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
            was, now = map(number_or_none, (model.temperature, cell.candidate.temperature))
            text = f"temperature {was} -> {now}"
            yield Reason(text, was, now, relative, of=candidate)

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

    def _relative(self, cell: Cell, case: Case, model: RunCandidate | None) -> str | None:
        if model is None:
            return None
        prompt = cell.prompt if cell.prompt in self._earlier.prompts_of(case) else case.prompts[0]
        temperature = model.temperature if case.temperature is None else case.temperature
        return hashing.question_id(
            Question(case.tests[0], prompt, model.model, temperature, case.seed)
        )


def _first_new(case: Case, old: Case) -> int:
    """Return the number of the first conversation that an older version of a case lacks, else 0."""
    return next((number for number, test in enumerate(case.tests) if test not in old.tests), 0)


def _at(ids: Sequence[T], number: int) -> T:
    """Return the id with this number, else the last."""
    return ids[min(number, len(ids) - 1)]
