"""An event loop with a virtual clock, in which programs sleep, lose their network and are killed.

Time passes only when nothing else is left to do, so hours take seconds, and every run with the
same seed is the same. The programs are simulated by the contexts of their tasks: what a killed
one would do next is not done any more, not even what it would do to clean up.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVarTuple

_Arguments = TypeVarTuple("_Arguments")
RUNNING, ASLEEP, KILLED = "running", "asleep", "killed"
Delay = Callable[[], float]

_program: ContextVar[Program] = ContextVar("_program")


@dataclass(eq=False)
class Program:
    """A simulated program."""

    loop: VirtualLoop
    name: str
    state: str = RUNNING
    offline_until: float = 0.0
    """When its network is back."""
    _left: list[Any] = field(default_factory=list)
    """What it would have done since it fell asleep, or was killed."""

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do work in this program."""
        context = copy_context()
        context.run(_program.set, self)
        return self.loop.create_task(work, context=context)

    def kill(self) -> None:
        """Do nothing any more."""
        self.state = KILLED

    def sleep(self, seconds: float) -> None:
        """Do nothing for a while; then do what would have been done meanwhile."""
        if self.state == RUNNING:
            self.state = ASLEEP
            self.loop.call_later(seconds, self._wake)

    def _wake(self) -> None:
        if self.state != ASLEEP:
            return
        self.state = RUNNING
        left, self._left = self._left, []
        for context, callback, arguments in left:
            self.loop.call_soon(callback, *arguments, context=context)

    def step(self, context: Context, callback: Callable[..., Any], *arguments: Any) -> None:
        """Call this now if the program is running, else when it is again."""
        if self.state == RUNNING:
            callback(*arguments)
        else:
            # What a killed one refers to is kept, as its `finally` clauses must not run.
            self._left.append((context, callback, arguments))


class _NoFiles(selectors.SelectSelector):
    """Waits for nothing: the virtual clock is put forward instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("all simulated programs wait for each other")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at 0.

    What is handed to threads takes `delay()` seconds, in the middle of which it is done.
    """

    def __init__(self, delay: Delay) -> None:
        self._virtual = _NoFiles()
        super().__init__(self._virtual)
        self._delay = delay
        self.handed_over = 0
        """How often something was handed to a thread."""

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.now

    def call_soon(
        self,
        callback: Callable[[*_Arguments], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback in the program of its context."""
        context = context or copy_context()
        work, given = _in_program(context, callback, args)
        return super().call_soon(work, *given, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Arguments], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback in the program of its context, at a time."""
        context = context or copy_context()
        work, given = _in_program(context, callback, args)
        return super().call_at(when, work, *given, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Do this in the middle of a delay, and after the network of the program is back."""
        done: asyncio.Future[Any] = self.create_future()
        program = _program.get(None)
        self.handed_over += 1
        online = max(program.offline_until - self.time(), 0.0) if program else 0.0

        def work() -> None:
            try:
                finish, value = done.set_result, func(*args)
            except Exception as error:  # noqa: BLE001 - the waiting task gets it
                finish, value = done.set_exception, error
            self.call_later(self._delay() / 2, _unless_done, done, finish, value)

        self.call_later(online + self._delay() / 2, work)
        return done


def _in_program(
    context: Context, callback: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    program = context.get(_program)
    if program is None:
        return callback, arguments
    return program.step, (context, callback, *arguments)


def _unless_done(done: asyncio.Future[Any], finish: Callable[..., Any], value: Any) -> None:
    if not done.done():
        finish(value)
