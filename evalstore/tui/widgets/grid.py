"""A table that draws only the lines that can be seen, so its size costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from evalstore.display import clip, columns_of
from evalstore.tui.widgets.grid_columns import GAP, Column, VisibleColumns, fit_columns

if TYPE_CHECKING:
    from rich.style import Style
    from textual import events


class StyledCell(NamedTuple):
    """A text and the name of its colour: a verdict, `faint`, or none."""

    text: str
    colour: str = ""
    plain: str = ""
    """The same without signs, for other programs."""


class Grid(ScrollView, can_focus=True):
    """Rows that are made when they are drawn, with a cursor and marks.

    A row of one cell alone is a heading as wide as the table.

    Texts are never markup; control characters are shown as escapes.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "grid--header",
        "grid--cursor",
        "grid--mark",
        "grid--picked",
        "grid--faint",
        "grid--pass",
        "grid--fail",
        "grid--error",
        "grid--undecided",
        "grid--pending",
        "grid--group",
    }
    DEFAULT_CSS = """
    Grid {
        height: 1fr;
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        & > .grid--header { text-style: bold; color: $foreground; background: $panel; }
        & > .grid--cursor { background: $primary-muted; color: $foreground; }
        & > .grid--picked { text-style: reverse bold underline; }
        & > .grid--mark { color: $accent; text-style: bold; }
        & > .grid--faint { color: $text-muted; }
        & > .grid--pass { color: $text-success; }
        & > .grid--fail { color: $text-error; }
        & > .grid--error { color: $text-error; text-style: bold; }
        & > .grid--undecided { color: $text-warning; }
        & > .grid--pending { color: $text-warning; text-style: italic; }
        & > .grid--group { color: $text-accent; text-style: bold; }
        &:focus > .grid--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: bold;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("ctrl+d", "half(1)", "Half a page down", show=False, id="list.half_down"),
        Binding("ctrl+u", "half(-1)", "Half a page up", show=False, id="list.half_up"),
        Binding("home,g", "go(0)", "First", show=False, id="list.first"),
        Binding("end,G", "go(-1)", "Last", show=False, id="list.last"),
        Binding("right,l", "pick(1)", "Next column", show=False, id="list.right"),
        Binding("left,h", "pick(-1)", "Previous column", show=False, id="list.left"),
        Binding("enter", "choose", "Open", id="list.open"),
        Binding("space", "mark", "Mark", show=False, id="list.mark"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another row."""

        grid: Grid
        row: int

        @property
        def control(self) -> Grid:
            """The grid."""
            return self.grid

    @dataclass
    class Marked(Message):
        """A row was marked, or its mark was taken away."""

        grid: Grid
        row: int

        @property
        def control(self) -> Grid:
            """The grid."""
            return self.grid

    @dataclass
    class Chosen(Message):
        """A row was opened."""

        grid: Grid
        row: int

        @property
        def control(self) -> Grid:
            """The grid."""
            return self.grid

    def __init__(self, *, id: str | None = None, marks: bool = False) -> None:
        super().__init__(id=id)
        self._columns: Sequence[Column] = ()
        self._laid = VisibleColumns((), (), 0)
        self._count = 0
        self._cells: Callable[[int], Sequence[StyledCell]] = lambda _row: ()
        self.cursor = 0
        self._picked = 0
        self._with_marks = marks
        self.marked: set[int] = set()
        self._opened = True
        self.opens: Callable[[int], bool] = lambda _row: True
        """Whether there is something to open on a row; else the key for it is not offered."""

    # --- what is shown

    def show(
        self,
        columns: Sequence[Column],
        count: int,
        cells: Callable[[int], Sequence[StyledCell]],
        *,
        cursor: int = 0,
    ) -> None:
        """Show so many rows; `cells` makes one, with a cell for each column."""
        self._columns, self._count, self._cells = columns, count, cells
        self.marked = set()
        self.cursor = max(0, min(cursor, count - 1))
        self._measure()
        self._keep_in_sight()
        self.refresh()
        if count:
            self._tell_move()

    @property
    def picked(self) -> int:
        """Which of the columns that can be picked the cursor is in."""
        return self._picked

    @picked.setter
    def picked(self, number: int) -> None:
        self._picked = number
        self._measure()
        self.refresh()

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._count

    @property
    def titles(self) -> list[str]:
        """Of all columns, those included that there is no room for."""
        return [column.title for column in self._columns]

    def texts(self, row: int) -> list[str]:
        """What a row says in plain words, a text for each column; nothing for a heading."""
        cells = self._cells(row)
        return [] if self._is_heading(cells) else [cell.plain or cell.text for cell in cells]

    def _is_heading(self, cells: Sequence[StyledCell]) -> bool:
        """Whether there is one text, for the whole width."""
        return len(cells) == 1 < len(self._columns)

    def _measure(self) -> None:
        width = self.scrollable_content_region.width
        self._laid = fit_columns(self._columns, width, self._picked, self._laid.first)
        self.virtual_size = Size(width, self._count + 1)

    def watch_show_vertical_scrollbar(self) -> None:
        """The scrollbar, which comes when there are too many rows, takes room from the columns."""
        self._measure()

    def on_resize(self, _event: events.Resize) -> None:
        """Share the room again."""
        self._measure()
        self._keep_in_sight()

    def render_line(self, y: int) -> Strip:
        """One line: the header stays at the top."""
        width = self.scrollable_content_region.width
        if y == 0:
            style = self.get_component_rich_style("grid--header")
            titles = {
                number: StyledCell(column.title)
                for number, column in zip(self._laid.shown, self._laid.columns, strict=True)
            }
            listed = [titles.get(number, StyledCell("")) for number in range(len(self._columns))]
            return self._line(listed, style, style, " ", width)
        row = y - 1 + self.scroll_offset.y
        base = self.rich_style
        if row >= self._count:
            return Strip.blank(width, base)
        if row == self.cursor:
            base = self.get_component_rich_style("grid--cursor")
        return self._line(self._cells(row), base, None, "●" if row in self.marked else " ", width)

    def _line(
        self, cells: Sequence[StyledCell], base: Style, fixed: Style | None, mark: str, width: int
    ) -> Strip:
        marked = base + self.get_component_rich_style("grid--mark", partial=True)
        segments = [Segment(f"{mark} ", marked)]
        if self._is_heading(cells):
            colour = cells[0].colour if base == self.rich_style else ""
            style = (
                self.get_component_rich_style(f"grid--{colour}", partial=True) if colour else base
            )
            segments = [Segment(clip(cells[0].text, width), base + style)]
            return Strip(segments).adjust_cell_length(width, base).crop(0, width)
        picks = [number for number, column in enumerate(self._columns) if column.picks]
        picked = picks[self._picked] if self._picked < len(picks) else None
        for number, column in zip(self._laid.shown, self._laid.columns, strict=True):
            room = column.width
            cell = cells[number] if number < len(cells) else StyledCell("")
            text = clip(cell.text, room)
            blank = " " * (room - columns_of(text))
            style = base
            is_plain = fixed is None and base == self.rich_style  # not under the cursor
            if is_plain and cell.colour:
                style += self.get_component_rich_style(f"grid--{cell.colour}", partial=True)
            elif fixed is None and not is_plain and number == picked and len(picks) > 1:
                style += self.get_component_rich_style("grid--picked", partial=True)
            shown = blank + text if column.right else text + blank
            segments += [Segment(shown, style), Segment(" " * GAP, base)]
        return Strip(segments).adjust_cell_length(width, base).crop(0, width)

    # --- the cursor

    def move_to(self, row: int) -> None:
        """Put the cursor on a row."""
        row = max(0, min(row, self._count - 1))
        if self._count and row != self.cursor:
            self.cursor = row
            self._keep_in_sight()
            self.refresh()
            self._tell_move()

    def _tell_move(self) -> None:
        self.post_message(self.Moved(self, self.cursor))
        opened, self._opened = self._opened, self.opens(self.cursor)
        if opened != self._opened:
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be opened is."""
        return action != "choose" or self._opened

    def _keep_in_sight(self) -> None:
        height = self._height
        top = self.scroll_offset.y
        if self.cursor < top:
            top = self.cursor
        elif self.cursor >= top + height:
            top = self.cursor - height + 1
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, immediate=True)

    @property
    def _height(self) -> int:
        """Rows that can be seen."""
        return max(1, self.scrollable_content_region.height - 1)

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move it by what can be seen."""
        self.move_to(self.cursor + by * self._height)

    def action_half(self, by: int) -> None:
        """Move it by half of that."""
        self.move_to(self.cursor + by * max(1, self._height // 2))

    def action_go(self, row: int) -> None:
        """Move it to the first row, or to the last (-1)."""
        self.move_to(row if row >= 0 else self._count - 1)

    def action_pick(self, by: int) -> None:
        """Move the cursor to another of the columns that can be picked."""
        count = sum(column.picks for column in self._columns)
        picked = max(0, min(self.picked + by, count - 1))
        if count and picked != self.picked:
            self.picked = picked
            self.post_message(self.Moved(self, self.cursor))

    def action_choose(self) -> None:
        """Open the row."""
        if self._count:
            self.post_message(self.Chosen(self, self.cursor))

    def action_mark(self) -> None:
        """Mark the row, or take the mark away, and go on."""
        if self._count and self._with_marks:
            self.marked ^= {self.cursor}
            self.post_message(self.Marked(self, self.cursor))
            self.refresh()
            self.move_to(self.cursor + 1)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is; a second click opens."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y == 0:
            return
        row = offset.y - 1 + self.scroll_offset.y
        if row < self._count:
            self.move_to(row)
            if event.chain > 1:
                self.action_choose()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The wheel moves what is seen; the cursor stays within it."""
        super().watch_scroll_y(old_value, new_value)
        top = round(new_value)
        if self._count and not top <= self.cursor < top + self._height:
            self.move_to(max(top, min(self.cursor, top + self._height - 1)))

    def region_of_cursor(self) -> Region:
        """Where the cursor is on the screen."""
        return Region(0, self.cursor - self.scroll_offset.y + 1, self.size.width, 1)
