"""The first page of `serve`: the workspace and the runs, with the rates of the candidates."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from evalstore import __version__
from evalstore.core.clock import minute
from evalstore.core.display import cost_text, plural, safe, short
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.html.charts import Drawing
from evalstore.interfaces.html.summary import RunRow
from evalstore.interfaces.html.templates import read_asset, render
from evalstore.planning.candidate_order import candidate_order
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import is_partial, leaves_out_cases
from evalstore.results.compare.workspace_changes import compare_workspace
from evalstore.results.log.log import log
from evalstore.results.show.revision_results import open_revision
from evalstore.results.stats.trend import (
    CandidateCounts,
    count_rates,
    count_results,
    rate_texts,
)
from evalstore.runs.run_text import scope_text
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalstore.interfaces.html.page import ServedPage
    from evalstore.planning.options import Location
    from evalstore.results.log.log_entry import LogEntry
    from evalstore.results.stats.trend import Rates

MOST_RUNS = 200
"""The most runs of the page."""


def run_list_page(location: Location, name: str, served: ServedPage) -> bytes:
    """Return the page; `name` is that of the workspace. Raises `StoreError`."""
    entries: Sequence[LogEntry] = log(location, limit=MOST_RUNS).entries
    with open_store(location) as store:
        rates: list[Mapping[str, CandidateCounts]] = [
            *count_rates(store, [entry.run for entry in entries])
        ]
        total = store.count_runs()
    now, workspace = _read_workspace(location)
    order = candidate_order(open_workspace(location).settings)
    names = sorted({*chain(now, *rates)}, key=order)
    rates += [{}] * (len(entries) - len(rates))
    costs = [entry.run.cost for entry in entries if entry.run.cost is not None]
    cost = sum(costs) if len(costs) == len(entries) else None
    spending = [*chain.from_iterable(entry.run.spending for entry in entries)]
    return render(
        "runs.html",
        workspace=safe(name),
        served=served,
        style=Drawing(read_asset("report.css")),
        script=Drawing(read_asset("list.js")),
        version=__version__,
        candidates=list(map(safe, names)),
        now=replace(
            workspace,
            rates=rate_texts(now, names, is_partial=False),
            cost=f"total {cost_text(cost, spending, brief=True)}" if entries else "",
        ),
        runs=[_listed(entry, each, names) for entry, each in zip(entries, rates, strict=True)],
        more=plural(total - len(entries), "older run") if total > len(entries) else "",
    )


def _read_workspace(location: Location) -> tuple[Rates, RunRow]:
    """Return the results of the workspace as it is now, and its row without them.

    Its text says how many are pending or changed by a label, or what is wrong.
    """
    try:
        with open_revision(location, WORK) as project:
            compared = compare_workspace(location, project)
            rates = count_results(compared.side.results)
    except EvalstoreError as error:
        return {}, RunRow("workspace", "now", False, (), 0, 0, safe(str(error)))
    broke, fixed, undecided, labels = 0, 0, 0, 0
    if diff := compared.diff:
        broke, fixed, undecided = len(diff.broke), len(diff.fixed), diff.comparison.undecided
        labels = diff.labelled.total()
    counts = (sum(compared.side.results.missing), "pending"), (labels, "changed by a label")
    text = " · ".join(f"{count:,} {word}" for count, word in counts if count)
    return rates, RunRow("workspace", "now", False, (), broke, fixed, text, undecided=undecided)


def _listed(entry: LogEntry, rates: Rates, names: Sequence[str]) -> RunRow:
    run = entry.run
    broke, fixed = (entry.outcome or (0, 0))[:2]
    texts = [run.message or "", scope_text(run), ", ".join(edit.subject for edit in entry.edits)]
    is_part = is_partial(run) and leaves_out_cases(run)
    return RunRow(
        id=short(run.id),
        started=minute(run.started),
        text=safe(" · ".join(text for text in texts if text)),
        names=safe(", ".join(entry.names)),
        rates=rate_texts(rates, names, is_partial=is_part),
        broke=broke,
        fixed=fixed,
        undecided=entry.undecided,
        is_partial=is_part,
        status="" if run.status == "complete" else run.status,
        cost=cost_text(run.cost, run.spending, brief=True),
    )
