"""A question to a session: the conversation with a candidate, as it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.execution.model_calls import CallFailed, Calls, Door, Rim
from evalstore.execution.requests import next_request
from evalstore.planning.cells import limit_of
from evalstore.providers.base import ProviderError
from evalstore.values import RECORDED, Cost, Question, Reply, Session
from evalstore.workspace.model_files import provider_options

if TYPE_CHECKING:
    from evalstore.execution.accounting import Ledger
    from evalstore.execution.requests import Material
    from evalstore.planning.plan import Ask


class Asking:
    """Holds the conversations of one execution; `doors` are by candidate."""

    def __init__(
        self,
        doors: Mapping[str, Door],
        material: Material,
        calls: Calls,
        ledger: Ledger,
        rim: Rim,
    ) -> None:
        self._doors = doors
        self._material = material
        self._calls = calls
        self._ledger = ledger
        self._rim = rim

    async def hold(self, ask: Ask, newest: int) -> Session:
        """Hold the conversation of a question; raises `CallFailed`.

        `newest` is when the newest stored session of the question started.
        """
        cell, question = ask.cell, ask.question
        if cell.case.recorded:
            return self._take_recorded(question, newest)
        door = self._doors[cell.candidate.id]
        limit = limit_of(cell)
        request, test = self._material.ask(
            question, door.version.code, limit, provider_options(door.version)
        )
        # Never older than a stored session, whatever the clock says: the oldest ones count.
        started = max(self._rim.now(), newest + 1)
        replies: list[Reply] = []
        costs: list[Cost | None] = []
        is_last = False
        while not is_last:
            turn, is_last = next_request(request, replies)
            reply = await self._calls.ask(door, turn)
            costs.append(self._ledger.spend(door, reply))
            replies.append(replace(reply, text=None if reply.text is None else reply.text.strip()))
        if test.schema:
            _require_json(reply)
        return Session(
            question=question,
            turns=tuple(replies),
            started=started,
            nonce=self._rim.nonce(),
            cost=_sum(costs),
            limit=limit if any(reply.is_cut for reply in replies) else None,
        )

    def _take_recorded(self, question: Question, newest: int) -> Session:
        """The session of answers that a file brings itself: nobody is called."""
        answers = self._material.content("model", question.model)["options"]["answers"]
        return Session(
            question=question,
            turns=tuple(Reply(answer) for answer in answers),
            started=max(self._rim.now(), newest + 1),
            nonce=self._rim.nonce(),
            origin=RECORDED,
        )


def _sum(costs: list[Cost | None]) -> Cost | None:
    """What all turns cost together; None when nobody knows of one of them."""
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
