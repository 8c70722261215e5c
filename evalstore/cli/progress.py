"""Progress of a run on stderr: bars with money and tokens on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import termios
import time
from typing import TYPE_CHECKING, Any

import typer

from evalstore.cli import output
from evalstore.cli.progress_mode import PLAIN_SECONDS, choose_mode
from evalstore.display import known_price
from evalstore.operations.progress import ProgressListener

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from evalstore.cli.progress_mode import Mode

_FIRST_SECONDS = 1.0
"""Before the first one, when lines are asked for."""


class TerminalProgress(ProgressListener):
    """Shows the progress and the cost of a run; nothing with `--progress none`."""

    def __init__(self, mode: Mode) -> None:
        self._mode = choose_mode(mode)
        self._says_start = mode == self._mode == "plain"
        self._wait = _FIRST_SECONDS if self._says_start else PLAIN_SECONDS
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._done = {"asked": 0, "judged": 0, "failed": 0}
        self._total = (0, 0)
        self._tokens = 0
        self._last = time.monotonic()

    def start(self, asks: int, judgements: int) -> None:
        """Show the bars."""
        self._total = (asks, judgements)
        if self._says_start:
            output.talk(
                f"to do: {output.plural(asks, 'answer')}, {output.plural(judgements, 'judgement')}"
            )
        if self._mode != "auto":
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            TextColumn("{task.fields[spent]}"),
            TextColumn("[red]{task.fields[failed]}"),
            console=Console(stderr=True, no_color=output.color is False),
            transient=True,
        )
        for kind, name, total in (("asked", "asking ", asks), ("judged", "judging", judgements)):
            if total:
                self._tasks[kind] = self._bar.add_task(name, total=total, failed="", spent="")
        self._bar.start()

    def advance(self, kind: str, count: int) -> None:
        """Count finished calls, and show them."""
        self._done[kind] += count
        if self._bar:
            if kind in self._tasks:
                self._bar.advance(self._tasks[kind], count)
            elif kind == "failed":
                self._update(failed=f"{self._done['failed']} failed")
        elif self._mode == "plain" and time.monotonic() - self._last > self._wait:
            self._last, self._wait = time.monotonic(), PLAIN_SECONDS
            asks, judgements = self._total
            output.talk(
                f"asked {self._done['asked']}/{asks}, judged {self._done['judged']}/{judgements}"
                + (f", {self._done['failed']} failed" if self._done["failed"] else "")
                + f", {self._spent()}"
            )

    def spent(self, usd: float | None, tokens: int) -> None:
        """Add to the bill."""
        super().spent(usd, tokens)
        self._tokens += tokens
        self._update(spent=self._spent())

    def _spent(self) -> str:
        usd = known_price(self.usd, not self.is_priced, brief=True)
        return f"{usd}, {output.count(self._tokens)} tokens"

    def _update(self, **shown: Any) -> None:
        """Show it at the end of the first bar."""
        if self._bar:
            for task in list(self._tasks.values())[:1]:
                self._bar.update(task, **shown)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        if self._bar:
            self._bar.console.print(output.safe(message), markup=False, highlight=False)
        else:
            output.talk(output.safe(message))

    def agrees(self, question: str) -> bool:
        """Ask the user to confirm; False without a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        # What was typed before the question is not an answer to it.
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        try:
            return typer.confirm(f"{question}; do it?", err=True)
        except typer.Abort:  # Ctrl-C; it ends the command, as it does everywhere else
            raise KeyboardInterrupt from None

    def stop(self) -> None:
        """Remove the bars."""
        if self._bar:
            self._bar.stop()
            self._bar = None
