"""Progress of a run on stderr: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Literal

from evalstore.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Mode = Literal["auto", "plain", "none"]
_PLAIN_SECONDS = 10.0


class ProgressWatcher:
    """Shows how far a run is; keeps quiet when it is told to."""

    def __init__(self, mode: Mode) -> None:
        self._mode = "none" if output.quiet else mode
        if self._mode == "auto" and not sys.stderr.isatty():
            self._mode = "plain"
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._done = {"asked": 0, "judged": 0, "failed": 0}
        self._total = (0, 0)
        self._last = time.monotonic()

    def start(self, asks: int, judgements: int) -> None:
        """Show the bars."""
        self._total = (asks, judgements)
        if self._mode != "auto":
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[red]{task.fields[failed]}"),
            console=Console(stderr=True, no_color=output.color is False),
            transient=True,
        )
        if asks:
            self._tasks["asked"] = self._bar.add_task("asking ", total=asks, failed="")
        if judgements:
            self._tasks["judged"] = self._bar.add_task("judging", total=judgements, failed="")
        self._bar.start()

    def advance(self, what: str, count: int) -> None:
        """Move on."""
        self._done[what] += count
        if self._bar:
            if what in self._tasks:
                self._bar.advance(self._tasks[what], count)
            elif what == "failed":
                for task in self._tasks.values():
                    self._bar.update(task, failed=f"{self._done['failed']} failed")
        elif self._mode == "plain" and time.monotonic() - self._last > _PLAIN_SECONDS:
            self._last = time.monotonic()
            asks, judgements = self._total
            output.talk(
                f"asked {self._done['asked']}/{asks}, judged {self._done['judged']}/{judgements}"
                + (f", {self._done['failed']} failed" if self._done["failed"] else "")
            )

    def note(self, message: str) -> None:
        """Say something above the bars."""
        if self._bar:
            self._bar.console.print(output.safe(message), markup=False, highlight=False)
        else:
            output.talk(output.safe(message))

    def stop(self) -> None:
        """Take the bars away."""
        if self._bar:
            self._bar.stop()
            self._bar = None
