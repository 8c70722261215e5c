"""Asks judges for their replies, in a format that the server supports, at most twice."""

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


class _UnreadableReply(NamedTuple):
    """A reply that could not be read, with the reason."""

    reply: Reply
    reason: str


class JudgeCaller:
    """Asks the judges of one execution."""

    def __init__(self, ask: Callable[[Endpoint, Request], Awaitable[Reply]]) -> None:
        """`ask` makes a call with its retries; it raises `CallFailed`."""
        self._ask = ask
        self._modes = ReplyModes()

    async def ask(
        self,
        endpoint: Endpoint,
        request: Request,
        replies: list[Reply],
        code: str,
        form: ReplyForm | None = None,
    ) -> JudgeReply:
        """Return the verdict of a judge, and add its replies to `replies`; raises `CallFailed`.

        A judge whose server does not enforce the schema of a reply must repeat `code`, which no
        answer can contain. If the reply cannot be read, the judge is asked once more, with the
        reason. After another unreadable reply the verdict is `undecided`, or that of the form, but
        never a pass.
        """
        form = form or Verdicts()
        previous: _UnreadableReply | None = None
        for _ in range(2):
            mode, reply = await self._reply(endpoint, request, code, form, previous)
            replies.append(reply)
            required = _required_code(code, mode, endpoint)
            try:
                if not isinstance(form, Verdicts):
                    # The pattern or the path that finds a score may take a moment.
                    return await asyncio.to_thread(form.read, reply, required)
                return form.read(reply, required)
            except Unreadable as unreadable:
                verdict = form.give_up(reply, unreadable.reason)
                previous = _UnreadableReply(reply, unreadable.reason)
                if not unreadable.is_structured and not _is_scripted(endpoint):
                    self._modes.distrust(_model(endpoint, form), mode)
        return verdict

    async def _reply(
        self,
        endpoint: Endpoint,
        request: Request,
        code: str,
        form: ReplyForm,
        previous: _UnreadableReply | None,
    ) -> tuple[Mode, Reply]:
        model = _model(endpoint, form)
        structured = endpoint.structured or _is_scripted(endpoint)
        while True:
            mode = self._modes.mode(model, structured=structured, strictest=form.strictest)
            try:
                required = _required_code(code, mode, endpoint)
                attempt = _build_attempt(request, mode, required, form, previous)
                return mode, await self._ask(endpoint, attempt)
            except CallFailed as failed:
                if not self._modes.step_down(model, mode, failed.error):
                    raise


def _model(endpoint: Endpoint, form: ReplyForm) -> tuple[str, str, Mode]:
    """Return the key of the supported formats of a model."""
    return endpoint.model.id, endpoint.version.code, form.strictest


def _is_scripted(endpoint: Endpoint) -> bool:
    """Return whether a script gives the whole reply, so that no format can be refused."""
    return endpoint.version.provider == SCRIPTED


def _required_code(code: str, mode: Mode, endpoint: Endpoint) -> str | None:
    """Return the code that a reply must repeat; None if it is held to a schema, or is a script."""
    return None if mode == "schema" or _is_scripted(endpoint) else code


def _build_attempt(
    request: Request,
    mode: Mode,
    code: str | None,
    form: ReplyForm,
    previous: _UnreadableReply | None,
) -> Request:
    """Return the request in this mode; its last message explains the format."""
    attempt = replace(request, messages=tell(request.messages, form.words(code)))
    if previous is not None:
        attempt = ask_again(attempt, previous.reply, previous.reason, form.again(code))
    return in_mode(attempt, mode, form.schema)
