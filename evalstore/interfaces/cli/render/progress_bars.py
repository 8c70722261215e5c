"""Bars for the calls of a run in a terminal, and a line of figures below them.

Loaded only in a terminal, because rich's bars take a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from evalstore.interfaces.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType
    from rich.progress import TaskID

_NAMES = {"asked": "asking ", "judged": "judging"}
_BAR, _LEAST_BAR = 30, 5
"""The columns of a bar, at most and at least."""
_BESIDE = 50
"""The columns beside it, with numbers of three digits."""


class _Bars(Progress):
    """Bars with a line below them."""

    figures = Text()

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars and the line."""
        yield from super().get_renderables()
        if self.figures:
            yield self.figures


class ProgressBars:
    """A bar for the answers and one for the judgements of a run, where there are any."""

    def __init__(self, totals: Mapping[str, int]) -> None:
        """`totals` are the numbers to be `asked` and `judged`."""
        console = Console(stderr=True, no_color=output.color is False)
        digits = max(len(str(total)) for total in totals.values())
        beside = _BESIDE + 2 * max(0, digits - 3)
        self.bars = _Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=max(_LEAST_BAR, min(_BAR, console.width - beside))),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {
            kind: self.bars.add_task(_NAMES[kind], total=total)
            for kind, total in totals.items()
            if total
        }

    def start(self) -> None:
        """Show the bars."""
        self.bars.start()

    def advance(self, kind: str, count: int) -> None:
        """Count calls; those without a bar change nothing."""
        if kind in self._tasks:
            self.bars.advance(self._tasks[kind], count)

    def show(self, verdicts: str, failed: str, spent: str) -> None:
        """Show the verdicts so far, the failed calls and the cost below the bars."""
        parts = [(verdicts, ""), (failed, "red"), (spent, "")]
        spans = [
            (f"{'  ' * bool(number)}{text}", style)
            for number, (text, style) in enumerate((text, style) for text, style in parts if text)
        ]
        self.bars.figures = Text.assemble(*spans, no_wrap=True, overflow="ellipsis")

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self.bars.console.print(message, markup=False, highlight=False)

    def stop(self) -> None:
        """Remove the bars."""
        self.bars.stop()
