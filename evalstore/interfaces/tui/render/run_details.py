"""The details below the list of runs: of a run, or of the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.comparison.cost_text import SIMULATED
from evalstore.core.display import plural, safe, short
from evalstore.core.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    text_lines,
)
from evalstore.interfaces.tui.render.dashboard import (
    edited_files,
    edited_prompts,
    rate_series,
    used_by_files,
)
from evalstore.interfaces.tui.render.documents.reading import problem_text
from evalstore.interfaces.tui.render.other_runs import other_run_lines
from evalstore.interfaces.tui.render.plot import series_line
from evalstore.interfaces.tui.render.verdicts import when
from evalstore.planning.first_pushes import push_text
from evalstore.results.compare.diff_text import FLIPS
from evalstore.results.verdict_order import verdict_counts
from evalstore.runs.run_text import run_counts_text

if TYPE_CHECKING:
    from evalstore.results.flips.run_differences import RunDifferences
    from evalstore.results.table.cases import RunLine
    from evalstore.runs.status.dashboard import BrokenCase, Dashboard
    from evalstore.store.work.runs_in_progress import RunInProgress

_TREND = 90
"""The greatest width of the trend."""
STOPPED = {
    "interrupted": ("■", "It was stopped before its end"),
    "over budget": ("$", "It was stopped at the cost or time limit"),
    "incomplete": ("!", "It came to its end, but calls failed or something waits"),
}
"""The signs and the meanings of the states of runs that are not complete."""
STAR = "*"
"""The sign of a change in points that does not show all that differs."""
_NAMED = "the previous run of all cases,"
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
) -> Iterator[StyledLine]:
    """Yield what the figures above the list have no room for: what broke, and what was edited.

    If `runs` are of scripted models, also that their costs are simulated. At the end are the runs
    in progress of `others`.
    """
    yield heading("the workspace")
    if runs or (dashboard and dashboard.problem):
        yield from _state_lines(dashboard, runs, with_keys)
    else:
        yield from text_lines(with_keys(_NEVER))
    yield from other_run_lines(others)


def _state_lines(
    dashboard: Dashboard | None, runs: Sequence[RunLine], with_keys: Callable[[str], str]
) -> Iterator[StyledLine]:
    if dashboard and dashboard.problem:
        yield from text_lines(problem_text(dashboard.problem), "error")
        yield from text_lines(with_keys("{history.status} lists what is wrong."), "faint")
    else:
        yield from text_lines(with_keys("{list.open} shows the current verdicts of all cases."))
        yield from text_lines(
            with_keys("{history.status} shows what a run would do, why, and its cost."), "faint"
        )
    if any(run.is_simulated for run in runs):
        yield from text_lines(f"{SIMULATED}.", "faint")
    if dashboard is None:
        return
    if dashboard.verdicts:
        yield from text_lines(verdict_counts(dashboard.verdicts))
    if dashboard.broken:
        yield from _broken_lines(dashboard.broken, with_keys)
    changes = dashboard.status.changes if dashboard.status else ()
    if changes:
        yield BLANK
        yield heading("edited since the last run")
        edited = [*edited_prompts(changes), *used_by_files(changes), *edited_files(changes)]
        for text in edited[:_LISTED]:
            yield from text_lines(text, indent=2)
        if len(edited) > _LISTED:
            yield from text_lines(f"… {len(edited) - _LISTED:,} more", "faint", 2)


def _broken_lines(
    broken: Sequence[BrokenCase], with_keys: Callable[[str], str]
) -> Iterator[StyledLine]:
    """Yield all cases that broke and were not fixed since, by run."""
    yield BLANK
    yield heading("broke in the last runs and were not fixed since")
    yield from text_lines(with_keys("{history.broken} lists them."), "faint")
    for run, cases in groupby(broken, key=lambda case: (case.run, case.started)):
        yield from text_lines(f"run {short(run[0])}, {when(run[1])}", "faint", 2)
        for case in cases:
            yield from text_lines(case.name, "fail", 4)


def run_lines(
    runs: Sequence[RunLine],
    number: int,
    find: Callable[[str], RunDifferences | None],
    with_keys: Callable[[str], str],
    width: int = _TREND,
) -> Iterator[StyledLine]:
    """Yield what a run did; `find` returns the differences of a run from earlier verdicts."""
    run = runs[number]
    note = f"  {run.message}" if run.message else ""
    git = f"  git {run.git}" if run.git else ""
    yield heading(f"run {run.id[:8]}{git}{note}")
    share = "nothing judged" if run.rate is None else f"{100 * run.rate:.1f}% of {run.counted:,}"
    yield from text_lines(f"{verdict_counts(run.verdicts)}: {share}")
    failed = f", {plural(run.failed, 'call')} failed" if run.failed else ""
    seconds = (run.ended - run.started) / 1e6
    yield from text_lines(f"{run_counts_text(run)}{failed}")
    yield from _difference_lines(runs, number, find)
    if run.status in STOPPED:
        why = STOPPED[run.status][1]
        hint = with_keys("{list.open} shows its cases, {page.run} does what is left.")
        yield from text_lines(f"{why}: {hint}", "pending")
    yield from _origin_lines(run, runs)
    yield from text_lines(f"candidates: {', '.join(run.models)}", "faint")
    yield from text_lines(f"cost: {run.shared_cost}; took {seconds:.1f} s", "faint")
    yield from _selection_lines(run)
    yield BLANK
    title = "earlier pass rates" if run.is_partial else "pass rate"
    yield series_line(rate_series(runs[number:], title), min(_TREND, width))


def _origin_lines(run: RunLine, runs: Sequence[RunLine]) -> Iterator[StyledLine]:
    """Yield who pushed a run, and who made it if several have made runs."""
    if run.push:
        by = f", run by {run.author}" if run.author else ""
        yield from text_lines(f"{push_text(run.push)}{by}", "faint")
    elif run.author and any(each.author != run.author for each in runs):
        yield from text_lines(f"run by {run.author}", "faint")


def _selection_lines(run: RunLine) -> Iterator[StyledLine]:
    """Yield the options of a run, if it has any."""
    if run.is_partial:
        yield from text_lines(f"partial run: {run.selection}", "pending")
    elif run.selection:
        yield from text_lines(f"arguments: {run.selection}", "faint")


def run_before(runs: Sequence[RunLine], number: int) -> RunLine | None:
    """Return the previous run of all cases that judged some."""
    earlier = (run for run in runs[number + 1 :] if not run.is_partial)
    return next((run for run in earlier if run.rate is not None), None)


def _difference_lines(
    runs: Sequence[RunLine], number: int, find: Callable[[str], RunDifferences | None]
) -> Iterator[StyledLine]:
    """Yield what was edited, what differs from the last verdicts before, and why a star."""
    run, before = runs[number], run_before(runs, number)
    if run.edits:
        yield from text_lines(f"edits: {'; '.join(run.edits)}", "faint")
    is_whole = run.rate is not None and not run.is_partial
    if is_whole and before and (basis := other_basis(run, before)):
        yield from text_lines(f"{STAR} {basis}", "faint")
    differences = find(run.id)
    if differences and differences.line:
        star = f"{STAR} " if differences.is_hidden and is_whole else ""
        yield StyledLine((StyledSpan(star), *differences.line.spans))
        yield from _flip_lines(differences)


def _flip_lines(differences: RunDifferences) -> Iterator[StyledLine]:
    """Yield the first of the results that broke, and of those that were fixed."""
    for change, name in differences.names:
        spans = (StyledSpan(f"{change}  ", FLIPS[change]), StyledSpan(safe(name)))
        yield StyledLine(spans, indent=2, hang=len(change) + 2)
    if more := differences.broke + differences.fixed - len(differences.names):
        yield from text_lines(f"… {more:,} more", "faint", 2)


def other_basis(run: RunLine, before: RunLine) -> str:
    """Return how the basis of the rates of two runs differs; empty if it does not."""
    differences = []
    if set(run.models) != set(before.models):
        differences.append("had other candidates")
    if run.counted != before.counted:
        differences.append(f"judged {plural(before.counted, 'result')}, not {run.counted:,}")
    if not differences:
        return ""
    return f"{_NAMED} {short(before.id)}, {' and '.join(differences)}"
