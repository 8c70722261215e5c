"""How far a run has come, told to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evalstore.operations.progress import ProgressListener


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come."""

    asks: int = 0
    """Answers to get."""
    judgements: int = 0
    """Judgements to make, as far as the plan knew."""
    asked: int = 0
    judged: int = 0
    failed: int = 0
    """Calls that failed."""
    usd: float = 0.0
    """What the calls have cost, as far as it is known."""
    note: str = ""
    """Something the user should read now; or empty."""


class CallbackListener(ProgressListener):
    """Tells a function how far a run has come; it never agrees to a price.

    An error of the function stops the run as an interruption does; `error` has it then.
    """

    def __init__(self, tell: Callable[[Progress], object]) -> None:
        self._tell = tell
        self._progress = Progress()
        self._interrupt: Callable[[], None] | None = None
        self.error: Exception | None = None

    def start(self, asks: int, judgements: int) -> None:
        """The plan is known."""
        self._send(replace(self._progress, asks=asks, judgements=judgements))

    def advance(self, what: str, count: int) -> None:
        """So many more are `asked`, `judged` or `failed`."""
        known = getattr(self._progress, what)
        self._send(replace(self._progress, **{what: known + count}))

    def note(self, message: str) -> None:
        """Something the user should read now."""
        self._send(self._progress, message)

    def interruptible(self, stop: Callable[[], None]) -> None:
        """`stop` ends the run from now on."""
        self._interrupt = stop
        if self.error is not None:
            stop()

    def _send(self, progress: Progress, note: str = "") -> None:
        self._progress = replace(progress, usd=self.usd)
        if self.error is not None:
            return
        try:
            self._tell(replace(self._progress, note=note))
        except Exception as error:  # noqa: BLE001 - raised again when the run is recorded
            self.error = error
            if self._interrupt is not None:
                self._interrupt()
