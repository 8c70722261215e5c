"""Listeners to the progress of a run. This module imports nothing slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class ProgressListener:
    """Ignores all progress; subclasses override the methods that they need."""

    usd = 0.0
    """The known cost of the calls so far."""
    is_priced = True
    """Whether the cost of every call is known."""

    def start(self, asks: int, judgements: int) -> None:
        """Report the numbers of the plan."""

    def advance(self, kind: str, count: int) -> None:
        """Report that `count` more calls are `asked`, `judged` or `failed`."""

    def spent(self, usd: float | None, tokens: int) -> None:
        """Report the cost of a call in USD, None if unknown, and its tokens."""
        self.usd += usd or 0.0
        self.is_priced = self.is_priced and usd is not None

    def note(self, message: str) -> None:
        """Report a message to the user."""

    def agrees(self, question: str) -> bool:
        """Return whether the user confirms; False without a terminal."""
        return False

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Receive a function that stops the run, as Ctrl-C does; any thread may call it.

        After the first call, calls in flight may finish; the second ends everything at once.
        """

    def stop(self) -> None:
        """Report the end of the run."""
