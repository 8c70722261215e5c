"""`grep`, `sql`, `report`, `export`, `stats`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from evalstore.core.display import WORKSPACE, StyledLine, StyledSpan, bytes_text, marked_words
from evalstore.core.errors import NO, OK, EvalstoreError, UnsuitedError
from evalstore.exchange.exports.formats import FORMATS, Format
from evalstore.files.json_output import to_json
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.commands.remotes import show_progress
from evalstore.interfaces.cli.options import app, argument, here, option
from evalstore.interfaces.cli.render.layout import (
    CommandOutput,
    Lists,
    Table,
    print_lines,
    print_rows,
    print_table,
)
from evalstore.store.rows.row_tables import VIEWS

if TYPE_CHECKING:
    from evalstore.results.grep import FoundText
    from evalstore.results.stats.stats import JudgeTable, Stats

_MANY = 10_000
"""A note explains the delay when at least this many texts have to be indexed."""


@app.command()
def grep(
    pattern: Annotated[
        str,
        argument("PATTERN", "Words (all must match), or a quoted phrase."),
    ],
    within: Annotated[
        Literal["answers", "feedback", "tests"] | None,
        option("--in", "Search only these (tests: instructions too)."),
    ] = None,
    name: Annotated[
        str | None, option("-k, --name EXPR", "Only cases whose file::row matches.")
    ] = None,
    name_only: Annotated[
        bool, option("-l, --name-only", "Only the names of the test files.")
    ] = False,
    ignore_case: Annotated[bool, option("-i, --ignore-case", "Ignore case (always on).")] = False,
) -> Lists:
    """Search answers, feedback, tests and instructions.

    A text matches if it contains all words; the last one may be the beginning of a word. Case
    and accents do not matter. PATTERN is not a regular expression. Exit code 1: nothing was found.
    """
    from evalstore.results.grep import iterate_hits

    with show_progress("indexing", "texts") as progress:
        shown: int | None = None

        def report(done: int, total: int) -> bool:
            nonlocal shown
            if shown is None and total - done >= _MANY:
                shown = done
                output.talk(f"note: adding {output.plural(total, 'text')} to the search index")
                progress.start(total)
            if shown is not None:
                progress.advance(done - shown, 0)
                shown = done
            return True

        is_data = output.format != "table"
        kinds = (within,) if within else ()
        named = not (is_data or name_only)
        found = iterate_hits(here(), pattern, kinds, report, name=name, named=named)
        first = list(islice(found, 1))  # the index is complete
    texts = chain(first, found)
    hits = (text.hit for text in texts)

    def show() -> None:
        if not name_only:
            print_hits(texts)
            return
        for file, _ in groupby(hits, key=lambda hit: hit.file):
            if file:
                output.line(output.safe(file))

    exit_code = OK if first or is_data else NO
    return Lists({"hits": map(to_json, hits)}, show, exit_code, ["hits"])


# --- prints what `grep` has matched: grouped by file, with the matches in bold


def print_hits(texts: Iterable[FoundText]) -> None:
    """Print the texts below the name of their file."""
    for number, (file, listed) in enumerate(groupby(texts, key=lambda text: text.hit.file)):
        if number:
            output.line()
        output.line(output.paint(output.safe(file or "in no recent run"), bold=True))
        for text in listed:
            print_lines(_hit_lines(text))


def _hit_lines(text: FoundText) -> Iterator[StyledLine]:
    """Yield the place of a text, and its part with the words."""
    hit = text.hit
    parts = [
        f"[{hit.row}]" if hit.row else "",
        "" if hit.file else f"answer {output.short((*hit.sessions, hit.id)[0])}",
        f"({text.prompt})" if text.prompt else "",
        ", ".join(hit.models),
    ]
    about = "".join(f"  {output.safe(part)}" for part in parts if part)
    source = StyledSpan(f"{hit.noun} {output.short(hit.id)}", "faint")
    yield StyledLine((source, StyledSpan(about)), 2)
    yield StyledLine(tuple(marked_words(hit.context, hit.matches)), 4)


# --- `sql`


_COLUMNS = "SELECT * FROM {} WHERE 1 = 0"


@app.command()
def sql(
    query: Annotated[
        str | None, argument("QUERY", "A SELECT. Without it: the views with their columns.")
    ] = None,
    limit: Annotated[int, option("--limit N", "Print at most N rows in a table.", min=1)] = 1_000,
    timeout: Annotated[float, option("--timeout S", "End the query after S seconds.", min=0)] = 60,
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """Query the store with SQL, without changing it.

    The views runs_v, results_v, answers_v, judgements_v and costs_v have stable columns, which
    docs/sql.md describes with examples. The other tables may change in any version. The dialect is
    that of the store: SQLite or PostgreSQL. '-o csv' and '-o jsonl' print all rows.
    """
    from evalstore.planning.open_project import open_store

    if query is None:
        with open_store(here()) as store:
            for name in VIEWS:
                with store.ask(_COLUMNS.format(name), timeout) as answer:
                    for line in output.wrap(f"{name}: {', '.join(answer.columns)}", output.width()):
                        output.line(line)
        return
    with open_store(here()) as store, store.ask(query, timeout) as answer:
        columns = answer.columns
        rows = ([_plain(value) for value in row] for row in answer.rows)
        if json or output_format == "json":
            output.document(
                {"columns": columns, "rows": (dict(zip(columns, row, strict=True)) for row in rows)}
            )
        elif output_format != "table":
            print_rows(output_format, columns, rows)
        else:
            _print_table(columns, rows, limit)


def _plain(value: Any) -> Any:
    """Return a value of a database as one of JSON: bytes are hexadecimal digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _print_table(columns: Sequence[str], rows: Iterator[list[Any]], limit: int) -> None:
    shown = list(islice(rows, limit))
    numbers = {
        name
        for place, name in enumerate(columns)
        if any(isinstance(row[place], int | float) for row in shown)
    }
    cells = [
        ["" if value is None else output.safe(" ".join(str(value).split())) for value in row]
        for row in shown
    ]
    print_table(Table(columns, cells, frozenset(numbers)))
    if next(rows, None) is not None:
        output.talk(f"(only the first {output.plural(limit, 'row')}; --limit N, or -o csv for all)")


_PAGE = "evalstore-report.html"


def _is_markdown(path: str | None, *, asked: bool) -> bool:
    """Return whether to write Markdown; raises `EvalstoreError` if the suffix is that of HTML."""
    suffix = Path(path).suffix.lower() if path else ""
    if asked and suffix in (".html", ".htm"):
        raise UnsuitedError(
            f"'--markdown' writes Markdown, and '{path}' is the name of an HTML file",
            hint="leave out '--markdown', or give the file a name that ends with .md",
        )
    return asked or suffix in (".md", ".markdown")


@app.command()
def report(
    revision: Annotated[
        str | None,
        argument(
            "REV",
            "A run; in HTML also @work, the workspace as it is now (default: @, the last run; in "
            "HTML @work if that run is partial, or files, settings or labels changed since).",
            options.runs,
        ),
    ] = None,
    path: Annotated[
        str | None,
        option(
            "-o, --output FILE",
            f"The file to write (default: {_PAGE}; Markdown is printed); -: stdout.",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        option("--compare REV", "Compare with this run (default: the previous one).", options.runs),
    ] = None,
    markdown: Annotated[
        bool, option("--markdown", "As Markdown, for a comment on a pull request.")
    ] = False,
) -> CommandOutput:
    """Write results as one HTML file, or a run as Markdown.

    The HTML file needs no network and opens in any browser. A file whose name ends with .md is
    Markdown, even without --markdown. An existing file is replaced only if it is a report. In
    Markdown, text from models is shown as code, so it mentions nobody and loads nothing.
    """
    from evalstore.interfaces.html.report import STDOUT, stream_report, write_report

    markdown = _is_markdown(path, asked=markdown)
    options.require_revision("report", revision or "@")
    if output.format == "json" and (markdown or path == STDOUT):
        raise UnsuitedError(
            "'--json' says what was written to an HTML file",
            hint="leave it out, or write HTML to a file",
        )
    if markdown:
        _write_markdown(revision or "@", compare, None if path in (None, STDOUT) else Path(path))
        return CommandOutput(None)
    if path == STDOUT:
        stream_report(here(), revision, output.BinaryOutput(), compare=compare)
        return CommandOutput(None)
    written = write_report(here(), revision, path or _PAGE, compare=compare)

    def show() -> None:
        output.line(f"wrote {output.safe(written.report)}")
        output.talk(f"{output.plural(written.cases, 'case')}, {bytes_text(written.bytes)}")

    return CommandOutput(written, show)


def _write_markdown(revision: str, compare: str | None, file: Path | None) -> None:
    """Print the report of a run, or write it to a file in one step; raises `EvalstoreError`."""
    from evalstore.exchange.markdown_report import MARK, markdown_report
    from evalstore.files.atomic_write import require_report, write_whole

    location = here()
    if file is not None:
        require_report(location.directory / file, file, MARK)
    text = markdown_report(location, revision, compare).encode()
    if file is None:
        output.BinaryOutput().write(text)
        return
    try:
        write_whole((location.directory / file).resolve(), text)
    except OSError as error:
        raise EvalstoreError(f"'{file}' cannot be written: {error.strerror}") from error
    output.talk(f"wrote {output.safe(str(file))}")


# --- `export`


@app.command()
def export(
    revision: Annotated[
        str,
        argument(
            "REV",
            "A run (default: the last), or @work: the workspace as it is now.",
            options.runs,
        ),
    ] = "@",
    file: Annotated[
        Path | None, option("-o, --output FILE", "The file or folder (default, and -: stdout).")
    ] = None,
    format: Annotated[
        Format | None,
        option(
            "--format FORMAT",
            f"As {', '.join(FORMATS[:-1])} or {FORMATS[-1]} (default: by the suffix; jsonl).",
        ),
    ] = None,
) -> None:
    """Write the results of a run for other programs.

    There is a row for each case, system prompt and candidate; docs/export.md describes the columns.
    FILE is replaced only when everything is written. '.xml' is JUnit XML. inspect, langbite and
    every-eval-ever write a new folder.
    """
    from evalstore.exchange.export import write_export, write_exports

    options.require_revision("export", revision)
    if file is None or file == Path("-"):
        if format == "parquet":
            raise EvalstoreError("Parquet cannot be printed", hint="name a file with -o")
        write_export(here(), revision, format or "jsonl", output.BinaryOutput())
        return
    write_exports(here(), revision, [file], format)
    output.talk(f"wrote {output.safe(str(file))}")


# --- `stats`


JUDGES_OPTIONAL = ("judged", "undecided", "failed alone", "passed alone", "passed")
"""The columns of the table of judges that a narrow terminal leaves out, in this order."""


@app.command()
def stats(
    revision: Annotated[
        str,
        argument(
            "REV",
            "A run, such as @, the last one. Without it: @work, the workspace as it is now.",
            options.runs,
            show_default=False,
        ),
    ] = "@work",
    by: Annotated[
        list[str] | None,
        option(
            "--by LIST",
            "Group by model, prompt, tag, file (comma-separated), or by judge alone.  "
            "[default: model]",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        str | None, option("--query NAME", "Apply this query of 'analysisQueries'.")
    ] = None,
    currency: Annotated[
        str | None,
        option("--currency CODE", "Show costs in a currency that has a file (default: USD)."),
    ] = None,
) -> Lists:
    """Show pass rates, costs and latencies.

    Costs are those of the answers and verdicts that count, whichever run paid for them. Intervals
    treat the results of one test file as related, so few files make wide intervals. '--by judge'
    shows how each judge agrees with people and with other judges, for its version in REV only.
    """
    from evalstore.results.stats.stats import stats as operation

    names = [name.strip() for value in by or ["model"] for name in value.split(",")]
    if names in (["judge"], ["evaluator"]) and not (query or currency):
        from evalstore.results.stats.stats import judge_stats

        judges = judge_stats(here(), revision)
        show = partial(print_judges, judges)
        return Lists(judges, show, names=["groups"], kind="stats --by judge")
    statistics = operation(
        here(), revision, list(dict.fromkeys(names)), query=query, currency=currency
    )
    return Lists(statistics, partial(print_stats, statistics), names=["groups"])


def print_stats(statistics: Stats) -> None:
    """Print statistics as a table."""
    from evalstore.results.stats.groups import (
        ALWAYS,
        INTERVAL_BAR,
        OPTIONAL,
        PARTLY_TEXT,
        partly_judged,
        table_cells,
    )

    about = f", {output.safe(statistics.query)}" if statistics.query else ""
    part = f", partial: {output.safe(statistics.selection)}" if statistics.selection else ""
    if statistics.is_workspace:
        output.line(f"workspace, all cases as they are now{about}")
    else:
        when = output.ago(statistics.started)
        output.line(f"run {output.short(statistics.run)}, {when}{part}{about}")
    is_whole = output.wide or output.table_width() is None  # as a file or a pipe has all columns
    groups = [*statistics.groups] if is_whole else statistics.plain_groups
    left_out = len(statistics.groups) - len(groups)
    partly = [*partly_judged(groups), False]
    groups += [statistics.total] if len(statistics.groups) > 1 or not groups else []
    rows = [
        table_cells(
            *(group, statistics.by, statistics.currency),
            is_partly=is_partly,
            is_counted=statistics.leaves_out_cases,
        )
        for group, is_partly in zip(groups, partly, strict=False)
    ]
    always = {*statistics.by, *ALWAYS}
    kept = [name for name in rows[0] if name in always or any(row[name] for row in rows)]
    numbers = frozenset(kept) - {*statistics.by, INTERVAL_BAR}
    print_table(Table(kept, [[row[name] for name in kept] for row in rows], numbers, OPTIONAL))
    if left_out:
        output.talk(f"({output.plural(left_out, 'special tag')} left out; --wide shows all)")
    rerolls = statistics.rerolls.text(statistics.total.rate.passed)
    if rerolls:
        for text in output.wrap(rerolls, output.width()):
            output.line(text)
    if any(partly):
        for text in output.wrap(f"note: {PARTLY_TEXT}", output.width()):
            output.talk(text)
    if statistics.leaves_out_cases:
        output.talk(
            '(use "evalstore stats @work" for all cases with the candidates in the settings)'
        )
    if statistics.is_simulated and statistics.total.cost:
        note = "note: the costs are simulated: scripted models call no service, so nothing is paid"
        for text in output.wrap(note, output.width()):
            output.talk(text)
    if statistics.priced_later:
        calls = output.plural(statistics.priced_later, "call")
        output.talk(f"note: the price of {calls} was unknown then; today's price is used")
    if statistics.total.unpriced:
        count = statistics.total.unpriced
        things = "1 answer or verdict" if count == 1 else f"{count:,} answers and verdicts"
        them = "it" if count == 1 else "them"
        output.talk(f"note: the price of {things} is unknown; the costs do not include {them}")


def print_judges(table: JudgeTable) -> None:
    """Print the judges as a table."""
    from evalstore.results.stats.stats import agreement, false_verdicts, rank_judges

    ranked, finding = rank_judges(table.groups)
    where = "workspace" if table.run == WORKSPACE else f"run {output.short(table.run)}"
    output.line(f"{where}, judges")

    header = (
        *("judge", "judged", "passed", "undecided", "agrees with people", "false passes"),
        *("false fails", "agrees with judges", "passed alone", "failed alone"),
    )
    rows = []
    for judge in ranked:
        words = judge.verdicts
        decided = words["pass"] + words["fail"]
        rows.append(
            (
                judge.judge,
                f"{words.total():,}",
                output.percent(words["pass"] / decided if decided else None),
                f"{words['undecided'] + words['error']:,}",
                agreement(judge.people) or "-",
                *(false_verdicts(judge.people, word) for word in ("pass", "fail")),
                agreement(judge.judges) or "-",
                *(f"{judge.alone[word]:,}" for word in ("pass", "fail")),
            )
        )
    print_table(Table(header, rows, frozenset(header[1:]), JUDGES_OPTIONAL))
    for text in output.wrap(output.safe(finding), output.width()) if finding else ():
        output.line(text)
    said = ((output.safe(each.judge), table.coverage(each)) for each in table.groups)
    notes = [f"{name}: {text}" for name, text in said if text]
    if any(agreement(judge.people) for judge in table.groups):
        notes.insert(0, "labels on answers that were replaced are included")
    elif not notes:
        notes = ["no judge has a verdict on a labelled answer: 'evalstore label' gives labels"]
    for text in (line for note in notes for line in output.wrap(f"({note})", output.width())):
        output.talk(text)
