"""A plan -> sessions and evaluations: calls within bounds, one writer.

Every answer is stored as it arrives, and judged as soon as it is there. A failure is
logged and leaves its answer missing, so the next run asks for just that. The clock and
randomness come in from outside.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evalstore.assemble import Material
from evalstore.calls import CallFailed, Calls, Door, Limits, Rim
from evalstore.catalogue import provider_options
from evalstore.judge import VERDICT_SCHEMA, Opinion, Unreadable, judge_by_checks, read_opinion
from evalstore.ledger import Ledger, Outcome, sum_usage
from evalstore.plan import CHECKS, Cell, Judge, Plan, limit_of, missing_judgements
from evalstore.providers.base import ProviderError
from evalstore.values import (
    Evaluation,
    Reply,
    Request,
    Session,
)

if TYPE_CHECKING:
    from evalstore.store import Store

__all__ = ["Door", "Executor", "Limits", "Outcome", "Rim"]

_CUT = ("length", "max_tokens")
"""What providers call an answer that the token limit cut off."""

T = TypeVar("T")


class _AskJob(NamedTuple):
    cell: Cell


class _JudgeJob(NamedTuple):
    session: str
    evaluation: str
    judge: Judge | None
    answer: Reply | None


class Executor:
    """One execution of a plan."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        candidates: Mapping[str, Door],
        judges: Mapping[str, Door],
        limits: Limits,
        rim: Rim,
    ) -> None:
        """`candidates` are by model version id, `judges` by evaluator id."""
        self.store = store
        self.plan = plan
        self.candidates = candidates
        self.judges = judges
        self.limits = limits
        self.rim = rim
        self.material = Material(store)
        self._ledger = Ledger(store, rim)
        self.outcome = self._ledger.outcome
        self._calls = Calls(limits, rim)
        self._judging: deque[_JudgeJob] = deque()
        self._asking = (_AskJob(ask.cell) for ask in plan.asks for _ in range(ask.count))
        self._coming = {ask.cell.question_id: ask.count for ask in plan.asks}
        """Question id -> how many answers are still to come."""
        self._answers: dict[str, Reply] = {}
        """Session id -> its answer, while other answers to its question are to come."""
        self._queued: set[tuple[str, str, str]] = set()
        self._sharing: dict[str, list[Cell]] = {}
        """Question id -> the cells it answers."""
        for cell in plan.cells:
            self._sharing.setdefault(cell.question_id, []).append(cell)
        self._judged_for: dict[str, list[Cell]] = {}
        """Session id -> the cells it is judged for."""
        self._busy = 0
        self._waiting: set[asyncio.Future[None]] = set()

    # --- the loop

    async def run(self) -> Outcome:
        """Do everything that can be done; raises `StoreError` when it cannot be stored."""
        for cell in self.plan.cells:
            for session in self.plan.sessions.get(cell.question_id, ())[: cell.wanted]:
                self._queue(session, [cell], None)
        writer = asyncio.create_task(self._ledger.writer.run())
        workers = [asyncio.create_task(self._work()) for _ in range(self.limits.concurrency)]
        pending: set[asyncio.Task[None]] = {writer, *workers}
        try:
            while any(not worker.done() for worker in workers):
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for worker in workers:
                worker.cancel()
            await _see_through(asyncio.gather(*workers, return_exceptions=True))
            try:
                await _see_through(self._ledger.writer.finish(writer))
            finally:
                doors = (*self.candidates.values(), *self.judges.values())
                for provider in {id(door.provider): door.provider for door in doors}.values():
                    await provider.close()
        return self.outcome

    def halt(self) -> None:
        """Start nothing more; what is in flight may finish."""
        self.outcome.interrupted = True
        self._calls.halt()
        self._wake_all()

    def _take(self) -> _AskJob | _JudgeJob | None:
        if self._calls.is_halted:
            return None
        return self._judging.popleft() if self._judging else next(self._asking, None)

    async def _work(self) -> None:
        while True:
            job = self._take()
            if job is None:
                if self._busy == 0 or self._calls.is_halted:
                    self._wake_all()
                    return
                waiter = asyncio.get_running_loop().create_future()
                self._waiting.add(waiter)
                await waiter
                continue
            self._busy += 1
            try:
                if isinstance(job, _AskJob):
                    await self._ask(job.cell)
                else:
                    await self._judge(job)
                self._wake_all()
                # No call is made while what the last one brought could still be lost.
                await self._ledger.writer.settled()
            finally:
                self._busy -= 1
                self._wake_all()

    def _wake_all(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    def _queue(self, session: str, cells: Iterable[Cell], answer: Reply | None) -> None:
        """Queue the judgements that a session lacks, each once however many cells want it."""
        votes = [*self.plan.votes.get(session, ()), *self.outcome.votes.get(session, ())]
        known = self._judged_for.setdefault(session, [])
        for cell in cells:
            if cell.case.evaluation is None:
                continue
            known.append(cell)
            for judge, count in missing_judgements(cell, votes):
                key = (session, cell.case.evaluation, judge.evaluator if judge else CHECKS)
                if key not in self._queued:
                    self._queued.add(key)
                    self._judging.extend(
                        [_JudgeJob(session, cell.case.evaluation, judge, answer)] * count
                    )

    # --- asking

    async def _ask(self, cell: Cell) -> None:
        question = cell.question_id
        try:
            session = await self._hold(cell)
        except CallFailed as failed:
            model = self.candidates[cell.question.model].model.id
            self._ledger.failure(failed, question=question, model=model)
        else:
            id = self._ledger.session(question, session)
            self._answers[id] = session.answer
            self._queue(id, self._wanting(question, all_answers=True), session.answer)
        self._coming[question] -= 1
        if self._coming[question] == 0:
            self._queue_oldest(question)

    def _wanting(self, question: str, *, all_answers: bool) -> Iterator[Cell]:
        """The cells of a question that want all its answers, or those that want only some."""
        most = max(cell.wanted for cell in self._sharing[question])
        return (cell for cell in self._sharing[question] if (cell.wanted == most) == all_answers)

    def _queue_oldest(self, question: str) -> None:
        """Judge for the cells that want fewer answers: which are the oldest is known only now."""
        new = sorted(self.outcome.sessions.get(question, ()), key=lambda sample: sample[:2])
        have = len(self.plan.sessions.get(question, ()))
        for cell in self._wanting(question, all_answers=False):
            for sample in new[: max(cell.wanted - have, 0)]:
                self._queue(sample.id, [cell], self._answers[sample.id])
        for sample in new:
            del self._answers[sample.id]

    async def _hold(self, cell: Cell) -> Session:
        """Hold the conversation of a question; raises `CallFailed`."""
        door = self.candidates[cell.question.model]
        limit = limit_of(cell)
        request, test = self.material.ask(
            cell.question, door.version.code, limit, provider_options(door.version)
        )
        # Never older than a stored session, whatever the clock says: the oldest ones count.
        started = max(self.rim.now(), self.plan.newest.get(cell.question_id, 0) + 1)
        reply = await self._calls.ask(door, request)
        cost = self._ledger.spend(door, reply)
        if test.schema:
            _require_json(reply)
        return Session(
            question=cell.question,
            turns=(replace(reply, text=reply.text.strip() if reply.text is not None else None),),
            started=started,
            nonce=self.rim.nonce(),
            cost=cost,
            limit=limit if reply.finish_reason in _CUT else None,
        )

    # --- judging

    async def _judge(self, job: _JudgeJob) -> None:
        answer = job.answer
        if answer is None:
            answer = self.store.load_sessions([job.session])[job.session].answer
        if job.judge is None:
            self._check(job, answer)
            return
        started = self.rim.now()
        door = self.judges[job.judge.evaluator]
        messages = self.material.judge(job.judge.prompt, job.evaluation, answer, self.rim.nonce())
        request = Request(
            code=door.version.code,
            messages=messages,
            schema=VERDICT_SCHEMA if door.structured else None,
            json_mode=not door.structured,
            temperature=door.temperature,
            max_output_tokens=self.limits.judge_tokens,
            provider_options=provider_options(door.version),
        )
        spent: list[Reply] = []
        try:
            opinion = await self._opinion(door, request, spent)
        except CallFailed as failed:
            self._ledger.spend_judging(door, spent)
            self._ledger.failure(
                failed, subject=job.session, evaluator=job.judge.evaluator, model=door.model.id
            )
            return
        self._ledger.evaluation(
            Evaluation(
                sessions=(job.session,),
                evaluation=job.evaluation,
                evaluator=job.judge.evaluator,
                verdict=opinion.verdict,
                started=started,
                nonce=self.rim.nonce(),
                score=opinion.score,
                label=opinion.label,
                feedback=opinion.feedback,
                reasoning=opinion.reasoning,
                usage=sum_usage(spent),
                cost=self._ledger.spend_judging(door, spent),
                latency=sum(reply.latency for reply in spent),
            )
        )

    async def _opinion(self, door: Door, request: Request, spent: list[Reply]) -> Opinion:
        """What a judge says; it is asked once more when its reply cannot be read."""
        for _ in range(2):
            reply = await self._calls.ask(door, request)
            spent.append(reply)
            try:
                return read_opinion(reply)
            except Unreadable as unreadable:
                opinion = Opinion("undecided", feedback=unreadable.reason)
        return opinion

    def _check(self, job: _JudgeJob, answer: Reply) -> None:
        checks = self.material.content("evaluation", job.evaluation).get("checks", [])
        schemas = {
            check["schema"]: self.material.schema(check["schema"])
            for check in checks
            if "schema" in check
        }
        opinion, results = judge_by_checks(checks, answer, schemas)
        self._ledger.evaluation(
            Evaluation(
                sessions=(job.session,),
                evaluation=job.evaluation,
                evaluator=CHECKS,
                verdict=opinion.verdict,
                started=self.rim.now(),
                nonce=self.rim.nonce(),
                feedback=opinion.feedback,
                checks=results,
            )
        )
        self._queue(job.session, tuple(self._judged_for[job.session]), answer)


async def _see_through(work: Awaitable[T]) -> T:
    """Wait for what must not be left half done, however often the waiting is cancelled."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


def _require_json(reply: Reply) -> None:
    """A structured answer that is no JSON at all is a failure of the call, not an answer.

    One that was cut off or refused is an answer; one that is JSON but breaks the schema
    is an answer that fails its check.
    """
    if reply.refusal or reply.finish_reason in (*_CUT, "content_filter"):
        return
    try:
        json.loads(reply.text or "")
    except (ValueError, RecursionError) as error:
        problem = ProviderError(
            "malformed", f"the model did not answer with JSON as its schema asks: {error}"
        )
        raise CallFailed(problem, 1) from error
