"""Writes the page: the summary, the first cases as a table, and the data for the script."""

from __future__ import annotations

from dataclasses import dataclass
from shutil import copyfileobj
from typing import TYPE_CHECKING, BinaryIO

from evalstore import __version__
from evalstore.core.display import case_name, safe
from evalstore.interfaces.html.charts import Drawing
from evalstore.interfaces.html.embedding import content_policy
from evalstore.interfaces.html.templates import read_asset, render
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.interfaces.html.case_table import CaseTable, TableRow
    from evalstore.interfaces.html.summary import ReportSummary
    from evalstore.store.wanted import Reached

MOST_ROWS = 200
"""The most rows of the table that is shown without JavaScript; a case has one for each prompt."""


@dataclass(frozen=True, slots=True)
class ServedPage:
    """What a page of a server knows that a file does not."""

    base: str
    """The path below which the pages are, without a slash at its end."""
    run: str
    """The newest run when the page was made; empty without one."""
    state: str
    """What changes whenever the store does."""


def write_page(
    out: BinaryIO,
    summary: ReportSummary,
    table: CaseTable,
    data: BinaryIO,
    mark: bytes,
    served: ServedPage | None,
) -> None:
    """Write the page; `data` has the elements with the data of the script."""
    script, style = read_asset("report.js"), read_asset("report.css")
    rows = table.rows.choose(MOST_ROWS)
    rates = {row.name: row.rate for row in summary.candidates}
    names = [safe(table.models[column]) for column in table.columns]
    out.write(mark)
    out.write(
        render(
            "page.html",
            summary=summary,
            served=served,
            policy=content_policy(script, style, is_served=served is not None),
            style=Drawing(style),
            version=__version__,
            models=[(name, rates.get(name, "")) for name in names],
            rows=[_static_row(row, table) for row in rows],
            case_count=len({row.case for row in rows}),
            total=table.rows.count_cases(),
            signs=SIGNS,
        )
    )
    copyfileobj(data, out)
    out.write(b"<script>" + script.encode() + b"</script>\n</body>\n</html>\n")


def _static_row(row: TableRow, table: CaseTable) -> dict[str, object]:
    """Return what is shown of a case without JavaScript; a cell that is `aside` fills its row."""
    is_aside = table.aside in row.cells
    return {
        "name": safe(case_name(table.files[row.file], row.row, row.prompt or None)),
        "tags": safe(", ".join(table.tags[number] for number in row.tags)),
        "question": row.question,
        "cells": [*map(row.cells.get, [table.aside] if is_aside else table.columns)],
        "aside": safe(table.models[table.aside]) if is_aside else "",
    }


# --- the page that is shown while that of a run is being made: what is known of the run at once


RELOAD = "setTimeout(() => location.reload(), 1000)"
"""The script of the page: a refresh without one does not load an address with a case again."""


def waiting_page(name: str, base: str, run: str, reached: Reached | None, problem: str) -> bytes:
    """Return a page that is loaded again every second, or says why there is none.

    `name` is that of the workspace; without a `run` it is about the workspace as it is now.
    """
    return render(
        "waiting.html",
        workspace=safe(name),
        base=base,
        run="" if problem else run or "the workspace as it is now",
        style=Drawing(read_asset("report.css")),
        script=Drawing(RELOAD),
        reached=reached,
        problem=problem,
    )
