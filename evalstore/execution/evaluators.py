"""A session to an evaluation: by the checks of an evaluation version, or by a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.checks import run_check
from evalstore.checks.answer_binding import HeldConversation
from evalstore.checks.cost import is_cheap
from evalstore.checks.evaluator import judge_by_checks, schemas_of
from evalstore.checks.limited_runner import run_within_limits
from evalstore.checks.types.judge import without_judge
from evalstore.execution.judge_calls import JudgeCaller
from evalstore.judging.reply_formats import form_of
from evalstore.planning.plan import CHECKS
from evalstore.planning.pricing import sum_usage
from evalstore.values import Evaluation, Json, Reply, Request, Session
from evalstore.workspace.model_files import provider_options

if TYPE_CHECKING:
    from evalstore.checks.evaluator import ChecksVerdict, RunCode
    from evalstore.execution.accounting import Accounting
    from evalstore.execution.model_calls import Endpoint, ModelCaller, RunEnvironment
    from evalstore.execution.python_checks import CodeChecks
    from evalstore.execution.requests import RequestBuilder
    from evalstore.planning.cells import Judge


_CODE_LENGTH = 8
"""Digits that a judge can copy without a mistake, and cannot guess."""


class EvaluatorCaller:
    """Makes the evaluations of one execution; `endpoints` are by evaluator id.

    `newest` is when the newest stored evaluation of a session started: no new one is older,
    whatever the clock says, for the oldest ones count.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        material: RequestBuilder,
        calls: ModelCaller,
        accounting: Accounting,
        environment: RunEnvironment,
        limit: int | None,
        code: CodeChecks,
    ) -> None:
        """`limit` is the token limit of a judgement; `code` runs Python checks."""
        self._code = code
        self._found_quick: tuple[str, int] | None = None
        """The evaluation version, and the characters, for which no check may take time."""
        self._made: dict[tuple[tuple[str, ...], str], ChecksVerdict] = {}
        """What checks that take time have found; taken when the evaluation is made."""
        self._endpoints = endpoints
        self._material = material
        self._opinions = JudgeCaller(calls.ask)
        self._accounting = accounting
        self._environment = environment
        self._limit = limit

    async def consult(
        self,
        judge: Judge,
        ids: tuple[str, ...],
        sessions: Sequence[Session],
        evaluation: str,
        newest: int,
    ) -> Evaluation:
        """What a model says of sessions that are judged together; raises `CallFailed`."""
        started = max(self._environment.now(), newest + 1)
        endpoint = self._endpoints[judge.evaluator]
        form = form_of(self._material.content("evaluation", evaluation).get("checks", ()))
        held = [(session.question, session.turns) for session in sessions]
        last = sessions[-1].cost
        messages = self._material.judge(
            judge.prompt,
            evaluation,
            held,
            self._environment.nonce(),
            usd=last.usd if last else None,
        )
        request = Request(
            code=endpoint.version.code,
            messages=messages,
            temperature=endpoint.temperature,
            max_output_tokens=self._limit,
            provider_options=provider_options(endpoint.version),
        )
        spent: list[Reply] = []
        code = self._environment.nonce()[-_CODE_LENGTH:]  # not that of the marks around the answers
        try:
            opinion = await self._opinions.get(endpoint, request, spent, code, form)
        finally:
            cost = self._accounting.spend_judging(endpoint, spent)
        return Evaluation(
            sessions=ids,
            evaluation=evaluation,
            evaluator=judge.evaluator,
            verdict=opinion.verdict,
            started=started,
            nonce=self._environment.nonce(),
            score=opinion.score,
            label=opinion.label,
            feedback=opinion.feedback,
            reasoning=opinion.reasoning,
            usage=sum_usage(spent),
            cost=cost,
            latency=sum(reply.latency for reply in spent),
        )

    async def prepare(
        self, ids: tuple[str, ...], sessions: Sequence[Session], evaluation: str
    ) -> None:
        """Make checks that may take time beside the event loop, for `check` to take.

        Raises `NotRunError` when they cannot be run here and now.
        """
        looked_at = self._look(sessions, evaluation)
        self._made[ids, evaluation] = await asyncio.to_thread(judge_by_checks, *looked_at)

    def is_prepared(self, ids: tuple[str, ...], evaluation: str) -> bool:
        """Whether the checks that may take time are made."""
        return (ids, evaluation) in self._made

    def may_take_time(self, evaluation: str, sessions: Sequence[Session]) -> bool:
        """Whether the checks of an evaluation version may take time on these sessions."""
        checks = self._material.content("evaluation", evaluation).get("checks", ())
        if not checks:
            return False
        size = sum([len(turn.text or "") for session in sessions for turn in session.turns])
        quick = all(self._is_quick(check, size) for check in checks)
        self._found_quick = (evaluation, size) if quick else None
        return not quick

    def _is_quick(self, check: Mapping[str, Json], size: int) -> bool:
        if "templates" in check:
            return False
        inner = check.get("checks")
        if inner is not None:
            return all(self._is_quick(one, size) for one in inner)
        schema = check.get("schema")
        schemas = {schema: self._material.schema(schema)} if isinstance(schema, str) else {}
        return is_cheap(check, size, schemas)

    def forget(self) -> None:
        """Forget what was prepared and not taken."""
        self._made.clear()

    def _look(
        self, sessions: Sequence[Session], evaluation: str
    ) -> tuple[Sequence[Json], Sequence[HeldConversation], Mapping[str, Json], RunCode | None]:
        """The checks of an evaluation version, and all that they look at."""
        content = self._material.content("evaluation", evaluation)
        checks = without_judge(content.get("checks", ()))
        run_code = self._code.prepare(checks)
        held = [
            HeldConversation(
                session.turns,
                session.cost.usd if session.cost else None,
                self._code.show(session) if run_code else (),
            )
            for session in sessions
        ]
        return checks, held, {id: self._material.schema(id) for id in schemas_of(checks)}, run_code

    def check(
        self, ids: tuple[str, ...], sessions: Sequence[Session], evaluation: str, newest: int
    ) -> Evaluation:
        """What the checks of an evaluation version say of sessions that are judged together."""
        made = self._made.pop((ids, evaluation), None)
        size = sum([len(turn.text or "") for session in sessions for turn in session.turns])
        run = run_check if self._found_quick == (evaluation, size) else run_within_limits
        checked = made or judge_by_checks(*self._look(sessions, evaluation), run)
        return Evaluation(
            sessions=ids,
            evaluation=evaluation,
            evaluator=CHECKS,
            verdict=checked.verdict,
            started=max(self._environment.now(), newest + 1),
            nonce=self._environment.nonce(),
            score=checked.score,
            feedback=checked.feedback,
            checks=checked.results,
        )
