"""The lanes of `log --graph`: one for each machine, or person, whose runs are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_MOST = 8
"""Lanes beside each other; further ones share the last."""


class GraphPrefix(NamedTuple):
    """What stands before the lines of a run."""

    first: str
    """Before its first line, with `*` in its lane."""
    other: str
    """Before its other lines, and the line between it and the next run."""


def draw_lanes(writers: Sequence[str]) -> list[GraphPrefix]:
    """Return the prefixes of runs in their order; `writers` are those of the runs."""
    last = {writer: number for number, writer in enumerate(writers)}
    lanes: list[str | None] = []
    """The writer in each lane; None: the lane is free."""
    prefixes = []
    for number, writer in enumerate(writers):
        if writer not in lanes:
            _enter(lanes, writer)
        place = lanes.index(writer) if writer in lanes else _MOST - 1
        signs = ["|" if lane is not None else " " for lane in lanes]
        signs[place] = "*"
        for at, lane in enumerate(lanes):
            if lane is not None and last[lane] == number:
                lanes[at] = None
        rest = ["|" if lane is not None else " " for lane in lanes]
        prefixes.append(GraphPrefix(" ".join(signs), " ".join(rest)))
    width = max((len(prefix.first) for prefix in prefixes), default=0)
    return [GraphPrefix(*(f"{part:{width}}  " for part in prefix)) for prefix in prefixes]


def _enter(lanes: list[str | None], writer: str) -> None:
    """Give a writer the first free lane, if there is one."""
    if None in lanes:
        lanes[lanes.index(None)] = writer
    elif len(lanes) < _MOST:
        lanes.append(writer)
