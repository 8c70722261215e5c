"""Reads a dataset: the format of its file, the names of its columns, and the rows."""

from __future__ import annotations

import csv
import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import dropwhile, islice
from typing import BinaryIO, NamedTuple

from evalstore.core.canonical_json import canonical_json
from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem, Problem
from evalstore.core.values import Json
from evalstore.files.datasets.spec import DatasetColumns, DatasetSpec, condition, stable_names
from evalstore.files.datasets.text_source import (
    MOST_COLUMNS,
    BadRow,
    DataProblem,
    JsonDocument,
    JsonLines,
    Lines,
    Record,
    TextSource,
)
from evalstore.files.fields import suggest
from evalstore.files.jinja_sandbox import is_global, run, undeclared
from evalstore.files.processes.data_item import DataItem

MOST_PROBLEMS = 20
"""The most bad rows that are reported individually."""
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
}
_OPTIONS = {"delimiter": ("csv", "tsv"), "rows": ("json",)}
"""Options with the formats that support them."""


class Dataset:
    """The rows of a data file, which is read again on each iteration.

    Iterating raises `DataProblem` for problems in the file and `FileProblem` for problems of the
    spec. Unreadable rows and files without rows are never ignored silently.
    """

    def __init__(self, spec: DatasetSpec, rows: _Rows, source: TextSource) -> None:
        self._spec = spec
        self._rows = rows
        self._source = source
        written = rows.columns()
        self._columns = DatasetColumns(written, written)
        self._read = self._kept = 0
        self.problems: list[Problem] = []
        """Warnings of the last iteration, such as rows that were skipped."""
        if written:
            self._columns.rename(spec.rename, spec.line_of("rename"))
        self._is_table = isinstance(rows, DelimitedTable)
        self.advice = rows.advice() if isinstance(rows, DelimitedTable) else None
        """A hint when the columns seem to be read wrongly."""
        self._where = (
            RowCondition(spec, self._columns, source.file, self.advice)
            if spec.where is not None and written
            else None
        )

    @property
    def aliases(self) -> Mapping[str, str]:
        """Map names as written to those in templates, where they differ."""
        return self._columns.aliases

    @property
    def file(self) -> str:
        """Return the data file, as messages name it."""
        return self._source.file

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of all columns in the order of appearance."""
        return tuple(self._columns.names.values())

    def __iter__(self) -> Iterator[DatasetRow]:
        """Yield the selected rows, in the order of the file, with duplicates."""
        spec = self._spec
        self._read = self._kept = 0
        self.problems = [self._nameless()] if "" in self._columns.known else []
        rows = self._filtered()
        if spec.limit is not None:
            rows = islice(rows, spec.limit)
        if spec.sample is not None:
            rows = draw(rows, spec.sample, spec.seed, self._columns)
        yield from rows
        if not self._kept:
            if self._read:
                words = "the only row" if self._read == 1 else f"any of the {self._read:,} rows"
                raise spec.problem("where", f"'where' does not keep {words}", self._on_texts())
            raise self._without_rows()

    def _on_texts(self) -> str | None:
        """Return a hint for a condition that may compare cells with numbers."""
        condition = self._spec.where or ""
        may = (
            self._is_table
            and "|" not in condition
            and any(character.isdigit() for character in condition)
        )
        return f"a cell of a table is a text; {AS_NUMBER}" if may else None

    def _nameless(self) -> Problem:
        return Problem(
            self._source.file,
            "a column has no name",
            severity="warning",
            hint="""name it with 'rename: {"": name}', or write item['']""",
        )

    def _without_rows(self) -> FileProblem:
        if any(problem.line for problem in self.problems):
            return self._source.problem("no row can be read: the test would have no cases")
        lack = "has a header but no rows" if self._columns.names else "has no rows"
        return self._source.problem(f"the file {lack}: the test would have no cases")

    def _filtered(self) -> Iterator[DatasetRow]:
        matches = self._where
        for row in self._good():
            self._read += 1
            if matches is None or matches(row):
                self._kept += 1
                yield row

    def _good(self) -> Iterator[DatasetRow]:
        """Yield the readable rows; the first problems are collected before one is raised."""
        bad: list[BadRow] = []
        count = 0
        make = self._columns.item
        for number, record in enumerate(self._rows.records(), start=1):
            if isinstance(record, BadRow):
                count += 1
                if count <= MOST_PROBLEMS:
                    bad.append(record)
                    if self._spec.skip:
                        self.problems.append(record.as_warning())
                elif not self._spec.skip:
                    break
            elif not bad or self._spec.skip:
                try:
                    item = make(record.values)
                except KeyError as error:
                    message = "the file was changed while it was read"
                    raise self._source.problem(message, record.line) from error
                yield DatasetRow(number, record.line, item)
        if bad and not self._spec.skip:
            first, *others = bad
            first.others = tuple(others)
            raise first
        if count > MOST_PROBLEMS:
            message = f"{count - MOST_PROBLEMS:,} more rows are skipped"
            self.problems.append(Problem(self._source.file, message, severity="warning"))


def read_dataset(
    spec: DatasetSpec, open_binary: Callable[[], BinaryIO], file: str | None = None
) -> Dataset:
    """Open the dataset of a spec, whose file can be opened again and is seekable.

    `file` is the name of the data file in problems, as a path relative to the workspace.
    JSON Lines and tables are not loaded into memory: JSON Lines are read once for the names of
    the columns, and once for the rows. Raises like iterating.
    """
    path = spec.path.lower()
    source = TextSource(open_binary, file or spec.path, spec.encoding, path.endswith(".gz"))
    format = spec.format
    if format == "auto":
        stem = path.removesuffix(".gz")
        suffix = next((suffix for suffix in _SUFFIXES if stem.endswith(suffix)), None)
        format = _SUFFIXES[suffix] if suffix else _sniff(spec, source)
    for option, formats in _OPTIONS.items():
        if getattr(spec, option) is not None and format not in formats:
            hint = f"it is read as '{format}'; set 'format' if this is wrong"
            raise spec.problem(option, f"'{option}' is only for {' and '.join(formats)}", hint)
    rows: _Rows
    if format == "jsonl":
        rows = JsonLines(source)
    elif format == "json":
        rows = JsonDocument(source, spec.rows)
    else:
        rows = DelimitedTable(source, spec.delimiter or ("\t" if format == "tsv" else ","))
    return Dataset(spec, rows, source)


def _sniff(spec: DatasetSpec, source: TextSource) -> str:
    """Detect the format of a file from its first lines; raises `FileProblem`."""
    with source.open() as lines:
        first = [text for text in (line.strip() for line in islice(lines, 100)) if text]
    if not first:
        raise source.problem("the file has no rows: the test would have no cases")
    line = first[0]
    if line[0] == "[" or (line[0] == "{" and (spec.rows or not line.endswith("}"))):
        return "json"
    if line[0] == "{":
        return "jsonl"
    if spec.delimiter is not None:
        return "csv"
    for format, delimiter in (("tsv", "\t"), ("csv", ",")):
        if delimiter in line:
            return format
    raise spec.problem(
        "path",
        "the format of this file is not clear from its name or its first line",
        "set it, as in 'format: csv'; save a table of Excel or Parquet as CSV first",
    )


# --- reads CSV and TSV: every cell is a text, and every row has a cell for each column


_MOST_CHARACTERS = 16 * 1024 * 1024
"""The most characters of a cell, which limits the memory for an unclosed quote."""

_DELIMITERS = ";\t|,"
"""Common delimiters."""


class DelimitedTable:
    """A file with a header and a row on each line, unless a quoted cell breaks the line."""

    def __init__(self, source: TextSource, delimiter: str) -> None:
        self._source = source
        self._delimiter = delimiter
        self._header: list[str] = []

    def columns(self) -> dict[str, str]:
        """Map unique keys to the names in the header; empty when the file is empty."""
        with self._source.open() as lines:
            header = next(self._table(lines), None)
        if isinstance(header, DataProblem):
            hint = header.hint
            raise self._source.problem(f"the header: {header.message}", header.line, hint=hint)
        self._header = header[1] if header else []
        if len(self._header) > MOST_COLUMNS:
            raise self._source.problem(f"the header has more than {MOST_COLUMNS:,} columns", 1)
        if "".join(self._header[:1]).lower().startswith("sep=") and len(self._header) < 3:
            hint = "remove that line, and write 'delimiter: \";\"' with the sign that it names"
            raise self._source.problem(
                f"the line '{self._header[0]}' of Excel is not a header", 1, hint=hint
            )
        return dict(zip(stable_names(self._header), self._header, strict=True))

    def advice(self) -> str | None:
        """Return a hint when the header seems to have another delimiter."""
        header = self._header[0] if len(self._header) == 1 else ""
        for name in _DELIMITERS:
            if name in header and name != self._delimiter:
                written = name.replace("\t", "\\t")
                return f"the only column is {shorten(header)}: write 'delimiter: \"{written}\"'"
        return None

    def records(self) -> Iterator[Record | BadRow]:
        """Yield the rows in order, with the problems of unreadable ones."""
        keys = stable_names(self._header)
        with self._source.open() as lines:
            rows = self._table(lines)
            next(rows, None)
            for row in rows:
                if isinstance(row, BadRow):
                    yield row
                elif len(row[1]) == len(keys):
                    yield Record(row[0], dict(zip(keys, row[1], strict=True)))
                elif not _is_blank(row[1]):
                    yield self._uneven(*row)

    def _table(self, lines: Lines) -> Iterator[tuple[int, list[str]] | BadRow]:
        """Yield the header and the rows below it."""
        return dropwhile(
            lambda row: not isinstance(row, BadRow) and _is_blank(row[1]), self._rows(lines)
        )

    def _rows(self, lines: Lines) -> Iterator[tuple[int, list[str]] | BadRow]:
        """Yield the cells of each row with the line it starts at; no empty lines."""
        csv.field_size_limit(_MOST_CHARACTERS)
        rows = csv.reader(lines, delimiter=self._delimiter, strict=True)
        while True:
            line = lines.number + 1
            try:
                cells = next(rows)
            except StopIteration:
                return
            except BadRow as bad:
                yield bad
            except csv.Error as error:
                yield self._unreadable(str(error), line, lines.number)
            else:
                if cells:
                    yield line, cells

    def _unreadable(self, message: str, line: int, last: int) -> BadRow:
        """Convert an error of the module `csv` to a problem."""
        to_end = f", up to line {last}" if last > line else ""
        if "unexpected end of data" in message or "field limit" in message:
            hint = "a quote inside a quoted cell is written twice"
            return self._source.bad_row(f"a quoted cell is never closed{to_end}", line, hint=hint)
        if "expected after" in message:
            hint = "a quote inside a quoted cell is written twice"
            problem = f"text behind the closing quote of a cell{to_end}"
            return self._source.bad_row(problem, line, hint=hint)
        if "new-line" in message:
            hint = "lines end with LF or CRLF; put quotes round the cell to keep it"
            return self._source.bad_row("a carriage return inside the line", line, hint=hint)
        return self._source.bad_row(f"not a row of cells: {message}", line)

    def _uneven(self, line: int, cells: list[str]) -> BadRow:
        """Return the problem of a row that is too short or too long."""
        expected, actual = len(self._header), len(cells)
        if actual < expected:
            missing = shorten(self._header[actual])
            message = f"the row has {_cells(actual)} for {expected} columns: {missing} is missing"
        else:
            surplus = shorten(cells[expected])
            message = f"the row has {_cells(actual)} for {expected} columns: {surplus} is extra"
        hint = self.advice() or f"put quotes round a cell that holds {shorten(self._delimiter)}"
        return self._source.bad_row(message, line, hint=hint if actual > expected else None)


_Rows = JsonLines | JsonDocument | DelimitedTable
"""A file of one format."""


def _is_blank(cells: list[str]) -> bool:
    """Return whether this is a line of blanks, rather than a row."""
    return len(cells) == 1 and not cells[0].strip()


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


AS_NUMBER = "'item.NAME | int' is its number, as in 'item.level | int < 3'"
"""A hint for a text that is compared with a number."""
ITEM = "item"
"""The name of the row itself; a column of that name is `item.item`."""


class DatasetRow(NamedTuple):
    """One row of a data file."""

    number: int
    """Counted from 1 over all rows of the file, also those that are left out."""
    line: int | None
    """Where it starts in the data file; None inside a larger JSON document."""
    item: DataItem


class RowCondition:
    """The condition of a dataset; raises `FileProblem` for an unknown column."""

    def __init__(
        self, spec: DatasetSpec, columns: DatasetColumns, file: str, advice: str | None = None
    ) -> None:
        """`advice` is a hint for an unknown column."""
        assert spec.where is not None
        self._advice = advice
        self._spec = spec
        self._file = file
        self._source = condition(spec.where)
        self._line = spec.line_of("where") or 1
        self._names = []
        for name in sorted(undeclared(self._source, self._line) - {ITEM}):
            if name in columns.known:
                self._names.append(name)
            elif not is_global(name):
                hint = advice or suggest(name, [ITEM, *columns.known], "names")
                raise spec.problem("where", f"'where': unknown column '{name}'", hint)

    def __call__(self, row: DatasetRow) -> bool:
        """Return whether the row is kept."""
        scope: dict[str, Json] = {name: row.item[name] for name in self._names if name in row.item}
        scope[ITEM] = row.item
        try:
            return bool(run(self._source, self._line, scope))
        except FileProblem as problem:
            message = problem.message.removeprefix("the template fails: ")
            place = f"line {row.line}" if row.line else f"row {row.number}"
            hint = None
            if "is undefined" in message or "has no attribute" in message:
                hint = (
                    self._advice
                    or "for rows without that column write 'item.NAME is defined and …'"
                )
            elif "not supported between" in message and "'str'" in message:
                hint = f"the value is a text; {AS_NUMBER}"
            words = f"'where' fails for {place} of '{self._file}': {message}"
            raise self._spec.problem("where", words, hint) from problem


def draw(
    rows: Iterable[DatasetRow], count: int, seed: int, columns: DatasetColumns
) -> Iterator[DatasetRow]:
    """Draw a sample of rows, in the order of the file; only those drawn are kept in memory.

    Whether a row is drawn depends on a hash of its content, so neither the order of the rows, nor
    their names in templates, nor most changes of other rows matter. Equal rows are drawn
    together, up to `count`.
    """
    drawn: list[tuple[int, int, DatasetRow]] = []
    keys = {name: key for key, name in columns.names.items()}
    for row in rows:
        content = canonical_json([seed, {keys[name]: value for name, value in row.item.items()}])
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        entry = (-int.from_bytes(digest, "big"), -row.number, row)
        if len(drawn) < count:
            heapq.heappush(drawn, entry)
        elif entry > drawn[0]:
            heapq.heapreplace(drawn, entry)
    for _, _, row in sorted(drawn, key=lambda entry: entry[2].number):
        yield row
