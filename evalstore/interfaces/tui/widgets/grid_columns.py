"""The columns of a table, and which of them there is room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evalstore.core.display import columns_of
from evalstore.interfaces.tui.widgets.column_names import ShortenedNames

GAP = 2
"""Blanks between two columns."""
MARGIN = 2
"""Characters in front of the first, for the mark."""

_READABLE = 7
"""So many characters of a text that is cut say something."""
NEVER = 1 << 30
"""As `Column.since`: it is not drawn, but saved with the others."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title and its width in characters."""

    title: str
    width: int
    right: bool = False
    """Whether numbers stand on its right side."""
    grows: bool = False
    """Whether it takes its share of the room that is left."""
    most: int = 0
    """The width of what is in it, to which it grows, with the title; 0: it grows without end."""
    since: int = 0
    """The width of the table from which on there is room for it."""
    picks: bool = False
    """Whether the cursor can be in it, as one among several."""
    is_empty: bool = False
    """Whether no row has anything in it: then it is seen only when the cursor is in it."""
    least: int = 0
    """How narrow it may become for others to have room; 0: as wide as it is."""
    is_saved: bool = True
    """Whether it is saved with the table."""
    names: ShortenedNames | None = None
    """What is in it, when it is names: one that is too long keeps what distinguishes it."""
    heads: tuple[str, ...] = ()
    """Texts of one line or two for the top in place of the title, the one that says most first.

    The same number of them is shown above all columns: the first for which there is room, else the
    last, of which the first line is then cut.
    """
    head_names: ShortenedNames | None = None
    """What is in the first lines of heads: one that is too long keeps what distinguishes it."""


class VisibleColumns(NamedTuple):
    """What can be seen of the columns."""

    shown: tuple[int, ...]
    """Their numbers."""
    columns: tuple[Column, ...]
    """These, as wide as they are drawn; `‹` and `›` say that there are more at that side."""
    first: int
    """The first that can be seen of those that can be picked."""

    @property
    def head_lines(self) -> int:
        """Return how many lines the titles take."""
        return 2 if any("\n" in column.title for column in self.columns) else 1

    def title(self, number: int, line: int) -> str:
        """Return a line of the title of a column; empty if the column cannot be seen."""
        if number not in self.shown:
            return ""
        lines = self.columns[self.shown.index(number)].title.split("\n")
        return lines[line] if line < len(lines) else ""

    def column_at(self, x: int) -> int | None:
        """Return the number of the column that is drawn at an offset."""
        end = MARGIN
        for number, column in zip(self.shown, self.columns, strict=True):
            end += column.width + GAP
            if MARGIN <= x < end:
                return number
        return None


def fit_columns(columns: Sequence[Column], width: int, picked: int, first: int) -> VisibleColumns:
    """Share a width among the columns; of those that can be picked `picked` is always seen.

    `first` is the column that was seen first: it stays so as far as that is possible.
    """
    fixed = [n for n, column in enumerate(columns) if column.since <= width and not column.picks]
    every = [n for n, column in enumerate(columns) if column.picks]
    at = every[picked] if picked < len(every) else None
    picks = [n for n in every if n == at or not columns[n].is_empty]
    picked = picks.index(at) if at is not None else 0
    made = {n: replace(columns[n], width=_narrow(columns[n])) for n in (*fixed, *picks)}
    fixed = _cut_to(fixed, made, width - (made[at].width + GAP if at is not None else 0))
    room = width - MARGIN + GAP - sum(made[n].width + GAP for n in fixed)
    fits, taken = 0, 0
    for n in picks:
        taken += made[n].width + GAP
        fits += taken <= room
    fits = max(1, fits)
    first = max(0, min(first, picked, len(picks) - fits))
    first = max(first, min(picked - fits + 1, len(picks) - fits))
    seen = picks[first : first + fits]
    shown = sorted([*fixed, *seen])
    room = max(0, room - sum(made[n].width + GAP for n in seen))
    names = [n for n in shown if columns[n].grows and columns[n].most]
    room = _share(room, names, columns, made, width)  # they are worth more than titles
    both = 2 if len(seen) == 1 else 1  # that one may have columns on both sides
    marks = dict.fromkeys(seen, 2 * both * (len(seen) < len(picks)))
    level, room = _widen_for_heads(room, shown, made, marks)
    _share(room, [n for n in shown if n not in names], columns, made, width)
    for n in shown:
        left = "‹ " if first and n == seen[0] else ""
        right = " ›" if first + fits < len(picks) and n == seen[-1] else ""
        made[n] = replace(made[n], title=_cut_head(made[n], level, left, right))
    return VisibleColumns(tuple(shown), tuple(made[n] for n in shown), first)


def _cut_to(numbers: list[int], made: dict[int, Column], width: int) -> list[int]:
    """Return the columns for which there is room when the widest texts are cut, not numbers."""
    shown = list(numbers)
    while shown and (
        over := max(0, MARGIN - GAP + sum(made[n].width + GAP for n in shown) - width)
    ):
        texts = [n for n in shown if not made[n].right] or shown
        widest = max(texts, key=lambda n: made[n].width)
        cut = min(over, made[widest].width - (_READABLE if len(shown) > 1 else 1))
        if cut > 0:
            made[widest] = replace(made[widest], width=made[widest].width - cut)
        elif len(shown) > 1:
            shown.pop()
        else:
            break
    return shown


def full_width(columns: Sequence[Column]) -> int:
    """Return the width in which nothing of the columns is cut; that of some has no limit."""
    widths = [
        max(_wide(column, NEVER), max(map(_columns_of_head, column.heads), default=0))
        for column in columns
        if column.since < NEVER and not column.is_empty
    ]
    return MARGIN - GAP + sum(width + GAP for width in widths)


def _share(
    room: int, among: Sequence[int], columns: Sequence[Column], made: dict[int, Column], width: int
) -> int:
    """Widen these columns by the same number, each at most to its need; returns what is left."""
    missing = {n: max(0, _wide(columns[n], width) - made[n].width) for n in among}
    share = room
    while sum(min(number, share) for number in missing.values()) > room:
        share -= 1
    room -= sum(min(number, share) for number in missing.values())
    for n in among:
        more = min(missing[n], share + room * columns[n].grows)
        room -= max(0, more - share)
        made[n] = replace(made[n], width=made[n].width + more)
    return room


def _widen_for_heads(
    room: int, shown: Sequence[int], made: dict[int, Column], reserved: Mapping[int, int]
) -> tuple[int, int]:
    """Widen columns for the first of their heads that fit; returns its number and the room left.

    If none fit it is that of the last, and no column is widened.
    """
    headed = [n for n in shown if made[n].heads]
    levels = max((len(made[n].heads) for n in headed), default=1)
    for level in range(levels):
        missing = {
            n: max(0, _columns_of_head(_head(made[n], level), reserved.get(n, 0)) - made[n].width)
            for n in headed
        }
        if sum(missing.values()) <= room:
            made |= {n: replace(made[n], width=made[n].width + missing[n]) for n in headed}
            return level, room - sum(missing.values())
    return levels - 1, room


def _head(column: Column, level: int) -> str:
    """Return the text for the top; a column with fewer of them is headed by its last one."""
    return column.heads[min(level, len(column.heads) - 1)] if column.heads else column.title


def _columns_of_head(head: str, reserved: int = 0) -> int:
    """Return the width of a head; `reserved` is for signs in its first line."""
    first, *others = map(columns_of, head.split("\n"))
    return max([first + reserved, *others])


def _cut_head(column: Column, level: int, left: str, right: str) -> str:
    """Return the head of a column, with its first line cut to the width between two signs."""
    first, *others = _head(column, level).split("\n")
    room = max(0, column.width - len(left) - len(right))
    if column.head_names and columns_of(first) > room:
        first = column.head_names.shorten(first, room)
    elif right:
        first = first[:room]
    return "\n".join([f"{left}{first}{right}", *others])


def _narrow(column: Column) -> int:
    """Return the least width of a column."""
    width = column.least or column.width
    return min(width, _wide(column, width)) if column.grows else width


def _wide(column: Column, room: int) -> int:
    """Return the greatest useful width of a column; one without a limit takes the `room`."""
    if not column.grows:
        return column.width
    return max(column.most, len(column.title)) if column.most else room
