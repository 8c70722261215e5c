"""A plan -> sessions and evaluations: calls within bounds, retries, one writer.

Every answer is stored as it arrives, and judged as soon as it is there. A failure is
logged and leaves its answer missing, so the next run asks for just that. The clock and
randomness come in from outside.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evalstore import hashing
from evalstore.assemble import Material
from evalstore.catalogue import Model, provider_options
from evalstore.checks.implied import first_violation
from evalstore.judge import VERDICT_SCHEMA, Opinion, Unreadable, judge_by_checks, read_opinion
from evalstore.plan import CHECKS, Cell, Judge, Plan, limit_of, missing_judgements
from evalstore.pricing import Price
from evalstore.providers.base import Provider, ProviderError
from evalstore.store import Store
from evalstore.values import (
    Cost,
    Evaluation,
    Failure,
    ModelVersion,
    Reply,
    Request,
    Sample,
    Session,
    Usage,
    Vote,
)

_BATCH_SECONDS = 0.02
"""How long the writer gathers before it commits."""
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 30.0
_LONGEST_RETRY_AFTER = 300.0
_GRACE_SECONDS = 10.0
"""How long calls in flight may finish after an interruption."""


@dataclass(frozen=True, slots=True)
class Door:
    """A model as it is called: its version, its provider, its price."""

    model: Model
    version: ModelVersion
    provider: Provider
    price: Price | None
    temperature: float | None = None
    structured: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of an execution."""

    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 2
    judge_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Rim:
    """What comes from outside: the clock, randomness, who watches."""

    now: Callable[[], int]
    """Microseconds since 1970, UTC."""
    nonce: Callable[[], str]
    progress: Callable[[str, int], None] = lambda _what, _count: None
    """Called with `asked`, `judged` or `failed` and how many."""
    warn: Callable[[str], None] = lambda _message: None


@dataclass
class Outcome:
    """What an execution did."""

    asked: int = 0
    judged: int = 0
    failed: int = 0
    """Answers and judgements that could not be had."""
    failures: dict[str, int] = field(default_factory=dict)
    """Message -> how often."""
    cost: float = 0.0
    judge_cost: float = 0.0
    priced: bool = True
    """Whether every call had a known price."""
    interrupted: bool = False
    sessions: dict[str, list[Sample]] = field(default_factory=dict)
    """Question id -> new sessions."""
    votes: dict[str, list[Vote]] = field(default_factory=dict)
    """Session id -> new votes."""


class _AskJob(NamedTuple):
    cell: Cell


class _JudgeJob(NamedTuple):
    cell: Cell
    session: str
    judge: Judge | None
    answer: Reply | None


class _Writer:
    """Commits what it is given, in order, in small batches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, tuple[Session, str]] = {}
        self._evaluations: dict[str, tuple[Evaluation, str]] = {}
        self._failures: list[Failure] = []
        self._wake = asyncio.Event()
        self._closing = False

    def put(
        self,
        session: Session | None = None,
        evaluation: Evaluation | None = None,
        failure: Failure | None = None,
    ) -> str:
        """Take a fact to be stored; returns its id."""
        self._wake.set()
        if session:
            id, content = hashing.identify(hashing.describe_session(session))
            self._sessions[id] = (session, content)
            return id
        if evaluation:
            id, content = hashing.identify(hashing.describe_evaluation_result(evaluation))
            self._evaluations[id] = (evaluation, content)
            return id
        if failure:
            self._failures.append(failure)
        return ""

    async def run(self) -> None:
        """Commit until closed and empty."""
        while True:
            await self._wake.wait()
            if not self._closing:
                await asyncio.sleep(_BATCH_SECONDS)
            self._wake.clear()
            batch = (self._sessions, self._evaluations, self._failures)
            if any(batch):
                self._sessions, self._evaluations, self._failures = {}, {}, []
                await asyncio.to_thread(self._store.record, *batch)
            elif self._closing:
                return
            if self._closing:
                self._wake.set()

    def close(self) -> None:
        """Commit the rest and end."""
        self._closing = True
        self._wake.set()


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
        self.outcome = Outcome()
        self._judging: deque[_JudgeJob] = deque()
        self._asking = self._ask_jobs()
        self._queued: set[tuple[str, str, str]] = set()
        self._sharing: dict[str, list[Cell]] = {}
        for cell in plan.cells:
            self._sharing.setdefault(cell.question_id, []).append(cell)
        self._stopped: dict[int, str] = {}
        """Providers' models that cannot be called any more, by door."""
        self._halted = False
        self._busy = 0
        self._waiting: set[asyncio.Future[None]] = set()

    # --- the loop

    async def run(self) -> Outcome:
        """Do everything that can be done; raises `StoreError` when it cannot be stored."""
        self._writer = _Writer(self.store)
        for cell in self.plan.cells:
            for session in self.plan.sessions.get(cell.question_id, ())[: cell.wanted]:
                self._queue(session, [cell], self.plan.votes.get(session, ()), None)
        writer = asyncio.create_task(self._writer.run())
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
            await asyncio.gather(*workers, return_exceptions=True)
            self._writer.close()
            await writer
            for door in {
                id(one.provider): one for one in (*self.candidates.values(), *self.judges.values())
            }.values():
                await door.provider.close()
        return self.outcome

    def halt(self) -> None:
        """Start nothing more; what is in flight may finish within its grace."""
        if self._halted:
            return
        self._halted = self.outcome.interrupted = True
        self._wake_all()

    def _take(self) -> _AskJob | _JudgeJob | None:
        if self._halted:
            return None
        return self._judging.popleft() if self._judging else next(self._asking, None)

    async def _work(self) -> None:
        while True:
            job = self._take()
            if job is None:
                if self._busy == 0 or self._halted:
                    self._wake_all()
                    return
                waiter = asyncio.get_running_loop().create_future()
                self._waiting.add(waiter)
                await waiter
                continue
            self._busy += 1
            try:
                if isinstance(job, _AskJob):
                    await self._ask(job)
                else:
                    await self._judge(job)
            finally:
                self._busy -= 1
                self._wake_all()

    def _wake_all(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    # --- jobs

    def _ask_jobs(self) -> Iterator[_AskJob]:
        for ask in self.plan.asks:
            for _ in range(ask.count):
                yield _AskJob(ask.cell)

    def _queue(
        self, session: str, cells: Iterable[Cell], votes: Sequence[Vote], answer: Reply | None
    ) -> None:
        """Queue the judgements that a session lacks, each once however many cells want it."""
        for cell in cells:
            if cell.case.evaluation is None:
                continue
            for judge, count in missing_judgements(cell, votes):
                key = (session, cell.case.evaluation, judge.evaluator if judge else CHECKS)
                if key not in self._queued:
                    self._queued.add(key)
                    self._judging.extend([_JudgeJob(cell, session, judge, answer)] * count)

    async def _ask(self, job: _AskJob) -> None:
        cell = job.cell
        door = self.candidates[cell.question.model]
        limit = limit_of(cell)
        request, test = self.material.ask(
            cell.question, door.version.code, limit, provider_options(door.version)
        )
        started = self.rim.now()
        try:
            reply = await self._call(door, request)
            if test.schema:
                _require_json(reply, request)
        except _CallFailed as failed:
            self._fail(failed, question=cell.question_id, model=door.model.id)
            return
        cost = self._price(door, reply)
        self.outcome.cost += cost.usd if cost else 0.0
        session = Session(
            question=cell.question,
            turns=(replace(reply, text=reply.text.strip() if reply.text is not None else None),),
            started=started,
            nonce=self.rim.nonce(),
            cost=cost,
            limit=limit if reply.finish_reason in ("length", "max_tokens") else None,
        )
        id = self._writer.put(session=session)
        self.outcome.asked += 1
        self.outcome.sessions.setdefault(cell.question_id, []).append(
            Sample(started, id, session.limit)
        )
        self.rim.progress("asked", 1)
        self._queue(id, self._sharing[cell.question_id], (), session.answer)

    async def _judge(self, job: _JudgeJob) -> None:
        answer = job.answer
        if answer is None:
            answer = self.store.load_sessions([job.session])[job.session].answer
        assert job.cell.case.evaluation is not None
        if job.judge is None:
            self._check(job, answer)
            return
        started = self.rim.now()
        door = self.judges[job.judge.evaluator]
        messages = self.material.judge(
            job.judge.prompt, job.cell.case.evaluation, answer, self.rim.nonce()
        )
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
        opinion = Opinion("undecided")
        try:
            for _ in range(2):
                reply = await self._call(door, request)
                spent.append(reply)
                try:
                    opinion = read_opinion(reply)
                    break
                except Unreadable as unreadable:
                    opinion = Opinion("undecided", feedback=unreadable.reason)
        except _CallFailed as failed:
            self._fail(
                failed, subject=job.session, evaluator=job.judge.evaluator, model=door.model.id
            )
            return
        costs = [self._price(door, reply) for reply in spent]
        known = [cost for cost in costs if cost]
        total = Cost(round(sum(cost.usd for cost in known), 10), known[0].price) if known else None
        self.outcome.judge_cost += total.usd if total else 0.0
        self._vote(
            job,
            opinion,
            started,
            usage=_sum(spent),
            cost=total,
            latency=sum(r.latency for r in spent),
        )

    def _check(self, job: _JudgeJob, answer: Reply) -> None:
        assert job.cell.case.evaluation is not None
        content = self.material.content("evaluation", job.cell.case.evaluation)
        checks = content.get("checks", [])
        schemas = {
            check["schema"]: self.material.schema(check["schema"])
            for check in checks
            if "schema" in check
        }
        opinion, results = judge_by_checks(checks, answer, schemas)
        vote = self._vote(job, opinion, self.rim.now(), checks=results)
        votes = [*self.plan.votes.get(job.session, ()), vote]
        self._queue(job.session, self._sharing[job.cell.question_id], votes, answer)

    def _vote(
        self,
        job: _JudgeJob,
        opinion: Opinion,
        started: int,
        *,
        checks: tuple[object, ...] = (),
        usage: Usage | None = None,
        cost: Cost | None = None,
        latency: float = 0.0,
    ) -> Vote:
        evaluation = Evaluation(
            sessions=(job.session,),
            evaluation=job.cell.case.evaluation or "",
            evaluator=job.judge.evaluator if job.judge else CHECKS,
            verdict=opinion.verdict,
            started=started,
            nonce=self.rim.nonce(),
            score=opinion.score,
            label=opinion.label,
            feedback=opinion.feedback,
            reasoning=opinion.reasoning,
            checks=checks,
            usage=usage or Usage(),
            cost=cost,
            latency=latency,
        )
        id = self._writer.put(evaluation=evaluation)
        vote = Vote(
            started,
            id,
            evaluation.evaluation,
            evaluation.evaluator,
            evaluation.verdict,
            evaluation.score,
        )
        self.outcome.votes.setdefault(job.session, []).append(vote)
        self.outcome.judged += 1
        self.rim.progress("judged", 1)
        return vote

    # --- calls

    async def _call(self, door: Door, request: Request) -> Reply:
        """One answer, after as many tries as are allowed; raises `_CallFailed`."""
        key = hash((door.model.id, door.version.code))
        attempts = 0
        while True:
            if key in self._stopped:
                raise _CallFailed(ProviderError("stopped", self._stopped[key]), attempts)
            attempts += 1
            try:
                return await door.provider.ask(request, timeout=self.limits.timeout)
            except ProviderError as error:
                if error.stops_model and key not in self._stopped:
                    self._stopped[key] = error.message
                    self.rim.warn(f"model '{door.model.id}' is not asked any more: {error.message}")
                if (
                    not error.retry
                    or error.stops_model
                    or attempts > self.limits.retries
                    or self._halted
                ):
                    raise _CallFailed(error, attempts) from error
                await asyncio.sleep(_delay(error, attempts))

    def _fail(
        self,
        failed: _CallFailed,
        *,
        model: str,
        question: str | None = None,
        subject: str | None = None,
        evaluator: str | None = None,
    ) -> None:
        error = failed.error
        self.outcome.failed += 1
        line = f"{model}: {error.message}"
        self.outcome.failures[line] = self.outcome.failures.get(line, 0) + 1
        self.rim.progress("failed", 1)
        if not failed.attempts:
            return
        self._writer.put(
            failure=Failure(
                question=question,
                subject=subject,
                evaluator=evaluator,
                kind=error.kind,
                message=error.message,
                at=self.rim.now(),
                nonce=self.rim.nonce(),
                status=error.status,
                attempts=failed.attempts,
                model=model,
            )
        )

    def _price(self, door: Door, reply: Reply) -> Cost | None:
        if door.price is None:
            self.outcome.priced = False
            return None
        cost = door.price.cost(reply.usage, reply.latency)
        return cost if cost.usd or door.price.source != "scripted" else None


class _CallFailed(Exception):  # noqa: N818 - it is handled, never shown by itself
    def __init__(self, error: ProviderError, attempts: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.attempts = attempts


def _delay(error: ProviderError, attempts: int) -> float:
    """Seconds until the next try: what the server asks for, else full jitter below a doubling bound."""
    if error.retry_after is not None:
        return min(max(error.retry_after, 0.0), _LONGEST_RETRY_AFTER)
    bound = min(_LONGEST_DELAY, _FIRST_DELAY * 2**attempts)
    return random.uniform(bound / 4, bound)  # noqa: S311 - jitter, no secret


def _require_json(reply: Reply, request: Request) -> None:
    """A structured answer that is no JSON at all is a failure of the call, not an answer.

    One that was cut off or refused is an answer; one that is JSON but breaks the schema
    is an answer that fails its check.
    """
    import json

    if reply.refusal or reply.finish_reason in ("length", "max_tokens", "content_filter"):
        return
    try:
        json.loads(reply.text or "")
    except ValueError as error:
        problem = ProviderError(
            "malformed", f"the model did not answer with JSON as its schema asks: {error}"
        )
        raise _CallFailed(problem, 1) from error


def _sum(replies: list[Reply]) -> Usage:
    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    return Usage(
        total([reply.usage.input_tokens for reply in replies]),
        total([reply.usage.output_tokens for reply in replies]),
        total([reply.usage.cached_tokens for reply in replies]),
        total([reply.usage.reasoning_tokens for reply in replies]),
    )
