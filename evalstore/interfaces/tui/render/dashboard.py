"""The state of the workspace as lines above the list of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    clip,
    columns_of,
    interval_bar,
    percent,
    plural,
    safe,
)
from evalstore.interfaces.tui.render.plot import (
    PlottedLine,
    PlottedPoint,
    Series,
    beside,
    plot_lines,
    series_line,
)
from evalstore.interfaces.tui.render.verdicts import READING, problem_text, when
from evalstore.runs.status.status_text import pending_text, remote_texts

if TYPE_CHECKING:
    from evalstore.comparison.statistics import Rate
    from evalstore.planning.status.status_report import FileChange, Status
    from evalstore.results.flips.broken_results import BrokenCase
    from evalstore.results.table.cases import RunLine
    from evalstore.runs.status.dashboard import Dashboard

_LABEL = 12
_BAR = 20
_GAP = 3
_MOST_POINTS = 60
"""Runs that a trend shows."""
_WIDE, _FIGURES = 140, 100
"""The width from which on the trend stands beside the figures, and their width at most."""


def dashboard_lines(
    dashboard: Dashboard | None,
    runs: Sequence[RunLine],
    width: int,
    height: int,
    *,
    note: str = "",
    running: Sequence[str] = (),
) -> Iterator[StyledLine]:
    """Yield the pass rate, pending work, what is broken now and the trend, in `height` lines.

    `runs` are the newest first. In one line is what broke, or else what is pending. Figures that
    are old are faint, and the `note` says so. In place of pending work is what a run does that is
    `running`, in ever fewer words.
    """
    is_wide = width >= _WIDE
    room = min(_FIGURES, width // 2) if is_wide else width
    now = dashboard.rate if dashboard and not dashboard.verdicts.get("pending") else None
    trend = rate_series(runs, now)
    left = [*_faint(_figure_lines(dashboard, runs, room, note), is_old=bool(note))]
    if running:
        left_room = room - _LABEL
        text = next((text for text in running if columns_of(text) <= left_room), running[-1])
        left[1] = _line("running", StyledSpan(clip(text, left_room), "pending"))
    if height < 2:
        is_broken = dashboard is not None and bool(dashboard.broken) and not running
        yield left[0 if note else 2 if is_broken else 1]
    elif not is_wide:
        yield from left[:3]
        yield _line("trend", *series_line(trend, width - _LABEL).spans)
    elif trend.values:
        points = [PlottedPoint(number, rate) for number, rate in enumerate(trend.values)]
        plotted = PlottedLine("pass rate", points)
        plot = plot_lines([plotted], trend.times, width - room - _GAP, height)
        yield from beside(left, list(plot), room + _GAP)
    else:
        yield from left


def _faint(lines: Iterable[StyledLine], *, is_old: bool) -> Iterator[StyledLine]:
    for line in lines:
        spans = tuple(span._replace(colour="faint") for span in line.spans)
        yield line._replace(spans=spans) if is_old else line


def rate_series(runs: Sequence[RunLine], now: Rate | None = None) -> Series:
    """Return the pass rates of runs, which are the newest first, and that of the workspace `now`.

    Partial runs, which say nothing of all cases, and runs without a verdict are left out; so is
    the workspace, without `now`, while results are pending.
    """
    judged = [run for run in runs if run.rate is not None and not run.is_partial]
    judged = judged[:_MOST_POINTS][::-1]
    rates, times = [run.rate or 0.0 for run in judged], [when(run.started) for run in judged]
    if not rates:
        return Series((), "", "no run of all cases yet")
    if now is not None and now.rate is not None:
        rates, times = [*rates, now.rate], [*times, "now"]
    first, last = percent(rates[0]), percent(rates[-1])
    if len(rates) < 2:
        last = f"{last} in one run of all cases"
    return Series(rates, first, last, times)


def _figure_lines(
    dashboard: Dashboard | None, runs: Sequence[RunLine], width: int, note: str
) -> Iterator[StyledLine]:
    """Yield the figures, each in a line that fits; the note stands in the first one."""
    room = width - _LABEL
    problem = dashboard.problem if dashboard else None
    if dashboard is None:
        for label, text in (("passing now", note or READING), ("pending", ""), ("broken now", "")):
            yield _line(label, StyledSpan(text or READING, "faint"))
        return
    notes = [StyledSpan(f"  {note}", "faint")] if note else []
    if problem is not None:
        unreadable = StyledSpan("the workspace cannot be read", "fail")
        yield _line("passing now", unreadable, *notes)
        first = problem_text(problem).split("\n")[0]
        yield _line("pending", StyledSpan(clip(first, room), "fail"))
    else:
        left = room - sum(len(note.text) for note in notes)
        figure, *rest = _rate_spans(dashboard, left)
        yield _line("passing now", figure, *notes, *rest)
        yield _line("pending", *_pending_spans(dashboard.status, room))
    if dashboard.broken is None:
        yield _line("broken now", StyledSpan("unknown until the settings can be read", "faint"))
    else:
        yield _line("broken now", *_broken_spans(dashboard.broken, runs, room))
    if dashboard.status:
        yield _line("edited", *_edited_spans(dashboard.status, room))


def _line(label: str, *spans: StyledSpan) -> StyledLine:
    return StyledLine((StyledSpan(f"{label:<{_LABEL}}", "faint"), *spans))


def _rate_spans(dashboard: Dashboard, room: int) -> tuple[StyledSpan, ...]:
    """Return the pass rate with its interval as numbers and as a bar."""
    rate, undecided = dashboard.rate, dashboard.verdicts.get("undecided")
    if rate is None or rate.interval is None:
        return (StyledSpan("nothing is judged yet", "faint"),)
    low, high = rate.interval
    text = f"{rate.text} of {rate.judged:,}"
    text += f", {undecided:,} undecided" if undecided else ""
    interval = f"95% interval {100 * low:.1f} to {percent(high)}"
    drawn = interval_bar(rate.interval, rate.rate, _BAR)
    parts = (text, drawn, interval) if room > _BAR + 56 else (text, interval)
    rest = clip("  ".join(parts[1:]), max(1, room - columns_of(text) - 2))
    return (StyledSpan(text, "heading"), StyledSpan(f"  {rest}"))


def _pending_spans(status: Status | None, room: int) -> tuple[StyledSpan, ...]:
    if status is None:
        return ()
    has_work = status.is_any or bool(status.untrusted or status.labels)
    long, brief = pending_text(status), pending_text(status, brief=True)
    remotes = remote_texts(status, brief=True)
    unmarked = pending_text(replace(status, is_simulated=False), brief=True)
    texts = ("; ".join([long, *remotes]), "; ".join([brief, *remotes]), long, brief)
    text = next((text for text in texts if columns_of(text) <= room), unmarked)
    return (StyledSpan(clip(text, room), "pending" if has_work else ""),)


def _edited_spans(status: Status, room: int) -> tuple[StyledSpan, ...]:
    if not (status.changes or status.edits):
        return (StyledSpan("no test file since the last run" if status.last_run else ""),)
    files, used = edited_files(status.changes), used_by_files(status.changes)
    names = [", ".join(used)] if used else []
    names += [f"{plural(len(files), 'test file')}: {', '.join(files)}"] if files else []
    text = "; ".join([*names, *(str(each.edit) for each in status.edits)])
    return (StyledSpan(clip(text, room)),)


def edited_files(changes: Sequence[FileChange]) -> list[str]:
    """Return the test files that were edited themselves."""
    return [change.file for change in changes if change.file in change.sources]


def used_by_files(changes: Sequence[FileChange]) -> list[str]:
    """Return what else was edited, such as `rows of tests/data/letters.csv`, each once.

    What is as in earlier runs again is `system prompt brief (reverted)`.
    """
    names = dict.fromkeys(
        name for change in changes for name in change.sources if name != change.file
    )
    edited = {name for change in changes if not change.is_reverted for name in change.sources}
    return [name if name in edited else f"{name} (reverted)" for name in names]


def _broken_spans(
    broken: Sequence[BrokenCase], runs: Sequence[RunLine], room: int
) -> tuple[StyledSpan, ...]:
    """Return the names of cases, as many as fit, and when they broke."""
    if not broken:
        text = "none" if len(runs) > 1 else "no earlier run"
        return (StyledSpan(clip(text, room), "faint"),)
    count = len(broken)
    while count > 1 and columns_of("".join(span.text for span in _named(broken, count))) > room:
        count -= 1
    name, *rest = _named(broken, count)
    if count == 1:
        left = room - columns_of("".join(span.text for span in rest))
        name = name._replace(text=clip(name.text, max(8, left)))
    return name, *rest


def _named(broken: Sequence[BrokenCase], count: int) -> Iterator[StyledSpan]:
    """Yield the first cases, those of each run with its time, and how many there are besides."""
    separator = ""
    for started, cases in groupby(broken[:count], key=lambda case: case.started):
        names = ", ".join(safe(case.name) for case in cases)
        yield StyledSpan(f"{separator}{names}", "fail")
        yield StyledSpan(f" ({when(started) if started else 'since the last run'})", "faint")
        separator = ", "
    if count < len(broken):
        yield StyledSpan(f", {len(broken) - count:,} more", "faint")
