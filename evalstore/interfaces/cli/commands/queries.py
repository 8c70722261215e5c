"""`grep`, `sql`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evalstore.core.errors import NO
from evalstore.files.json_output import to_json
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.commands.sharing import show_progress
from evalstore.interfaces.cli.options import argument, option
from evalstore.interfaces.cli.render.layout import Table, print_table
from evalstore.interfaces.cli.render.list_formats import print_data
from evalstore.store.rows.columns import VIEWS

if TYPE_CHECKING:
    from evalstore.results.search.grep import SearchHit


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
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """Search answers, feedback, tests and instructions.

    A text matches if it contains all words; the last one may be the beginning of a word. Case
    and accents do not matter. PATTERN is not a regular expression. Exit code 1: nothing was found.
    """
    from evalstore.results.search.grep import iterate_hits

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

        found = iterate_hits(here(), pattern, (within,) if within else (), report, name=name)
        first = list(islice(found, 1))  # the index is complete
    hits = chain(first, found)
    if print_data({"hits": map(to_json, hits)}, ["hits"], output_format, kind="grep", json=json):
        return
    if name_only:
        for file, _ in groupby(hits, key=lambda hit: hit.file):
            if file:
                output.line(output.safe(file))
    else:
        print_hits(hits)
    if not first:
        raise typer.Exit(NO)


# --- prints what `grep` has matched: grouped by file, with the matches in bold


NOUNS = {
    "answers": "answer",
    "feedback": "feedback",
    "tests": "test",
    "instructions": "instructions",
}
"""How a kind of text is called."""
_INDENT = 4
_WORD = re.compile(r"\S+")


def print_hits(hits: Iterable[SearchHit]) -> None:
    """Print the texts below the name of their file; no word is broken."""
    columns = output.width()
    for number, (file, listed) in enumerate(groupby(hits, key=lambda hit: hit.file)):
        if number:
            output.line()
        output.line(output.paint(output.safe(file or "in no recent run"), bold=True))
        for hit in listed:
            _print(hit, columns)


def _print(hit: SearchHit, width: int) -> None:
    session = "" if hit.file else f"answer {output.short((*hit.sessions, hit.id)[0])}"
    source = f"{NOUNS[hit.kind]} {output.short(hit.id)}"
    parts = [
        output.safe(f"[{hit.row}]" if hit.row else session),
        output.safe(", ".join(hit.models)),
    ]
    columns = width - _INDENT // 2
    if not output.wide:
        parts = [output.clip(part, columns - _INDENT // 2) for part in parts]
    first, *others = _pack([source, *filter(None, parts)], columns)
    margin = " " * (_INDENT // 2)
    output.line(margin + output.faint(source) + first.removeprefix(source))
    for text in others:
        output.line(margin + text)
    for begin, end in _wrap(hit.context, width - _INDENT):
        output.line(" " * _INDENT + _mark(hit, begin, end))


def _pack(parts: list[str], columns: int) -> Iterator[str]:
    """Yield lines, each of as many parts as fit on it."""
    packed = parts[0]
    for part in parts[1:]:
        if output.columns_of(f"{packed}  {part}") > columns:
            yield packed
            packed = f"  {part}"
        else:
            packed += f"  {part}"
    yield packed


def _wrap(text: str, columns: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line of a text; words wider than a line have their own."""
    begin = end = width = 0
    for word in _WORD.finditer(text):
        size = output.columns_of(output.safe(word[0]))
        between = word.start() - end
        if width and width + between + size > columns:
            yield begin, end
            width = 0
        begin, width = (begin, width + between + size) if width else (word.start(), size)
        end = word.end()
    if width:
        yield begin, end


def _mark(hit: SearchHit, begin: int, end: int) -> str:
    """Style the matches in a part of the text in bold."""
    parts, at = "", begin
    for first, last in hit.matches:
        first, last = max(first, at), min(last, end)
        if first < last:
            parts += output.safe(hit.context[at:first])
            parts += output.paint(output.safe(hit.context[first:last]), "match", bold=True)
            at = last
    return parts + output.safe(hit.context[at:end])


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
            from evalstore.interfaces.cli.render.list_formats import print_rows

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
