"""The formats of `export`, and writers of rows as JSON Lines, CSV, JSON or Markdown.

In what is written, texts of models are inert.

A text of a model could call people, load pictures or show links. A backslash or an entity does not
prevent that everywhere: GitHub looks for mentions and links in the page that it has made of the
Markdown. It does not look into code, and neither does anything else.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from evalstore.core.display import safe
from evalstore.core.values import Case, Json, Result

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.planning.project import Project

Format = Literal[
    "jsonl",
    "csv",
    "parquet",
    "json",
    "md",
    "junit",
    "otlp",
    "inspect",
    "langbite",
    "every-eval-ever",
]
FORMATS: tuple[Format, ...] = get_args(Format)


SCHEMA_VERSION = 1
"""Grows when a column is removed or changes its meaning; a new column comes last."""

ColumnType = Literal["integer", "number", "text", "list of texts"]
Row = dict[str, Json]
"""A result by the names of the columns, in their order."""


class ExportColumn(NamedTuple):
    """A column of exported results; a value that is not known is null."""

    name: str
    type: ColumnType
    unit: str
    """The unit of a number or the format of a text; empty without one."""
    meaning: str


COLUMNS = (
    ExportColumn("schemaVersion", "integer", "", "the version of these columns"),
    ExportColumn("run", "text", "id", "the run, or `workspace`"),
    ExportColumn("started", "text", "ISO 8601, UTC", "when the run started"),
    ExportColumn("file", "text", "path", "the test file"),
    ExportColumn("row", "text", "", "the label of the row; empty in a file without rows"),
    ExportColumn("prompt", "text", "", "the name of the system prompt; null without one"),
    ExportColumn("promptId", "text", "id", "the version of the system prompt"),
    ExportColumn("model", "text", "", "the candidate"),
    ExportColumn("tags", "list of texts", "", "the tags of the test file"),
    ExportColumn(
        "verdict",
        "text",
        "",
        "`pass`, `fail`, `undecided`, `error`; `no reply` when a call failed, `pending` when it "
        "was not made; null where nothing judges",
    ),
    ExportColumn("score", "number", "0 to 1", "the mean score of the verdicts that have one"),
    ExportColumn(
        "feedback",
        "text",
        "",
        "why: the reasons for the verdict, a line each; several judges, and people, are named",
    ),
    ExportColumn("answer", "text", "", "the answer; the last turn of the first of several answers"),
    ExportColumn("attempts", "integer", "", "the number of answers that are required"),
    ExportColumn("answers", "integer", "", "the number of answers that are stored"),
    ExportColumn("judgements", "integer", "", "the number of verdicts that count"),
    ExportColumn("cost", "number", "USD", "the cost of the answers"),
    ExportColumn("judgingCost", "number", "USD", "the cost of the verdicts"),
    ExportColumn(
        *("pricedLater", "integer", ""),
        "the answers and verdicts at today's price, because their own is unknown",
    ),
    ExportColumn("latency", "number", "seconds", "the mean duration of the answers"),
    ExportColumn("test", "text", "id", "the version of the test"),
    ExportColumn("evaluation", "text", "id", "the version of instructions and checks"),
    ExportColumn("sessions", "list of texts", "ids", "the answers, for `evalstore show`"),
    ExportColumn("evaluations", "list of texts", "ids", "the verdicts, for `evalstore show`"),
    ExportColumn(
        "question", "text", "", "the last user message; of several conversations, of the first"
    ),
)
"""All columns, in the order in which they are written."""
NAMES = tuple(map(attrgetter("name"), COLUMNS))


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these is a formula in a spreadsheet."""
_PLAIN = re.compile(r"[^\W_]*(?:[ ,.%/][^\W_]*)*")
"""Matches words and numbers that mean nothing in Markdown."""
_TICKS = re.compile("`+")


def cell_text(value: Json) -> str:
    """Return a value as text: null is empty, texts of a list are joined by commas, else JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def csv_cell(value: Json) -> str:
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers."""
    text = cell_text(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"'{text}" if text.startswith(_FORMULA) and not is_number else text


def markdown_cell(value: Json) -> str:
    """Return a cell of a table in Markdown: plain words, or code on one line."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return code_span(cell_text(value)).replace("|", "\\|")


def code_span(text: str, *, is_name: bool = False) -> str:
    """Return a text as code on one line; plain words stay as they are, unless they are a name."""
    line = " ".join(safe(text, lines=True).split())
    if not is_name and _PLAIN.fullmatch(line) and "www." not in line.casefold():
        return line
    fence = "`" * _free_run(line, 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def code_block(text: str) -> str:
    """Return a text as a block of code, whose fence is longer than any run of backticks in it."""
    fence = "`" * _free_run(text, 3)
    return f"{fence}text\n{safe(text, lines=True)}\n{fence}"


def cut(text: str, most: int) -> str:
    """Return a text, of which no more than so many characters are left."""
    rest = len(text) - most
    return f"{text[:most]}… ({rest:,} more characters)" if rest > 0 else text


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Json]]) -> Iterator[str]:
    """Yield the lines of a table as CSV, without their ends."""
    yield from map(_csv_line, chain([header], rows))


class _Echo:
    """A file that returns what a CSV writer writes, so that the writer returns it, too."""

    def write(self, line: str) -> str:
        return line


_LINES: Any = csv.writer(_Echo(), lineterminator="")


def _csv_line(values: Iterable[Json]) -> str:
    return str(_LINES.writerow([safe(csv_cell(value), lines=True) for value in values]))


def markdown_lines(header: Sequence[str], rows: Iterable[Sequence[Json]]) -> Iterator[str]:
    """Yield the lines of a table as Markdown."""
    yield f"| {' | '.join(map(markdown_cell, header))} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(map(markdown_cell, row))} |"


def _free_run(text: str, least: int) -> int:
    """Return a length that no run of backticks in the text has, and that is longer than each."""
    return max([least - 1, *map(len, _TICKS.findall(text))]) + 1


# --- rows, one after the other


class ByteWriter(Protocol):
    """A file that is open for writing bytes, or the standard output."""

    def write(self, data: bytes, /) -> Any:
        """Write bytes."""


class Export(NamedTuple):
    """The results of a revision, which are read one after the other."""

    project: Project
    run: Run
    """The run; for the workspace, one that is not stored."""
    results: Iterator[tuple[Result, Case]]
    """The results with their cases; each is in `rows`, too, and is read only once."""
    rows: Iterator[Row]


Writer = Callable[[Export, ByteWriter], None]
"""Writes all rows to a file."""
FolderWriter = Callable[[Export, Path], None]
"""Writes the files of a format into an empty folder."""
RecordWriter = Callable[[Iterable[Json]], None]
"""Writes a record of CSV."""
_IN_MARKDOWN = ("file", "row", "prompt", "model", "verdict", "score", "cost", "feedback")
"""The columns of a table in Markdown, which is for people."""
_LONGEST = 500
"""Characters of a cell in Markdown."""


def write_json_lines(export: Export, file: ByteWriter) -> None:
    """Write an object on a line for each result."""
    encode = make_encoder()
    for row in export.rows:
        file.write(encode(row) + b"\n")


def write_json(export: Export, file: ByteWriter) -> None:
    """Write one object with the results in a list."""
    encode = make_encoder()
    head = {"format": 1, "schemaVersion": SCHEMA_VERSION, "run": export.run.id}
    file.write(encode(head)[:-1] + b',"results":[')
    write_items(file, export.rows)
    file.write(b"\n]}\n")


def write_items(file: ByteWriter, items: Iterable[Json]) -> None:
    """Write the items of an array of JSON, one on a line."""
    encode = make_encoder()
    for number, item in enumerate(items):
        file.write((b",\n" if number else b"\n") + encode(item))


def make_encoder() -> Callable[[Json], bytes]:
    """Return a function that encodes a value as JSON in UTF-8."""
    from pydantic_core import to_json  # takes a third of the time of the standard library

    return to_json


def write_csv(export: Export, file: ByteWriter) -> None:
    """Write a header and a record for each result; control characters are escapes."""
    write_record = make_record_writer(file)
    write_record(NAMES)
    for row in export.rows:
        write_record(row.values())


def make_record_writer(file: ByteWriter) -> RecordWriter:
    """Return a function that writes a record of CSV, in which nothing is a formula."""
    return lambda values: file.write(f"{_csv_line(values)}\n".encode())


def write_markdown(export: Export, file: ByteWriter) -> None:
    """Write a table with the columns that people read."""
    rows = (
        [
            cut(cell, _LONGEST) if isinstance(cell := row[name], str) else cell
            for name in _IN_MARKDOWN
        ]
        for row in export.rows
    )
    for line in markdown_lines(_IN_MARKDOWN, rows):
        file.write(f"{line}\n".encode())


_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100


class FileNames:
    """The names of files in one folder; no two differ only in case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, text: str, suffix: str = "") -> str:
        """Return a name for a text that no file has yet; it is neither hidden nor a path."""
        stem = _UNUSUAL.sub("-", text)[:_LONGEST_NAME].strip(".-") or "unnamed"
        name, number = stem, 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name.casefold())
        return name + suffix
