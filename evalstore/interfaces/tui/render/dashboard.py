"""The state of the workspace as lines above the list of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.core.display import clip, columns_of, interval_bar, percent, plural, safe
from evalstore.core.styled_text import StyledLine, StyledSpan
from evalstore.interfaces.tui.render.documents.reading import READING, problem_text
from evalstore.interfaces.tui.render.plot import (
    PlottedLine,
    PlottedPoint,
    Series,
    beside,
    plot_lines,
    series_line,
)
from evalstore.interfaces.tui.render.verdicts import when
from evalstore.results.edits.change_text import prompts_text
from evalstore.runs.status.status_text import pending_text, price_text, remote_texts

if TYPE_CHECKING:
    from evalstore.comparison.statistics import Rate
    from evalstore.planning.status.status_report import FileChange, Status
    from evalstore.results.flips.broken_results import BrokenCase
    from evalstore.results.table.cases import RunLine
    from evalstore.runs.status.dashboard import Dashboard


_Part = tuple[str, str]
"""A text of the brief line, and its colour."""
_NAMED = 3
"""Cases that broke which the brief line names."""
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
    """Yield the pass rate, pending work, what broke last and the trend, in `height` lines.

    `runs` are the newest first. With one line the figures alone are shown. Figures that are old are
    faint, and the `note` says so. In place of pending work is what a run does that is `running`, in
    ever fewer words.
    """
    if height < 2:
        line = _brief_line(dashboard, runs, width, note, running)
        yield from _faint([line], is_old=bool(note))
        return
    is_wide = width >= _WIDE
    room = min(_FIGURES, width // 2) if is_wide else width
    now = dashboard.rate if dashboard and not _is_partial(dashboard) else None
    trend = rate_series(runs, "pass rate", now)
    left = [*_faint(_figure_lines(dashboard, runs, room, note), is_old=bool(note))]
    if running:
        left[1] = _line("running", _running_span(running, room - _LABEL))
    if not is_wide:
        yield from left[:3]
        yield _line("trend", *series_line(trend._replace(title=""), width - _LABEL).spans)
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


def rate_series(runs: Sequence[RunLine], title: str, now: Rate | None = None) -> Series:
    """Return the pass rates of runs, which are the newest first, and that of the workspace `now`.

    Partial runs, which say nothing of all cases, and runs without a verdict are left out; so is
    the workspace, without `now`, while results are pending.
    """
    judged = [run for run in runs if run.rate is not None and not run.is_partial]
    judged = judged[:_MOST_POINTS][::-1]
    rates, times = [run.rate or 0.0 for run in judged], [when(run.started) for run in judged]
    if not rates:
        return Series(title, (), "", "no run of all cases yet")
    about = f"{plural(len(rates), 'run')} of all cases"
    if now is not None and now.rate is not None:
        rates, times, about = [*rates, now.rate], [*times, "now"], f"{about} and now"
    first, last = percent(rates[0]), percent(rates[-1])
    if len(rates) < 2:
        return Series(title, rates, first, f"{last} in one run of all cases", times)
    return Series(f"{title}, {about}", rates, first, last, times)


def _figure_lines(
    dashboard: Dashboard | None, runs: Sequence[RunLine], width: int, note: str
) -> Iterator[StyledLine]:
    """Yield the figures, each in a line that fits; the note stands in the first one."""
    room = width - _LABEL
    problem = dashboard.problem if dashboard else None
    if dashboard is None:
        for label, text in (("passing now", note or READING), ("pending", ""), ("broke last", "")):
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
        figure, *rest = _rate_spans(dashboard.rate, left, is_partial=_is_partial(dashboard))
        yield _line("passing now", figure, *notes, *rest)
        yield _line("pending", *_pending_spans(dashboard.status, room))
    if dashboard.broken is None:
        yield _line("broke last", StyledSpan("known when the settings can be read", "faint"))
    else:
        yield _line("broke last", *_broken_spans(dashboard.broken, runs, room))
    if dashboard.status:
        yield _line("edited", *_edited_spans(dashboard.status, room))


def _line(label: str, *spans: StyledSpan) -> StyledLine:
    return StyledLine((StyledSpan(f"{label:<{_LABEL}}", "faint"), *spans))


def _is_partial(dashboard: Dashboard) -> bool:
    """Return whether the pass rate is that of some cases only: other results are pending."""
    return bool(dashboard.verdicts.get("pending"))


def _rate_spans(rate: Rate | None, room: int, *, is_partial: bool) -> tuple[StyledSpan, ...]:
    """Return a pass rate with its interval as numbers and as a bar; `~` says that it is partial."""
    if rate is None or rate.interval is None:
        return (StyledSpan("nothing is judged yet", "faint"),)
    low, high = rate.interval
    text = f"{'~' * is_partial}{rate.text} of {rate.judged:,}"
    interval = f"95% interval {100 * low:.1f} to {percent(high)}"
    drawn = interval_bar(rate.interval, rate.rate, _BAR)
    parts = (text, drawn, interval) if room > _BAR + 56 else (text, interval)
    rest = clip("  ".join(parts[1:]), max(1, room - columns_of(text) - 2))
    return (StyledSpan(text, "heading"), StyledSpan(f"  {rest}"))


def _running_span(texts: Sequence[str], room: int) -> StyledSpan:
    text = next((text for text in texts if columns_of(text) <= room), texts[-1])
    return StyledSpan(clip(text, room), "pending")


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
    names = [f"{plural(len(files), 'test file')}: {', '.join(files)}"] if files else []
    names += [", ".join(used)] if used else []
    text = "; ".join([*edited_prompts(status.changes), *names, *map(str, status.edits)])
    return (StyledSpan(clip(text, room)),)


def edited_prompts(changes: Sequence[FileChange]) -> Iterator[str]:
    """Yield the system prompts that were edited, in a line: `system prompt brief`.

    Those that are as in earlier runs again are `system prompt brief (reverted)`.
    """
    names = {name for change in changes for name in change.prompts}
    edited = {name for change in changes if not change.is_reverted for name in change.prompts}
    if edited:
        yield prompts_text(sorted(edited))
    if names - edited:
        yield f"{prompts_text(sorted(names - edited))} (reverted)"


def edited_files(changes: Sequence[FileChange]) -> list[str]:
    """Return the test files that were edited themselves."""
    return [change.file for change in changes if change.file in change.sources]


def used_by_files(changes: Sequence[FileChange]) -> list[str]:
    """Return what else was edited, such as `rows of tests/data/letters.csv`, each once."""
    prompts = {prompts_text([name]) for change in changes for name in change.prompts}
    names = (name for change in changes for name in change.sources if name != change.file)
    return [name for name in dict.fromkeys(names) if name not in prompts]


def _broken_spans(
    broken: Sequence[BrokenCase], runs: Sequence[RunLine], room: int
) -> tuple[StyledSpan, ...]:
    """Return the names of cases, as many as fit, and when they broke."""
    if not broken:
        text = "nothing unfixed in the last runs" if len(runs) > 1 else "there is no earlier run"
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
        yield StyledSpan(f" ({when(started)})", "faint")
        separator = ", "
    if count < len(broken):
        yield StyledSpan(f", {len(broken) - count:,} more", "faint")


def _brief_line(
    dashboard: Dashboard | None,
    runs: Sequence[RunLine],
    width: int,
    note: str,
    running: Sequence[str] = (),
) -> StyledLine:
    """Return the figures in one line: the most that fits of the rate, what broke, what is pending.

    What has no room is left out in whole: of what broke the names, then the price of pending work.
    """
    if dashboard is None:
        return StyledLine((StyledSpan(clip(note or READING, width), "faint"),))
    if dashboard.problem:
        return StyledLine((StyledSpan(clip(problem_text(dashboard.problem), width), "fail"),))
    rates, broke, pending = _rate_texts(dashboard, runs), _broke_texts(dashboard), [("", "")]
    if running:
        pending = [(text, "pending") for text in running]
    elif dashboard.status:
        pending = _brief_pending(dashboard.status)
    lines = [
        [(note, "faint"), rate, failed, work]
        for work in pending
        for failed in broke
        for rate in rates
    ]
    for parts in lines:
        spans = [StyledSpan(text, colour) for text, colour in parts if text]
        length = sum(columns_of(span.text) + 2 for span in spans) - 2
        if length <= width:
            break
    if length > width and spans:  # there are no fewer words for the last one
        last = spans.pop()
        spans.append(last._replace(text=clip(last.text, columns_of(last.text) - length + width)))
    comma = StyledSpan(", ")
    return StyledLine(tuple(it for span in spans for it in (comma, span))[1:])


def _rate_texts(dashboard: Dashboard, runs: Sequence[RunLine]) -> tuple[_Part, _Part]:
    """Return the pass rate with its interval, and without."""
    rate = dashboard.rate
    if not (rate and rate.interval):
        nothing = ("nothing judged" if runs else "", "")
        return nothing, nothing
    low, high = (round(100 * end) for end in rate.interval)
    text = f"{'~' * _is_partial(dashboard)}{percent(rate.rate)} pass"
    return (f"{text} ({low}-{high})", ""), (text, "")


def _broke_texts(dashboard: Dashboard) -> list[_Part]:
    """Return the names of the first cases that broke, of one, and how many these are."""
    broken = dashboard.broken
    if not broken:
        return [("", "")]
    texts = []
    for count in (_NAMED, 1):
        more = len(broken) - count
        names = ", ".join(safe(case.name) for case in broken[:count])
        texts.append(f"broke: {names}" + (f", {more:,} more" if more > 0 else ""))
    return [(text, "fail") for text in (*texts, f"{len(broken):,} broke")]


def _brief_pending(status: Status) -> list[_Part]:
    """Return what a run would do, in ever fewer words; the price is left out last."""
    colour = "pending" if status.is_any else ""
    text = pending_text(status, brief=True)
    count = status.ask + status.record + status.judge
    if not count:
        return [(text, colour)]
    price = price_text(replace(status, is_simulated=False), brief=True)
    brief = f"{count:,} pending"
    return [(text, colour), (f"{brief}, {price}", colour), (brief, colour)]
