"""Selects what to retry: failed calls, and judgements without a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

from evalstore.core import hashing
from evalstore.core.errors import NothingSelectedError, UnsuitedError
from evalstore.core.values import Failure
from evalstore.planning.cells import Cell, StreamedCells, batches
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import (
    CHECKS,
    UNSETTLED,
    AgeLimit,
    Plan,
    PlannedJudgement,
    plan_asks,
    plan_judgements,
)
from evalstore.planning.project import Project
from evalstore.store.events import Place


def failed_questions(project: Project, plan: Plan) -> dict[str, Failure]:
    """Return the newest failure of each of the plan's questions that no later run has answered."""
    planned = [ask.question_id for ask in plan.asks]
    failures = project.store.find_failed(planned)
    if not failures:
        return failures
    begun = _beginnings(project)
    return {
        question: failure
        for question, failure in failures.items()
        if failure.at >= _start(begun, plan.newest.get(question))
    }


def failed_judgements(project: Project, plan: Plan) -> dict[Place, Failure]:
    """Return the newest failure of each of the plan's judgements that no later run has made."""
    planned = {place for judgement in plan.judgements if (place := judgement.stored_place)}
    failures: dict[Place, Failure] = {}
    for _, failure in reversed(project.store.find_failures_of((), {place[0] for place in planned})):
        place = (failure.subject or "", failure.evaluation, failure.evaluator or "")
        if place in planned:
            failures[place] = failure
    if not failures:
        return failures
    begun = _beginnings(project)
    newest: dict[Place, int] = {
        (subject, vote.evaluation, vote.evaluator): vote.started
        for subject, _, _ in failures
        for vote in sorted(plan.votes.get(subject, ()))
    }
    return {
        place: failure
        for place, failure in failures.items()
        if failure.at >= _start(begun, newest.get(place))
    }


def _beginnings(project: Project) -> list[int]:
    return [run.started for run in project.store.find_recent_runs()]


def _start(begun: Sequence[int], success: int | None) -> int:
    """Return when the run of a success began; in that run the success may precede a failure."""
    if success is None:
        return 0
    return max((number for number in begun if number <= success), default=success)


class FailedWork(NamedTuple):
    """The calls that failed and that no later run has made."""

    questions: set[str]
    judgements: set[Place]


def find_tried(
    project: Project,
    cells: StreamedCells,
    selection: SelectionOptions,
    answers: AgeLimit,
    judgements: AgeLimit,
) -> tuple[bytearray, FailedWork]:
    """Return 1 for each cell with failed calls or undecided judgements, 0 for others, and these.

    Raises `NothingSelectedError` if there are none.
    """
    if selection.refresh:
        raise UnsuitedError(
            "'--retry-errors' and '--refresh' cannot be combined",
            hint="'--refresh' asks everything that is selected again, with what failed",
        )
    tried = FailedWork(set(), set())
    busy = bytearray()
    for batch in batches(cells):
        plan = Plan(cells=batch)
        plan_asks(plan, project.store.find_samples(plan.questions), answers)
        plan_judgements(plan, project.store.find_votes(plan.subjects()), judgements, UNSETTLED)
        tried.questions.update(failed_questions(project, plan))
        tried.judgements.update(failed_judgements(project, plan))
        drop_untried(plan, tried)
        busy.extend(_are_busy(plan))
    if cells and not any(busy):
        raise NothingSelectedError(
            "nothing is selected: no call failed, and no verdict is undecided or an error, "
            "but for ties",
            hint="'evalstore run' does all that is missing, and 'evalstore label' decides a tie",
        )
    return busy, tried


# --- of a plan


def drop_untried(plan: Plan, failed: FailedWork, new: Set[str] = frozenset()) -> None:
    """Keep in a plan only failed calls and undecided judgements, and what depends on them.

    `new` are the answers that earlier batches of the run got. The plan must have been made without
    the votes that are to be repeated.
    """
    plan.asks = [ask for ask in plan.asks if ask.question_id in failed.questions]
    planned = {ask.question_id: ask.count for ask in plan.asks}

    def is_tried(judgement: PlannedJudgement) -> bool:
        is_new = not new.isdisjoint(judgement.sessions)
        return is_new or bool(judgement.why) or judgement.stored_place in failed.judgements

    checked = {
        (judgement.subject, judgement.cell.case.evaluation)
        for judgement in plan.judgements
        if judgement.sessions and judgement.judge is None and is_tried(judgement)
    }
    judgements, plan.judgements = plan.judgements, []
    for judgement in judgements:
        cell = judgement.cell
        if judgement.sessions:
            if is_tried(judgement) or (judgement.subject, cell.case.evaluation) in checked:
                plan.judgements.append(judgement)
            continue
        all_then = cell.count_subjects(plan.sessions, planned)
        coming = all_then - len(cell.subjects(plan.sessions))
        if coming > 0:
            times = judgement.judge.times if judgement.judge else 1
            plan.judgements.append(replace(judgement, count=coming * times))


def busy_cells(plan: Plan) -> list[Cell]:
    """Return the cells for which the plan has a question or a judgement."""
    return [*compress(plan.cells, _are_busy(plan))]


def _are_busy(plan: Plan) -> Iterator[bool]:
    """Yield for each cell whether the plan has a question or a judgement for it."""
    planned = {ask.question_id for ask in plan.asks}
    judged = {judgement.stored_place for judgement in plan.judgements}

    def is_busy(cell: Cell) -> bool:
        evaluators = [CHECKS, *(judge.evaluator for judge in cell.judges)]
        return not planned.isdisjoint(cell.questions) or any(
            (subject, cell.case.evaluation, evaluator) in judged
            for subject in map(hashing.subject_of, cell.subjects(plan.sessions))
            for evaluator in evaluators
        )

    return map(is_busy, plan.cells)
