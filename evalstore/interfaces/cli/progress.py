"""Progress of a run on stderr, as bars or lines; and `--watch`, a run whenever files were saved."""

from __future__ import annotations

import signal
import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Never

import typer
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

from evalstore.core.display import known_price
from evalstore.core.errors import (
    INTERRUPTED,
    STOPPED,
    USAGE,
    EvalstoreError,
    NothingSelectedError,
    WorkspaceError,
)
from evalstore.core.runs import ProgressListener
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.app import Globals, here
from evalstore.interfaces.cli.copy_progress import PLAIN_SECONDS, Mode, choose_mode
from evalstore.interfaces.cli.output import for_here
from evalstore.planning.options import RunOptions, SelectionOptions
from evalstore.planning.status_report import Status
from evalstore.results.verdict_order import verdict_counts
from evalstore.runs.run_report import RunReport
from evalstore.runs.status.status_text import judgements_text, price_text
from evalstore.runs.watch import Watch

_FIRST_SECONDS = 1.0
"""Before the first one, when lines are asked for."""


class TerminalProgress(ProgressListener):
    """Shows the progress and the cost of a run; nothing with `--progress none`."""

    def __init__(self, mode: Mode) -> None:
        self._mode = choose_mode(mode)
        self._says_start = mode == self._mode == "plain"
        self._wait = _FIRST_SECONDS if self._says_start else PLAIN_SECONDS
        self._bars: Bars | None = None
        self._tasks: Mapping[str, TaskID] = {}
        self._done = {"asked": 0, "judged": 0, "failed": 0}
        self._total = (0, 0)
        self._tokens = 0
        self._last = time.monotonic()

    def start(self, asks: int, judgements: int) -> None:
        """Show the bars."""
        self._total = (asks, judgements)
        if self._says_start:
            output.talk(
                f"to do: {output.plural(asks, 'answer')}, {output.plural(judgements, 'verdict')}"
            )
        if self._mode != "auto":
            return
        self._bars, self._tasks = make_bars({"asked": asks, "judged": judgements})
        self._bars.start()

    def advance(self, kind: str, count: int) -> None:
        """Count finished calls, and show them."""
        self._done[kind] += count
        if self._bars:
            if kind in self._tasks:
                self._bars.advance(self._tasks[kind], count)
            self._show_figures()
        elif self._mode == "plain" and time.monotonic() - self._last > self._wait:
            self._last, self._wait = time.monotonic(), PLAIN_SECONDS
            asks, judgements = self._total
            verdicts = self._verdicts
            parts = (
                f"asked {self._done['asked']}/{asks}",
                f"judged {self._done['judged']}/{judgements}"
                + (f" ({verdicts})" if verdicts else ""),
                self._failed,
                self._spent(),
            )
            output.talk(", ".join(filter(None, parts)))

    @property
    def _verdicts(self) -> str:
        """Return how many new judgements have each verdict; empty if there are none."""
        return verdict_counts(self.verdict_counts, signs=False)

    @property
    def _failed(self) -> str:
        """Return how many calls have failed; empty if none has."""
        count = self._done["failed"]
        return f"{output.plural(count, 'call')} failed" if count else ""

    def spent(self, usd: float | None, tokens: int) -> None:
        """Add to the bill."""
        super().spent(usd, tokens)
        self._tokens += tokens
        self._show_figures()

    def _spent(self) -> str:
        usd = known_price(self.usd, not self.is_priced, brief=True)
        return f"{usd}, {output.count(self._tokens)} tokens"

    def _show_figures(self) -> None:
        """Show the verdicts, the failed calls and the cost below the bars."""
        if self._bars:
            self._bars.show(self._verdicts, self._failed, self._spent())

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        if self._bars:
            text = output.safe(for_here(message))
            self._bars.console.print(text, markup=False, highlight=False)
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
        if self._bars:
            self._bars.stop()
            self._bars = None


# --- bars for the calls of a run in a terminal, and a line of figures below them


_NAMES = {"asked": "asking ", "judged": "judging"}
_BAR, _LEAST_BAR = 30, 5
"""The columns of a bar, at most and at least."""
_BESIDE = 50
"""The columns beside it, with numbers of three digits."""


class Bars(Progress):
    """Bars with a line below them."""

    figures = Text()

    def show(self, verdicts: str, failed: str, spent: str) -> None:
        """Show the verdicts so far, the failed calls and the cost below the bars."""
        parts = [(verdicts, ""), (failed, "red"), (spent, "")]
        spans = [
            (f"{'  ' * bool(number)}{text}", style)
            for number, (text, style) in enumerate((text, style) for text, style in parts if text)
        ]
        self.figures = Text.assemble(*spans, no_wrap=True, overflow="ellipsis")

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bars and the line."""
        yield from super().get_renderables()
        if self.figures:
            yield self.figures


def make_bars(totals: Mapping[str, int]) -> tuple[Bars, dict[str, TaskID]]:
    """Return a bar for the answers and one for the judgements of a run, where there are any.

    `totals` are the numbers to be `asked` and `judged`.
    """
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
    return bars, {
        kind: bars.add_task(_NAMES[kind], total=total) for kind, total in totals.items() if total
    }


_NAMED = 3
"""Files that are named when they change; more of them are only counted."""


def keep_watching(
    selection: SelectionOptions, options: RunOptions, show: Callable[[RunReport], None]
) -> int:
    """Run and watch until Ctrl-C or until `max_cost` is used up; the exit code.

    Waiting ends with the exit code of the last round, and a round that is interrupted with its
    own. What is wrong in a round is said, and the next change is another chance; only what is
    wrong with the command itself ends it at once.
    """
    watch = Watch(here(), selection, options)
    exit_code = None
    while True:
        try:
            _listen()
            exit_code = _go_round(watch, show, is_first=exit_code is None)
        except KeyboardInterrupt:
            exit_code = INTERRUPTED
        if exit_code == INTERRUPTED or output.lost_output():
            break
        if watch.is_used_up:
            output.talk("the watch ends: the next call may cost more than is left")
            most = output.money(options.max_cost)
            output.talk(f"  ({output.money(watch.spent)} of the {most} of --max-cost are spent)")
            return STOPPED
        try:
            _listen()
            output.talk(f"{_clock()} watching for changes; Ctrl-C ends")
            _print_rule(watch.wait())
        except KeyboardInterrupt:
            break
    # The terminal has shown `^C` at the place where the cursor was.
    output.talk(f"\nended after {output.plural(watch.runs, 'run')}, {output.money(watch.spent)}")
    return exit_code


def _go_round(watch: Watch, show: Callable[[RunReport], None], *, is_first: bool) -> int:
    """Run the pending work, if there is any; returns the exit code if this is the last round."""
    try:
        status = watch.plan()
        if status is None:
            output.talk("nothing to do")
        else:
            output.talk(_summary(status))
            report = watch.run(TerminalProgress(Globals.progress))
            show(report)
    except NothingSelectedError as problem:
        output.talk(str(problem))
        return watch.report.exit_code if watch.report else problem.exit_code
    except EvalstoreError as problem:
        if is_first and problem.exit_code == USAGE and not isinstance(problem, WorkspaceError):
            raise
        output.failure(problem)
        return problem.exit_code
    assert watch.report is not None
    return watch.report.exit_code


def _summary(status: Status) -> str:
    """Describe what a run would do, and its price."""
    parts = [f"{output.plural(status.ask, 'answer')} to ask"] if status.ask else []
    parts += [f"{judgements_text(status)} to make"] if status.judge else []
    if not parts and (status.left_asks or status.left_judgements):
        return "nothing to ask or judge: no model may be called for what is left"
    if not parts:
        return "nothing to ask or judge: everything is stored"
    price = price_text(status) if status.cost != 0 else "at no cost"
    return f"{' and '.join(parts)}, {price}"


def _print_rule(changed: list[str]) -> None:
    """Print a rule between two rounds with the time and the saved files."""
    files = ", ".join(changed) if len(changed) <= _NAMED else output.plural(len(changed), "file")
    columns = min(output.width(), 80)
    text = output.clip(f"── {_clock()} {files}", columns - 3)
    output.talk("")
    output.talk(output.faint(f"{text} {'─' * (columns - 1 - output.columns_of(text))}"))


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _listen() -> None:
    """Let SIGTERM do what Ctrl-C does; a run puts handlers of its own in the place."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_number: int, _frame: object) -> Never:
    raise KeyboardInterrupt
