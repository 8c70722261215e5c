"""Queues the judgements of stored answers, of new answers, and of several answers together.

The checks of a subject are made first. The remaining judgements, which models make, are returned
to be claimed and queued. The inputs of queued judgements are read together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from evalstore.core.errors import NotRunError
from evalstore.core.hashing import subject_of
from evalstore.planning.plan import CHECKS, PlannedJudgement, missing_judgements
from evalstore.runs.execution.model_calls import CallFailed
from evalstore.runs.execution.sharing.work_sharing import lease_key_of

if TYPE_CHECKING:
    from evalstore.core.results import Session
    from evalstore.planning.cells.cells import Cell, Judge, Subject
    from evalstore.runs.execution.content_cache import JudgementInput
    from evalstore.runs.execution.plan_progress import NewAnswer, PlanProgress
    from evalstore.runs.execution.run_resources import RunResources


DueSubjects = Mapping["Subject", list["Cell"]]
"""Subject -> the cells that may lack a judgement of it."""


class JudgementQueue:
    """Makes the checks of a plan, and the queued judgements of models."""

    def __init__(self, resources: RunResources, progress: PlanProgress) -> None:
        self._resources = resources
        self._contents = resources.contents
        self._accounting = resources.accounting
        self._progress = progress
        self._checks = CheckRunner(resources, progress)
        self._queued: dict[str, dict[JudgementInput, None]] = {}
        """The inputs of queued judgements by account, in order."""

    # --- checks

    def stored_due(
        self, at_once: int, find_start: Callable[[], float] = lambda: 0.0
    ) -> Iterator[DueSubjects]:
        """Yield the stored sessions without checks, this many at a time.

        `find_start` returns the part of them after which to begin, if there are any.
        """
        plan = self._progress.plan
        due: dict[Subject, list[Cell]] = {
            judgement.sessions: []
            for judgement in plan.judgements
            if judgement.sessions and judgement.judge is None
        }
        if not due:
            return
        for cell in plan.cells:
            for subject in cell.subjects(plan.sessions):
                if subject in due:
                    due[subject].append(cell)
        start = int(len(due) * find_start())
        subjects = iter([*islice(due, start, None), *islice(due, start)])
        while batch := list(islice(subjects, at_once)):
            yield {subject: due[subject] for subject in batch}

    async def judge_stored(self, due: DueSubjects) -> list[PlannedJudgement]:
        """Make the checks of stored sessions; returns the judgements left to models."""
        evaluations = {cell.case.evaluation for cells in due.values() for cell in cells}
        loaded, contents = await asyncio.to_thread(self._contents.load_uncached, due, evaluations)
        self._contents.add(contents)
        judgements = await self._judge_loaded(due, loaded)
        await self._accounting.writer.flush()
        return judgements

    async def judge_others(
        self, sessions: Mapping[str, Mapping[str, Session]]
    ) -> list[PlannedJudgement]:
        """Make the checks of answers that other runs have stored since the plan was made.

        `sessions` are by question and id. Returns the judgements left to models.
        """
        judgements: list[PlannedJudgement] = []
        for question, loaded in sessions.items():
            if not self._resources.sharing.is_expected:  # then the shares of the others tell
                self._resources.environment.progress("asked", len(loaded))
            counted = self._progress.plan.sessions[question]
            cells = self._progress.single_cells(question)
            due: dict[Subject, list[Cell]] = {
                (id,): [cell for cell in cells if counted.index(id) < cell.required_answers]
                for id in loaded
            }
            judgements += await self._judge_loaded(due, loaded)
            if not self._progress.has_outstanding(question):
                self._progress.add_answered(question)
        return judgements

    async def judge_groups(self) -> list[PlannedJudgement]:
        """Make the checks of answers that are judged together and are all there by now.

        Returns the judgements left to models.
        """
        due = self._progress.take_answered()
        if not due:
            return []
        # Another run that works on the same answers may judge them, too.
        subjects = [subject_of(ids) for ids in due]
        self._resources.sharing.find_new_votes(
            {subject: self._progress.votes(subject) for subject in subjects}
        )
        following: Iterator[JudgementInput] = ((ids, None) for ids in due)

        async def read(ids: Subject) -> Sessions:
            return await self._read((ids, None), following)

        judgements = await self._checks.check_all(due, read)
        if judgements:
            await self._accounting.writer.flush()
        return judgements

    async def judge_new(self, question: str, id: str, session: Session) -> list[PlannedJudgement]:
        """Make a new answer's checks; returns the judgements left to models.

        Cells that need only some of the answers judge them later: see `judge_oldest`.
        """
        self._progress.add_answer(id, session)
        await self._checks.prepare((id,), self._progress.single_cells(question), (session,))
        return self._checks.check((id,), self._progress.cells_requiring_all(question), (session,))

    def judge_oldest(self, answer: NewAnswer) -> list[PlannedJudgement]:
        """Make the checks of one of the oldest answers; returns the judgements left to models."""
        return self._checks.check((answer.id,), [answer.cell], (answer.session,))

    async def _judge_loaded(
        self, due: DueSubjects, loaded: Mapping[str, Session]
    ) -> list[PlannedJudgement]:
        async def read(ids: Subject) -> Sessions:
            return tuple([loaded[id] for id in ids])

        return await self._checks.check_all(due, read)

    # --- judgements of models

    def add(self, judgement: PlannedJudgement) -> None:
        """Note that a judgement of a model is queued, so that its input is read with others."""
        account = self._resources.endpoints.account_of(judgement)
        self._queued.setdefault(account, {})[_input_of(judgement)] = None

    async def judge(self, judgement: PlannedJudgement, session: Session | None) -> None:
        """Make a judgement that was queued; a failure is logged.

        `session` is its input if it is still in memory. Raises `LeaseLostError` when another run
        has taken over the judgement.
        """
        subject, judge, cell = judgement.subject, judgement.judge, judgement.cell
        assert subject
        assert judge
        assert cell.case.evaluation
        try:
            sessions = await self._take_sessions(judgement, session)
            evaluation = await self._resources.evaluators.judge_by_model(
                judge,
                judgement.sessions,
                sessions,
                cell.case.evaluation,
                self._progress.newest_vote(subject),
            )
        except CallFailed as failed:
            self._progress.fail(lease_key_of(judgement))
            self._accounting.add_failure(
                failed,
                subject=subject,
                evaluation=cell.case.evaluation,
                evaluator=judge.evaluator,
                model=self._resources.endpoints.judges[judge.evaluator].model.id,
            )
        except NotRunError as error:
            self._progress.fail(lease_key_of(judgement))
            self._accounting.add_checks_not_run(
                error, subject, cell.case.evaluation, judge.evaluator
            )
        else:
            self._accounting.add_evaluation(evaluation)
            self._checks.halt_at_failure(cell)

    async def _take_sessions(
        self, judgement: PlannedJudgement, session: Session | None
    ) -> Sessions:
        """Return the sessions of a judgement; the inputs of the next ones are read with them."""
        queued = self._queued.get(self._resources.endpoints.account_of(judgement), {})
        about = _input_of(judgement)
        sessions = (session,) if session else await self._read(about, queued)
        queued.pop(about, None)
        return sessions

    async def _read(self, about: JudgementInput, following: Iterable[JudgementInput]) -> Sessions:
        """Return the sessions of an input, reading it with the following ones if necessary."""
        if not self._contents.has_input(*about):
            await self._accounting.writer.flush()
            if not self._contents.has_input(*about):
                self._contents.read_ahead(chain([about], following))
        return self._contents.sessions(about[0])


def _input_of(judgement: PlannedJudgement) -> JudgementInput:
    return judgement.sessions, judgement.cell.case.evaluation


# --- makes missing checks, before the judgements of models, because they determine who judges


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
