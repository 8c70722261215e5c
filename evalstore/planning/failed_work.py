"""Selects what to retry: failed calls, and judgements without a verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore import hashing
from evalstore.errors import EvalstoreError, NothingSelectedError
from evalstore.planning.plan import (
    CHECKS,
    UNSETTLED,
    Plan,
    PlannedJudgement,
    plan_asks,
    plan_judgements,
)

if TYPE_CHECKING:
    from evalstore.planning.age_limit import AgeLimit
    from evalstore.planning.cells import Cell
    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.project import Project
    from evalstore.results import Failure
    from evalstore.store.failures import Place


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
    """Return the newest failure of each judgement that no later run has made."""
    failures = project.store.find_failed_judgements()
    if not failures:
        return failures
    begun = _beginnings(project)
    newest: dict[Place, int] = {}
    for session, votes in plan.votes.items():
        for vote in votes:
            place = session, vote.evaluation, vote.evaluator
            newest[place] = max(vote.started, newest.get(place, 0))
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
    """Failed calls and undecided judgements."""

    questions: set[str]
    judgements: set[Place]


def only_tried(
    project: Project,
    cells: Sequence[Cell],
    selection: SelectionOptions,
    answers: AgeLimit,
    judgements: AgeLimit,
) -> tuple[list[Cell], FailedWork]:
    """Return the cells with failed calls or undecided judgements; raises if there are none."""
    if selection.refresh:
        raise EvalstoreError(
            "'--retry-errors' and '--refresh' cannot be combined",
            hint="'--refresh' asks everything that is selected again, with what failed",
        )
    plan = Plan(cells=list(cells))
    plan_asks(plan, project.store.find_samples(plan.questions), answers)
    votes = project.store.find_votes(plan.subjects())
    plan_judgements(plan, votes, judgements, UNSETTLED)
    tried = FailedWork(set(failed_questions(project, plan)), set(failed_judgements(project, plan)))
    drop_untried(plan, *tried)
    busy = busy_cells(plan)
    if cells and not busy:
        raise NothingSelectedError(
            "nothing is selected: no call failed, and no judgement is undecided or an error",
            hint="'evalstore run' without '--retry-errors' does all that is missing",
        )
    return busy, tried


# --- of a plan


def drop_untried(plan: Plan, questions: Collection[str], judgements: Collection[Place]) -> None:
    """Keep in a plan only failed calls and undecided judgements, and what depends on them.

    `questions` and `judgements` are those whose call failed. The plan must have been made
    without the votes that are to be repeated.
    """
    plan.asks = [ask for ask in plan.asks if ask.question_id in questions]
    planned = {ask.question_id for ask in plan.asks}

    def is_tried(judgement: PlannedJudgement) -> bool:
        if not judgement.sessions:
            return not planned.isdisjoint(judgement.cell.questions)
        place = (judgement.subject, judgement.cell.case.evaluation, judgement.evaluator)
        return bool(judgement.why) or place in judgements

    checked = {
        (judgement.subject, judgement.cell.case.evaluation)
        for judgement in plan.judgements
        if judgement.sessions and judgement.judge is None and is_tried(judgement)
    }
    plan.judgements = [
        judgement
        for judgement in plan.judgements
        if is_tried(judgement) or (judgement.subject, judgement.cell.case.evaluation) in checked
    ]


def busy_cells(plan: Plan) -> list[Cell]:
    """Return the cells for which the plan has a question or a judgement."""
    planned = {ask.question_id for ask in plan.asks}
    judged = {
        (judgement.subject, judgement.cell.case.evaluation, judgement.evaluator)
        for judgement in plan.judgements
        if judgement.sessions
    }

    def is_busy(cell: Cell) -> bool:
        evaluators = [CHECKS, *(judge.evaluator for judge in cell.judges)]
        return not planned.isdisjoint(cell.questions) or any(
            (subject, cell.case.evaluation, evaluator) in judged
            for subject in map(hashing.subject_of, cell.subjects(plan.sessions))
            for evaluator in evaluators
        )

    return [cell for cell in plan.cells if is_busy(cell)]
