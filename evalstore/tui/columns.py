"""The columns of a table, and which of them there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

GAP = 2
"""Blanks between two columns."""
MARGIN = 2
"""Characters in front of the first, for the mark."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title and its width in characters."""

    title: str
    width: int
    right: bool = False
    """Whether numbers stand on its right side."""
    grows: bool = False
    """Whether it takes its share of the room that is left."""
    since: int = 0
    """The width of the table from which on there is room for it."""
    picks: bool = False
    """Whether the cursor can be in it, as one among several."""
    least: int = 0
    """How narrow it may become for others to have room; 0: as wide as it is."""


class Laid(NamedTuple):
    """What can be seen of the columns."""

    shown: tuple[int, ...]
    """Their numbers."""
    columns: tuple[Column, ...]
    """These, as wide as they are drawn; `‹` and `›` say that there are more at that side."""
    first: int
    """The first that can be seen of those that can be picked."""


def lay_out(columns: Sequence[Column], width: int, picked: int, first: int) -> Laid:
    """Share a width among the columns; of those that can be picked `picked` is always seen.

    `first` is the one that was seen first: it stays so as far as that is possible.
    """
    fixed = [n for n, one in enumerate(columns) if one.since <= width and not one.picks]
    picks = [n for n, one in enumerate(columns) if one.picks]
    room = width - MARGIN + GAP - sum(columns[n].width + GAP for n in fixed)
    made = {n: columns[n] for n in (*fixed, *picks)}
    if sum(columns[n].width + GAP for n in picks) > room and picks:
        each = max(0, room // len(picks) - GAP)
        for n in picks:
            one = columns[n]
            made[n] = replace(one, width=min(one.width, max(one.least or one.width, each)))
    fits, taken = 0, 0
    for n in picks:
        taken += made[n].width + GAP
        fits += taken <= room
    fits = max(1, fits)
    first = max(0, min(first, picked, len(picks) - fits))
    first = max(first, min(picked - fits + 1, len(picks) - fits))
    seen = picks[first : first + fits]
    if seen and first:
        made[seen[0]] = replace(made[seen[0]], title=f"‹ {made[seen[0]].title}")
    if seen and first + fits < len(picks):
        title = made[seen[-1]].title[: max(0, made[seen[-1]].width - 2)]
        made[seen[-1]] = replace(made[seen[-1]], title=f"{title} ›")
    shown = sorted([*fixed, *seen])
    room -= sum(made[n].width + GAP for n in seen)
    growing = [n for n in shown if made[n].grows]
    for place, n in enumerate(growing):
        share = max(0, room) * (place + 1) // len(growing) - max(0, room) * place // len(growing)
        made[n] = replace(made[n], width=made[n].width + share)
    return Laid(tuple(shown), tuple(made[n] for n in shown), first)
