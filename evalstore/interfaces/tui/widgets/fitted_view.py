"""A text that is made for the size of its widget, such as a plot."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual import events

from evalstore.core.display import StyledLine
from evalstore.interfaces.tui.widgets.text_view import TextView

FittedLines = Callable[[int, int], Iterable[StyledLine]]
"""Makes the lines for a width and a height."""


class FittedView(TextView):
    """Shows lines that depend on its size; they are made again when it changes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make: FittedLines = lambda _width, _height: ()

    def fit(self, make: FittedLines, *, stay: bool = False) -> None:
        """Show the lines that `make` returns, from the top unless they are to `stay`."""
        self._make = make
        self._fit(stay=stay)

    def _fit(self, *, stay: bool = True) -> None:
        size = self.scrollable_content_region.size
        if size.width and size.height:
            self.show(self._make(self.text_width, size.height), stay=stay)

    def refit(self) -> None:
        """Make the lines again."""
        self._fit()

    def on_resize(self, _event: events.Resize) -> None:
        """Make the lines again."""
        self._fit()
