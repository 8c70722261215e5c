"""`run --watch`: a run whenever files were saved."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Never

from evalstore.core.errors import (
    INTERRUPTED,
    STOPPED,
    USAGE,
    EvalstoreError,
    NothingSelectedError,
    WorkspaceError,
)
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.options import Globals, here
from evalstore.interfaces.cli.progress import TerminalProgress
from evalstore.planning.options import RunOptions, SelectionOptions
from evalstore.planning.status_report import Status
from evalstore.runs.run_report import RunReport
from evalstore.runs.status.status_text import judgements_text, price_text
from evalstore.runs.watch import Watch

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
