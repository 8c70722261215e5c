"""A list no higher than its rows, and as wide as its columns need where something is beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.scroll_view import ScrollView

from evalstore.interfaces.tui.widgets.grid_columns import full_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.geometry import Size

    from evalstore.interfaces.tui.widgets.grid_columns import Column


class ClickedView(ScrollView):
    """Decides what a click on a row does.

    Where a panel shows the selected row, a click selects and one on the selected row opens;
    elsewhere, and on a heading, every click opens.
    """

    _gains_focus = False
    """Whether the focus has come just now."""
    _brings_focus = False
    """Whether the click under way has brought the focus: it does no more than that and select."""
    _is_first = True
    """Whether it has not been clicked yet."""

    def on_focus(self) -> None:
        """Remember for the press that may have brought the focus, which is handled next."""
        self._gains_focus = True
        self.call_later(self._forget_focus)

    def _forget_focus(self) -> None:
        self._gains_focus = False

    def on_mouse_down(self) -> None:
        """Begin a click."""
        self._brings_focus = self._gains_focus

    def opens_by(self, click: events.Click, *, is_selected: bool, is_heading: bool) -> bool:
        """Return whether a click on a row opens it.

        The second half of a double click does not, where the first one has opened the page.
        """
        was_first, self._is_first = self._is_first, False
        if click.chain > 1 and was_first:
            return False
        if is_heading or not any(panel.display for panel in self.screen.query(".detail")):
            return click.chain == 1
        return is_selected and not self._brings_focus


_BESIDE = 69
"""Columns that a list leaves to what stands beside it: images have room there."""


class RoomyView(ClickedView):
    """Takes the width in which nothing is cut, if the width of its style is `auto`."""

    _wanted: Sequence[Column] = ()
    """The columns that it has been laid out for."""
    _head_lines = 1
    """The lines of the titles."""
    _most_rows: int | None = None
    """How high it becomes at most, without the titles."""

    @property
    def _height(self) -> int:
        """Return the number of rows that can be seen below the titles."""
        return max(1, self.scrollable_content_region.height - self._head_lines)

    def fit_height(self, rows: int) -> None:
        """Be at most so many lines high, and the titles."""
        self._most_rows = rows
        self.make_room(self._head_lines)

    def make_room(self, lines: int) -> None:
        """Draw titles of so many lines from now on."""
        self._head_lines = lines
        if self._most_rows is not None:
            self.styles.max_height = self._most_rows + lines

    def need_width(self, columns: Sequence[Column]) -> None:
        """Lay the page out again when other columns need another width, if it follows them."""
        before, self._wanted = self._wanted, columns
        width = self.styles.width
        is_auto = width is not None and width.is_auto
        if is_auto and full_width(before) != full_width(columns):
            self.refresh(layout=True)

    def get_content_width(self, container: Size, _viewport: Size) -> int:
        """Return the width in which nothing is cut, or what is left by what stands beside it."""
        needed = full_width(self._wanted) + self.scrollbar_size_vertical
        return min(needed, container.width - _BESIDE)
