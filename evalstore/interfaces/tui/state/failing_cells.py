"""The way from one result that did not pass to the next, by line and then by candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class CellPlace(NamedTuple):
    """A line of a list, and a candidate of it by number."""

    line: int
    candidate: int


def next_cell(
    count: int, failing: Callable[[int], Sequence[int]], start: CellPlace, by: int
) -> CellPlace | None:
    """Find the next result that did not pass in so many lines, around the end; None without one.

    `failing` returns the candidates of a line that did not pass, by number, in order. By 1 those
    behind the start come first, by -1 those before it; the start itself comes last.
    """
    for step in range(count + 1 if count else 0):
        line = (start.line + by * step) % count
        for candidate in failing(line)[::by]:
            is_ahead = (candidate - start.candidate) * by > 0
            if 0 < step < count or is_ahead == (step == 0):
                return CellPlace(line, candidate)
    return None
