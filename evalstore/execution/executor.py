"""A plan -> sessions and evaluations: calls within bounds, one writer.

Every answer is stored as it arrives, and judged as soon as it is there. A failure is
logged and leaves its answer missing, so the next run asks for just that. Before something is
worked on a lease is taken on it, so that runs on one store share the work. The clock and
randomness come in from outside.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from evalstore.errors import NotRunError
from evalstore.execution.account_queue import AccountQueue
from evalstore.execution.accounting import Accounting
from evalstore.execution.burst_limit import BurstLimit
from evalstore.execution.candidates import CandidateCaller
from evalstore.execution.evaluators import EvaluatorCaller
from evalstore.execution.model_calls import (
    CallFailed,
    Endpoint,
    LeaseLostError,
    Limits,
    ModelCaller,
    RunEnvironment,
)
from evalstore.execution.outcome import Outcome
from evalstore.execution.python_checks import Allows, CodeChecks
from evalstore.execution.requests import Judged, RequestBuilder
from evalstore.execution.work_sharing import WorkSharing, key_of
from evalstore.hashing import subject_of
from evalstore.planning.plan import CHECKS, Plan, PlannedAsk, PlannedJudgement, missing_judgements
from evalstore.values import Json, Session, Vote

if TYPE_CHECKING:
    from evalstore.planning.cells import Cell, Subject
    from evalstore.store import Store

__all__ = ["Endpoint", "Executor", "Limits", "Outcome", "RunEnvironment"]

_CHECKED_AT_ONCE = 200
"""Stored sessions that are read together to be checked."""
_KEPT_IN_MEMORY = 64
"""Answers that wait for their judge in memory; others are read again."""

T = TypeVar("T")


class _Job(NamedTuple):
    """One call to make, with its retries."""

    item: PlannedAsk | PlannedJudgement
    claimed: int
    """After how many of our sleeps it was claimed."""
    session: Session | None = None
    """What is to be judged, if it is one session and still in memory."""


_JOB: ContextVar[_Job] = ContextVar("_JOB")
"""What the task at hand works on."""


class Executor:
    """Executes plans, one after the other, as an asynchronous context manager.

    When the context ends everything is stored, and all leases are given back.
    """

    def __init__(
        self,
        store: Store,
        candidates: Mapping[str, Endpoint],
        judges: Mapping[str, Endpoint],
        limits: Limits,
        environment: RunEnvironment,
        stops_at: Callable[[Cell, Plan, Outcome], bool] | None = None,
        allows: Allows = lambda _sha256, _network: False,
    ) -> None:
        """`candidates` are by display id, `judges` by evaluator id.

        Everything is halted at a cell for which `stops_at`, by its plan and its outcome.
        Checks run those Python files that `allows` lets them run.
        """
        self.store = store
        self.candidates = candidates
        self.judges = judges
        self.environment = environment
        self._stops_at = stops_at
        self.material = RequestBuilder(store)
        self.sharing = WorkSharing(store, environment.warn)
        self._accounting = Accounting(store, environment, self.sharing.runner)
        self.outcome = self._accounting.outcome
        self._calls = ModelCaller(limits, environment, self._is_ours)
        made_of = (self.material, self._calls, self._accounting, environment)
        self._asking = CandidateCaller(candidates, *made_of)
        self._code = CodeChecks(self.material, allows)
        self._judging = EvaluatorCaller(judges, *made_of, limits.judge_tokens, self._code)
        self._failed: Counter[str] = Counter()
        """Key -> how often it has failed in this run: other plans may want it, too."""
        self._finished = asyncio.Event()
        self._bursts = BurstLimit()
        self._open(Plan())

    def _open(self, plan: Plan) -> None:
        """Forget the plan before this one."""
        self.plan = plan
        self.sharing.open(plan)
        self._judging.forget()
        self.outcome.sessions.clear()
        self.outcome.votes.clear()
        self._left: dict[str, int] = {}
        """Key of what is under way -> how many of its answers or judgements are still to come."""
        self._answers: dict[str, Session] = {}
        """New sessions whose question has other answers to come."""
        self._waiting: dict[str, dict[Judged, None]] = {}
        """By account what its judgements are about that wait to be made, in order."""
        self._owed: set[str] = set()
        """Keys of judgements that are queued, or have failed."""
        self._sharing_cells: dict[str, list[Cell]] = {}
        """Question id -> the cells it answers."""
        self._most: dict[str, int] = {}
        """Question id -> how many answers that one of these cells wants which wants most."""
        self._answered: set[str] = set()
        """Questions all of whose answers are there, and that several conversations share."""
        for cell in plan.cells:
            for question, _, wanted in cell.asked():
                self._sharing_cells.setdefault(question, []).append(cell)
                self._most[question] = max(wanted, self._most.get(question, 0))
        endpoints = (*self.candidates.values(), *self.judges.values())
        self._work_of = self._by_account(plan)
        self._lanes = {
            account.name: AccountQueue(
                self._calls.pace(account), self._work, self._fetcher(account.name), self._changed
            )
            for account in {
                endpoint.account.name: endpoint.account for endpoint in endpoints
            }.values()
        }
        self._finished.clear()
        self._checking: asyncio.Task[None] | None = None

    # --- the loop

    async def __aenter__(self) -> Self:
        """Begin."""
        self._writer = asyncio.create_task(self._accounting.writer.run())
        self._alive = asyncio.create_task(self.sharing.keep_alive())
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Store what is finished, give everything back."""
        self._alive.cancel()
        self._code.close()
        try:
            await _see_through(self._accounting.writer.finish(self._writer))
        finally:
            try:
                await _see_through(asyncio.to_thread(self.sharing.leave))
            finally:
                endpoints = (*self.candidates.values(), *self.judges.values())
                for provider in {
                    id(endpoint.provider): endpoint.provider for endpoint in endpoints
                }.values():
                    await provider.close()

    async def carry_out(self, plan: Plan) -> None:
        """Do everything of a plan that can be done; raises `StoreError` when it cannot be stored.

        The outcome's sessions and votes are those of this plan. When it is cancelled, what is
        progress is dropped, and what is finished is kept.
        """
        self._open(plan)
        if self.is_halted:
            return
        self._checking = asyncio.create_task(self._check_stored())
        self._checking.add_done_callback(lambda _: self._changed())
        others = asyncio.create_task(self._ask_others())
        end = asyncio.create_task(self._finished.wait())
        for lane in self._lanes.values():
            lane.start()
        self._changed()
        try:
            necessary = {self._writer, self._alive, others}
            await asyncio.wait({end, *necessary}, return_when=asyncio.FIRST_COMPLETED)
            for task in (self._checking, *necessary):
                if task.done():
                    task.result()
            for lane in self._lanes.values():
                if lane.error:
                    raise lane.error
        finally:
            for lane in self._lanes.values():
                lane.halt()
            tasks: set[asyncio.Task[Any]] = {end, others, self._checking}
            tasks |= {task for lane in self._lanes.values() for task in lane.tasks}
            for task in tasks:
                task.cancel()
            await _see_through(asyncio.gather(*tasks, return_exceptions=True))
            stored = asyncio.ensure_future(self._accounting.writer.settled())
            await _see_through(
                asyncio.wait({stored, self._writer}, return_when=asyncio.FIRST_COMPLETED)
            )
            stored.cancel()

    @property
    def is_halted(self) -> bool:
        """Whether nothing more is started."""
        return self._calls.is_halted()

    def halt(self) -> None:
        """Start nothing more; what is in flight may finish, and `carry_out` then ends."""
        self._calls.halt()
        for lane in self._lanes.values():
            lane.halt()
        self._changed()

    def _changed(self) -> None:
        """See whether everything is done."""
        lanes, checking = self._lanes.values(), self._checking
        if checking is None:
            return
        waiting = not self.is_halted and (self.sharing.is_waiting or not checking.done())
        failed = checking.done() and not checking.cancelled() and checking.exception() is not None
        if (
            failed
            or any(lane.error for lane in lanes)
            or (not waiting and all(lane.is_idle for lane in lanes))
        ):
            self._finished.set()

    async def _work(self, job: _Job) -> None:
        _JOB.set(job)
        if not await self._is_ours():
            await self._claim_anew(job)
            return
        try:
            if isinstance(job.item, PlannedAsk):
                await self._ask(job, job.item)
            else:
                await self._judge(job.item, job.session)
        except LeaseLostError:
            await self._claim_anew(job)
            return
        if self.outcome.over_budget:
            self.halt()
        # No call is made while what the last one brought could still be lost.
        await self._accounting.writer.settled()
        if self._answered:
            await self._judge_together()

    def _has_slept_since(self, job: _Job) -> bool:
        """Whether we have slept so long since a job was claimed that it may be in other hands."""
        return job.claimed != self.sharing.look_at_clock()

    async def _is_ours(self) -> bool:
        """Whether nobody has taken the job at hand over while we slept."""
        job = _JOB.get()
        if not self._has_slept_since(job):
            return True
        await self._accounting.writer.settled()
        return await self.sharing.still_has(key_of(job.item))

    async def _claim_anew(self, job: _Job) -> None:
        """Claim what may be in other hands, or done, by now."""
        key = key_of(job.item)
        await self._accounting.writer.settled()
        if job.item.count > 1:
            self._one_less(key)  # a part of it may be under way: the rest is for the next run
        else:
            del self._left[key]
            self._put(await self._claim([job.item]))

    def _one_less(self, key: str) -> None:
        """One of the answers or judgements under a key is there, or failed."""
        self._left[key] -= 1
        if self._left[key] == 0:
            if key in self._sharing_cells:
                self._judge_oldest(key)
                self._answered.add(key)
            self._accounting.writer.give(key)
            del self._left[key]

    # --- what is to be done

    def _account_of(self, item: PlannedAsk | PlannedJudgement) -> str:
        if isinstance(item, PlannedAsk):
            return self.candidates[item.cell.candidate.id].account.name
        assert item.judge is not None
        return self.judges[item.judge.evaluator].account.name

    def _by_account(self, plan: Plan) -> dict[str, list[PlannedAsk | PlannedJudgement]]:
        """What of a plan can be done at once, by account: judgements, then questions."""
        to_check = {
            (judgement.sessions, judgement.cell.case.evaluation)
            for judgement in plan.judgements
            if judgement.judge is None
        }
        found: dict[str, list[PlannedAsk | PlannedJudgement]] = {}
        for judgement in plan.judgements:
            if not judgement.sessions or judgement.judge is None:
                continue  # a session that is still to be asked is judged when it is there
            if (judgement.sessions, judgement.cell.case.evaluation) in to_check:
                continue  # whether a model judges depends on the checks
            found.setdefault(self._account_of(judgement), []).append(judgement)
        for ask in plan.asks:
            found.setdefault(self._account_of(ask), []).append(ask)
        return found

    def _planned(self, account: str) -> Iterator[PlannedAsk | PlannedJudgement]:
        """The plan's work for an account: judgements of stored sessions, then questions."""
        for item in self._work_of.get(account, ()):
            key = key_of(item)
            if isinstance(item, PlannedAsk):
                if (count := item.count - self._failed[key]) > 0:
                    yield replace(item, count=count)
            elif key not in self._failed and key not in self._owed:
                self._owed.add(key)
                yield item

    def _fetcher(self, account: str) -> Callable[[int], Awaitable[list[_Job] | None]]:
        planned = self._planned(account)

        async def fetch(count: int) -> list[_Job] | None:
            items = list(islice(planned, count))
            return await self._claim(items) if items else None

        return fetch

    async def _claim(self, items: list[PlannedAsk | PlannedJudgement]) -> list[_Job]:
        """The jobs of those of these items that nobody else works on, and that are still open."""
        claimed = await self.sharing.claim(items)
        self.material.keep(claimed.contents)
        self._read_evaluations(one for one in claimed.items if isinstance(one, PlannedAsk))
        jobs: list[_Job] = []
        for item in claimed.items:
            self._left[key_of(item)] = item.count
            jobs += [_Job(item, self.sharing.look_at_clock())] * item.count
            self._note_waiting(item)
        for key in claimed.done:
            self._accounting.writer.give(key)
        owed: list[PlannedAsk | PlannedJudgement] = []
        for question, sessions in claimed.sessions.items():
            # Another run has asked in the meantime: its answers count here too.
            self.environment.progress("asked", len(sessions))
            counted = self.plan.sessions[question]
            for id, session in sessions.items():
                number = counted.index(id)
                cells = [cell for cell in self._alone(question) if number < cell.wanted]
                await self._run_checks((id,), cells, (session,))
                owed += self._check_and_find((id,), cells, (session,))
            if question not in self._left:
                self._answered.add(question)
        if self._answered:
            await self._judge_together()
        return jobs + (await self._claim(owed) if owed else [])

    def _read_evaluations(self, asks: Iterable[PlannedAsk]) -> None:
        """Read at once by what the answers are judged in other cells than the asked ones."""
        told = {
            cell.case.evaluation: None
            for ask in asks
            for cell in self._sharing_cells[ask.question_id]
            if cell is not ask.cell
        }
        lacking = self.material.lacking(id for id in told if id is not None)
        if lacking:
            self.material.keep(self.store.load_contents("evaluation", lacking))

    async def _ask_others(self) -> None:
        """Take over what other runs have left, and take note of what they have brought."""
        while True:
            await self.sharing.until_others_may_be_done()
            jobs = await self._claim(self.sharing.take_back())
            self.sharing.taken_back()
            self._put(jobs)
            self._changed()

    def _put(self, jobs: Iterable[_Job]) -> None:
        for job in jobs:
            self._lanes[self._account_of(job.item)].put([job])

    async def _check_stored(self) -> None:
        """Make the checks that stored sessions lack, and queue what then is left to models."""
        to_check = dict.fromkeys(
            judgement.sessions
            for judgement in self.plan.judgements
            if judgement.sessions and judgement.judge is None
        )
        if not to_check:
            return
        cells: dict[Subject, list[Cell]] = {}
        for cell in self.plan.cells:
            for subject in cell.subjects(self.plan.sessions):
                if subject in to_check:
                    cells.setdefault(subject, []).append(cell)
        waiting = iter(to_check)
        while some := list(islice(waiting, _CHECKED_AT_ONCE)):
            if self.is_halted:
                return
            told = {one.case.evaluation for subject in some for one in cells[subject]}
            loaded, contents = await asyncio.to_thread(self._load_stored, some, told)
            self.material.keep(contents)
            owed: list[PlannedJudgement] = []
            for subject in some:
                sessions = tuple([loaded[id] for id in subject])
                await self._run_checks(subject, cells[subject], sessions)
                owed += self._check_and_find(subject, cells[subject], sessions)
            await self._accounting.writer.settled()
            self._put(await self._claim(list(owed)))

    def _load_stored(
        self, subjects: Iterable[Subject], evaluations: Iterable[str | None]
    ) -> tuple[dict[str, Session], dict[str, Json]]:
        """What checks look at, and what they are made of: read together, which is cheaper."""
        ids = {id for subject in subjects for id in subject}
        told = [id for id in evaluations if id is not None]
        return self.store.load_sessions(ids), self.store.load_contents("evaluation", told)

    # --- asking

    async def _ask(self, job: _Job, ask: PlannedAsk) -> None:
        cell, question = ask.cell, ask.question_id
        newest = self.plan.newest.get(question, 0)
        try:
            session = await self._asking.hold(ask, newest)
        except CallFailed as failed:
            model = self.candidates[cell.candidate.id].model.id
            self._failed[question] += 1
            self._accounting.failure(failed, question=question, model=model)
        else:
            if ask.count == 1 and self._has_slept_since(job):
                # It is paid, so it is kept, but another run's answer is not displaced by it.
                started = max(self.environment.now(), newest + 1)
                self._accounting.spare_session(replace(session, started=started))
                await self._claim_anew(job)
                return
            try:
                await self._bursts.wait()
            finally:  # whatever happens: this is paid
                id = self._accounting.session(question, session)
                self._answers[id] = session
                await self._run_checks((id,), self._alone(question), (session,))
                self._judge_soon((id,), self._wanting(question, all_answers=True), session)
        self._one_less(question)

    def _wanting(self, question: str, *, all_answers: bool) -> list[Cell]:
        """The cells of a question that want all its answers, or those that want only some."""
        most = self._most[question]
        return [cell for cell in self._alone(question) if (cell.wanted == most) == all_answers]

    def _alone(self, question: str) -> list[Cell]:
        """The cells that judge the answers to a question one by one."""
        return [cell for cell in self._sharing_cells[question] if len(cell.questions) == 1]

    async def _judge_together(self) -> None:
        """Judge what lacked the answers to the questions that have all of them now."""
        answered, self._answered = self._answered, set()
        cells = {
            (cell.file, cell.index, cell.prompt, cell.candidate.id): cell
            for question in answered
            for cell in self._sharing_cells[question]
            if len(cell.questions) > 1 and self._left.keys().isdisjoint(cell.questions)
        }
        due: dict[Subject, list[Cell]] = {}
        for cell in cells.values():
            answers = {
                question: [
                    *self.plan.sessions.get(question, ()),
                    *(sample.id for sample in sorted(self.outcome.sessions.get(question, ()))),
                ]
                for question in dict.fromkeys(cell.questions)
            }
            for subject in cell.subjects(answers):
                if any(missing_judgements(cell, self._votes(subject_of(subject)))):
                    due.setdefault(subject, []).append(cell)
        if not due:
            return
        # Another run that works on the same answers may judge them, too.
        self.sharing.look_for_votes({subject_of(one): self._votes(subject_of(one)) for one in due})
        owed: list[PlannedJudgement] = []
        left = iter(due)
        for subject, wanting in due.items():
            if not self.material.has(subject, None):
                await self._accounting.writer.settled()
                self.material.read_ahead(chain([(subject, None)], ((one, None) for one in left)))
            sessions = self.material.sessions(subject)
            await self._run_checks(subject, wanting, sessions)
            owed += self._check_and_find(subject, wanting, sessions)
        if owed:
            await self._accounting.writer.settled()
            self._put(await self._claim(list(owed)))

    def _judge_oldest(self, question: str) -> None:
        """Judge for the cells that want fewer answers: which are the oldest is known only now."""
        new = sorted(self.outcome.sessions.get(question, ()), key=lambda sample: sample[:2])
        have = len(self.plan.sessions.get(question, ()))
        for cell in self._wanting(question, all_answers=False):
            for sample in new[: max(cell.wanted - have, 0)]:
                self._judge_soon((sample.id,), [cell], self._answers[sample.id])
        for sample in new:
            del self._answers[sample.id]

    # --- judging

    def _votes(self, subject: str) -> list[Vote]:
        return [*self.plan.votes.get(subject, ()), *self.outcome.votes.get(subject, ())]

    def _newest_vote(self, subject: str) -> int:
        return max((vote.started for vote in self._votes(subject)), default=0)

    async def _run_checks(
        self, ids: Subject, cells: Iterable[Cell], sessions: tuple[Session, ...]
    ) -> None:
        """Make the checks that a subject lacks and that may take time, without holding up others.

        What they look at has been paid, so it is stored before.
        """
        wanted = {
            cell.case.evaluation
            for cell in cells
            if cell.case.evaluation is not None and self._may_take_time(cell, sessions)
        }
        if not wanted:
            return
        await self._accounting.writer.settled()
        votes = self._votes(subject_of(ids))
        judged = {vote.evaluation for vote in votes if vote.evaluator == CHECKS}
        for evaluation in sorted(wanted - judged - self.plan.blocked):
            if not self.is_halted and not self._judging.is_prepared(ids, evaluation):
                try:
                    await self._judging.prepare(ids, sessions, evaluation)
                except NotRunError as error:
                    if not self.is_halted:
                        self._accounting.not_run(error, subject_of(ids), evaluation)

    def _may_take_time(self, cell: Cell, sessions: Sequence[Session]) -> bool:
        """Whether the checks of a cell run Python, or may take time for another reason."""
        evaluation = cell.case.evaluation
        return bool(cell.case.code) or (
            evaluation is not None and self._judging.may_take_time(evaluation, sessions)
        )

    def _check_and_find(
        self, ids: Subject, cells: Iterable[Cell], sessions: tuple[Session, ...]
    ) -> list[PlannedJudgement]:
        """Make the checks that a subject lacks; returns what then is left to models, each once."""
        subject = subject_of(ids)
        owed: list[PlannedJudgement] = []
        for cell in cells:
            if cell.case.evaluation is None:
                continue
            missing = list(missing_judgements(cell, self._votes(subject)))
            if missing and missing[0][0] is None:
                must_be_prepared = cell.case.code or (
                    self.is_halted and self._may_take_time(cell, sessions)
                )
                if must_be_prepared and not self._judging.is_prepared(ids, cell.case.evaluation):
                    continue  # it is not trusted, or everything ends: the next run judges it
                newest = self._newest_vote(subject)
                found = self._judging.check(ids, sessions, cell.case.evaluation, newest)
                self._accounting.evaluation(found)
                missing = list(missing_judgements(cell, self._votes(subject)))
                self._look_at_verdict(cell)
            for judge, count in missing:
                one = PlannedJudgement(cell, ids, judge, count)
                if (key := key_of(one)) not in self._owed:
                    self._owed.add(key)
                    owed.append(one)
        return owed

    def _look_at_verdict(self, cell: Cell) -> None:
        """Halt everything if the verdict on a cell asks for it."""
        if self._stops_at and self._stops_at(cell, self.plan, self.outcome):
            self.outcome.stopped_at_failure = True
            self.halt()

    def _judge_soon(self, ids: Subject, cells: Iterable[Cell], *sessions: Session) -> None:
        """Make a new subject's checks, and queue its judgements: nobody else knows it yet."""
        for judgement in self._check_and_find(ids, cells, sessions):
            key = key_of(judgement)
            self._accounting.writer.take(key)
            self._left[key] = judgement.count
            lane = self._lanes[self._account_of(judgement)]
            keeps = len(sessions) == 1 and lane.backlog < _KEPT_IN_MEMORY
            kept = sessions[0] if keeps else None
            self._note_waiting(judgement)
            lane.put([_Job(judgement, self.sharing.look_at_clock(), kept)] * judgement.count)

    async def _judge(self, item: PlannedJudgement, session: Session | None) -> None:
        subject = item.subject
        assert subject
        assert item.judge
        assert item.cell.case.evaluation
        key, judge = key_of(item), item.judge
        endpoint = self.judges[judge.evaluator]
        try:
            sessions = await self._read(item, session)
            evaluation = await self._judging.consult(
                judge,
                item.sessions,
                sessions,
                item.cell.case.evaluation,
                self._newest_vote(subject),
            )
        except CallFailed as failed:
            self._failed[key] += 1
            self._accounting.failure(
                failed,
                subject=subject,
                evaluation=item.cell.case.evaluation,
                evaluator=judge.evaluator,
                model=endpoint.model.id,
            )
        except NotRunError as error:
            self._failed[key] += 1
            self._accounting.not_run(error, subject, item.cell.case.evaluation, judge.evaluator)
        else:
            self._accounting.evaluation(evaluation)
            self._look_at_verdict(item.cell)
        self._one_less(key)

    def _note_waiting(self, item: PlannedAsk | PlannedJudgement) -> None:
        """Note that a judgement will be made, so that others are read with it."""
        if isinstance(item, PlannedJudgement):
            waiting = self._waiting.setdefault(self._account_of(item), {})
            waiting[item.sessions, item.cell.case.evaluation] = None

    async def _read(self, item: PlannedJudgement, session: Session | None) -> tuple[Session, ...]:
        """The sessions of a judgement; what the next ones are about is read with them."""
        waiting = self._waiting.get(self._account_of(item), {})
        judged = (item.sessions, item.cell.case.evaluation)
        if session is None and not self.material.has(*judged):
            await self._accounting.writer.settled()
            if not self.material.has(*judged):
                self.material.read_ahead(chain([judged], waiting))
        waiting.pop(judged, None)
        return (session,) if session else self.material.sessions(item.sessions)


async def _see_through(work: Awaitable[T]) -> T:
    """Wait for what must not be left half done, however often the waiting is cancelled."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
