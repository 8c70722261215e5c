"""Reports the progress of a run to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evalstore.core.progress import ProgressListener


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run."""

    asks: int = 0
    """Answers to get."""
    judgements: int = 0
    """Judgements to make, as planned."""
    asked: int = 0
    judged: int = 0
    failed: int = 0
    """Calls that failed."""
    usd: float = 0.0
    """The known cost of the calls so far."""
    note: str = ""
    """Something the user should read now; or empty."""


class CallbackListener(ProgressListener):
    """Calls a function with the progress of a run; never confirms a price.

    An exception of the function interrupts the run, and is kept in `error`.
    """

    def __init__(self, callback: Callable[[Progress], object]) -> None:
        self._callback = callback
        self._progress = Progress()
        self._interrupt: Callable[[], None] | None = None
        self.error: Exception | None = None

    def start(self, asks: int, judgements: int) -> None:
        """Report the numbers of the plan."""
        self._send(replace(self._progress, asks=asks, judgements=judgements))

    def advance(self, kind: str, count: int) -> None:
        """Report that `count` more calls are `asked`, `judged` or `failed`."""
        previous = getattr(self._progress, kind)
        self._send(replace(self._progress, **{kind: previous + count}))

    def note(self, message: str) -> None:
        """Report a message to the user."""
        self._send(self._progress, message)

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Keep the function that stops the run."""
        self._interrupt = stop
        if self.error is not None:
            stop()

    def _send(self, progress: Progress, note: str = "") -> None:
        self._progress = replace(progress, usd=self.usd)
        if self.error is not None:
            return
        try:
            self._callback(replace(self._progress, note=note))
        except Exception as error:  # noqa: BLE001 - raised again when the run is recorded
            self.error = error
            if self._interrupt is not None:
                self._interrupt()
