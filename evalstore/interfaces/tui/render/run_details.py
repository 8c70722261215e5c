"""The list of runs: its columns, the details below it, and the state of the workspace above it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.comparison.statistics import Rate
from evalstore.core.display import (
    BLANK,
    LAST_RUNS,
    STILL_BROKEN,
    StyledLine,
    StyledSpan,
    clip,
    columns_of,
    cost_text,
    heading,
    interval_bar,
    is_simulated,
    percent,
    plural,
    safe,
    short,
    status_word,
    text_lines,
    verdict_counts,
    widest,
)
from evalstore.core.runs import SIMULATED, shared_cost_text
from evalstore.interfaces.tui.grid import Column, StyledCell
from evalstore.interfaces.tui.page_lines import READING
from evalstore.interfaces.tui.render.charts import (
    Series,
    series_line,
    verdict_strip,
)
from evalstore.interfaces.tui.render.verdicts import problem_text, when
from evalstore.planning.first_pushes import push_text
from evalstore.planning.options import selection_text
from evalstore.planning.status_report import FileChange
from evalstore.results.compare.diff_result import FLIPS
from evalstore.results.flips.verdict_changes import BrokenCase, RunDifferences
from evalstore.results.table.cases import RunLine
from evalstore.runs.run_text import run_counts_text
from evalstore.runs.status.status_text import (
    in_progress_text,
    pending_text,
    remote_texts,
)
from evalstore.store.shared_runs import RunInProgress

if TYPE_CHECKING:
    from evalstore.runs.status.dashboard import Dashboard


STOPPED = {
    "interrupted": ("■", "It was stopped before its end"),
    "over budget": ("$", "It was stopped at the cost or time limit"),
    "incomplete": ("!", "It ended, but calls failed or work is still pending"),
}
"""The signs and the meanings of the states of runs that are not complete."""
STAR = "*"
"""The sign of a change in points that does not show all that differs."""
FIRST = 20
"""Runs that are compared with those before them at once, the others when they are drawn."""
_LISTED = 20
"""What was edited, of which more are only counted."""


_NEVER = """\
Nothing has been run yet.

{page.run} asks and judges what the workspace has; so does 'evalstore run'."""


def workspace_lines(
    dashboard: Dashboard | None,
    runs: Sequence[RunLine],
    others: Sequence[RunInProgress],
    with_keys: Callable[[str], str],
    find: Callable[[str], RunDifferences | None],
) -> Iterator[StyledLine]:
    """Yield what the figures above the list have no room for: what broke, and what was edited.

    If `runs` are of scripted models, also that their costs are simulated; and what a star means,
    if the first ones have any by what `find` returns. At the end are the runs in progress of
    `others`.
    """
    yield heading("the workspace")
    if runs or (dashboard and dashboard.problem):
        first = range(min(len(runs), FIRST))
        is_star = any(STAR in change_cell(runs, number, find).text for number in first)
        yield from _state_lines(dashboard, runs, with_keys, is_star=is_star)
    else:
        yield from text_lines(with_keys(_NEVER))
    yield from other_run_lines(others)


def _state_lines(
    dashboard: Dashboard | None,
    runs: Sequence[RunLine],
    with_keys: Callable[[str], str],
    *,
    is_star: bool,
) -> Iterator[StyledLine]:
    if dashboard and dashboard.problem:
        yield from text_lines(problem_text(dashboard.problem), "error")
        yield from text_lines(with_keys("{history.status} lists what is wrong."), "faint")
    else:
        yield from text_lines(with_keys("{list.open} shows the current verdicts of all cases."))
        yield from text_lines(
            with_keys("{history.status} shows what a run would do, why, and its cost."), "faint"
        )
    if any(is_simulated(run.spending) for run in runs):
        yield from text_lines(f"{SIMULATED}.", "faint")
    if is_star:
        text = f"{STAR} More differs than the change shows: the details of that run list it."
        yield from text_lines(text, "faint")
    if dashboard is None:
        return
    if dashboard.verdicts:
        yield from text_lines(verdict_counts(dashboard.verdicts))
    if dashboard.broken:
        yield BLANK
        yield heading(STILL_BROKEN.lower())
        yield from text_lines(with_keys("{history.broken} lists them."), "faint")
        listed = dashboard.broken[:_LISTED]
        for run, cases in groupby(listed, key=lambda case: (case.run, case.started)):
            since = f"run {short(run[0])}, {when(run[1])}" if run[0] else "since the last run"
            yield from text_lines(since, "faint", 2)
            for case in cases:
                yield from text_lines(case.name, "fail", 4)
        if more := len(dashboard.broken) - len(listed):
            yield from text_lines(f"… {more:,} more", "faint", 2)
    changes = dashboard.status.changes if dashboard.status else ()
    if changes:
        yield BLANK
        yield heading("edited since the last run")
        edited = [*used_by_files(changes), *edited_files(changes)]
        for text in edited[:_LISTED]:
            yield from text_lines(text, indent=2)
        if len(edited) > _LISTED:
            yield from text_lines(f"… {len(edited) - _LISTED:,} more", "faint", 2)


def run_lines(
    runs: Sequence[RunLine],
    number: int,
    find: Callable[[str], RunDifferences | None],
    with_keys: Callable[[str], str],
) -> Iterator[StyledLine]:
    """Yield what a run did; `find` returns the differences of a run from earlier verdicts."""
    run = runs[number]
    git = f"  git {run.git.text}" if run.git else ""
    yield heading(f"run {run.id[:8]}{git}  {run.named}{run.message or ''}".rstrip())
    share = f"{run.verdicts['pass']:,} of {run.counted:,} passed"
    if not run.is_partial:
        share = f"{percent(run.rate)} of {run.counted:,}"
    share = "nothing judged" if run.rate is None else share
    yield from text_lines(f"{verdict_counts(run.verdicts)}: {share}")
    failed = f", {plural(run.failed, 'call')} failed" if run.failed else ""
    seconds = (run.ended - run.started) / 1e6
    yield from text_lines(f"{run_counts_text(run)}{failed}")
    yield from _difference_lines(runs, number, find)
    if run.status in STOPPED:
        why = STOPPED[run.status][1]
        hint = with_keys("{list.open} shows its cases, {page.run} does what is left.")
        yield from text_lines(f"{why}: {hint}", "pending")
    if run.push:
        by = f", run by {run.author}" if run.author else ""
        yield from text_lines(f"{push_text(run.push)}{by}", "faint")
    elif run.author and any(each.author != run.author for each in runs):
        yield from text_lines(f"run by {run.author}", "faint")
    yield from text_lines(f"candidates: {', '.join(run.models)}", "faint")
    cost = shared_cost_text(run.cost, run.spending)
    yield from text_lines(f"cost: {cost}; took {seconds:.1f} s", "faint")
    selection = selection_text(run.selection)
    if run.is_partial:
        yield from text_lines(f"partial run: {selection}", "pending")
    elif selection:
        yield from text_lines(f"arguments: {selection}", "faint")


def _difference_lines(
    runs: Sequence[RunLine], number: int, find: Callable[[str], RunDifferences | None]
) -> Iterator[StyledLine]:
    """Yield what was edited, what differs from the last verdicts before, and why a star."""
    run = runs[number]
    if run.edits:
        yield from text_lines(f"edits: {'; '.join(run.edits)}", "faint")
    is_whole = run.rate is not None and not run.is_partial
    differences = find(run.id)
    new = differences.first_judged if differences else 0
    if is_whole and new:
        text = f"{new:,} of {plural(run.counted, 'result')} had no verdict before"
        yield from text_lines(f"{STAR} {text}: the change leaves them out", "faint")
    if differences and differences.line:
        star = f"{STAR} " if differences.is_hidden and is_whole else ""
        yield StyledLine((StyledSpan(star), *differences.line.spans))
        for change, name in differences.names:
            spans = (StyledSpan(f"{change}  ", FLIPS[change]), StyledSpan(safe(name)))
            yield StyledLine(spans, indent=2, hang=len(change) + 2)
        if more := differences.broke + differences.fixed - len(differences.names):
            yield from text_lines(f"… {more:,} more", "faint", 2)


# --- the runs in progress of other programs


def other_run_lines(runs: Sequence[RunInProgress]) -> Iterator[StyledLine]:
    """Yield all that is known of each run, below a heading; nothing without runs."""
    if runs:
        yield BLANK
        yield heading("in progress in other programs")
        for run in runs:
            yield from text_lines(in_progress_text(run), indent=2)


# --- the columns of the list of runs, which of them there is room for, and some of their cells


STRIP = 10
"""Cells of the strip of verdicts."""
_FROM = 18
"""The most columns of who pushed a run."""
_NOTE = len("current cases")
_CELLS = (
    *("run", "when", "sign", "state", "passed", "change", "of", "cost", "verdicts"),
    *("asked", "judged", "reused", "from", "message"),
)
"""The cells of a line."""


def run_columns(runs: Sequence[RunLine], state: Dashboard | None = None) -> list[Column]:
    """Return the columns; in a narrow table the later ones are left out first.

    The message comes before what is at its left, unless all are empty.
    """
    states = (status_word(run.status) for run in runs if run.status != "complete")
    counted = widest([_state_text(state), *map(passed_text, runs)])
    costs = widest(["cost", *(cost_text(run.cost, run.spending, brief=True) for run in runs)])
    message = widest(run.message or "" for run in runs)
    rank = 3 if message or not runs else 9
    return [
        Column("run", 9),
        Column("when", 14),
        Column("", 1),
        Column("state", widest(states), rank=1),
        Column("passed", 6, right=True),
        Column("change", 7, right=True, rank=2),
        Column("of", counted, right=True, rank=5),
        Column("cost", costs, right=True, rank=6),
        Column("verdicts", STRIP, rank=4),
        *(Column(name, 6, right=True, rank=7) for name in ("asked", "judged", "reused")),
        Column("from", min(widest(run.push.writer for run in runs if run.push), _FROM), rank=8),
        Column("message", max(message, _NOTE), least=12, rank=rank, grows=True),
    ]


def state_cells(state: Dashboard | None, message: str, note: str) -> Sequence[StyledCell]:
    """Return the line of the workspace, with the figures of its state once it has been read.

    Figures that are old are faint, and the `note` stands in place of `now`, without its numbers.
    """
    cells = dict.fromkeys(_CELLS, StyledCell(""))
    when = READING if note.startswith(READING) else note or "now"
    cells |= {"run": StyledCell("workspace", "group"), "when": StyledCell(when)}
    if state and state.rate:
        colour = "faint" if note else ""
        strip = verdict_strip(state.verdicts, STRIP)
        if note:
            strip = tuple(span._replace(colour="faint") for span in strip)
        cells["passed"] = StyledCell(percent(state.rate.rate), colour)
        cells["of"] = StyledCell(_state_text(state), colour)
        cells["verdicts"] = StyledCell(verdict_counts(state.verdicts, signs=False), parts=strip)
    cells["message"] = StyledCell(message, "faint")
    return [*cells.values()]


def _state_text(state: Dashboard | None) -> str:
    return f"{state.rate.passed:,}/{state.rate.judged:,}" if state and state.rate else ""


def passed_text(run: RunLine) -> str:
    """Return how many of the judged cases passed: `7/8`."""
    return f"{run.verdicts['pass']:,}/{run.counted:,}"


def change_cell(
    runs: Sequence[RunLine], number: int, find: Callable[[str], RunDifferences | None]
) -> StyledCell:
    """Return by how many points flips have changed the rate, or that the run is partial.

    With a star it does not show all that differs. `find` returns the differences of a run.
    """
    run = runs[number]
    if run.is_partial:
        return StyledCell("partial", "faint")
    differences = find(run.id)
    new = differences.first_judged if differences else 0
    if run.counted == new or differences is None or differences.is_first:
        return StyledCell("")
    points = round(100 * (differences.fixed - differences.broke) / (run.counted - new), 1)
    star = STAR * differences.is_hidden
    if not points:
        return StyledCell(f"0.0{star}", "faint")
    return StyledCell(f"{points:+.1f}{star}", "pass" if points > 0 else "fail")


# --- the state of the workspace above the list


_LABEL = 12
_BAR = 20
_MOST_POINTS = 60
"""Runs that a trend shows."""


def dashboard_lines(
    dashboard: Dashboard | None,
    runs: Sequence[RunLine],
    width: int,
    height: int,
    *,
    note: str = "",
    running: str = "",
) -> Iterator[StyledLine]:
    """Yield the pass rate, pending work, what is broken and the trend, in `height` lines.

    `runs` are the newest first. In one line is what broke, or else what is pending. Figures that
    are old are faint, and the `note` says so. In place of pending work is what a run does that is
    `running`.
    """
    now = dashboard.rate if dashboard and not dashboard.verdicts.get("pending") else None
    lines = [*_figure_lines(dashboard, runs, width, note)]
    if note:
        lines = [
            line._replace(spans=tuple(span._replace(colour="faint") for span in line.spans))
            for line in lines
        ]
    if running:
        lines[1] = _line("running", StyledSpan(clip(running, width - _LABEL), "pending"))
    if height < 2:
        is_broken = dashboard is not None and bool(dashboard.broken) and not running
        yield lines[0 if note else 2 if is_broken else 1]
    else:
        yield from lines
        yield _line("trend", *series_line(rate_series(runs, now), width - _LABEL).spans)


def rate_series(runs: Sequence[RunLine], now: Rate | None = None) -> Series:
    """Return the pass rates of runs, which are the newest first, and that of the workspace `now`.

    Partial runs, which say nothing of all cases, and runs without a verdict are left out; so is
    the workspace, without `now`, while results are pending.
    """
    judged = [run for run in runs if run.rate is not None and not run.is_partial]
    judged = judged[:_MOST_POINTS][::-1]
    rates = [run.rate or 0.0 for run in judged]
    if not rates:
        return Series((), "", "no run of all cases yet")
    if now is not None and now.rate is not None:
        rates = [*rates, now.rate]
    first, last = percent(rates[0]), percent(rates[-1])
    if len(rates) < 2:
        last = f"{last} in one run of all cases"
    return Series(rates, first, last)


def _figure_lines(
    dashboard: Dashboard | None, runs: Sequence[RunLine], width: int, note: str
) -> Iterator[StyledLine]:
    """Yield the figures, each in a line that fits; the note stands in the first one."""
    room = width - _LABEL
    problem = dashboard.problem if dashboard else None
    if dashboard is None:
        for label, text in (("passing now", note or READING), ("pending", ""), ("broken", "")):
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
        if status := dashboard.status:
            has_work = status.is_any or bool(status.untrusted or status.labels)
            work = "; ".join([pending_text(status), *remote_texts(status, brief=True)])
            yield _line("pending", StyledSpan(clip(work, room), "pending" if has_work else ""))
        else:
            yield _line("pending")
    if dashboard.broken is None:
        yield _line("broken", StyledSpan("unknown until the settings can be read", "faint"))
    else:
        yield _line("broken", *_broken_spans(dashboard.broken, runs, room))


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
    """Return the names of cases, those of each run with its time, and how many there are."""
    if not broken:
        text = f"none {LAST_RUNS}" if len(runs) > 1 else "no earlier run"
        return (StyledSpan(clip(text, room), "faint"),)
    total = f"{len(broken):,} {LAST_RUNS}: " if len(broken) > 1 else ""
    texts = []
    for started, cases in groupby(broken[:_LISTED], key=lambda case: case.started):
        since = when(started) if started else "since the last run"
        texts.append(f"{', '.join(case.name for case in cases)} ({since})")
    names = clip(", ".join(texts), max(1, room - columns_of(total)))
    return StyledSpan(total, "faint"), StyledSpan(names, "fail")
