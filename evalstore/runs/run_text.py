"""Formats a finished run as text, for the command line and the browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    cost_text,
    new_judgements,
    percent,
    plural,
    safe,
    saved_text,
    short,
    status_word,
    verdict_span,
)
from evalstore.planning.options import describe_selection, is_partial

if TYPE_CHECKING:
    from evalstore.comparison.statistics import Rate
    from evalstore.core.runs import Run
    from evalstore.results.table.cases import RunLine
    from evalstore.runs.run_report import RunReport


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The outcome of a run without its cases; small enough to be kept."""

    run: str
    status: str
    asked: int
    recorded: int
    judged: int
    judged_by_checks: int
    reused: int
    cost: str
    """The cost in words, because some prices may be unknown."""
    saved: float
    """The cost of reused answers and judgements in USD."""
    is_simulated: bool
    """Whether all models are scripted, so that nobody is paid."""
    seconds: float
    time_is_up: bool
    is_refresh: bool
    verdicts: Mapping[str, int]
    unjudged: int
    """The number of answers that have no evaluation."""
    rate: Rate
    used_again: int = 0
    """The number of judgements by models that are used again, as just checks were edited."""
    labelled: int = 0
    """The number of results that labels decide."""


def summarise_report(report: RunReport) -> RunSummary:
    """Return the summary of a report."""
    own: dict[str, Any] = {
        "cost": cost_text(report.cost, report.spending),
        "unjudged": report.totals.count(None),
    }
    names = (field.name for field in fields(RunSummary) if field.name not in own)
    return RunSummary(**own, **{name: getattr(report, name) for name in names})


def run_counts_text(run: Run | RunLine | RunSummary, *, by_checks: int = 0) -> str:
    """Return the status and counts of a run: `complete: 2 new answers, 6 reused, 1 new judgement`.

    Recorded answers, which were taken from files, are counted apart, and so are the judgements
    `by_checks` if that number is given: it is not stored. Without any, recorded and reused answers
    are left out.
    """
    parts = [
        plural(run.asked, "new answer"),
        *([f"{run.recorded:,} recorded"] if run.recorded else []),
        *([f"{run.reused:,} reused"] if run.reused else []),
        new_judgements(run.judged, by_checks),
    ]
    return f"{status_word(run.status)}: {', '.join(parts)}"


def scope_text(run: Run) -> str:
    """Return the options of a run and its number of cases; empty without options of all cases."""
    selection = describe_selection(run.selection)
    cases = run.cases
    if not cases or (not selection and cases.selected == cases.total):
        return selection
    part = f"{cases.selected:,} of {plural(cases.total, 'case')}"
    count = part if is_partial(run) or cases.selected < cases.total else "all cases"
    return f"{selection} ({count})" if selection else count


def summary_text(summary: RunSummary) -> str:
    """Return the id of a run, its status, counts and cost in one line."""
    amount = saved_text(summary.saved, is_simulated=summary.is_simulated)
    saved = f"; saved {amount} by reuse" if summary.saved else ""
    counts = run_counts_text(summary, by_checks=summary.judged_by_checks)
    if summary.used_again:
        counts += f", {plural(summary.used_again, 'verdict')} used again"
    if summary.labelled:
        by = "a label" if summary.labelled == 1 else "labels"
        counts += f", {plural(summary.labelled, 'result')} decided by {by}"
    return f"run {short(summary.run)} {counts}, {summary.cost}{saved}"


def verdict_spans(verdicts: Mapping[str, int], signs: Mapping[str, str]) -> list[StyledSpan]:
    """Return the number of each of these verdicts: `183 pass, 4 fail`."""
    spans: list[StyledSpan] = []
    for word, count in verdicts.items():
        verdict = verdict_span(word, signs)
        spans += [
            *([StyledSpan(", ")] if spans else []),
            StyledSpan(f"{count:,} {verdict.text}", verdict.colour),
        ]
    return spans


def verdict_line(summary: RunSummary, signs: Mapping[str, str]) -> StyledLine:
    """Return the number of results with each verdict, and the pass rate with its interval."""
    shown = {word: count for word, count in summary.verdicts.items() if count or word == "pass"}
    spans = verdict_spans(shown, signs)
    text = ""
    if summary.unjudged:
        text += f", {summary.unjudged:,} answered without a verdict"
    rate = summary.rate
    if rate.interval:
        is_part = summary.verdicts.get("pending") or summary.unjudged
        judged = f" of {rate.judged:,} judged" if is_part else ""
        low, high = map(percent, rate.interval)
        text += f" ({rate.text}{judged}, 95% interval {low} to {high})"
    return StyledLine((*spans, StyledSpan(text)))


OLDER_HINT = 'the oldest answers count; "evalstore run --max-age AGE" leaves out older ones'
"""Said of a run whose verdicts changed because older answers count again."""


def failure_line(message: str, count: int, signs: Mapping[str, str]) -> StyledLine:
    """Return the message of failed calls to a model, and how often it occurred."""
    sign = f"{signs['error']} " if "error" in signs else ""
    return StyledLine((StyledSpan(f"{sign}failed {count:,}x: {safe(message)}", "fail"),))


def stop_lines(summary: RunSummary) -> Iterator[StyledLine]:
    """Yield why a run was stopped and what happens to its results; nothing if it was complete."""
    if summary.status == "over budget":
        limit = "time" if summary.time_is_up else "cost"
        reason = StyledSpan(f"stopped: {limit} limit reached", "pending")
    elif summary.status == "interrupted":
        reason = StyledSpan("interrupted")
    else:
        return
    kept = "; what was finished is stored"
    if not summary.is_refresh:
        kept += ", and the next run continues from there"
    yield StyledLine((reason, StyledSpan(kept)))
