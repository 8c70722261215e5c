"""`stats`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.cli import options, output
from evalstore.cli.app import app, here
from evalstore.display import interval_bar

if TYPE_CHECKING:
    from evalstore.operations.stats import Stats
    from evalstore.reports.group_totals import ResultGroup

_BAR = 16
_ALWAYS = ("passed", "judged")
"""Columns that are shown even if they are empty."""


@app.command()
def stats(
    revision: Annotated[
        str,
        typer.Argument(
            metavar="[REV]", help="A run (default: the last), or @work: the workspace as it is now."
        ),
    ] = "@",
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="LIST",
            help="Group by model, prompt, tag, file (comma-separated).  [default: model]",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="NAME", help="Apply this query of 'analysisQueries'."),
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option(
            "--currency", metavar="CODE", help="A currency with a currency file (default: USD)."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show pass rates, costs and latencies of a run.

    Costs are those of the answers and judgements that count, whichever run has paid for them.
    """
    from evalstore.operations.stats import stats as operation

    names = [name.strip() for value in by or ["model"] for name in value.split(",")]
    statistics = operation(
        here(), revision, list(dict.fromkeys(names)), query=query, currency=currency
    )
    if json:
        output.document(statistics)
    else:
        print_stats(statistics)


def print_stats(statistics: Stats) -> None:
    """A table for people."""
    about = f", {output.safe(statistics.query)}" if statistics.query else ""
    part = f", only {output.safe(statistics.selection)}" if statistics.selection else ""
    if statistics.is_workspace:
        output.line(f"workspace, all cases as they are now{about}")
    else:
        when = output.ago(statistics.started, time.time_ns() // 1000)
        output.line(f"run {output.short(statistics.run)}, {when}{part}{about}")
    groups = [*statistics.groups, *([statistics.total] if len(statistics.groups) > 1 else [])]
    header = [
        "/".join(statistics.by),
        "passed",
        "95% interval",
        "",
        "judged",
        "unresolved",
        "tests",
        "cases",
    ]
    header += ["sessions", "judgements", "latency", "answers", "per 100", "judging", "flaky"]
    rows = [_row(group, statistics.currency) for group in groups]
    kept = [
        n for n, name in enumerate(header) if n < 2 or name in _ALWAYS or any(r[n] for r in rows)
    ]
    output.table([[row[n] for n in kept] for row in rows], [header[n] for n in kept])
    rerolls = statistics.rerolls.text(statistics.total.rate.passed)
    if rerolls:
        for text in output.wrap(rerolls, output.width()):
            output.line(text)
    if statistics.selection:
        output.talk("('evalstore stats @work' is about all cases)")
    if statistics.total.unpriced:
        count = f"{statistics.total.unpriced:,} sessions and judgements"
        output.talk(f"note: the price of {count} is unknown; costs are without them")


def _row(group: ResultGroup, currency: str) -> list[str]:
    rate = group.rate
    low, high = rate.interval or (0.0, 0.0)
    per_100 = group.per_100(group.answering)
    return [
        group.name,
        rate.text,
        f"{100 * low:.1f} - {100 * high:.1f}%" if rate.interval else "",
        interval_bar(rate.interval, rate.rate, _BAR),
        f"{rate.judged:,}/{group.results:,}",
        f"{rate.unresolved:,}" if rate.unresolved else "",
        f"{group.tests:,}",
        f"{group.cases:,}",
        f"{group.sessions:,}",
        f"{group.evaluations:,}",
        "" if group.latency is None else f"{group.latency:.2f}s",
        _money(group.answering, currency),
        _money(per_100, currency),
        _money(group.judging, currency),
        "" if group.flip is None else f"{100 * group.flip:.1f}%",
    ]


def _money(amount: float | None, currency: str) -> str:
    return "unknown" if amount is None else output.money(amount, currency)
