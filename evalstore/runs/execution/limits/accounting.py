"""Counts and prices the results of an execution, and hands them to the writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalstore.core.errors import NotRunError
from evalstore.core.hashing import subject_of
from evalstore.core.values import RECORDED, Cost, Evaluation, Failure, Reply, Sample, Session, Vote
from evalstore.planning.participants import LOCAL
from evalstore.planning.plan import CHECKS
from evalstore.runs.execution.execution_counts import ExecutionCounts, ModelSpending
from evalstore.runs.execution.model_calls import (
    HALTED,
    OVER_BUDGET,
    CallFailed,
    Endpoint,
    RunEnvironment,
)
from evalstore.runs.execution.writer import Writer
from evalstore.store import Store

NOT_RUN = "not run"
"""The kind of failure of checks that could not be run in this environment."""


class Accounting:
    """Keeps the outcome of one execution, and its writer."""

    def __init__(self, store: Store, environment: RunEnvironment, runner: str) -> None:
        self.outcome = ExecutionCounts()
        self.writer = Writer(store, runner)
        self._environment = environment

    def add_session(self, question: str, session: Session) -> str:
        """Store an answer to a question; returns the session's id."""
        id = self.writer.put_session(session)
        sample = Sample(session.started, id, session.limit)
        self.outcome.sessions.setdefault(question, []).append(sample)
        if session.cost:
            self.outcome.costs[id] = session.cost.usd
        if session.origin == RECORDED:
            self.outcome.recorded += 1
        else:
            self.outcome.asked += 1
            self._environment.listener.advance("asked", 1)
        return id

    def add_evaluation(self, evaluation: Evaluation) -> None:
        """Store a judgement."""
        id = self.writer.put_evaluation(evaluation)
        vote = Vote(
            evaluation.started,
            id,
            evaluation.evaluation,
            evaluation.evaluator,
            evaluation.verdict,
            evaluation.score,
        )
        self.outcome.votes.setdefault(subject_of(evaluation.sessions), []).append(vote)
        if evaluation.cost:
            self.outcome.costs[id] = evaluation.cost.usd
        self.outcome.judged += 1
        self.outcome.judged_by_checks += evaluation.evaluator == CHECKS
        self._environment.listener.judged(evaluation.verdict)
        self._environment.listener.advance("judged", 1)

    def add_failure(self, call: CallFailed, *, model: str, **place: str) -> None:
        """Count a failure, and log it if a call was made at all.

        `place` are fields of a `Failure`. A call that was not made because the run ended is not a
        failure.
        """
        error = call.error
        if error.kind == OVER_BUDGET:
            self.outcome.over_budget = True
        if error.kind in (OVER_BUDGET, HALTED):
            return
        self._count_failure(f"{model}: {error.message}", is_permanent=error.is_permanent)
        if call.attempts:
            tried = {"status": error.status, "attempts": call.attempts, "model": model}
            self._log(error.kind, error.message, **tried, **place)

    def add_checks_not_run(
        self, error: NotRunError, subject: str, evaluation: str, evaluator: str = CHECKS
    ) -> None:
        """Count and log that an evaluation version could not be computed for a subject.

        Another run meets the same, unless something is installed or allowed.
        """
        self._count_failure(str(error), is_permanent=True)
        place = {"subject": subject, "evaluation": evaluation, "evaluator": evaluator}
        self._log(NOT_RUN, str(error), **place)

    def _log(self, kind: str, message: str, **fields: Any) -> None:
        at, nonce = self._environment.now(), self._environment.nonce()
        place = {"question": None, "subject": None, "evaluator": None}
        failure = Failure(kind=kind, message=message, at=at, nonce=nonce, **place | fields)
        self.writer.put_failure(failure)

    def _count_failure(self, message: str, *, is_permanent: bool) -> None:
        self.outcome.permanent_failures += is_permanent
        self.outcome.failed += 1
        self.outcome.failures[message] = self.outcome.failures.get(message, 0) + 1
        self._environment.listener.advance("failed", 1)

    def add_cost(self, endpoint: Endpoint, reply: Reply) -> Cost | None:
        """Add the cost of a candidate's reply and return it; None if it is not known."""
        cost = self._price(endpoint, reply, "candidate")
        self.outcome.cost += cost.usd if cost else 0.0
        return cost

    def add_judge_cost(self, endpoint: Endpoint, replies: Sequence[Reply]) -> Cost | None:
        """Add the cost of a judge's replies and return it; None if no cost is known."""
        costs = [self._price(endpoint, reply, "evaluator") for reply in replies]
        known = [cost for cost in costs if cost]
        if not known:
            return None
        total = Cost(round(sum(cost.usd for cost in known), 10), known[0].price)
        self.outcome.judge_cost += total.usd
        return total

    def _price(self, endpoint: Endpoint, reply: Reply, role: str) -> Cost | None:
        spending = self.outcome.spending.setdefault((endpoint.model.id, role), ModelSpending())
        usage = reply.usage
        spending.calls += 1
        spending.input_tokens += usage.input_tokens or 0
        spending.output_tokens += usage.output_tokens or 0
        spending.cached_tokens += usage.cached_tokens or 0
        if reply.cost is not None:
            spending.cost += reply.cost
            return Cost(round(reply.cost, 10), {"source": "reported"})
        if endpoint.price is None or not endpoint.price.covers(usage):
            self.outcome.priced = False
            spending.unpriced += 1
            return None
        spending.simulated += endpoint.price.is_simulated
        spending.local += endpoint.price.source == LOCAL
        cost = endpoint.price.cost(usage, reply.latency)
        spending.cost += cost.usd
        return cost if cost.usd or endpoint.price.source != "scripted" else None
