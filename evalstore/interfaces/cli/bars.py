"""Bars in a terminal, and a line of figures below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from evalstore.interfaces.cli import output

_BAR, _LEAST_BAR = 30, 5
"""The columns of a bar, at most and at least."""
_BESIDE = 50
"""The columns beside it, with numbers of three digits."""


class Bars(Progress):
    """Bars with a line below them."""

    figures = Text()

    def show(self, *figures: tuple[str, str]) -> None:
        """Show texts with their colours below the bars."""
        parts = [("  " + text, colour) for text, colour in figures if text]
        self.figures = Text.assemble(*parts, no_wrap=True, overflow="ellipsis")[2:]

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars and the line."""
        yield from super().get_renderables()
        if self.figures:
            yield self.figures


def make_bars(totals: Mapping[str, int]) -> tuple[Bars, dict[str, TaskID]]:
    """Return a bar for each of these numbers, by its name, unless it is 0."""
    console = Console(stderr=True, no_color=output.color is False)
    digits = max(len(str(total)) for total in totals.values())
    room = console.width - _BESIDE - 2 * max(0, digits - 3)
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(max(_LEAST_BAR, min(_BAR, room)), complete_style="cyan", finished_style="cyan"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
    )
    longest = max(map(len, totals))
    return bars, {
        name: bars.add_task(name.ljust(longest), total=total)
        for name, total in totals.items()
        if total
    }
