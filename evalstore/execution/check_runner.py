"""Makes missing checks, before the judgements of models, because they determine who judges.

Checks that may take time run in a thread before the others, so that calls do not wait for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.errors import NotRunError
from evalstore.execution.work_sharing import lease_key_of
from evalstore.hashing import subject_of
from evalstore.planning.plan import CHECKS, PlannedJudgement, missing_judgements

if TYPE_CHECKING:
    from evalstore.execution.plan_progress import PlanProgress
    from evalstore.execution.run_resources import RunResources
    from evalstore.planning.cells import Cell, Judge, Subject
    from evalstore.results import Session

Sessions = tuple["Session", ...]
"""The sessions of one subject, in its order."""


class CheckRunner:
    """Makes the checks of one plan, and finds the judgements for models."""

    def __init__(self, resources: RunResources, progress: PlanProgress) -> None:
        self._evaluators = resources.evaluators
        self._accounting = resources.accounting
        self._is_halted = resources.calls.is_halted
        self._halt = resources.halt
        self._stops_at = resources.stops_at
        self._progress = progress

    async def check_all(
        self,
        due: Mapping[Subject, Sequence[Cell]],
        read: Callable[[Subject], Awaitable[Sessions]],
    ) -> list[PlannedJudgement]:
        """Make the missing checks of these subjects for their cells; `read` loads a subject.

        Returns the judgements that are left to models, without those that were queued before.
        """
        judgements: list[PlannedJudgement] = []
        for subject, cells in due.items():
            sessions = await read(subject)
            await self.prepare(subject, cells, sessions)
            judgements += self.check(subject, cells, sessions)
        return judgements

    async def prepare(self, ids: Subject, cells: Iterable[Cell], sessions: Sessions) -> None:
        """Make the missing slow checks of a subject; `check` uses their results.

        The answers are paid, so they are stored first. Checks that could not be run are
        logged.
        """
        evaluations = {
            cell.case.evaluation
            for cell in cells
            if cell.case.evaluation is not None and self._may_take_time(cell, sessions)
        }
        if not evaluations:
            return
        await self._accounting.writer.flush()
        votes = self._progress.votes(subject_of(ids))
        judged = {vote.evaluation for vote in votes if vote.evaluator == CHECKS}
        for evaluation in sorted(evaluations - judged - self._progress.plan.blocked):
            if not self._is_halted() and not self._evaluators.has_prepared(ids, evaluation):
                try:
                    await self._evaluators.prepare_checks(ids, sessions, evaluation)
                except NotRunError as error:
                    if not self._is_halted():
                        self._accounting.add_checks_not_run(error, subject_of(ids), evaluation)

    def check(
        self, ids: Subject, cells: Iterable[Cell], sessions: Sessions
    ) -> list[PlannedJudgement]:
        """Make the missing checks of a subject, except slow ones that are not prepared.

        Returns the judgements that are left to models, without those that were queued before.
        """
        subject = subject_of(ids)
        judgements: list[PlannedJudgement] = []
        for cell in cells:
            if cell.case.evaluation is None:
                continue
            missing = self._missing(cell, subject)
            if missing and missing[0][0] is None:
                if not self._may_check_now(cell, ids, sessions):
                    continue  # the code is not trusted, or the run ends: the next run judges it
                newest = self._progress.newest_vote(subject)
                self._accounting.add_evaluation(
                    self._evaluators.make_checks(ids, sessions, cell.case.evaluation, newest)
                )
                missing = self._missing(cell, subject)
                self.halt_at_failure(cell)
            for judge, count in missing:
                judgement = PlannedJudgement(cell, ids, judge, count)
                if self._progress.queue(lease_key_of(judgement)):
                    judgements.append(judgement)
        return judgements

    def halt_at_failure(self, cell: Cell) -> None:
        """Halt the run if the verdict on a cell is one at which it stops."""
        progress = self._progress
        if self._stops_at and self._stops_at(cell, progress.plan, progress.outcome):
            progress.outcome.stopped_at_failure = True
            self._halt()

    def _missing(self, cell: Cell, subject: str) -> list[tuple[Judge | None, int]]:
        return list(missing_judgements(cell, self._progress.votes(subject)))

    def _may_check_now(self, cell: Cell, ids: Subject, sessions: Sessions) -> bool:
        """Return whether the checks of a cell are prepared or quick."""
        evaluation = cell.case.evaluation
        assert evaluation is not None
        must_be_prepared = cell.case.code or (
            self._is_halted() and self._may_take_time(cell, sessions)
        )
        return not must_be_prepared or self._evaluators.has_prepared(ids, evaluation)

    def _may_take_time(self, cell: Cell, sessions: Sessions) -> bool:
        """Return whether the checks of a cell run Python or may be slow for another reason."""
        evaluation = cell.case.evaluation
        return bool(cell.case.code) or (
            evaluation is not None and self._evaluators.checks_may_take_time(evaluation, sessions)
        )
