"""A table that draws only the lines that can be seen, so its size costs nothing; its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
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
from evalstore.interfaces.tui.text_view import TEXT_STYLES, find_style


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


# --- the table


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
