"""The command `report`: writes a run as one HTML file that needs no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from evalstore.comparison.pair_groups import PairGroup
from evalstore.comparison.statistics import RateChange
from evalstore.core.clock import minute
from evalstore.core.display import (
    WORKSPACE,
    case_name,
    cost_text,
    known_price,
    money,
    percent,
    plural,
    safe,
    short,
    short_names,
    side_name,
    simulated,
    status_word,
)
from evalstore.core.errors import EvalstoreError, NothingSelectedError, StoreError
from evalstore.core.runs import Run, shared_cost_text
from evalstore.core.values import FileRef, Json, Result
from evalstore.files.atomic_write import require_report, temporary_file
from evalstore.interfaces.html.case_data import MOST_EXPLAINED, CaseData, CaseHistory
from evalstore.interfaces.html.case_table import CaseTable, QuotedCell
from evalstore.interfaces.html.charts import interval_chart, trend_chart, with_arrows
from evalstore.interfaces.html.templates import (
    content_policy,
    data_block,
    read_asset,
    read_script,
    render,
    write_list_block,
)
from evalstore.planning.options import Location, is_partial
from evalstore.results.answer.answer import AnswerReader
from evalstore.results.answer.verdict_explanation import explain_view
from evalstore.results.compare.diff import compare_run, compare_workspace
from evalstore.results.compare.diff_result import (
    Diff,
    PairFacts,
    SideVerdict,
    count_cases,
    describe_pair,
    summary_lines,
)
from evalstore.results.edits.edited_files import describe_sides
from evalstore.results.edits.edits import find_unedited_run
from evalstore.results.flips.verdict_changes import (
    BrokenCase,
    Outcome,
    by_title,
    find_earlier_breaks,
)
from evalstore.results.labels import find_later_labels
from evalstore.results.names import name_prompts_of_run
from evalstore.results.report_overview import (
    CandidateRow,
    Trend,
    TrendRun,
    count_breaks,
    count_texts,
    make_overview,
    rate_texts,
    run_notes,
    trend_until,
)
from evalstore.results.show.show import (
    find_results,
    find_run,
    open_revision,
    without_garbage_collection,
)
from evalstore.results.stats.groups import PARTLY_TEXT, partly_judged
from evalstore.results.stats.stats import DIMENSIONS, Stats, StatsCollector, sum_spent
from evalstore.runs.run_text import scope_text
from evalstore.runs.status.status import describe_workspace, find_lost_labels
from evalstore.runs.status.status_text import lost_labels_text, work_price_text
from evalstore.store import Store
from evalstore.store.results import RowResults
from evalstore.store.revisions import WORK, names_of_runs
from evalstore.workspace.settings.settings import candidate_order

if TYPE_CHECKING:
    from evalstore.exchange.exports.formats import ByteWriter


MOST_GROUPS = 50
"""The most groups of a table."""
MOST_CHANGES = 10
"""The most changed results that the summary lists for each kind of change, in whole cases."""
_MOST_LISTED = 100
"""The most of them, where the last case has many."""
_TITLES = {"prompt": "System prompts", "tag": "Tags", "file": "Test files"}


def summarise_results(
    name: str,
    run: Run,
    statistics: Sequence[Stats],
    diff: Diff | None,
    trend: Trend,
    table: CaseTable,
    saved: float,
    breaks: Sequence[BrokenCase] | None,
    changes: Sequence[dict[str, Any]],
    names: Mapping[str, Sequence[str]],
    about: Iterable[tuple[str, str]],
    more_notes: Sequence[str],
    price: str,
    compare: Callable[[str, str], RateChange],
) -> dict[str, Any]:
    """Return what the page of a run has but for its cases; `name` is that of the workspace.

    `statistics` are empty if the run has no results. `saved` is the cost of what the run reused,
    in USD; `breaks` broke in earlier runs, if these were searched; `changes` are those of
    `list_changes`, `names` are those that runs have, and `about` has more facts.
    `price` is that of what is pending, and `compare` compares two candidates.
    """
    totals = next((each for each in statistics if each.by == ("model",)), None)
    counts = table.rows.words
    missing = counts.get("pending", 0) + counts.get("no reply", 0)
    overview = make_overview(run, totals, diff, breaks or (), pending=missing, compare=compare)
    lists = [each | {"cases": _changed_cases(each["results"], table)} for each in changes]
    shown, is_now = {each["id"]: each for each in lists if each["cases"]}, run.id == WORKSPACE
    since = safe(side_name(diff.was, names.get(diff.was, ()))) if diff else ""
    lines, runs = [line.candidate for line in trend.lines], [*trend.runs]
    if runs[1:] and diff and (runs[-1].id, runs[-2].id) == (WORKSPACE, diff.was):
        runs[-1] = with_changes(runs[-1], diff)
    marked = ((at, run.break_texts) for at, run in zip(trend.dates, trend.runs, strict=True))
    # A phone has no room for the names of edits in the drawing.
    marks = "; ".join(f"{at} {safe(with_arrows(texts))}" for at, texts in marked if texts)
    edits = next((it.edits for it in trend.runs if it.id == run.id), ())
    return {
        "name": safe(name),
        "is_now": is_now,
        "run": safe(side_name(run.id, names.get(run.id, ()))) + " as it is now" * is_now,
        "head": tuple(_head(run, since, diff)),
        "sentence": safe(overview.sentence),
        "notes": (
            *map(safe, _notes(run, counts, diff, totals, breaks, price)),
            *[overview.note] * bool(overview.note),
            *[PARTLY_TEXT] * any(row.is_partly for row in overview.candidates),
            *map(safe, more_notes),
        ),
        "candidates": overview.candidates,
        "edits": safe(with_arrows(describe_sides(diff) if is_now and diff else edits, "; ")),
        "trend": trend_chart(trend),
        "trend_notes": [
            *trend.notes,
            *[f"┊ edits that broke results: {marks}"] * bool(marks),
        ],
        "changes": tuple(shown.values()),
        "since": since,
        "change_lines": tuple(line.text for line in summary_lines(diff)) if diff else (),
        "groups": tuple(
            _group_table(stats)
            for stats in statistics
            if stats.by[0] == "file" or (stats.by[0] in _TITLES and len(stats.plain_groups) > 1)
        ),
        "about": (*_about(run, totals, table, saved), *about),
        "runs": [run_row(each, lines, names.get(each.id, ())) for each in reversed(runs)],
        "run_notes": run_notes(runs),
        "lines": [*map(safe, short_names(lines))],
    }


def _head(run: Run, since: str, diff: Diff | None) -> Iterable[str]:
    """Yield when a run was, its message, and what it is compared with."""
    if run.id != WORKSPACE:
        yield minute(run.started)
        if run.message:
            yield f"“{safe(run.message)}”"
    if since:
        yield f"compared with {since}{diff.filled_text if diff else ''}"
    elif run.id != WORKSPACE:
        yield "no earlier run to compare with"


def _notes(
    run: Run,
    counts: Mapping[str, int],
    diff: Diff | None,
    totals: Stats | None,
    breaks: Sequence[BrokenCase] | None,
    price: str,
) -> Iterable[str]:
    if run.status != "complete":
        yield f"this run is {status_word(run.status)}: some answers or verdicts are missing"
    if is_partial(run) and not any(short(run.id) in note for note in (diff.notes if diff else ())):
        yield f"partial run: {scope_text(run)}"
    yield from count_texts(run, counts, diff, breaks, price)
    if diff:
        if gone := len(diff.gone):
            new = f"{len(diff.new):,} new and " * bool(diff.new)
            yield f"{new}{plural(gone, 'gone result')} since {side_name(diff.was)}"
        comparison = diff.comparison
        change = comparison.change()
        findings = comparison.findings(change)
        if (change.moved or "" not in findings) and not comparison.by_verdict:
            yield from (": ".join(filter(None, each)) for each in findings.items())
        yield from diff.notes
    if totals and totals.total.cost:
        cost = known_price(totals.total.cost, totals.total.unpriced, brief=True)
        priced = simulated(cost) if totals.is_simulated else cost
        is_free = run.id != WORKSPACE and run.cost == 0  # else the sentence has it
        yield f"{'this run cost $0; ' * is_free}cost of all answers and verdicts shown: {priced}"


def _about(
    run: Run, statistics: Stats | None, table: CaseTable, saved: float
) -> Iterable[tuple[str, str]]:
    if run.id != WORKSPACE:
        yield "run", run.id
        status = status_word(run.status)
        yield "status", "partial" if is_partial(run) and status == "complete" else status
    if run.git:
        changed = {True: ", with changes", False: "", None: ""}[run.git.dirty]
        yield "commit", f"{run.git.commit[:12]}{changed}"
    if run.author:
        yield "author", safe(run.author)
    if scope_text(run):
        yield "arguments", safe(scope_text(run))
    judges = list(dict.fromkeys(evaluator.id for evaluator in run.evaluators))
    if judges:
        yield "judged by", safe(", ".join(judges))
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


def list_changes(
    diff: Diff, breaks: Sequence[BrokenCase], names: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    """Yield what broke, is now undecided, was fixed, broke before or is new and does not pass.

    Of each the first results. `names` are those of runs.
    """

    def list_pairs(id: str, title: str, pairs: PairGroup) -> dict[str, Any]:
        rows = [*pairs.rows()]
        described = [(it.either, describe_pair(diff, it)) for it in pairs[: _count_listed(rows)]]
        return _list(id, title, rows, described)

    for title, pairs in diff.flips.items():
        yield list_pairs(title.rpartition(" ")[2], title.capitalize(), pairs)
    for id, (title, listed) in zip(("before", "waiting"), by_title(breaks).items(), strict=True):
        rows = [it.result[:2] for it in listed]
        described = []
        for _, result, run, started in listed[: _count_listed(rows)]:
            prompt = diff.prompts.get(result.file, {}).get(result.prompt)
            name = case_name(result.file, result.row, prompt)
            since = f"broke in {safe(side_name(run, names.get(run, ())))}, {minute(started)}"
            words = (SideVerdict(result.word or "answered"),)
            described.append((result, PairFacts(name, result.model, words, since, prompt or "")))
        yield _list(id, title, rows, described)
    yield list_pairs("new", "New and not passing", diff.new.new_failures())


def _count_listed(rows: Sequence[object]) -> int:
    """Return how many results are listed, the first of these and all others of the last case."""
    first = rows[:MOST_CHANGES]
    return len(first) + len([*takewhile(first[-1:].__contains__, rows[MOST_CHANGES:_MOST_LISTED])])


def _list(
    id: str,
    title: str,
    rows: Sequence[object],
    results: Sequence[tuple[Result, PairFacts]],
) -> dict[str, Any]:
    """Return a list of results; `rows` are the cases of all."""
    more = rows[len(results) :]
    return {
        "id": id,
        "title": title,
        "count": ", ".join(count_cases(rows)),
        "results": results,
        "more": f"{plural(len(more), 'more result')} in {count_cases(more)[0]}" if more else "",
    }


def _changed_cases(
    results: Iterable[tuple[Result, PairFacts]], table: CaseTable
) -> list[dict[str, Any]]:
    """Return cases, the number of each in the table if it is there, and its results with texts."""
    cases: dict[tuple[str, str], dict[str, Any]] = {}
    for result, facts in results:
        place = result.file, result.row, result.prompt_number
        case = cases.setdefault(
            place[:2],
            {"name": case_name(*place[:2]), "place": table.places.find(*place), "results": []},
        )
        quoted = table.quoted.get(result.cell, QuotedCell())
        case["results"].append((facts, quoted, table.attempts.get(result.cell, "")))
    return [*cases.values()]


# --- groups and runs


def _group_table(stats: Stats) -> dict[str, Any]:
    """Return the pass rates, costs and latencies by prompt, tag or file."""
    by = stats.by[0]
    groups = stats.plain_groups
    if by in ("tag", "file"):  # the lowest pass rates first
        groups = sorted(
            groups, key=lambda it: (it.pass_rate is None, it.pass_rate, it.name.casefold())
        )
    shown = groups[:MOST_GROUPS]
    partly = partly_judged(groups)[:MOST_GROUPS]
    rest = len(groups) - len(shown)
    notes = (
        (rest > 0, f"The {MOST_GROUPS} with the lowest pass rates; {rest:,} more are left out."),
        (any(partly), f"{PARTLY_TEXT}."),
        (len(groups) < len(stats.groups), "Special tags are left out."),
    )
    return {
        "id": f"by-{by}",
        "title": _TITLES[by],
        "count": len(groups),
        "rows": [
            CandidateRow(group.name, group, is_partly, None, stats.leaves_out_cases)
            for group, is_partly in zip(shown, partly, strict=True)
        ],
        "note": " ".join(text for is_said, text in notes if is_said),
    }


def with_changes(now: TrendRun, diff: Diff) -> TrendRun:
    """Return the workspace with what changed since a run; of causes, only the edits."""
    flips = len(diff.broke), len(diff.fixed), (), len(diff.comparison.now_undecided)
    edits, breaks = describe_sides(diff), count_breaks(diff)
    return now._replace(outcome=Outcome(*flips), edits=edits, breaks=breaks)


def _run_changes(outcome: Outcome | None) -> tuple[tuple[str, str], ...]:
    """Return what changed in a run, as `log` says it: `4 broke`, `(by a label)`."""
    if outcome is None:
        return (("not counted", "same"),)
    styles = {"broke": "worse", "fixed": "better", "now undecided": "undecided"}
    counts = [(f"{n:,} {word}", styles.get(word, "same")) for n, word in outcome.counts if n]
    return (*counts, *([(f"({', '.join(outcome.causes)})", "same")] * bool(outcome.causes)))


def run_row(run: TrendRun, candidates: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return the row of a run in a table with a column for each candidate."""
    return {
        "id": run.id if run.id == WORKSPACE else short(run.id),
        "started": minute(run.at),
        "is_partial": run.is_limited,
        "status": "" if run.status == "complete" else status_word(run.status),
        "rates": rate_texts(run.rates, candidates, is_partial=run.is_partial),
        "changes": _run_changes(run.outcome),
        "breaks": with_arrows(run.break_texts),
        "text": with_arrows(run.edits, "; "),
        "names": ", ".join(names),
    }


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
