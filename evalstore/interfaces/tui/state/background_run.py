"""The run in another thread: its progress, its end, and how it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.core.progress import ProgressListener

if TYPE_CHECKING:
    from evalstore.core.errors import EvalstoreError
    from evalstore.runs.interactive_run import RunEnd, RunRequest
    from evalstore.runs.run import PlanPreview


@dataclass(frozen=True)
class RunProgress:
    """How far a run was at one moment."""

    is_planned: bool
    is_over: bool
    totals: Mapping[str, int]
    """How many answers are asked for and how many are judged."""
    done: Mapping[str, int]
    """How many of each are done, and how many calls have failed."""
    verdicts: Mapping[str, int]
    """How many new judgements have each verdict, in the order of verdicts."""
    usd: float
    is_priced: bool
    is_simulated: bool
    """Whether its costs are simulated."""
    seconds: float
    notes: Sequence[str]
    stops: int
    """How often the user has asked to stop it."""

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many answers and judgements are done or have failed, and of how many."""
        return sum(self.done.values()), sum(self.totals.values())


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
        self.shown = self.progress
        """How far it was when screens were last drawn: all of them show the same moment."""

    @property
    def seconds(self) -> float:
        """Return the seconds since it started."""
        return time.monotonic() - self._started

    @property
    def progress(self) -> RunProgress:
        """Return how far it is."""
        return RunProgress(
            is_planned=self.is_planned,
            is_over=self.is_over,
            totals=self.totals,
            done=dict(self.done),
            verdicts=self.verdict_counts,
            usd=self.usd,
            is_priced=self.is_priced,
            is_simulated=self.preview.status.is_simulated,
            seconds=self.seconds,
            notes=tuple(self.notes),
            stops=self.stops,
        )

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
