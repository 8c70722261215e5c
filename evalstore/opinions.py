"""The opinion of a judge: asked for in a form that its server takes, and twice at most."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from evalstore.calls import CallFailed, Door
from evalstore.judge import Opinion, Unreadable, ask_again
from evalstore.reply_forms import ReplyForm, Verdicts
from evalstore.reply_modes import ReplyModes, in_mode
from evalstore.values import Reply, Request


class Opinions:
    """Asks the judges of one execution."""

    def __init__(self, ask: Callable[[Door, Request], Awaitable[Reply]]) -> None:
        """`ask` makes a call with its retries; it raises `CallFailed`."""
        self._ask = ask
        self._modes = ReplyModes()

    async def get(
        self, door: Door, request: Request, spent: list[Reply], form: ReplyForm | None = None
    ) -> Opinion:
        """What a judge says; raises `CallFailed`. Each reply is put into `spent`.

        A judge whose reply cannot be read is told why and asked once more. If that does not
        help, the verdict is `undecided`, or what the form makes of it, but never a pass.
        """
        form = form or Verdicts()
        for _ in range(2):
            reply = await self._reply(door, request, form)
            spent.append(reply)
            try:
                return form.read(reply)
            except Unreadable as unreadable:
                opinion = form.give_up(reply, unreadable.reason)
                request = ask_again(request, reply, unreadable.reason, form.again)
        return opinion

    async def _reply(self, door: Door, request: Request, form: ReplyForm) -> Reply:
        model = (door.model.id, door.version.code, form.strictest)
        while True:
            mode = self._modes.mode(model, structured=door.structured, strictest=form.strictest)
            try:
                return await self._ask(door, in_mode(request, mode))
            except CallFailed as failed:
                if not self._modes.step_down(model, mode, failed.error):
                    raise
