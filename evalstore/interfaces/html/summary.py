"""Computes what the report says above and below the table of cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.clock import minute
from evalstore.core.display import (
    WORKSPACE,
    case_name,
    cost_text,
    money,
    percent,
    plural,
    safe,
    short,
    side_name,
    simulated,
)
from evalstore.interfaces.html.case_data import MOST_EXPLAINED
from evalstore.interfaces.html.case_table import QuotedCell
from evalstore.interfaces.html.charts import interval_chart, trend_chart
from evalstore.planning.options import is_partial
from evalstore.results.compare.diff_text import (
    PairFacts,
    SideVerdict,
    count_cases,
    describe_pair,
    summary_lines,
)
from evalstore.results.flips.verdict_changes import Outcome
from evalstore.results.growing_results import cell_of
from evalstore.results.stats.groups import (
    PARTLY_TEXT,
    partly_judged,
    total_cost,
)
from evalstore.results.stats.overview import CandidateRow, make_overview
from evalstore.results.stats.trend import rate_texts
from evalstore.runs.run_text import scope_text

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.interfaces.html.case_table import CaseTable
    from evalstore.interfaces.html.templates import Drawing
    from evalstore.results.compare.diff_result import Diff
    from evalstore.results.flips.regressions import Regression
    from evalstore.results.stats.groups import ResultGroup
    from evalstore.results.stats.stats import Stats
    from evalstore.results.stats.trend import Trend, TrendRun

MOST_GROUPS = 50
"""The most groups of a table."""
MOST_CHANGES = 10
"""The most changed cases that the summary lists for each kind of change."""
_LABELLED = "some results were labelled after this run: the labels count in the workspace"
_BROKE = "┊ edits broke results in this run: “Runs” below has all edits"
_TITLES = {"prompt": "System prompts", "tag": "Tags", "file": "Test files"}


@dataclass(frozen=True, slots=True)
class RateRow:
    """A candidate, or another group, in a table of pass rates."""

    name: str
    rate: str
    interval: str
    chart: Drawing
    judged: str
    cost: str
    latency: str
    change: str = ""
    """The change of a candidate in points; empty without an earlier run."""
    part: str = ""
    """Of how many results it is, if not of all."""
    trend: str = ""
    """`better`, `worse` or `same`."""


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The pass rates, costs and latencies by prompt, tag or file."""

    id: str
    title: str
    unit: str
    count: int
    rows: tuple[RateRow, ...]
    note: str
    """How many groups are left out, and what a sign means; empty if there is nothing to say."""


class ChangedResult(NamedTuple):
    """A result that broke or was fixed."""

    model: str
    verdicts: tuple[SideVerdict, ...]
    attempts: str
    """How many attempts fail, if there are several."""
    reason: str
    texts: QuotedCell
    """The question and the answers; empty if the case is not in the table."""


class ChangedCase(NamedTuple):
    """A case with those of its results that changed in the same way."""

    name: str
    place: int
    """The number of the case in the table; -1 if it is not there."""
    results: tuple[ChangedResult, ...]


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The cases that changed in the same way."""

    id: str
    title: str
    count: str
    """How many cases it has, and results if these are more."""
    cases: tuple[ChangedCase, ...]
    """The cases of the first results."""
    more: str
    """How many others there are; empty without one."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list."""

    id: str
    started: str
    is_partial: bool
    rates: tuple[str, ...]
    """The pass rate of each candidate, of a run of some cases counts; empty without one."""
    changes: tuple[tuple[str, str], ...]
    """How many results broke, and the like, each with its kind: `better`, `worse` or another."""
    text: str
    """What was edited before it, and where it is known its message and its arguments."""
    names: str = ""
    status: str = ""
    """Empty if it is complete."""
    cost: str = ""


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """Everything but the table of cases."""

    title: str
    name: str
    """The name of the workspace."""
    run: str
    head: tuple[str, ...]
    """When it was, its message, and what it is compared with."""
    sentence: str
    notes: tuple[str, ...]
    """What else is to be known about the numbers, in one line."""
    candidates: tuple[RateRow, ...]
    has_changes: bool
    """Whether any candidate has an earlier rate."""
    trend: Drawing
    trend_notes: tuple[str, ...]
    broke: tuple[ChangeList, ...]
    """What broke now, and what broke earlier."""
    fixed: ChangeList | None
    since: str
    """What the results are compared with; empty for a first run."""
    change_lines: tuple[str, ...]
    groups: tuple[GroupTable, ...]
    about: tuple[tuple[str, str], ...]
    """Facts about the run: its time, commit, selection and message, and some figures."""
    limits: tuple[str, ...]
    """What the report leaves out."""
    runs: tuple[RunRow, ...]
    """The runs of the trend, newest first."""
    lines: tuple[str, ...]
    """The candidates of the trend."""


def summarise_results(
    name: str,
    run: Run,
    statistics: Sequence[Stats],
    diff: Diff | None,
    trend: Trend,
    table: CaseTable,
    saved: float,
    regressions: Sequence[Regression],
    names: Mapping[str, Sequence[str]],
    spent: str,
    *,
    is_labelled_later: bool = False,
) -> ReportSummary:
    """Return the summary of a run; `name` is that of the workspace.

    `statistics` are empty if the run has no results. `saved` is the cost of what the run reused,
    in USD; `regressions` broke in earlier runs, `names` are those that runs have, and `spent` is
    what all runs have cost.
    """
    totals = next((each for each in statistics if each.by == ("model",)), None)
    counts = table.rows.words
    overview = make_overview(run, totals, diff, regressions)
    lists: list[ChangeList] = []
    if diff:
        again, earlier = divide_regressions(diff, regressions)
        for id, title, pairs in (("broke", "Broke", diff.broke), ("fixed", "Fixed", diff.fixed)):
            results = [(pair.either, describe_pair(diff, pair)) for pair in pairs[:MOST_CHANGES]]
            more = [(each.result, _describe_regression(diff, each, names)) for each in again]
            again = []
            lists.append(_list(id, title, pairs.rows(), results, table, more))
        results = [
            (each.result, _describe_regression(diff, each, names))
            for each in earlier[:MOST_CHANGES]
        ]
        rows = ((each.result.file, each.result.row) for each in earlier)
        lists.append(_list("before", "Broke earlier", rows, results, table))
    lists, is_now = [each for each in lists if each.cases], run.id == WORKSPACE
    since = safe(side_name(diff.was, names.get(diff.was, ()))) if diff else ""
    return ReportSummary(
        title=f"{safe(name)}: {safe(overview.sentence)}",
        name=safe(name),
        run=safe(side_name(run.id, names.get(run.id, ()))) + " as it is now" * is_now,
        head=tuple(_head(run, since)),
        sentence=safe(overview.sentence),
        notes=(
            *map(safe, _notes(run, counts, diff, totals)),
            *[overview.note] * bool(overview.note),
            *[_LABELLED] * is_labelled_later,
        ),
        candidates=tuple(map(_rate_row, overview.candidates)),
        has_changes=any(row.shift for row in overview.candidates),
        trend=trend_chart(trend),
        trend_notes=(*trend.notes, *[_BROKE] * any(run.reasons for run in trend.runs)),
        broke=tuple(each for each in lists if each.id != "fixed"),
        fixed=next((each for each in lists if each.id == "fixed"), None),
        since=since,
        change_lines=tuple(line.text for line in summary_lines(diff)) if diff else (),
        groups=tuple(
            _group_table(stats)
            for stats in statistics
            if stats.by[0] == "file" or (stats.by[0] in _TITLES and len(stats.plain_groups) > 1)
        ),
        about=(*_about(run), *_facts(run, totals, table, saved), ("cost of all runs", spent)),
        limits=tuple(_limits(table)),
        runs=tuple(_run_row(each, trend, names) for each in reversed(trend.runs)),
        lines=tuple(safe(line.candidate) for line in trend.lines),
    )


def _rate_row(row: CandidateRow) -> RateRow:
    shift = row.shift
    difference = shift.now - shift.was if shift else 0.0
    return RateRow(
        name=safe(row.name),
        rate=row.rate,
        judged="" if row.is_counted else row.counts,
        interval=" to ".join(map(percent, row.interval)) if row.interval else "",
        chart=interval_chart(row.group.pass_rate, row.interval),
        change=shift.text if shift else "",
        part=shift.part if shift else "",
        trend="better" if difference > 0 else "worse" if difference < 0 else "same",
        cost=row.cost,
        latency=row.latency,
    )


def _head(run: Run, since: str) -> Iterable[str]:
    """Yield when a run was, its message, and what it is compared with."""
    if run.id != WORKSPACE:
        yield minute(run.started)
        if run.message:
            yield safe(run.message)
    if since:
        yield f"compared with {since}"
    elif run.id != WORKSPACE:
        yield "first run"


def _notes(
    run: Run, counts: Mapping[str, int], diff: Diff | None, totals: Stats | None
) -> Iterable[str]:
    if run.status != "complete":
        yield f"this run is {run.status}: some answers or verdicts are missing"
    if is_partial(run):
        yield f"partial run: {scope_text(run)}"
    total = sum(counts.values())
    if missing := counts.get("pending", 0) + counts.get("no reply", 0):
        yield f"{missing:,} of {plural(total, 'result')} pending"
    new = diff.comparison.undecided if diff else 0
    for word, more in (("undecided", f", {new:,} of them new" * bool(new)), ("error", "")):
        if counts.get(word):
            yield f"{word}: {counts[word]:,} of {plural(total, 'result')}{more}"
    if diff:
        if labels := diff.labelled.total() - diff.lapsed:
            yield f"{labels:,} changed by a label"
        if diff.lapsed:
            yield f"{diff.lapsed:,} changed as a label no longer counts"
        comparison = diff.comparison
        change = comparison.change()
        if change.moved and not comparison.by_verdict:
            yield change.finding
        yield from diff.notes
    if totals and totals.total.cost:
        cost = total_cost(totals.total)
        priced = money(run.cost) if totals.is_simulated else cost_text(run.cost, run.spending)
        own = "" if run.id == WORKSPACE else f"this run cost {priced}; "
        yield f"{own}all answers and verdicts shown cost {cost}"
        if totals.is_simulated:
            yield "costs are simulated"


def _about(run: Run) -> Iterable[tuple[str, str]]:
    if run.id != WORKSPACE:
        yield "run", run.id
        yield "status", run.status
    if run.git:
        changed = {True: ", with changes", False: "", None: ""}[run.git.dirty]
        yield "commit", f"{run.git.commit[:12]}{changed}"
    if run.author:
        yield "author", safe(run.author)
    if scope_text(run):
        yield "selection", safe(scope_text(run))
    judges = list(dict.fromkeys(evaluator.id for evaluator in run.evaluators))
    if judges:
        yield "judged by", safe(", ".join(judges))


def _limits(table: CaseTable) -> Iterable[str]:
    if table.undiffed:
        yield f"The differences of {plural(table.undiffed, 'changed answer')} are left out."
    if table.unexplained:
        yield (
            f"The history of a verdict is shown for the first {MOST_EXPLAINED:,} that do not pass, "
            f"and left out for {plural(table.unexplained, 'other')}."
        )


def _facts(
    run: Run, statistics: Stats | None, table: CaseTable, saved: float
) -> Iterable[tuple[str, str]]:
    places = f"in {plural(len(table.files), 'file')}; {plural(table.rows.words.total(), 'result')}"
    yield "cases", f"{table.rows.count_cases():,} {places}"
    if run.id != WORKSPACE:
        calls = f"{plural(run.asked, 'new answer')}, {plural(run.judged, 'new verdict')}"
        yield "cost of this run", f"{cost_text(run.cost, run.spending)}: {calls}"
    if saved and run.id != WORKSPACE:  # the workspace has reused nothing: a run does
        priced = simulated if statistics and statistics.is_simulated else str
        reused = plural(run.reused, "answer")
        yield "saved by reuse", f"{priced(money(saved))}: {reused} reused"
    if statistics and statistics.total.flip is not None:
        flip = percent(statistics.total.flip)
        yield "flakiness", f"{flip} of pairs of attempts disagree"


# --- changes


def _list(
    id: str,
    title: str,
    rows: Iterable[object],
    results: Sequence[tuple[Result, PairFacts]],
    table: CaseTable,
    others: Sequence[tuple[Result, PairFacts]] = (),
) -> ChangeList:
    """Return the list of the cases of some results, of which `rows` are the cases of all.

    `others` are more results of these cases.
    """
    names = [*rows]
    cases: dict[str, list[tuple[Result, PairFacts]]] = {}
    for each in results:
        cases.setdefault(each[1].name, []).append(each)
    for each in others:
        if each[1].name in cases:
            cases[each[1].name].append(each)
    shown = tuple(_changed_case(listed, table) for listed in cases.values())
    more = len(names) - len(results)
    text = plural(more, "more result") if more else ""
    return ChangeList(id, title, ", ".join(count_cases(names)), shown, text)


def _changed_case(results: Sequence[tuple[Result, PairFacts]], table: CaseTable) -> ChangedCase:
    result, facts = results[0]
    number = table.places.find(result.file, result.row, result.prompt_number)
    changed = tuple(_changed_result(*each, table) for each in results)
    return ChangedCase(safe(facts.name), -1 if number is None else number, changed)


def _changed_result(result: Result, facts: PairFacts, table: CaseTable) -> ChangedResult:
    texts = table.quoted.get(cell_of(result), QuotedCell())
    return ChangedResult(
        model=safe(facts.model),
        verdicts=facts.verdicts,
        attempts=table.attempts.get(cell_of(result), ""),
        reason=safe("; ".join(filter(None, (texts.since, facts.reason)))),
        texts=texts,
    )


def _describe_regression(
    diff: Diff, regression: Regression, names: Mapping[str, Sequence[str]]
) -> PairFacts:
    result, run = regression.result, regression.passed_in
    return PairFacts(
        case_name(result.file, result.row, diff.prompts.get(result.file, {}).get(result.prompt)),
        result.model,
        (SideVerdict(result.word or "answered"),),
        ", ".join((f"passed in {side_name(run)}", *names.get(run, ()))),
    )


def listed_results(diff: Diff | None, regressions: Sequence[Regression]) -> list[Result]:
    """Return the results whose question and answers the summary shows."""
    if diff is None:
        return []
    pairs = (*diff.broke[:MOST_CHANGES], *diff.fixed[:MOST_CHANGES])
    again, earlier = divide_regressions(diff, regressions)
    listed = (*again, *earlier[:MOST_CHANGES])
    return [*(pair.either for pair in pairs), *(each.result for each in listed)]


def divide_regressions(
    diff: Diff, regressions: Sequence[Regression]
) -> tuple[list[Regression], list[Regression]]:
    """Return what broke earlier of cases that broke now, the first of it, and of other cases."""
    broke = {*diff.broke.rows()}
    again: list[Regression] = []
    earlier: list[Regression] = []
    for each in regressions:
        file, row = each.result[:2]
        (again if (file, hash((file, row))) in broke else earlier).append(each)
    return again[:MOST_CHANGES], earlier


# --- groups and runs


def _group_table(stats: Stats) -> GroupTable:
    by = stats.by[0]
    groups = sorted(stats.plain_groups, key=_rank) if by in ("tag", "file") else stats.plain_groups
    shown = groups[:MOST_GROUPS]
    partly = partly_judged(groups)[:MOST_GROUPS]
    rest = len(groups) - len(shown)
    return GroupTable(
        id=f"by-{by}",
        title=_TITLES[by],
        unit=_TITLES[by].removesuffix("s"),
        count=len(groups),
        rows=tuple(
            replace(
                _rate_row(CandidateRow(group.name, group, is_partly, None)),
                judged=f"{group.rate.judged:,} / {group.results:,}",
            )
            for group, is_partly in zip(shown, partly, strict=True)
        ),
        note=" ".join(
            [
                *[f"The {MOST_GROUPS} with the lowest pass rates; {rest:,} more are left out."]
                * (rest > 0),
                *[f"{PARTLY_TEXT}."] * any(partly),
                *["Special tags are left out."] * (len(groups) < len(stats.groups)),
            ]
        ),
    )


def _rank(group: ResultGroup) -> tuple[float, str]:
    return (2.0 if group.pass_rate is None else group.pass_rate), group.name.casefold()


def run_changes(outcome: Outcome | None) -> tuple[tuple[str, str], ...]:
    """Return what changed in a run, as `log` says it: `4 broke`, `2 fixed`, `6 by a label`."""
    broke, fixed, causes, undecided = outcome or Outcome(0, 0, ())
    texts = (
        (f"{broke:,} broke" * bool(broke), "worse"),
        (f"{fixed:,} fixed" * bool(fixed), "better"),
        *((cause, "same") for cause in causes),
        (f"{undecided:,} now undecided" * bool(undecided), "undecided"),
    )
    return tuple(each for each in texts if each[0])


def _run_row(run: TrendRun, trend: Trend, names: Mapping[str, Sequence[str]]) -> RunRow:
    candidates = [line.candidate for line in trend.lines]
    return RunRow(
        id="now" if run.id == WORKSPACE else short(run.id),
        started=minute(run.at),
        is_partial=run.is_partial,
        rates=rate_texts(run.rates, candidates, is_partial=run.is_partial),
        changes=run_changes(run.outcome),
        text=safe(", ".join(run.edits)),
        names=safe(", ".join(names.get(run.id, ()))),
    )
