"""The part of many cases that the browser keeps in memory: the first that it wants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

MANY = 200_000
"""Results; where there are more, not all cases are kept."""
KEPT = 10_000
"""The most lines that are kept then."""
AT_ONCE = 4_096
"""Lines that are looked at together; more than a part of a long file has."""


@dataclass(frozen=True, slots=True)
class CaseWindow:
    """Says which cases of many are wanted; where there are fewer, all are kept."""

    wants: Callable[[Any], Sequence[Any]] | None = None
    """Returns those rows of some `Cases` that are wanted, in their order; None: all are."""
    report: Callable[[int, int], bool] = lambda _done, _total: True
    """Called with the number of lines that were looked at, and of all; returns whether to go on."""


@dataclass(slots=True)
class KeptRows:
    """Collects the lines of cases; with a window at most `KEPT` of those that it wants."""

    window: CaseWindow | None
    total: int
    """How many cases there are."""
    rows: list[Any] = field(default_factory=list)
    is_cut: bool = False
    """Whether there may be more that are wanted."""
    looked_at: int = 0

    @property
    def is_whole(self) -> bool:
        """Return whether all cases are kept."""
        return self.window is None

    def add(self, some: Any) -> bool:
        """Add the next rows, as `Cases`; returns whether more are needed."""
        if self.window is None:
            self.rows += some.rows
            return True
        self.rows += self.window.wants(some) if self.window.wants else some.rows
        self.looked_at += len(some.rows)
        if len(self.rows) >= KEPT or not self.window.report(self.looked_at, self.total):
            del self.rows[KEPT:]
            self.is_cut = True
        return not self.is_cut


def place_window(places: Collection[tuple[str, str]]) -> CaseWindow:
    """Return the window that wants the cases at these places: files with their rows."""
    return CaseWindow(
        lambda cases: [row for row in cases.rows if (row.file, row.row) in places],
    )
