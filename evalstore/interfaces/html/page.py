"""Writes the page: the summary, the first cases as a table, and the data for the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shutil import copyfileobj
from typing import TYPE_CHECKING, BinaryIO

from evalstore import __version__
from evalstore.core.display import safe
from evalstore.interfaces.html.case_rows import count_cases
from evalstore.interfaces.html.charts import Drawing
from evalstore.interfaces.html.embedding import content_policy
from evalstore.interfaces.html.templates import read_asset, render
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.interfaces.html.case_rows import TableRow
    from evalstore.interfaces.html.case_table import CaseTable
    from evalstore.interfaces.html.summary import ReportSummary

MOST_ROWS = 200
"""The most rows of the table that is shown without JavaScript; a case has one for each prompt."""


@dataclass(frozen=True, slots=True)
class StaticRow:
    """A case in the table that is shown without JavaScript."""

    file: str
    row: str
    prompt: str
    tags: str
    cells: tuple[Sequence[str] | None, ...]
    """The verdict, its change and its feedback by candidate."""


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
    out.write(mark)
    out.write(
        render(
            "page.html",
            summary=summary,
            served=served,
            policy=content_policy(script, style, is_served=served is not None),
            style=Drawing(style),
            version=__version__,
            models=list(map(safe, table.candidates)),
            rows=[_static_row(row, table) for row in rows],
            case_count=count_cases(rows),
            total=table.case_count,
            signs=SIGNS,
        )
    )
    copyfileobj(data, out)
    out.write(b"<script>" + script.encode() + b"</script>\n</body>\n</html>\n")


def _static_row(row: TableRow, table: CaseTable) -> StaticRow:
    return StaticRow(
        file=safe(table.files[row.file]),
        row=safe(row.row),
        prompt=safe(row.prompt),
        tags=safe(", ".join(table.tags[number] for number in row.tags)),
        cells=tuple(map(row.cells.get, table.columns)),
    )
