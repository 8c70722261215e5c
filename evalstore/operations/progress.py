"""Listeners to the progress of a run. Light: imports nothing slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ProgressListener:
    """Ignores all progress; subclasses override what they show."""

    usd = 0.0
    """What the calls have cost up to now, as far as it is known."""
    is_priced = True
    """Whether the cost of every call is known."""

    def start(self, asks: int, judgements: int) -> None:
        """The plan is known."""

    def advance(self, what: str, count: int) -> None:
        """So many more are `asked`, `judged` or `failed`."""

    def spent(self, usd: float | None, tokens: int) -> None:
        """A call has cost this many USD, None if unknown, and used this many tokens."""
        self.usd += usd or 0.0
        self.is_priced = self.is_priced and usd is not None

    def note(self, message: str) -> None:
        """Something the user should read now."""

    def agrees(self, question: str) -> bool:
        """Whether the user wants to go on; False when there is nobody to ask."""
        return False

    def interruptible(self, stop: Callable[[], None]) -> None:
        """From now on `stop`, called from any thread, does what Ctrl-C does.

        The first time what is in flight may finish; the second time everything ends at once.
        """

    def stop(self) -> None:
        """Nothing more will come."""
