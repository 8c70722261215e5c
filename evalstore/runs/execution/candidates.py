"""Holds the conversation with a candidate, and turns a question into a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.checks.judging.structured_output import Mode, ReplyModes
from evalstore.core.results import Cost, Session
from evalstore.core.values import RECORDED, Question, Reply, Request
from evalstore.planning.cells.cells import limit_of
from evalstore.runs.execution.model_calls import CallFailed, Endpoint, ModelCaller, RunEnvironment
from evalstore.runs.execution.requests import build_request, next_request
from evalstore.runs.execution.thoughts import without_thoughts
from evalstore.workspace.model_files import provider_options

if TYPE_CHECKING:
    from evalstore.planning.plan import PlannedAsk
    from evalstore.runs.execution.content_cache import ContentCache
    from evalstore.runs.execution.limits.accounting import Accounting


class CandidateCaller:
    """Holds the conversations of one execution; `endpoints` are by display id of the candidate."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        contents: ContentCache,
        calls: ModelCaller,
        accounting: Accounting,
        environment: RunEnvironment,
    ) -> None:
        self._endpoints = endpoints
        self._contents = contents
        self._calls = calls
        self._accounting = accounting
        self._environment = environment
        self._modes = ReplyModes()

    async def ask(self, ask: PlannedAsk, newest: int) -> Session:
        """Hold the conversation of a question and return its session; raises `CallFailed`.

        `newest` is when the newest stored session of the question started.
        """
        cell, question = ask.cell, ask.question
        if cell.case.recorded:
            return self._take_recorded(question, newest)
        endpoint = self._endpoints[cell.candidate.id]
        limit = limit_of(cell)
        options = provider_options(endpoint.version)
        request = build_request(self._contents, question, endpoint.version.code, limit, options)
        # The oldest sessions count, so a new one is never older, even if the clock was set back.
        started = max(self._environment.now(), newest + 1)
        replies: list[Reply] = []
        costs: list[Cost | None] = []
        is_last = False
        while not is_last:
            turn, is_last = next_request(request, replies)
            reply = await self._reply(endpoint, turn)
            costs.append(self._accounting.add_cost(endpoint, reply))
            if reply.text is not None:
                keeps = (endpoint.version.options or {}).get("keepThoughts")
                text = reply.text if keeps else without_thoughts(reply.text)
                reply = replace(reply, text=text.strip())
            replies.append(reply)
        return Session(
            question=question,
            turns=tuple(replies),
            started=started,
            nonce=self._environment.nonce(),
            cost=_sum_costs(costs),
            limit=limit if any(reply.is_cut for reply in replies) else None,
        )

    async def _reply(self, endpoint: Endpoint, turn: Request) -> Reply:
        """Return the reply to a turn, without the form that its server refuses to hold it to."""
        strictest: Mode = "schema" if turn.schema is not None else "json"
        if strictest == "json" and not turn.json_mode:
            return await self._calls.ask(endpoint, turn)
        model = (*endpoint.key, strictest)
        while True:
            mode = self._modes.mode(model, structured=endpoint.structured, strictest=strictest)
            attempt = turn
            if mode != strictest:
                attempt = replace(turn, schema=None, json_mode=mode == "json")
            try:
                return await self._calls.ask(endpoint, attempt)
            except CallFailed as failed:
                if not self._modes.step_down(model, mode, failed.error):
                    raise

    def _take_recorded(self, question: Question, newest: int) -> Session:
        """Return the session of answers that a test file contains, without calling a model."""
        answers = self._contents.content("model", question.model)["options"]["answers"]
        return Session(
            question=question,
            turns=tuple(Reply(answer) for answer in answers),
            started=max(self._environment.now(), newest + 1),
            nonce=self._environment.nonce(),
            origin=RECORDED,
        )


def _sum_costs(costs: list[Cost | None]) -> Cost | None:
    """Return the sum of the costs of all turns; None if one of them is not known."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    if len(known) == 1:
        return known[0]
    return Cost(round(sum(cost.usd for cost in known), 10), known[0].price)
