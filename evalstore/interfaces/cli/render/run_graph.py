"""The lanes of `log --graph`: one for each machine, or person, whose runs are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_MOST = 8
"""Lanes beside each other; further writers share the last."""


class GraphPrefix(NamedTuple):
    """What stands before the lines of a run."""

    first: str
    """Before its first line, with `*` in its lane."""
    other: str
    """Before its other lines, and the line between it and the next run."""


def draw_lanes(writers: Sequence[str]) -> list[GraphPrefix]:
    """Return the prefixes of runs in their order; `writers` are those of the runs."""
    lane_of = {writer: min(lane, _MOST - 1) for lane, writer in enumerate(dict.fromkeys(writers))}
    places = [lane_of[writer] for writer in writers]
    last = {lane: number for number, lane in enumerate(places)}
    count = max(places, default=0) + 1
    begun: set[int] = set()
    prefixes = []
    for number, place in enumerate(places):
        begun.add(place)
        running = [lane in begun and last[lane] > number for lane in range(count)]
        signs = ["|" if is_running else " " for is_running in running]
        first = [*signs[:place], "*", *signs[place + 1 :]]
        prefixes.append(GraphPrefix(" ".join(first) + "  ", " ".join(signs) + "  "))
    return prefixes
