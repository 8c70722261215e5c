"""The opinion of a judge: asked for in a form that its server takes, and twice at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from evalstore.execution.model_calls import CallFailed, Endpoint
from evalstore.judging.reply_formats import ReplyForm, Verdicts, tell
from evalstore.judging.reply_parser import Unreadable
from evalstore.judging.structured_output import Mode, ReplyModes, in_mode
from evalstore.judging.verdict_reply import JudgeReply, ask_again
from evalstore.providers.kinds import SCRIPTED
from evalstore.values import Reply, Request


class _Unread(NamedTuple):
    """A reply that could not be read, and why."""

    reply: Reply
    reason: str


class JudgeCaller:
    """Asks the judges of one execution."""

    def __init__(self, ask: Callable[[Endpoint, Request], Awaitable[Reply]]) -> None:
        """`ask` makes a call with its retries; it raises `CallFailed`."""
        self._ask = ask
        self._modes = ReplyModes()

    async def get(
        self,
        endpoint: Endpoint,
        request: Request,
        spent: list[Reply],
        code: str,
        form: ReplyForm | None = None,
    ) -> JudgeReply:
        """What a judge says; raises `CallFailed`. Each reply is put into `spent`.

        A judge that is not held to the schema of a verdict must repeat `code`, which no other
        text holds. A judge whose reply cannot be read is told why and asked once more. If
        that does not help, the verdict is `undecided`, or what the form makes of it, but never
        a pass.
        """
        form = form or Verdicts()
        unread: _Unread | None = None
        for _ in range(2):
            mode, reply = await self._reply(endpoint, request, code, form, unread)
            spent.append(reply)
            try:
                if not isinstance(
                    form, Verdicts
                ):  # what finds a choice or a score may take a moment
                    return await asyncio.to_thread(form.read, reply)
                return form.read(reply, _demanded(code, mode))
            except Unreadable as unreadable:
                opinion = form.give_up(reply, unreadable.reason)
                unread = _Unread(reply, unreadable.reason)
                if not unreadable.is_structured and not _is_scripted(endpoint):
                    self._modes.distrust(_model(endpoint, form), mode)
        return opinion

    async def _reply(
        self,
        endpoint: Endpoint,
        request: Request,
        code: str,
        form: ReplyForm,
        unread: _Unread | None,
    ) -> tuple[Mode, Reply]:
        model = _model(endpoint, form)
        structured = endpoint.structured or _is_scripted(endpoint)
        while True:
            mode = self._modes.mode(model, structured=structured, strictest=form.strictest)
            try:
                return mode, await self._ask(endpoint, _as_asked(request, mode, code, form, unread))
            except CallFailed as failed:
                if not self._modes.step_down(model, mode, failed.error):
                    raise


def _model(endpoint: Endpoint, form: ReplyForm) -> tuple[str, str, Mode]:
    """What is learnt of a model is about its code and the form that is wanted."""
    return endpoint.model.id, endpoint.version.code, form.strictest


def _is_scripted(endpoint: Endpoint) -> bool:
    """Whether the whole reply is what a script says: no server, and nobody to persuade."""
    return endpoint.version.provider == SCRIPTED


def _demanded(code: str, mode: Mode) -> str | None:
    """The code that a reply must have; none where the server holds the judge to a schema."""
    return None if mode == "schema" else code


def _as_asked(
    request: Request, mode: Mode, code: str, form: ReplyForm, unread: _Unread | None
) -> Request:
    """The request in this form, with what the judge is told of it at the very end."""
    demanded = _demanded(code, mode)
    asked = replace(request, messages=tell(request.messages, form.words(demanded)))
    if unread is not None:
        asked = ask_again(asked, unread.reply, unread.reason, form.again(demanded))
    return in_mode(asked, mode)
