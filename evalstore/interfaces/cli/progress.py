"""Progress on stderr: as bars, as lines or not at all."""

from __future__ import annotations

import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Self

import typer

from evalstore.core.display import bytes_text, known_price, verdict_counts
from evalstore.core.runs import ProgressListener
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.options import Globals
from evalstore.interfaces.cli.output import for_here
from evalstore.store.records import CopyListener

if TYPE_CHECKING:
    from rich.progress import TaskID

    from evalstore.interfaces.cli.bars import Bars

Mode = Literal["auto", "plain", "none"]
_PLAIN_SECONDS = 10.0
"""Between two lines."""
_FIRST_SECONDS = 1.0
"""Before the first one, when lines are asked for."""


class _Shown:
    """Bars or lines: none with `--quiet`, lines unless stderr is a terminal."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = "plain" if mode == "auto" and not sys.stderr.isatty() else mode
        self.mode = "none" if output.quiet else self.mode
        self.bars: Bars | None = None
        self._tasks: Mapping[str, TaskID] = {}
        self._last, self._wait = time.monotonic(), _PLAIN_SECONDS

    def start(self, totals: Mapping[str, int], first: float | None = None) -> None:
        """Show bars for these numbers by name, or a line after `first` seconds."""
        self._wait = _PLAIN_SECONDS if first is None else first
        if self.mode == "auto" and any(totals.values()):
            from evalstore.interfaces.cli.bars import make_bars

            self.bars, self._tasks = make_bars(totals)
            self.bars.start()

    def advance(self, name: str, count: int, text: Callable[[], Iterable[str]]) -> None:
        """Count what has been done; `text` has the parts of a line."""
        if self.bars and name in self._tasks:
            self.bars.advance(self._tasks[name], count)
        elif self.mode == "plain" and time.monotonic() - self._last > self._wait:
            self._last, self._wait = time.monotonic(), _PLAIN_SECONDS
            output.talk(", ".join(filter(None, text())))

    def stop(self) -> None:
        """Remove the bars."""
        if self.bars:
            self.bars.stop()
            self.bars = None


class CopyProgress(CopyListener):
    """Shows how many rows were copied; nothing with `--progress none`."""

    def __init__(self, verb: str, noun: str = "rows") -> None:
        self._verb, self._noun = verb, noun
        self._shown = _Shown(Globals.progress)
        self._total = self._done = self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._shown.stop()

    def start(self, records: int) -> None:
        """Show the bar."""
        self._total = records
        self._shown.start({self._verb: records})

    def advance(self, records: int, size: int) -> None:
        """Count copied rows, and show them."""
        self._done += records
        self._size += size
        size_text = bytes_text(self._size) if self._size else ""
        count = f"{self._verb}: {self._done:,} of {self._total:,} {self._noun}"
        self._shown.advance(self._verb, records, lambda: (count, size_text))
        if self._shown.bars:
            self._shown.bars.show((size_text, ""))


_NAMES = {"asked": "asking", "judged": "judging"}


class TerminalProgress(ProgressListener):
    """Shows the progress and the cost of a run; nothing with `--progress none`."""

    def __init__(self, mode: Mode) -> None:
        self._shown = _Shown(mode)
        self._says_start = mode == self._shown.mode == "plain"
        self._done = {"asked": 0, "judged": 0, "failed": 0}
        self._total = (0, 0)
        self._tokens = 0

    def start(self, asks: int, judgements: int) -> None:
        """Show the bars."""
        self._total = (asks, judgements)
        if self._says_start:
            output.talk(
                f"to do: {output.plural(asks, 'answer')}, {output.plural(judgements, 'verdict')}"
            )
        first = _FIRST_SECONDS if self._says_start else None
        self._shown.start({"asking": asks, "judging": judgements}, first)

    def advance(self, kind: str, count: int) -> None:
        """Count finished calls, and show them."""
        self._done[kind] += count
        self._shown.advance(_NAMES.get(kind, kind), count, self._line)
        self._show_figures()

    def _line(self) -> Iterable[str]:
        (asks, judgements), (verdicts, failed, spent) = self._total, self._figures()
        yield f"asked {self._done['asked']}/{asks}"
        yield f"judged {self._done['judged']}/{judgements}{f' ({verdicts})' * bool(verdicts)}"
        yield from (failed, spent)

    def spent(self, usd: float | None, tokens: int) -> None:
        """Add to the bill."""
        super().spent(usd, tokens)
        self._tokens += tokens
        self._show_figures()

    def _figures(self) -> tuple[str, str, str]:
        """Return the new verdicts, the failed calls and the cost, as far as there are any."""
        failed = self._done["failed"]
        usd = known_price(self.usd, not self.is_priced, brief=True)
        return (
            verdict_counts(self.verdict_counts, signs=False),
            f"{output.plural(failed, 'call')} failed" if failed else "",
            f"{usd}, {output.count(self._tokens)} tokens",
        )

    def _show_figures(self) -> None:
        if self._shown.bars:
            verdicts, failed, spent = self._figures()
            self._shown.bars.show((verdicts, ""), (failed, "red"), (spent, ""))

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        if self._shown.bars:
            text = output.safe(for_here(message))
            self._shown.bars.console.print(text, markup=False, highlight=False)
        else:
            output.talk(output.safe(message))

    def warn(self, message: str) -> None:
        """Print a warning, also with `--quiet`."""
        output.warn(message)

    def agrees(self, question: str) -> bool | None:
        """Ask the user to confirm; None without a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        # What was typed before the question is not an answer to it.
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        try:
            return typer.confirm(output.folded(f"{question}; continue?"), err=True)
        except typer.Abort:  # Ctrl-C; it ends the command, as it does everywhere else
            raise KeyboardInterrupt from None

    def stop(self) -> None:
        """Remove the bars."""
        self._shown.stop()
