"""Connections whose statements end on the server when nobody waits for them any more."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

import psycopg

from evalstore.store.wanted import is_unwanted, may_end

T = TypeVar("T")
_AGAIN_SECONDS = 1.0
"""A request to end a statement may come before it: then it is made again."""
_ANSWER_SECONDS = 5.0
"""How long a server may take to accept the request."""


class CancellingConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that looks ten times a second whether its statement is still wanted."""

    was_told = False
    """Whether the server was told to end a statement."""

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        """Return what the server answers; `QueryCanceled` if it was told to end the statement."""
        return super().wait(self._watched(gen) if may_end() else gen, *arguments, **options)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Pass on what a generator of psycopg waits for; it is told when nothing has come."""
        told = -_AGAIN_SECONDS
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and monotonic() - told > _AGAIN_SECONDS and is_unwanted():
                    told, self.was_told = monotonic(), True
                    with suppress(psycopg.Error):  # the statement goes on until it is asked again
                        self.cancel_safe(timeout=_ANSWER_SECONDS)
                state = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def was_told_to_end(raw: psycopg.Connection[Any]) -> bool:
    """Return whether the server was told to end a statement, which may also end the next one."""
    return isinstance(raw, CancellingConnection) and raw.was_told
