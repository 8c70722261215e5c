"""Draws a line of a table: cells cut to the width of their columns, in the colours of a style."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from evalstore.core.display import StyledSpan, clip, columns_of, steady
from evalstore.interfaces.tui.widgets.grid_columns import GAP, Column, VisibleColumns

_BLANKS = re.compile(" +")
_BEFORE = 24
"""The most characters before what stays visible, when not all that follows fits."""


class StyledCell(NamedTuple):
    """A text and the name of its colour: a verdict, `faint`, or none."""

    text: str
    colour: str = ""
    plain: str = ""
    """The same without signs, for other programs."""
    parts: tuple[StyledSpan, ...] = ()
    """Parts of different colours that are drawn in place of the text."""
    group: str = ""
    """Of a name: the group whose names it is to be distinguished from."""
    seen: tuple[int, int] | None = None
    """Start and end of what stays visible in the drawn text; it is then cut between words."""

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
    is_title: bool = False
    """Whether it names the columns: its texts are cut, but not shortened as names are."""

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
        if cell.seen and columns_of(cell.drawn) > column.width:
            cell = _around(cell, *cell.seen, column.width)
        if column.names and not style.is_title and column.width < column.most:
            text = column.names.shorten(cell.drawn, column.width, cell.group)
        else:
            text = clip(cell.drawn, column.width)
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
    first, last = cell.seen or (0, 0)
    return cell._replace(
        text=steady(cell.text),
        parts=tuple(part._replace(text=steady(part.text)) for part in cell.parts),
        seen=(len(steady(text[:first])), len(steady(text[:last]))) if cell.seen else None,
    )


def _around(cell: StyledCell, first: int, last: int, columns: int) -> StyledCell:
    """Return a cell cut to the words around a part of its text, as many as fit."""
    text = cell.drawn
    starts = [0, *(match.end() for match in _BLANKS.finditer(text, 0, first))]
    fitting = (at for at in starts if columns_of(text[at:last]) + (at > 0) + 1 <= columns)
    lead = [at for at in fitting if not at or first - at <= _BEFORE]
    begin = lead[0] if lead else first
    begin = next((at for at in starts if columns_of(text[at:]) + 1 <= columns), begin)
    head = "…" if begin else ""
    end = len(text)
    if columns_of(text[begin:]) + len(head) > columns:
        end = begin + len(clip(text[begin:], columns - len(head))) - 1
        blank = text.rfind(" ", last, end + 1)
        end = blank if blank >= last else end
    parts, at = [StyledSpan(head)], 0
    for span in cell.parts:
        parts.append(span._replace(text=span.text[max(0, begin - at) : max(0, end - at)]))
        at += len(span.text)
    parts.append(StyledSpan("…" if end < len(text) else ""))
    shown = f"{head}{text[begin:end]}{parts[-1].text}"
    return cell._replace(text=shown, parts=tuple(parts) if cell.parts else ())


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
