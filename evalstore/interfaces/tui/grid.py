"""A table that draws only the lines that can be seen, so its size costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from evalstore.interfaces.tui.grid_columns import (
    Column,
    LineStyle,
    StyledCell,
    VisibleColumns,
    draw_heading,
    draw_line,
    fit_columns,
    full_width,
    is_heading,
)
from evalstore.interfaces.tui.text_view import TEXT_STYLES, find_style

_Item = TypeVar("_Item")
_BESIDE = 72
"""Columns that a list leaves to what stands beside it: images have room there."""


_STYLES = {
    **TEXT_STYLES,
    "mark": ("text-accent", "bold"),
    "group": ("text-accent", "bold"),
    "picked": ("", "reverse bold"),
    "picked-plain": ("", "bold underline"),
}
"""What has a style of its own."""
_CSS = """
    Grid {
        height: 1fr;
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        & > .grid--header { text-style: bold; color: $foreground; background: $panel; }
        & > .grid--cursor { background: $cursor-line 50%; }
        &:focus > .grid--cursor { background: $cursor-line; text-style: bold; }
        &:ansi > .grid--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """


@dataclass
class _RowMessage(Message):
    """A message about a row."""

    grid: Grid
    row: int

    @property
    def control(self) -> Grid:
        """Return the grid."""
        return self.grid


class Grid(ScrollView, can_focus=True):
    """Rows that are made when they are drawn, with a cursor and marks.

    A row of one cell alone is a heading as wide as the table. If the width of its style is `auto`,
    it takes the width in which nothing is cut.

    Texts are never markup; control characters are shown as escapes.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"grid--header", "grid--cursor"}
    DEFAULT_CSS = _CSS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("pagedown,ctrl+f", "pages(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup,ctrl+b", "pages(-1)", "Page up", show=False, id="list.page_up"),
        Binding("ctrl+d", "pages(0.5)", "Half a page down", show=False, id="list.half_down"),
        Binding("ctrl+u", "pages(-0.5)", "Half a page up", show=False, id="list.half_up"),
        Binding("home,g", "go(0)", "Start", show=False, id="list.first"),
        Binding("end,G", "go(-1)", "End", show=False, id="list.last"),
        Binding("right,l", "pick(1)", "Next column", show=False, id="list.right"),
        Binding("left,h", "pick(-1)", "Previous column", show=False, id="list.left"),
        Binding("enter", "choose", "Open", id="list.open"),
        Binding("space", "mark", "Mark", show=False, id="list.mark"),
    ]

    class Moved(_RowMessage):
        """The cursor is on another row, or in another column."""

    class Resized(_RowMessage):
        """More rows can be seen, or fewer."""

    class Marked(_RowMessage):
        """A row was marked, or its mark was taken away."""

    class Chosen(_RowMessage):
        """A row was opened."""

    def __init__(self, *, id: str | None = None, marks: bool = False) -> None:
        super().__init__(id=id)
        self._columns: Sequence[Column] = ()
        self._visible = VisibleColumns((), (), 0)
        self.row_count = 0
        self._cells: Callable[[int], Sequence[StyledCell]] = lambda _row: ()
        self.cursor = 0
        self._picks: list[int] = []
        """The numbers of the columns that the cursor can be in."""
        self._picked = 0
        self._has_marks = marks
        self.marked: set[int] = set()
        self._can_open = True
        self.opens: Callable[[int], bool] = lambda _row: True
        """Whether a row can be opened; else the key for it is not offered."""
        self.head_lines = 1
        """The lines of the titles."""
        self._fits = False
        """Whether all its rows are shown at once."""
        self._was_clicked = False
        """Whether a double click may open a row: its first half did not open the page."""

    # --- what is shown

    def show(
        self,
        columns: Sequence[Column],
        count: int,
        cells: Callable[[int], Sequence[StyledCell]],
        *,
        cursor: int = 0,
        fits: bool = True,
    ) -> None:
        """Show so many rows; `cells` makes one, with a cell for each column.

        Where it `fits`, it is as high as they are.
        """
        if bool(count) != bool(self.row_count):  # without rows, none can be opened
            self.refresh_bindings()
        self.row_count, self._cells, self._fits = count, cells, fits
        self._take_columns(columns)
        self.marked = set()
        self.cursor = max(0, min(cursor, count - 1))
        self._measure()
        self._scroll_to_cursor()
        self.refresh()
        if count:
            self._post_move()

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Show the same rows with other columns."""
        self._take_columns(columns)
        self._measure()
        self.refresh()

    def _take_columns(self, columns: Sequence[Column]) -> None:
        """Lay the page out again when it follows their width, and they need another one."""
        before, self._columns = self._columns, columns
        self._picks = [number for number, column in enumerate(columns) if column.picks]
        if self._is_beside and full_width(before) != full_width(columns):
            self.refresh(layout=True)

    @property
    def _is_beside(self) -> bool:
        """Return whether it follows the width of its columns, beside another panel."""
        width = self.styles.width
        return width is not None and width.is_auto

    def get_content_width(self, container: Size, _viewport: Size) -> int:
        """Return the width in which nothing is cut, or what is left by what stands beside it."""
        needed = full_width(self._columns) + self.scrollbar_size_vertical + self._blank
        return min(needed, container.width - _BESIDE)

    @property
    def _blank(self) -> int:
        """Return how many columns are left empty before a frame."""
        return int(bool(self.styles.border_right[0]))

    @property
    def _height(self) -> int:
        """Return the number of rows that can be seen below the titles."""
        return max(1, self.scrollable_content_region.height - self.head_lines)

    @property
    def seen_rows(self) -> slice:
        """Return the rows that can be seen."""
        return slice(self.scroll_offset.y, self.scroll_offset.y + self._height)

    def at_cursor(self, items: Sequence[_Item]) -> _Item | None:
        """Return that of the items, of which each row shows one, which the cursor is on."""
        return items[self.cursor] if self.cursor < len(items) else None

    @property
    def picked(self) -> int:
        """Return the number of the cursor's column, among those that can be selected."""
        return self._picked

    @picked.setter
    def picked(self, number: int) -> None:
        is_moved, self._picked = number != self._picked, number
        self._measure()
        self.refresh()
        if is_moved and self.row_count:
            self.post_message(self.Moved(self, self.cursor))

    @property
    def titles(self) -> list[str]:
        """Return the titles of the columns that are saved, also of those without room."""
        return [column.title for column in self._columns if column.is_saved]

    def texts(self, row: int) -> list[str]:
        """Return the texts of a row without signs, one for each title; none for a heading."""
        cells = self._cells(row)
        if is_heading(cells, self._columns):
            return []
        pairs = zip(cells, self._columns, strict=True)
        return [cell.plain or cell.text for cell, column in pairs if column.is_saved]

    def _measure(self) -> None:
        width = self.scrollable_content_region.width
        room, first = width - self._blank, self._visible.first
        self._visible = fit_columns(self._columns, room, self._picked, first)
        self.head_lines = self._visible.head_lines
        if self._fits:
            most = self.row_count + self.head_lines + self.gutter.height
            self.styles.max_height = None if self._is_beside else most
        self.virtual_size = Size(width, self.row_count + self.head_lines)

    def watch_show_vertical_scrollbar(self) -> None:
        """Fit the text again: the scrollbar takes room from it."""
        self._measure()

    def on_resize(self) -> None:
        """Fit the columns again."""
        self._measure()
        self._scroll_to_cursor()
        if self.row_count:
            self.post_message(self.Resized(self, self.cursor))

    def render_line(self, y: int) -> Strip:
        """Draw a line: the titles stay at the top."""
        width = self.scrollable_content_region.width
        row = y - self.head_lines + self.scroll_offset.y
        if y < self.head_lines:
            titles = (self._visible.title(number, y) for number in range(len(self._columns)))
            cells: Sequence[StyledCell] = [*map(StyledCell, titles)]
            base = self.get_component_rich_style("grid--header")
            style = LineStyle(base, self._colour)
        elif row >= self.row_count:
            return Strip.blank(width, self.rich_style)
        else:
            cells = self._cells(row)
            mark, is_cursor = "●" if row in self.marked else " ", row == self.cursor
            base = self.get_component_rich_style("grid--cursor") if is_cursor else self.rich_style
            style = LineStyle(base, self._colour, is_cursor, mark)
        if is_heading(cells, self._columns):
            return draw_heading(cells[0], style, width)
        has_several = len(self._picks) > 1 and self._picked < len(self._picks)
        picked = self._picks[self._picked] if has_several else None
        return draw_line(cells, self._visible, picked, style, width)

    def _colour(self, name: str) -> Style:
        if name == "picked" and self.app.no_color:
            name = "picked-plain"
        return find_style(self.app, _STYLES, name)

    # --- the cursor

    def move_to(self, row: int) -> None:
        """Put the cursor on a row."""
        row = max(0, min(row, self.row_count - 1))
        if self.row_count and row != self.cursor:
            self.cursor = row
            self._scroll_to_cursor()
            self.refresh()
            self._post_move()

    def _post_move(self) -> None:
        self.post_message(self.Moved(self, self.cursor))
        before, self._can_open = self._can_open, self.opens(self.cursor)
        if before != self._can_open:
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available; a row without anything to open is not opened."""
        return action != "choose" or (self._can_open and self.row_count > 0)

    def _scroll_to_cursor(self) -> None:
        top, height = self.scroll_offset.y, self._height
        first = min(max(top, self.cursor - height + 1), self.cursor)
        if first != top:
            self.scroll_to(y=first, animate=False, immediate=True)

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.move_to(self.cursor + by)

    def action_pages(self, by: float) -> None:
        """Move it by so much of what can be seen, and by one row at least."""
        self.move_to(self.cursor + (int(by * self._height) or (1 if by > 0 else -1)))

    def action_go(self, row: int) -> None:
        """Move it to the first row, or to the last (-1)."""
        self.move_to(row if row >= 0 else self.row_count - 1)

    def action_pick(self, by: int) -> None:
        """Move the cursor to another of the columns that can be picked."""
        ahead = range(self.picked + by, len(self._picks) if by > 0 else -1, by)
        full = (n for n in ahead if not self._columns[self._picks[n]].is_empty)
        self.picked = next(full, self.picked)

    def action_choose(self) -> None:
        """Open the row."""
        if self.row_count:
            self.post_message(self.Chosen(self, self.cursor))

    def action_mark(self) -> None:
        """Mark the row, or take the mark away, and go on."""
        if self.row_count and self._has_marks:
            self.marked ^= {self.cursor}
            self.post_message(self.Marked(self, self.cursor))
            self.refresh()
            self.move_to(self.cursor + 1)

    # --- the mouse

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is, also into the column of a candidate.

        The row is opened if it is selected already, or is shown nowhere but here; on a title,
        only the column is taken.
        """
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < self.head_lines:
            self._take_column(offset.x)
            return
        row = offset.y - self.head_lines + self.scroll_offset.y
        if row < self.row_count:
            was_clicked, self._was_clicked = self._was_clicked, True
            is_title = is_heading(self._cells(row), self._columns)
            is_selected = row == self.cursor
            if not is_title:
                is_selected = not self._take_column(offset.x) and is_selected
            self.move_to(row)
            has_details = any(panel.display for panel in self.screen.query(".detail"))
            opens = is_selected if has_details and not is_title else event.chain == 1
            if opens and (was_clicked or event.chain == 1) and self.opens(row):
                self.action_choose()

    def _take_column(self, x: int) -> bool:
        """Put the cursor into the column at an offset; returns whether it was in another one."""
        number = self._visible.column_at(x)
        if number not in self._picks or self._picks.index(number) == self._picked:
            return False
        self.picked = self._picks.index(number)
        return True

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Keep the cursor within what is seen when the wheel moves it."""
        super().watch_scroll_y(old_value, new_value)
        top = round(new_value)
        if self.row_count and not top <= self.cursor < top + self._height:
            self.move_to(max(top, min(self.cursor, top + self._height - 1)))
