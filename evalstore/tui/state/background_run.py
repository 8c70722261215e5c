"""Listens to a run in another thread, and can stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalstore.operations.progress import ProgressListener

if TYPE_CHECKING:
    from evalstore.errors import EvalstoreError
    from evalstore.operations.views.interactive_run import PlanPreview, RunEnd, RunRequest


class BackgroundRun(ProgressListener):
    """Counts what a run in another thread does, and can stop it."""

    def __init__(self, intent: RunRequest, planned: PlanPreview) -> None:
        self.intent = intent
        self.planned = planned
        self.totals = {"asked": 0, "judged": 0}
        self.done = {"asked": 0, "judged": 0, "failed": 0}
        self.notes: list[str] = []
        self.is_planned = False
        self.stops = 0
        """How often it was told to stop."""
        self.ended: RunEnd | None = None
        self.problem: EvalstoreError | None = None
        self.is_over = False
        self._began = time.monotonic()
        self._stop: Callable[[], None] | None = None
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def progress(self) -> tuple[int, int]:
        """How many answers and judgements are done or have failed, and of how many."""
        return sum(self.done.values()), sum(self.totals.values())

    def start(self, asks: int, judgements: int) -> None:
        """The plan is known."""
        self.totals = {"asked": asks, "judged": judgements}
        self.is_planned = True

    def advance(self, what: str, count: int) -> None:
        """Move on."""
        self.done[what] += count

    def note(self, message: str) -> None:
        """Keep what the user should read."""
        self.notes.append(message)

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Take what stops the run; it may be wanted already."""
        with self._lock:
            self._stop = stop
            for _ in range(self.stops):
                stop()

    def interrupt(self) -> None:
        """Stop the run: what is in flight may finish, unless it is said twice."""
        with self._lock:
            self.stops += 1
            if self._stop:
                self._stop()
