"""The columns of a table and its cells: names that are shortened, shared widths, drawn lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from evalstore.core.display import (
    StyledSpan,
    clip,
    columns_of,
    shorten_label,
    shorten_labels,
    steady,
    widest,
)


def shorten_name(name: str, columns: int) -> str:
    """Return a name as one line of at most this many columns, with its start and its end."""
    return shorten_label(name, columns, len(name))


def only_file(files: Iterable[str]) -> str:
    """Return the file that all are of; empty when there are several, or none."""
    rest = iter(files)
    first = next(rest, "")
    return first if all(file == first for file in rest) else ""


# --- columns, and which of them there is room for


GAP = 2
"""Blanks between two columns."""
MARGIN = 2
"""Characters in front of the first, for the mark."""

_READABLE = 7
"""So many characters of a text that is cut say something."""
_COMFORT = 16
"""So many of one that can be cut it has before a column with a rank is drawn."""
_ENDLESS = 1 << 30


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, and how wide it is drawn."""

    title: str
    width: int
    """The width of what is in it; 0: it is not drawn, but may be saved."""
    least: int = 0
    """How narrow it may become for others to have room; 0: it is not cut."""
    rank: int = 0
    """Those with the highest rank are left out first in a narrow table; 0: it stays."""
    right: bool = False
    """Whether numbers stand on its right side."""
    grows: bool = False
    """Whether it takes all room that is left."""
    picks: bool = False
    """Whether the cursor can be in it, as one among several."""
    is_empty: bool = False
    """Whether no row has anything in it: then it is seen only when the cursor is in it."""
    is_saved: bool = True
    """Whether it is saved with the table."""
    is_name: bool = False
    """Whether what is in it is names, which are cut in their middle."""
    head: str = ""
    """A text of one line or two for the top in place of the title; its first line is a name."""

    @property
    def top(self) -> str:
        """Return the text at the top."""
        return self.head or self.title

    @property
    def narrow(self) -> int:
        """Return how narrow it may be."""
        return min(self.least, self.width) or self.width

    @property
    def comfort(self) -> int:
        """Return the width that it has before a column with a rank is drawn."""
        return self.narrow if self.picks else max(self.narrow, min(self.width, _COMFORT))

    @property
    def whole(self) -> int:
        """Return the width in which neither its title nor what is in it is cut."""
        return max(self.width, widest(self.top.split("\n")))


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
    every = [n for n, column in enumerate(columns) if column.picks]
    at = every[picked] if picked < len(every) else None
    picks = [n for n in every if n == at or not columns[n].is_empty]
    picked = picks.index(at) if at is not None else 0
    fixed = [n for n, column in enumerate(columns) if column.width and not column.picks]
    ranked = sorted((n for n in fixed if columns[n].rank), key=lambda n: columns[n].rank)
    while ranked and _total(columns[n].comfort for n in (*fixed, *picks)) > width:
        fixed.remove(ranked.pop())
    made = {n: replace(columns[n], width=columns[n].narrow) for n in (*fixed, *picks)}
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
    is_endless = any(columns[n].grows for n in fixed)  # else names would leave it little
    names = [n for n in fixed if columns[n].least and not is_endless]
    room = _share(room, names, columns, made)  # they are worth more than titles
    _share(room, [n for n in shown if n not in names], columns, made)
    both = 4 if len(seen) == 1 else 2  # that one may have signs of others at both sides
    narrow = min((made[n].width for n in seen), default=1) - both * (len(seen) < len(picks))
    heads = [made[n].top.partition("\n") for n in seen]
    short = shorten_labels([name for name, *_ in heads], max(1, narrow))
    for n, name, (whole, *rest) in zip(seen, short, heads, strict=True):
        left = "‹ " if first and n == seen[0] else ""
        right = " ›" if first + fits < len(picks) and n == seen[-1] else ""
        has_room = columns_of(whole) + len(left) + len(right) <= made[n].width
        title = f"{left}{whole if has_room else name}{right}"
        made[n] = replace(made[n], title="".join((title, *rest)))
    for n in (n for n in fixed if made[n].head):
        made[n] = replace(made[n], title=made[n].head)
    return VisibleColumns(tuple(shown), tuple(made[n] for n in shown), first)


def _total(widths: Iterable[int]) -> int:
    """Return the width of a table with columns of these widths."""
    return MARGIN - GAP + sum(width + GAP for width in widths)


def _cut_to(numbers: list[int], made: dict[int, Column], width: int) -> list[int]:
    """Return the columns for which there is room when the widest texts are cut, not numbers."""
    shown = list(numbers)
    while shown and (over := _total(made[n].width for n in shown) - width) > 0:
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
    """Return the width in which nothing of the columns is cut."""
    return _total(column.whole for column in columns if column.width and not column.is_empty)


def _share(
    room: int, among: Sequence[int], columns: Sequence[Column], made: dict[int, Column]
) -> int:
    """Widen these columns by the same number, each at most to its need; returns what is left."""
    missing = {
        n: max(0, (_ENDLESS if columns[n].grows else columns[n].whole) - made[n].width)
        for n in among
    }
    share = room
    while sum(min(number, share) for number in missing.values()) > room:
        share -= 1
    room -= sum(min(number, share) for number in missing.values())
    for n in among:
        more = min(missing[n], share + room * columns[n].grows)
        room -= max(0, more - share)
        made[n] = replace(made[n], width=made[n].width + more)
    return room


# --- cells, drawn in lines: cut to the width of their columns, in the colours of a style


class StyledCell(NamedTuple):
    """A text and the name of its colour: a verdict, `faint`, or none."""

    text: str
    colour: str = ""
    plain: str = ""
    """The same without signs, for other programs."""
    parts: tuple[StyledSpan, ...] = ()
    """Parts of different colours that are drawn in place of the text."""

    @property
    def drawn(self) -> str:
        """Return the text that is drawn."""
        return "".join(part.text for part in self.parts) if self.parts else self.text


class LineStyle(NamedTuple):
    """The style of a line."""

    base: Style
    colours: Callable[[str], Style]
    """The style of a part by its name."""
    is_highlighted: bool = False
    """Whether the cursor is in it: the picked cell is shown."""
    mark: str = " "

    def of(self, colour: str) -> Style:
        """Return the style of a part by the name of its colour, if it has one."""
        return self.base + self.colours(colour) if colour else self.base


def is_heading(cells: Sequence[StyledCell], columns: Sequence[Column]) -> bool:
    """Return whether there is one text, for the whole width."""
    return len(cells) == 1 < len(columns)


def draw_heading(cell: StyledCell, style: LineStyle, width: int) -> Strip:
    """Draw a text as wide as the table, below its title and the other texts of the screen."""
    text = Segment(f" {clip(steady(cell.text), width - 1)}", style.of(cell.colour))
    return Strip([text]).adjust_cell_length(width, style.base)


def draw_line(
    cells: Sequence[StyledCell],
    visible: VisibleColumns,
    picked: int | None,
    style: LineStyle,
    width: int,
) -> Strip:
    """Draw a line with a cell for each visible column; the cursor is in the column `picked`."""
    segments = [Segment(f"{style.mark} ", style.of("mark"))]
    for number, column in zip(visible.shown, visible.columns, strict=True):
        cell = _steady(cells[number]) if number < len(cells) else StyledCell("")
        cut = shorten_name if column.is_name else clip
        text = cut(cell.drawn, column.width)
        blank = " " * (column.width - columns_of(text))
        if parts := _cut_parts(cell, text):
            segments += (Segment(part.text, style.of(part.colour)) for part in parts)
            segments.append(Segment(blank + " " * GAP, style.base))
            continue
        full = style.of(cell.colour)
        if style.is_highlighted and number == picked:
            full += style.colours("picked")
        shown = blank + text if column.right else text + blank
        segments += [Segment(shown, full), Segment(" " * GAP, style.base)]
    return Strip(segments).adjust_cell_length(width, style.base)


def _steady(cell: StyledCell) -> StyledCell:
    """Return a cell of which all terminals agree how wide it is."""
    text = cell.drawn
    if text.isascii():
        return cell
    return cell._replace(
        text=steady(cell.text),
        parts=tuple(part._replace(text=steady(part.text)) for part in cell.parts),
    )


def _cut_parts(cell: StyledCell, text: str) -> Sequence[StyledSpan]:
    """Return the parts of a cell, or as much of them as its text is after it was cut at its end."""
    if text == cell.drawn:
        return cell.parts
    kept = len(text) - 1
    if not cell.parts or not text.endswith("…") or cell.drawn[:kept] != text[:kept]:
        return ()
    cut: list[StyledSpan] = []
    for part in cell.parts:
        cut.append(part._replace(text=part.text[:kept]))
        kept -= len(part.text)
        if kept <= 0:
            break
    return (*cut, cut[-1]._replace(text="…"))
