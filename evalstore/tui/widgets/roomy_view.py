"""A list that is as wide as its columns need, where it stands beside something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.tui.widgets.clicked_view import ClickedView
from evalstore.tui.widgets.grid_columns import full_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.geometry import Size

    from evalstore.tui.widgets.grid_columns import Column

_BESIDE = 69
"""Columns that a list leaves to what stands beside it: images have room there."""


class RoomyView(ClickedView):
    """Takes the width in which nothing is cut, if the width of its style is `auto`."""

    _wanted: Sequence[Column] = ()
    """The columns that it has been laid out for."""

    @property
    def _height(self) -> int:
        """Return the number of rows that can be seen below the titles."""
        return max(1, self.scrollable_content_region.height - 1)

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
