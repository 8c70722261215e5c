"""The command `report`: writes a run as one HTML file that needs no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from evalstore.core.display import WORKSPACE, case_name, short
from evalstore.core.errors import EvalstoreError, NothingSelectedError, StoreError
from evalstore.core.runs import shared_cost_text
from evalstore.files.atomic_write import require_report, temporary_file
from evalstore.interfaces.html.case_data import MOST_EXPLAINED, CaseData, CaseHistory
from evalstore.interfaces.html.charts import interval_chart
from evalstore.interfaces.html.summary import list_changes, summarise_results
from evalstore.interfaces.html.templates import (
    content_policy,
    data_block,
    read_asset,
    read_script,
    render,
    write_list_block,
)
from evalstore.planning.options import is_partial
from evalstore.results.answer.answer import AnswerReader
from evalstore.results.answer.verdict_explanation import explain_view
from evalstore.results.compare.diff import compare_run, compare_workspace
from evalstore.results.edits.edits import find_unedited_run
from evalstore.results.flips.verdict_changes import find_earlier_breaks
from evalstore.results.labels import find_later_labels
from evalstore.results.names import name_prompts_of_run
from evalstore.results.report_overview import trend_until
from evalstore.results.show.show import (
    find_results,
    find_run,
    open_revision,
    without_garbage_collection,
)
from evalstore.results.stats.stats import DIMENSIONS, Stats, StatsCollector, sum_spent
from evalstore.runs.status.status import describe_workspace, find_lost_labels
from evalstore.runs.status.status_text import lost_labels_text, work_price_text
from evalstore.store.results import RowResults
from evalstore.store.revisions import WORK, names_of_runs
from evalstore.workspace.settings.settings import candidate_order

if TYPE_CHECKING:
    from evalstore.core.values import FileRef, Json
    from evalstore.exchange.exports.formats import ByteWriter
    from evalstore.interfaces.html.case_table import CaseTable
    from evalstore.planning.options import Location
    from evalstore.store import Store


MARK = b"<!doctype html>\n<!-- A report of evalstore."
"""How a report begins; only a file that begins so is replaced."""

STDOUT = "-"
_SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_LARGEST_IMAGE, _MOST_IMAGES = 2_000_000, 15_000_000
"""The most bytes of a picture, and of all pictures."""


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report that was written."""

    report: str
    """The path as it was given; `-` for stdout."""
    run: str
    """The id of the run, or `workspace`."""
    cases: int
    bytes: int


def write_report(
    location: Location, revision: str | None, path: str, *, compare: str | None = None
) -> WrittenReport:
    """Write the report of a run into a file, whole or not at all.

    Without a revision it is of the last run, or of the workspace where that has changed. `path` is
    relative to the current folder, and a link is followed. A file that exists is replaced only if
    it is a report. Raises `EvalstoreError`.
    """
    target = location.directory / path
    if target.suffix.lower() not in ("", ".html", ".htm"):
        from evalstore.exchange.export import format_of

        hint = "end the name with .html; 'evalstore report' also writes Markdown, to names with .md"
        if format_of(target):
            hint += f"; 'evalstore export -o {path}' writes the results for other programs"
        raise EvalstoreError(f"'{path}' is not the name of an HTML file", hint=hint)
    require_report(target, Path(path), MARK)
    try:
        with temporary_file(target.resolve()) as out:
            table = build_report(location, revision, out, compare=compare)
            return WrittenReport(path, table.run, table.rows.count_cases(), out.tell())
    except OSError as error:
        raise EvalstoreError(f"'{path}' cannot be written: {error.strerror}") from error


def stream_report(
    location: Location, revision: str | None, out: ByteWriter, *, compare: str | None = None
) -> None:
    """Write the report of a run to a stream once it is complete; raises `EvalstoreError`."""
    with TemporaryFile() as spool:
        build_report(location, revision, spool, compare=compare)
        spool.seek(0)
        copyfileobj(spool, out)


def build_report(
    location: Location,
    revision: str | None,
    out: BinaryIO,
    *,
    compare: str | None = None,
    served: ServedPage | None = None,
) -> CaseTable:
    """Write the page of a run to an open file, and return the table of its cases.

    Raises `EvalstoreError`.
    """
    with without_garbage_collection(), open_revision(location, revision or WORK) as project:
        if revision is None:
            last = None if compare else find_unedited_run(project)
            revision = last.id if last and not is_partial(last) else WORK
        price = ""
        if revision == WORK:
            workspace = compare_workspace(location, project, compare)
            run, compared = find_run(project, WORK), workspace.diff
            batches = workspace.batches(project)
            if any(workspace.side.results.missing):
                price = work_price_text(describe_workspace(project))
        else:
            run, batches = find_results(project, revision)
            compared = compare_run(location, project, run, compare)
        now = workspace.batches(project) if revision == WORK else ()
        earlier = find_earlier_breaks(location, project, run, compared, now)
        breaks = earlier or []
        collector = StatsCollector(project, run, [(name,) for name in DIMENSIONS])
        stored = None if run.id == WORKSPACE else run
        rows = RowResults(project.store)
        note, later = find_later_labels(project.store, stored) if stored else ("", {})
        labelled = {result.cell: text for result, text in later.items()}
        id = compared.was if compared else WORKSPACE
        was = None if id == WORKSPACE else project.store.load_run(id)
        lost = find_lost_labels(project) if was and not stored else []
        more_notes = [*filter(None, [note, lost_labels_text(lost)])]
        last = stored or was
        if last and last.asked and last.selection.get("refresh"):
            told = f"run {short(last.id)} asked again (--refresh)"
            more_notes.append(f"{told}: in the workspace the oldest answers count")
        names_of = names_of_runs(project.store)
        changes = [*list_changes(compared, breaks, names_of)] if compared else []
        data = CaseData(
            AnswerReader(project, run),
            compared,
            history := CaseHistory(project.store, project.settings.paths["tests"], stored, rows),
            lambda prompts: name_prompts_of_run(project, prompts),
            lambda view: explain_view(project, view, run, rows),
            (result for each in changes for result, _ in each["results"]),
            labelled,
            breaks,
        )
        with TemporaryFile() as spool:
            results = chain.from_iterable(collector.pass_on(batches))
            for number, block in enumerate(data.blocks(results)):
                spool.write(data_block(f"block-{number}", block))
            order = candidate_order(project.settings)
            data.table.sort_candidates(order)
            for id, content in read_images(project.store, data.images):
                spool.write(data_block(f"image-{id}", content))
            runs = [{"id": other.id[:8], "at": other.started // 1000} for other in history.runs]
            spool.write(data_block("data-runs", runs))
            table = data.table
            write_list_block(spool, "data-cases", table.content(), "rows", table.rows.as_json())
            statistics: list[Stats] = []
            with suppress(NothingSelectedError):  # a run without results
                statistics = collector.finish(rerolls=False)
            by_model = next(each for each in statistics if each.by == ("model",))
            spent = shared_cost_text(*sum_spent(project.store, stored))
            about = [("cost of all runs" + " up to this one" * bool(stored), spent)]
            summary = summarise_results(
                project.workspace.root.name,
                run,
                statistics,
                compared,
                trend_until(location, project.store, by_model),
                data.table,
                collector.saved,
                earlier,
                changes,
                names_of,
                about,
                more_notes,
                price,
                collector.compare,
            )
            spool.seek(0)
            script, style = read_script("report.js"), read_asset("report.css")
            shown = data.table.rows.choose(MOST_ROWS)
            rates = {row.name: row.rate for row in summary["candidates"]}
            names = [data.table.models[column] for column in data.table.columns]
            page = render(
                "page.html",
                summary=summary,
                served=served,
                run=run.id,
                policy=content_policy(script, style, is_served=served is not None),
                models=[(name, rates.get(name, "")) for name in names],
                rows=shown,
                table=data.table,
                case_name=case_name,
                interval_chart=interval_chart,
                most_explained=MOST_EXPLAINED,
                case_count=len({row.case for row in shown}),
                total=data.table.rows.count_cases(),
            )
            out.write(MARK + page)
            copyfileobj(spool, out)
            out.write(b"<script>" + script.encode() + b"</script>\n</body>\n</html>\n")
    return data.table


def read_images(store: Store, images: Mapping[str, FileRef]) -> Iterator[tuple[str, Json]]:
    """Yield the pictures by id as addresses of their data, or the reason why one is left out."""
    total = 0
    for id, file in images.items():
        if file.media_type not in _SHOWN_TYPES:
            yield id, {"note": f"a picture of the type {file.media_type} is not shown"}
            continue
        try:
            data = store.load_files([id])[id].data
        except StoreError:
            yield id, {"note": "the picture is not in the store"}
            continue
        if len(data) > _LARGEST_IMAGE or total + len(data) > _MOST_IMAGES:
            yield id, {"note": f"the picture is too large to be shown ({len(data):,} bytes)"}
            continue
        total += len(data)
        yield id, {"source": f"data:{file.media_type};base64,{b64encode(data).decode()}"}


# --- writes the page: the summary, the first cases as a table, and the data for the script


MOST_ROWS = 200
"""The most rows of the table that is shown without JavaScript; a case has one for each prompt."""


class ServedPage(NamedTuple):
    """What a page of a server knows that a file does not."""

    base: str
    """The path below which the pages are, without a slash at its end."""
    run: str
    """The newest run when the page was made; empty without one."""
    state: str
    """A text that differs after every change of the store."""
