"""A text as the Markdown that it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import VerticalScroll

from evalstore.display import safe_markdown
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.binding import BindingType

_MOST_LINES, _MOST_CHARACTERS = 150, 20_000
"""More takes seconds."""


class MarkdownView(VerticalScroll, can_focus=True):
    """Shows Markdown; it is scrolled with the keys of a `TextView`."""

    BINDINGS: ClassVar[list[BindingType]] = TextView.BINDINGS

    @staticmethod
    def has_room_for(text: str) -> bool:
        """Whether a text is short enough to be shown."""
        return len(text) <= _MOST_CHARACTERS and text.count("\n") < _MOST_LINES

    def show(self, text: str | None) -> None:
        """Show a text, or none."""
        self.remove_children()
        if text is not None:
            from textual.widgets import Markdown  # loads a parser, which few need

            self.mount(Markdown(safe_markdown(text), open_links=False))
