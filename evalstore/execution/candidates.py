"""A question to a session: the conversation with a candidate, as it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.execution.model_calls import CallFailed, Endpoint, ModelCaller, RunEnvironment
from evalstore.execution.requests import next_request
from evalstore.planning.cells import limit_of
from evalstore.providers.base import ProviderError
from evalstore.values import RECORDED, Cost, Question, Reply, Session
from evalstore.workspace.model_files import provider_options

if TYPE_CHECKING:
    from evalstore.execution.accounting import Accounting
    from evalstore.execution.requests import RequestBuilder
    from evalstore.planning.plan import PlannedAsk


class CandidateCaller:
    """Holds the conversations of one execution; `endpoints` are by candidate."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        material: RequestBuilder,
        calls: ModelCaller,
        accounting: Accounting,
        environment: RunEnvironment,
    ) -> None:
        self._endpoints = endpoints
        self._material = material
        self._calls = calls
        self._accounting = accounting
        self._environment = environment

    async def hold(self, ask: PlannedAsk, newest: int) -> Session:
        """Hold the conversation of a question; raises `CallFailed`.

        `newest` is when the newest stored session of the question started.
        """
        cell, question = ask.cell, ask.question
        if cell.case.recorded:
            return self._take_recorded(question, newest)
        endpoint = self._endpoints[cell.candidate.id]
        limit = limit_of(cell)
        request, test = self._material.ask(
            question, endpoint.version.code, limit, provider_options(endpoint.version)
        )
        # Never older than a stored session, whatever the clock says: the oldest ones count.
        started = max(self._environment.now(), newest + 1)
        replies: list[Reply] = []
        costs: list[Cost | None] = []
        is_last = False
        while not is_last:
            turn, is_last = next_request(request, replies)
            reply = await self._calls.ask(endpoint, turn)
            costs.append(self._accounting.spend(endpoint, reply))
            replies.append(replace(reply, text=None if reply.text is None else reply.text.strip()))
        if test.schema:
            _require_json(reply)
        return Session(
            question=question,
            turns=tuple(replies),
            started=started,
            nonce=self._environment.nonce(),
            cost=_sum(costs),
            limit=limit if any(reply.is_cut for reply in replies) else None,
        )

    def _take_recorded(self, question: Question, newest: int) -> Session:
        """The session of answers that a file brings itself: nobody is called."""
        answers = self._material.content("model", question.model)["options"]["answers"]
        return Session(
            question=question,
            turns=tuple(Reply(answer) for answer in answers),
            started=max(self._environment.now(), newest + 1),
            nonce=self._environment.nonce(),
            origin=RECORDED,
        )


def _sum(costs: list[Cost | None]) -> Cost | None:
    """What all turns cost together; None if one of them is unknown."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    if len(known) == 1:
        return known[0]
    return Cost(round(sum(cost.usd for cost in known), 10), known[0].price)


def _require_json(reply: Reply) -> None:
    """A structured answer that is not JSON at all is a failure of the call, not an answer.

    One that was cut off or refused is an answer; one that is JSON but breaks the schema
    is an answer that fails its check.
    """
    if reply.refusal or reply.is_cut or reply.finish_reason == "content_filter":
        return
    try:
        json.loads(reply.text or "")
    except (ValueError, RecursionError) as error:
        problem = ProviderError(
            "malformed", f"the model did not answer with JSON as its schema asks: {error}"
        )
        raise CallFailed(problem, 1) from error
