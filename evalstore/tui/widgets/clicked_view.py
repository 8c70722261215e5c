"""A list whose rows react to a click: it selects a row, or opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.scroll_view import ScrollView

if TYPE_CHECKING:
    from textual import events


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
