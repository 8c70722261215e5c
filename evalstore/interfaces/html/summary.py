"""Computes what the report says at its top: rates, changes, costs and the trend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.comparison.cost_text import answers_cost_per_100, total_cost
from evalstore.comparison.group_totals import PARTLY_TEXT, partly_judged
from evalstore.core.case_name import case_name
from evalstore.core.clock import minute
from evalstore.core.display import cost_text, money, percent, plural, safe, short, simulated
from evalstore.core.side_names import WORKSPACE
from evalstore.core.values import RECORDED
from evalstore.interfaces.html.case_data import MOST_EXPLAINED
from evalstore.interfaces.html.charts import (
    Drawing,
    TrendPoint,
    interval_chart,
    share_bar,
    trend_chart,
    verdict_bar,
)
from evalstore.planning.options import is_partial
from evalstore.results.compare.diff_text import SideVerdict, describe_pair, summary_lines
from evalstore.results.flips.regressions import regressions_text
from evalstore.results.growing_results import cell_of
from evalstore.runs.run_text import scope_text

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Pair
    from evalstore.comparison.group_totals import ResultGroup
    from evalstore.comparison.statistics import Rate
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.interfaces.html.case_table import CaseTable
    from evalstore.results.compare.diff_result import Diff
    from evalstore.results.flips.regressions import Regression
    from evalstore.results.stats.stats import Stats

MOST_GROUPS = 50
"""The most groups of a table."""
MOST_CHANGES = 10
"""The most changed cases that the summary lists for each kind of change."""
MOST_RUNS = 30
"""The most runs in the trend."""
_TITLES = {
    "model": "Models",
    "prompt": "System prompts",
    "tag": "Tags",
    "file": "Test files",
}
_UNITS = {"model": "Model", "prompt": "System prompt", "tag": "Tag", "file": "Test file"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A number with its name and an explanation."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in a table of pass rates."""

    name: str
    rate: str
    interval: str
    chart: Drawing
    judged: str
    cost: str
    cost_bar: Drawing
    latency: str
    latency_bar: Drawing


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The pass rates, costs and latencies by candidate, prompt, tag or file."""

    id: str
    title: str
    unit: str
    rows: tuple[GroupRow, ...]
    note: str
    """How many groups are left out, and what a sign means; empty if there is nothing to say."""


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case that broke or was fixed."""

    name: str
    model: str
    verdicts: tuple[SideVerdict, ...]
    attempts: str
    """How many attempts fail, if there are several."""
    reason: str
    feedback: str
    place: int
    """The number of the case in the table; -1 if it is not there."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since another run."""

    since: str
    lines: tuple[str, ...]
    headline: str
    lists: tuple[tuple[str, tuple[ChangedCase, ...], int], ...]
    """The title of each list, its cases, and how many are left out."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """Everything above the table of cases."""

    title: str
    name: str
    """The name of the workspace."""
    run: str
    about: tuple[tuple[str, str], ...]
    """Facts about the run: its time, commit, selection and message."""
    warnings: tuple[str, ...]
    rate: str
    interval: str
    rate_chart: Drawing
    counts: tuple[tuple[str, str], ...]
    """The verdicts and how many cases have each."""
    bar: Drawing
    facts: tuple[Fact, ...]
    changes: Changes | None
    groups: tuple[GroupTable, ...]
    trend: Drawing
    runs: tuple[tuple[str, str, str, str, str], ...]
    """The id, time, status, pass rate and cost of the runs of the trend, newest first."""


def summarise_results(
    name: str,
    run: Run,
    statistics: Sequence[Stats],
    diff: Diff | None,
    earlier: Sequence[Run],
    table: CaseTable,
    saved: float,
    regressions: Sequence[Regression] = (),
) -> ReportSummary:
    """Return the summary of a run; `name` is that of the workspace, and `earlier` the trend.

    `statistics` are empty if the run has no results. `earlier` includes the run, newest first.
    `saved` is the cost of what the run reused, in USD; `regressions` broke in earlier runs.
    """
    total = statistics[0].total if statistics else None
    counts = _count_words(table)
    rate = total.rate if total and not is_partial(run) else None
    headline = _rate_text(rate) if rate or not is_partial(run) else _partial_text(run, counts)
    return ReportSummary(
        title=f"{safe(name)}: {headline}",
        name=safe(name),
        run="the workspace as it is now" if run.id == WORKSPACE else f"run {short(run.id)}",
        about=tuple(_about(run)),
        warnings=tuple(_warnings(run, counts, table)),
        rate=headline,
        interval=_interval_text(rate),
        rate_chart=interval_chart(rate.rate, rate.interval) if rate else Drawing(""),
        counts=tuple((word, f"{count:,}") for word, count in counts.items() if count),
        bar=verdict_bar(counts),
        facts=tuple(_facts(run, statistics[0] if statistics else None, table, saved)),
        changes=_changes(diff, table, regressions) if diff else None,
        groups=tuple(
            _group_table(stats)
            for stats in statistics
            if stats.by[0] in ("model", "file") or len(stats.plain_groups) > 1
        ),
        trend=trend_chart(_trend_points(run, earlier)),
        runs=tuple(map(_run_row, earlier)) if len(earlier) > 1 else (),
    )


def _rate_text(rate: Rate | None) -> str:
    return f"{rate.text} passed" if rate and rate.judged else "nothing is judged yet"


def _partial_text(run: Run, counts: Mapping[str, int]) -> str:
    """Return what a run of some cases has found: counts, as it says nothing about the others."""
    words = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    cases = run.cases
    of = f"{cases.selected:,} of {plural(cases.total, 'case')}: " if cases else ""
    return f"{of}{words or 'no results'}"


def _interval_text(rate: Rate | None) -> str:
    if rate is None or rate.interval is None:
        return ""
    low, high = map(percent, rate.interval)
    return f"{rate.passed:,} of {rate.judged:,} judged results; 95% interval {low} to {high}"


def _count_words(table: CaseTable) -> dict[str, int]:
    counts = dict.fromkeys(
        ("pass", "fail", "undecided", "error", "no reply", "pending", "answered"), 0
    )
    return counts | table.rows.words


def _about(run: Run) -> Iterable[tuple[str, str]]:
    yield "started", minute(run.started)
    if run.id != WORKSPACE:
        yield "run", run.id
        yield "status", run.status
    if run.git:
        changed = {True: ", with changes", False: "", None: ""}[run.git.dirty]
        yield "commit", f"{run.git.commit[:12]}{changed}"
    if run.author:
        yield "author", safe(run.author)
    if run.message:
        yield "message", safe(run.message)
    if scope_text(run):
        yield "selection", safe(scope_text(run))
    judges = list(dict.fromkeys(evaluator.id for evaluator in run.evaluators))
    if judges:
        yield "judged by", safe(", ".join(judges))


def _warnings(run: Run, counts: Mapping[str, int], table: CaseTable) -> Iterable[str]:
    if run.status != "complete":
        yield f"This run is {run.status}: some results are missing."
    if is_partial(run):
        yield f"This run is partial: {safe(scope_text(run))}."
    missing = counts["pending"] + counts["no reply"]
    if missing:
        yield f"{plural(missing, 'result')} pending: an answer or a judgement is missing."
    unclear = [f"{counts[word]:,} {word}" for word in ("undecided", "error") if counts[word]]
    if unclear and not is_partial(run):
        yield f"{' and '.join(unclear)}: the pass rate is given as a range."
    if table.undiffed:
        yield f"The differences of {table.undiffed:,} changed answers are left out."
    if table.unexplained:
        explained = f"beyond the first {MOST_EXPLAINED:,}"
        yield f"Results whose verdict is not explained, {explained}: {table.unexplained:,}."


def _facts(run: Run, statistics: Stats | None, table: CaseTable, saved: float) -> Iterable[Fact]:
    total = statistics.total if statistics else None
    priced = simulated if statistics and statistics.is_simulated else str
    places = f"in {plural(len(table.files), 'file')}; {plural(table.rows.words.total(), 'result')}"
    yield Fact("Cases", f"{table.case_count:,}", places)
    asked = [name for name in table.candidates if name != RECORDED]
    others = ["recorded answers"] if RECORDED in table.candidates else []
    yield Fact("Candidates", f"{len(asked):,}", ", ".join([*map(safe, asked[:3]), *others]))
    if run.id != WORKSPACE:
        calls = f"{plural(run.asked, 'new answer')}, {plural(run.judged, 'new judgement')}"
        yield Fact("Cost of this run", cost_text(run.cost, run.spending), calls)
    if saved and run.id != WORKSPACE:  # the workspace has reused nothing: a run does
        yield Fact("Saved by reuse", priced(money(saved)), f"{run.reused:,} answers reused")
    if total and total.cost:
        yield Fact("Cost of all results", priced(total_cost(total)), "whichever run has paid")
    if total and total.latency:
        yield Fact("Mean latency", f"{total.latency:.2f} s", "of an answer")
    if total and total.flip is not None:
        yield Fact("Flakiness", percent(total.flip), "of pairs of attempts disagree")


# --- changes


def _changes(diff: Diff, table: CaseTable, regressions: Sequence[Regression]) -> Changes:
    broke, fixed = len(diff.broke), len(diff.fixed)
    counts = ((broke, "broke"), (fixed, "fixed"), (diff.comparison.undecided, "now undecided"))
    parts = [f"{count:,} {word}" for count, word in counts if count]
    if regressions:
        parts.append(regressions_text(regressions, is_rest=bool(broke)))
    before = [_regressed(diff, each, table) for each in regressions[:MOST_CHANGES]]
    return Changes(
        since=diff.names[0],
        headline=", ".join(parts) or "nothing broke or was fixed",
        lines=tuple(line.text for line in summary_lines(diff)),
        lists=tuple(
            (title, tuple(cases), count - len(cases))
            for title, cases, count in (
                ("Broke", _changed(diff, diff.broke, table), broke),
                ("Passed before", before, len(regressions)),
                ("Fixed", _changed(diff, diff.fixed, table), fixed),
            )
            if cases
        ),
        notes=tuple(map(safe, diff.notes)),
    )


def _changed(diff: Diff, pairs: Sequence[Pair], table: CaseTable) -> list[ChangedCase]:
    """Return the first of these pairs."""
    return [_changed_case(diff, pair, table) for pair in pairs[:MOST_CHANGES]]


def _changed_case(diff: Diff, pair: Pair, table: CaseTable) -> ChangedCase:
    result, facts = pair.either, describe_pair(diff, pair)
    return ChangedCase(
        name=safe(facts.name),
        model=safe(facts.model),
        verdicts=facts.verdicts,
        attempts=table.attempts.get(cell_of(result), ""),
        reason=safe(facts.reason),
        feedback="" if result.verdict == "pass" else safe(diff.feedback_on(pair)[1][:300]),
        place=_place(result, table),
    )


def _regressed(diff: Diff, regression: Regression, table: CaseTable) -> ChangedCase:
    result = regression.result
    prompt = diff.prompts.get(result.file, {}).get(result.prompt)
    return ChangedCase(
        name=safe(case_name(result.file, result.row, prompt)),
        model=safe(result.model),
        verdicts=(SideVerdict(result.word or "answered"),),
        attempts=table.attempts.get(cell_of(result), ""),
        reason=f"passed in run {short(regression.passed_in)}",
        feedback="",
        place=_place(result, table),
    )


def _place(result: Result, table: CaseTable) -> int:
    """Return the number of the case of a result in the table; -1 if it is not there."""
    number = table.places.find(result.file, result.row, result.prompt_number)
    return -1 if number is None else number


# --- groups and runs


def _group_table(stats: Stats) -> GroupTable:
    by = stats.by[0]
    groups = sorted(stats.plain_groups, key=_rank) if by in ("tag", "file") else stats.plain_groups
    shown = groups[:MOST_GROUPS]
    partly = partly_judged(groups)[:MOST_GROUPS]
    per_answer = {id(group): (group.per_100(group.answering) or 0.0) for group in shown}
    highest = max(per_answer.values(), default=0.0)
    slowest = max((group.latency or 0.0 for group in shown), default=0.0)
    rest = len(groups) - len(shown)
    return GroupTable(
        id=f"by-{by}",
        title=_TITLES[by],
        unit=_UNITS[by],
        rows=tuple(
            GroupRow(
                name=safe(group.name),
                rate=group.rate_text(is_partly=is_partly),
                interval=" to ".join(map(percent, group.interval)) if group.interval else "",
                chart=interval_chart(group.pass_rate, group.interval),
                judged=f"{group.rate.judged:,} / {group.results:,}",
                cost=answers_cost_per_100(group),
                cost_bar=share_bar(per_answer[id(group)] / highest if highest else 0.0),
                latency="" if group.latency is None else f"{group.latency:.2f} s",
                latency_bar=share_bar((group.latency or 0.0) / slowest if slowest else 0.0),
            )
            for group, is_partly in zip(shown, partly, strict=True)
        ),
        note=" ".join(_table_notes(rest, has_partly=any(partly))),
    )


def _table_notes(rest: int, *, has_partly: bool) -> Iterable[str]:
    if rest:
        yield f"The {MOST_GROUPS} with the lowest pass rates; {rest:,} more are left out."
    if has_partly:
        yield f"{PARTLY_TEXT}."


def _rank(group: ResultGroup) -> tuple[float, str]:
    return (2.0 if group.pass_rate is None else group.pass_rate), group.name.casefold()


def _trend_points(run: Run, earlier: Sequence[Run]) -> list[TrendPoint]:
    return [
        TrendPoint(
            f"{short(other.id)}, {minute(other.started)}",
            _share(other),
            other.cost,
            other.id == run.id,
        )
        for other in reversed(earlier)
    ]


def _share(run: Run) -> float | None:
    judged = sum(count for word, count in run.verdicts.items() if word != "pending")
    return run.verdicts.get("pass", 0) / judged if judged else None


def _run_row(run: Run) -> tuple[str, str, str, str, str]:
    cost = cost_text(run.cost, run.spending, brief=True)
    return short(run.id), minute(run.started), run.status, percent(_share(run)), cost
