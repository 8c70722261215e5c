"""Writes the page: the summary, the first cases as a table, and the data for the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shutil import copyfileobj
from typing import TYPE_CHECKING, BinaryIO

from evalstore import __version__
from evalstore.core.display import safe, short
from evalstore.core.values import VERDICTS
from evalstore.interfaces.html.case_table import count_cases
from evalstore.interfaces.html.charts import Drawing, verdict_bar
from evalstore.interfaces.html.embedding import content_policy
from evalstore.interfaces.html.templates import read_asset, render
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.interfaces.html.case_table import CaseTable, TableRow
    from evalstore.interfaces.html.summary import ReportSummary
    from evalstore.store.wanted import Reached


MOST_ROWS = 200
"""The most rows of the table that is shown without JavaScript; a case has one for each prompt."""


@dataclass(frozen=True, slots=True)
class StaticRow:
    """A case in the table that is shown without JavaScript."""

    file: str
    row: str
    prompt: str
    tags: str
    question: str
    cells: tuple[Sequence[str] | None, ...]
    """The verdict, its change, the answer and the reason by candidate."""


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
    out.write(mark)
    out.write(
        render(
            "page.html",
            summary=summary,
            served=served,
            policy=content_policy(script, style, is_served=served is not None),
            style=Drawing(style),
            version=__version__,
            models=[(name, rates.get(name, "")) for name in map(safe, table.candidates)],
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
        question=row.question,
        cells=tuple(map(row.cells.get, table.columns)),
    )


# --- the page that is shown while that of a run is being made: what is known of the run at once


RELOAD = "setTimeout(() => location.reload(), 1000)"
"""The script of the page: a refresh without one does not load an address with a case again."""


def waiting_page(name: str, run: Run | None, reached: Reached | None) -> bytes:
    """Return a page that is loaded again every second.

    `name` is that of the workspace; without a run it is about the workspace as it is now.
    """
    words = run.verdicts if run else {}
    counts = {str(word): words[word] for word in VERDICTS if words.get(word)}
    return render(
        "waiting.html",
        workspace=safe(name),
        run=f"run {short(run.id)}" if run else "the workspace as it is now",
        style=Drawing(read_asset("report.css")),
        script=Drawing(RELOAD),
        bar=verdict_bar(counts) if counts else "",
        counts=[(word, f"{count:,}") for word, count in counts.items()],
        signs=SIGNS,
        progress=_progress(reached),
    )


def _progress(reached: Reached | None) -> str:
    if reached is None:
        return "reading …"
    total = f" of {reached.total:,}" if reached.total else ""
    return f"reading … {reached.done:,}{total} {reached.counted}"
