"""Progress of copying rows on stderr: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from evalstore.core.display import bytes_text
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.app import Globals
from evalstore.store.records import CopyListener

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class CopyProgress(CopyListener):
    """Shows how many rows were copied; nothing with `--progress none`."""

    def __init__(self, verb: str, noun: str = "rows") -> None:
        self._verb = verb
        self._noun = noun
        self._mode = choose_mode(Globals.progress)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._total = self._done = self._size = 0
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def start(self, records: int) -> None:
        """Show the bar."""
        self._total = records
        if self._mode != "auto" or not records:
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30, complete_style="cyan", finished_style="cyan"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[size]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True, no_color=output.color is False),
            transient=True,
        )
        self._task = self._bar.add_task(self._verb, total=records, size="")
        self._bar.start()

    def advance(self, records: int, size: int) -> None:
        """Count copied rows, and show them."""
        self._done += records
        self._size += size
        if self._bar and self._task is not None:
            size_text = bytes_text(self._size) if self._size else ""
            self._bar.update(self._task, advance=records, size=size_text)
        elif self._mode == "plain" and time.monotonic() - self._last > PLAIN_SECONDS:
            self._last = time.monotonic()
            text = f"{self._verb}: {self._done:,} of {self._total:,} {self._noun}"
            output.talk(f"{text}, {bytes_text(self._size)}" if self._size else text)


# --- how progress is shown on stderr: as bars, as lines or not at all


Mode = Literal["auto", "plain", "none"]
PLAIN_SECONDS = 10.0
"""Between two lines."""


def choose_mode(mode: Mode) -> Mode:
    """Return the mode that applies: none with `--quiet`, lines unless stderr is a terminal."""
    if output.quiet:
        return "none"
    return "plain" if mode == "auto" and not sys.stderr.isatty() else mode
