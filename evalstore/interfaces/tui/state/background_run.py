"""The run in another thread: its progress, its end, and how it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from evalstore.core.progress import ProgressListener

if TYPE_CHECKING:
    from evalstore.core.errors import EvalstoreError
    from evalstore.runs.interactive_run import RunEnd, RunRequest
    from evalstore.runs.run import PlanPreview


class BackgroundRun(ProgressListener):
    """Counts the answers and judgements of a run in another thread, and can stop it."""

    def __init__(self, request: RunRequest, preview: PlanPreview) -> None:
        self.request = request
        self.preview = preview
        self.totals = {"asked": 0, "judged": 0}
        self.done = {"asked": 0, "judged": 0, "failed": 0}
        self.notes: list[str] = []
        self.is_planned = False
        self.stops = 0
        """How often the user has asked to stop it."""
        self.end: RunEnd | None = None
        self.problem: EvalstoreError | None = None
        self.is_over = False
        self._started = time.monotonic()
        self._stop: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self.shown = self.copy()
        """How far it was when screens were last drawn: all of them show the same moment."""

    @property
    def seconds(self) -> float:
        """Return the seconds since it started."""
        return time.monotonic() - self._started

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many answers and judgements are done or have failed, and of how many."""
        return sum(self.done.values()), sum(self.totals.values())

    def copy(self) -> BackgroundRun:
        """Return how far it is: a copy that the run does not change."""
        copied = copy(self)
        vars(copied).pop("shown", None)  # else each copy would keep the one before
        copied.done, copied.notes = dict(self.done), list(self.notes)
        return copied

    def start(self, asks: int, judgements: int) -> None:
        """Take the totals of the plan."""
        self.totals = {"asked": asks, "judged": judgements}
        self.is_planned = True

    def advance(self, kind: str, count: int) -> None:
        """Count finished calls."""
        self.done[kind] += count

    def note(self, message: str) -> None:
        """Keep a message for the user."""
        self.notes.append(message)

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Take the function that stops the run; call it if the user has asked for that already."""
        with self._lock:
            self._stop = stop
            for _ in range(self.stops):
                stop()

    def interrupt(self) -> None:
        """Stop the run: calls in flight may finish; a second time, at once."""
        with self._lock:
            self.stops += 1
            if self._stop:
                self._stop()
