"""A cell on both sides of a comparison, and how it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from evalstore.core.results import Result

Change = Literal["broke", "fixed", "changed", "new", "gone", "unchanged"]
OTHER_JUDGEMENT = "another judgement"
"""The reason for another verdict on the same answer when nothing was edited."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell on both sides; one side is None for a cell that is new or gone."""

    was: Result | None
    now: Result | None

    @property
    def either(self) -> Result:
        """Return the newer result, else the older one."""
        result = self.now or self.was
        assert result is not None
        return result

    @property
    def has_same_verdict(self) -> bool:
        """Return whether both sides have a result, with the same verdict."""
        return bool(self.was and self.now and self.was.verdict == self.now.verdict)

    @property
    def is_now_pending(self) -> bool:
        """Return whether it was judged on the first side and is pending on the second."""
        return bool(self.was and self.now and self.was.verdict and self.now.is_missing)

    @property
    def is_now_undecided(self) -> bool:
        """Return whether it is undecided on the second side and was not on the first."""
        verdicts = [each and each.verdict for each in (self.was, self.now)]
        return verdicts[1] == "undecided" != verdicts[0]

    @property
    def is_pending(self) -> bool:
        """Return whether it is pending on both sides."""
        return bool(self.was and self.now and self.was.is_missing and self.now.is_missing)

    def swapped(self) -> Pair:
        """Return the pair with the sides exchanged."""
        return Pair(self.now, self.was)


def sort_pair(pair: Pair, *, answers: bool = True) -> Change:
    """Return how a pair changed; without `answers`, only the verdict counts.

    An undecided verdict neither breaks nor fixes anything.
    """
    was, now = pair.was, pair.now
    if was is None:
        return "new"
    if now is None:
        return "gone"
    if was.verdict == "pass" and now.verdict in ("fail", "error"):
        return "broke"
    if now.verdict == "pass" and was.verdict in ("fail", "error"):
        return "fixed"
    if was.verdict != now.verdict or (answers and was.sessions != now.sessions):
        return "changed"
    return "unchanged"
