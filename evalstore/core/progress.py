"""Listeners to the progress of a run. This module imports nothing slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from evalstore.core.values import VERDICTS


class ProgressListener:
    """Ignores all progress; subclasses override the methods that they need."""

    usd = 0.0
    """The known cost of the calls so far."""
    is_priced = True
    """Whether the cost of every call is known."""

    verdicts: Mapping[str, int] = MappingProxyType({})
    """How many new judgements have each verdict."""

    def start(self, asks: int, judgements: int) -> None:
        """Report the numbers of the plan."""

    def advance(self, kind: str, count: int) -> None:
        """Report that `count` more calls are `asked`, `judged` or `failed`."""

    def judged(self, verdict: str) -> None:
        """Report the verdict of a new judgement; `advance` follows."""
        self.verdicts = {**self.verdicts, verdict: self.verdicts.get(verdict, 0) + 1}

    @property
    def verdict_counts(self) -> Mapping[str, int]:
        """Return how many new judgements have each verdict, in the order of verdicts."""
        return {word: self.verdicts[word] for word in VERDICTS if word in self.verdicts}

    def spent(self, usd: float | None, tokens: int) -> None:
        """Report the cost of a call in USD, None if unknown, and its tokens."""
        self.usd += usd or 0.0
        self.is_priced = self.is_priced and usd is not None

    def note(self, message: str) -> None:
        """Report a message to the user."""

    def warn(self, message: str) -> None:
        """Report a warning that is shown even if the user wants to see less."""

    def agrees(self, question: str) -> bool | None:
        """Return whether the user confirms; None without a terminal."""
        return None

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Receive a function that stops the run, as Ctrl-C does; any thread may call it.

        After the first call, calls in flight may finish; the second ends everything at once.
        """

    def stop(self) -> None:
        """Report the end of the run."""
