"""Selects what to retry: failed calls, and judgements without a verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import compress

from evalstore.core import hashing
from evalstore.core.errors import EvalstoreError, NothingSelectedError
from evalstore.core.hashing import DigestMap, ValueSet, digest_of_value
from evalstore.core.results import Failure
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
from evalstore.planning.results import count_ties, tie_text
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
    """Return the newest failure of each judgement that no later run has made."""
    failures = dict(project.store.iterate_failed_judgements())
    if not failures:
        return failures
    begun = _beginnings(project)
    newest = _newest_votes(plan)
    return {
        place: failure
        for place, failure in failures.items()
        if failure.at >= _start(begun, newest.get(place))
    }


def _newest_votes(plan: Plan) -> dict[Place, int]:
    """Return when the newest vote of each judgement was cast."""
    newest: dict[Place, int] = {}
    for session, votes in plan.votes.items():
        for vote in votes:
            place = session, vote.evaluation, vote.evaluator
            newest[place] = max(vote.started, newest.get(place, 0))
    return newest


def _beginnings(project: Project) -> list[int]:
    return [run.started for run in project.store.find_recent_runs()]


def _start(begun: Sequence[int], success: int | None) -> int:
    """Return when the run of a success began; in that run the success may precede a failure."""
    if success is None:
        return 0
    return max((number for number in begun if number <= success), default=success)


class FailedWork:
    """The calls that failed and that no later run has made; of each it keeps few bytes.

    The judgements among them are found with `in`, by their places.
    """

    def __init__(self, project: Project) -> None:
        self.questions = ValueSet()
        self._newest = DigestMap()
        """When the newest failure of each was, plus one; 0 where a later run has made it."""
        self._is_any = False
        for place, failure in project.store.iterate_failed_judgements():
            self._newest.put(digest_of_value(place), failure.at + 1)
            self._is_any = True
        self._begun = _beginnings(project) if self._is_any else []

    def leave_out_made(self, plan: Plan) -> None:
        """Leave out the judgements that a later run has made, by the votes of a plan."""
        if not self._is_any:
            return
        for place, started in _newest_votes(plan).items():
            digest = digest_of_value(place)
            after = self._newest.get(digest)
            if after and after - 1 < _start(self._begun, started):
                self._newest.put(digest, 0)

    def __contains__(self, place: object) -> bool:
        return self._is_any and bool(self._newest.get(digest_of_value(place)))


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
        raise EvalstoreError(
            "'--retry-errors' and '--refresh' cannot be combined",
            hint="'--refresh' asks everything that is selected again, with what failed",
        )
    tried = FailedWork(project)
    busy = bytearray()
    ties = 0
    for batch in batches(cells):
        found, plan = _find_busy(project, batch, tried, answers, judgements)
        busy += found
        ties += 0 if any(busy) else count_ties(plan, project.settings.verdict)
    if cells and not any(busy):
        if ties:
            raise NothingSelectedError(
                f"nothing is selected: {tie_text(ties)}, and a tie is not retried",
                hint="'evalstore label' decides, or an odd number of judges or attempts",
            )
        raise NothingSelectedError(
            "nothing is selected: no call failed, and no verdict is undecided or an error",
            hint="'evalstore run' without '--retry-errors' does all that is missing",
        )
    return busy, tried


def _find_busy(
    project: Project,
    cells: Sequence[Cell],
    tried: FailedWork,
    answers: AgeLimit,
    judgements: AgeLimit,
) -> tuple[bytearray, Plan]:
    """Return 1 for each cell with failed calls or undecided judgements, and note the calls.

    Also returns the plan of the batch, of which the cells are.
    """
    plan = Plan(cells=[*cells])
    plan_asks(plan, project.store.find_samples(plan.questions), answers)
    votes = project.store.find_votes(plan.subjects())
    plan_judgements(plan, votes, judgements, UNSETTLED)
    for question in failed_questions(project, plan):
        tried.questions.add(question)
    tried.leave_out_made(plan)
    drop_untried(plan, tried.questions, tried)
    return bytearray(_are_busy(plan)), plan


# --- of a plan


def drop_untried(
    plan: Plan,
    questions: Collection[str] | ValueSet,
    judgements: Collection[Place] | FailedWork,
) -> None:
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
    return [*compress(plan.cells, _are_busy(plan))]


def _are_busy(plan: Plan) -> Iterator[bool]:
    """Yield for each cell whether the plan has a question or a judgement for it."""
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

    return map(is_busy, plan.cells)
