"""The line at the top of a page: its title, and at its right end the progress of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from evalstore.core.display import clip, columns_of, pad, safe, steady

TitlePart = str | tuple[str, str]
"""A part of a title; or the whole of it, and what is shown where the title has no room for that."""


class TitleLine(Static):
    """The title of the page; at its right end, on every page, the progress of a run."""

    def __init__(self, progress: Callable[[], str]) -> None:
        """`progress` returns the progress of a run; empty without one."""
        super().__init__(classes="title", markup=False)
        self._progress = progress
        self._text = self._brief = ""

    def show(self, parts: Sequence[TitlePart]) -> None:
        """Show these parts; those that are empty are left out."""
        pairs = [(part, part) if isinstance(part, str) else part for part in parts]
        self._text = " › ".join(steady(safe(text)) for text, _ in pairs if text)
        self._brief = " › ".join(steady(safe(text)) for _, text in pairs if text)
        self.refresh()

    def render(self) -> Content:
        """Draw the whole progress, and the title in the room that is left."""
        progress = self._progress()
        room = self.size.width
        if progress:
            room = max(0, room - cell_len(progress) - 2)
        text = clip(self._text if columns_of(self._text) <= room else self._brief, room)
        return Content(f"{pad(text, room)}  {progress}" if progress else text)
