"""Signals that end or stop the browser, and whether anything shows it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def end_at_signals(leave: Callable[[], None]) -> None:
    """Leave in order at `SIGTERM` and `SIGHUP`: the terminal restored, paid answers stored."""
    with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, another thread
        for name in ("SIGTERM", "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), leave)
        _resume_after_stops_only()


class DisplayConnection:
    """What shows the browser: a terminal, or the process that shows it on a web page.

    `SIGHUP` may be blocked or get lost when a terminal is closed. Textual then reads the end of its
    input again and again.
    """

    def __init__(self) -> None:
        self._had_terminal = _has_terminal()
        self._web_parent = os.getppid() if "TEXTUAL_DRIVER" in os.environ else None

    @property
    def is_closed(self) -> bool:
        """Return whether the terminal or the process has gone."""
        has_no_parent = self._web_parent not in (None, os.getppid())
        return has_no_parent or (self._had_terminal and not _has_terminal())


def _has_terminal() -> bool:
    try:
        return sys.__stdin__ is not None and os.isatty(sys.__stdin__.fileno())
    except (OSError, ValueError):  # closed
        return False


def _resume_after_stops_only() -> None:
    """Let the driver take the terminal again only when it has given it away before.

    A terminal that is closed sends `SIGCONT` behind `SIGHUP`, and any process may send it. Textual
    then reads the keys in a second thread, and the process does not end any more.
    """
    stops, resumes = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
    if not callable(stops) or not callable(resumes):
        return  # not in a terminal
    is_stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopped
        is_stopped = True
        stops(number, frame)

    def resume(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopped
        if is_stopped:
            is_stopped = False
            resumes(number, frame)

    signal.signal(signal.SIGTSTP, stop)
    signal.signal(signal.SIGCONT, resume)
