"""Datasets: the field `dataset` of a test file, the format of its data file, and the rows.

Columns have stable names. Values are data, never templates. The caller opens the file.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import heapq
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import dropwhile, islice
from typing import Any, BinaryIO, NamedTuple

from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem, Problem
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Json
from evalstore.files.fields import Fields, suggest
from evalstore.files.jinja_sandbox import is_global, run, undeclared
from evalstore.files.processes.limited_calls import DataItem
from evalstore.files.text_source import (
    MOST_COLUMNS,
    BadRow,
    DataProblem,
    JsonDocument,
    JsonLines,
    Lines,
    Record,
    TextSource,
)
from evalstore.files.yaml12 import Document


def stable_names(written: Iterable[str]) -> list[str]:
    """Name each column in lower case, with `_` for characters not valid in identifiers.

    A name that is taken gets `_1`, `_2` …, from left to right. Letters of all scripts
    stay, digits may come first, and a name may be empty.
    """
    used: set[str] = set()
    counts: dict[str, int] = {}
    names = []
    for column in written:
        name = base = _stable(column)
        while name in used:
            counts[base] = counts.get(base, 0) + 1
            name = f"{base}_{counts[base]}"
        used.add(name)
        names.append(name)
    return names


def _stable(written: str) -> str:
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", written).lower())
    return "".join([character if _can_stand(character) else "_" for character in text])


@lru_cache(maxsize=4096)
def _can_stand(character: str) -> bool:
    """Return whether an identifier may have a character after its start."""
    return f"a{character}".isidentifier()


class DatasetColumns:
    """The columns of one file: their names in the file and in templates."""

    def __init__(self, keys: Iterable[str], written: Mapping[str, str] | None = None) -> None:
        keys = list(keys)
        self._written = written or {}
        self.names = dict(zip(keys, stable_names(keys), strict=True))
        """From the key in the records of a reader to the name in templates."""
        self.known: frozenset[str] = frozenset()
        self.aliases: dict[str, str] = {}
        self._settle()

    def _settle(self) -> None:
        self.known = frozenset(self.names.values())
        self.aliases = {}
        """From names as written to names in templates, where they differ."""
        for key, name in self.names.items():
            written = self._written.get(key, key)
            if written not in self.known:
                self.aliases.setdefault(written, name)
        self.same = all(key == name for key, name in self.names.items())
        """Whether every key is the name."""

    def rename(self, renamed: Mapping[str, str], line: int | None = None) -> None:
        """Rename columns, given by either of their names; raises `FileProblem`."""
        by_name = {name: key for key, name in self.names.items()}
        by_alias = {alias: by_name[name] for alias, name in self.aliases.items()}
        changed: dict[str, str] = {}
        for old, new in renamed.items():
            key = by_name.get(old, by_alias.get(old))
            if key is None:
                hint = suggest(old, [*by_name, *by_alias], "columns")
                raise FileProblem(f"'rename': unknown column '{old}'", line, hint=hint)
            if key in changed:
                raise FileProblem(f"'rename' gives the column '{old}' two names", line)
            changed[key] = new
        names = {**self.names, **changed}
        for key, new in changed.items():
            other = next(
                (
                    other_key
                    for other_key, name in names.items()
                    if name == new and other_key != key
                ),
                None,
            )
            if other is not None:
                raise FileProblem(
                    f"'rename' gives two columns the name '{new}'",
                    line,
                    hint=f"rename the column '{self._written.get(other, other)}' as well",
                )
        self.names = names
        self._settle()

    def item(self, values: Mapping[str, Json]) -> DataItem:
        """Return a row by its names; raises `KeyError` for a key that is not a column."""
        if self.same and values.keys() <= self.known:
            return DataItem(values, self.known, self.aliases)
        values = {self.names[key]: value for key, value in values.items()}
        return DataItem(values, self.known, self.aliases)


FIELDS = (
    "path",
    "format",
    "rows",
    "where",
    "limit",
    "sample",
    "rename",
    "encoding",
    "delimiter",
    "onError",
)
SAMPLE_FIELDS = ("n", "seed")
FORMATS = ("auto", "jsonl", "json", "csv", "tsv")


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """One dataset as specified in a test file."""

    path: str
    """As written: relative to the test file, or with a prefix of `datasetRoots`."""
    format: str = "auto"
    rows: str | None = None
    """The path of the list of rows in a JSON document: keys separated by dots."""
    where: str | None = None
    """An expression over `item` and the columns; rows for which it is not true are left out."""
    limit: int | None = None
    """Only the first rows; counted after `where`."""
    sample: int | None = None
    """The number of rows that are drawn from the selected ones."""
    seed: int = 0
    rename: Mapping[str, str] = field(default_factory=dict)
    """From the old name of a column to the new one."""
    encoding: str = "utf-8"
    delimiter: str | None = None
    skip: bool = False
    """Pass over rows that cannot be read, with a warning, instead of failing."""
    line: int | None = None
    """The line of the dataset in the test file."""
    lines: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, name: str) -> int | None:
        """Return the line of a field in the test file."""
        return self.lines.get(name, self.line)

    def problem(self, name: str, message: str, hint: str | None = None) -> FileProblem:
        """Return a problem with a field, at its place in the test file."""
        return FileProblem(message, self.line_of(name), hint=hint)


def read_spec(document: Document) -> DatasetSpec:
    """Read the field `dataset`, a path or a mapping; raises `FileProblem`."""
    line = document.line()
    if isinstance(document.value, str):
        return DatasetSpec(_path(document.value, line), line=line)
    if not isinstance(document.value, dict):
        raise FileProblem(
            "'dataset' must be the path of a file or a mapping of fields",
            line,
            hint="as in 'dataset: data/questions.jsonl'",
        )
    fields = Fields(document, FIELDS)
    path = fields.text("path")
    if path is None:
        raise FileProblem("the dataset has no 'path'", line)
    drawn = fields.inner("sample", SAMPLE_FIELDS)
    sample = drawn.whole("n", least=1)
    if sample is None and fields.value("sample") is not None:
        raise FileProblem(
            "'sample' needs 'n', how many rows to draw",
            fields.line("sample"),
            hint="as in '{n: 5}'",
        )
    return DatasetSpec(
        path=_path(path, fields.line("path")),
        format=fields.choice("format", FORMATS) or "auto",
        rows=fields.text("rows"),
        where=_where(fields),
        limit=fields.whole("limit", least=1),
        sample=sample,
        seed=drawn.whole("seed", least=-(2**63)) or 0,
        rename=_rename(fields),
        encoding=_encoding(fields),
        delimiter=_delimiter(fields),
        skip=fields.choice("onError", ("fail", "skip")) == "skip",
        line=line,
        lines={name: fields.line(name) for name in document.value},
    )


def _path(path: str, line: int) -> str:
    if not path.strip() or "\0" in path:
        raise FileProblem("the path of the dataset is empty", line)
    return path.strip()


def _where(fields: Fields) -> str | None:
    expression = fields.text("where")
    if expression is None:
        return None
    line = fields.line("where")
    if expression.lstrip().startswith(("{{", "{%")):
        hint = "write it without braces, as in 'where: item.level > 3'"
        raise FileProblem("'where' must be an expression, not a template", line, hint=hint)
    try:
        undeclared("{{ (" + expression + ") }}", line)
        undeclared(condition(expression), line)
    except FileProblem as problem:
        message = problem.message.removeprefix("not a template: ")
        raise FileProblem(f"'where' is not an expression: {message}", line) from problem
    return expression


def condition(expression: str) -> str:
    """Return a template that is empty unless the expression is true."""
    return "{% if (" + expression + ") %}1{% endif %}"


def _rename(fields: Fields) -> dict[str, str]:
    renamed = fields.mapping("rename")
    for old, new in renamed.items():
        line = fields.line("rename", old)
        if not isinstance(new, str) or not new:
            raise FileProblem(f"'rename': the new name of '{old}' must be a text", line)
        (stable,) = stable_names([new])
        if stable != new:
            hint = f"as in '{old}: {stable}'"
            message = f"'rename': {shorten(new)} cannot be the name of a column"
            raise FileProblem(message, line, hint=hint)
    return renamed


def _encoding(fields: Fields) -> str:
    name = fields.text("encoding") or "utf-8"
    try:
        b"a".decode(codecs.lookup(name).name)
    except LookupError as error:
        message = f"unknown encoding {shorten(name)}"
        hint = "as in 'latin-1' or 'utf-16'"
        raise FileProblem(message, fields.line("encoding"), hint=hint) from error
    except UnicodeError:  # one letter need not be a text, as in UTF-16
        pass
    return codecs.lookup(name).name.removesuffix("-sig")  # a byte order mark is dropped anyway


def _delimiter(fields: Fields) -> str | None:
    delimiter: Any = fields.value("delimiter")
    if delimiter is None or (
        isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n\0'
    ):
        return delimiter
    raise FileProblem(
        "'delimiter' must be one character", fields.line("delimiter"), hint="as in '\";\"'"
    )


def resolve_path(spec: DatasetSpec, roots: Mapping[str, str]) -> str:
    """Replace the longest prefix of `roots` that the path of the data has by its folder.

    Raises `FileProblem` for a path like `hf://…` that no root is known for, and for one
    that leaves the folder of its root. Nothing is ever downloaded.
    """
    fitting = [root for root in roots if spec.path.startswith(root) and _ends(root, spec.path)]
    if fitting:
        root = max(fitting, key=len)
        rest = spec.path[len(root) :].lstrip("/")
        if not rest or ".." in rest.split("/"):
            raise spec.problem("path", f"the path '{spec.path}' names no file below '{root}'")
        return f"{roots[root].rstrip('/')}/{rest}"
    scheme, separator, _ = spec.path.partition("://")
    if separator:
        message = f"nothing is downloaded, and no folder is known for '{scheme}://'"
        hint = f"give the folder of the files, as in 'datasetRoots: {{\"{scheme}://\": ../data}}'"
        raise spec.problem("path", message, hint)
    return spec.path


def _ends(root: str, path: str) -> bool:
    """Return whether a root ends where a part of the path ends."""
    return root.endswith("/") or path[len(root) : len(root) + 1] in ("", "/")


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
        self.is_table = isinstance(rows, DelimitedTable)
        self.problems: list[Problem] = []
        """Warnings of the last iteration, such as rows that were skipped."""
        if written:
            self._columns.rename(spec.rename, spec.line_of("rename"))
        self.advice = rows.advice() if isinstance(rows, DelimitedTable) else None
        """A hint when the columns seem to be read wrongly."""
        self._where = condition(spec.where) if spec.where is not None and written else None
        self._used = self._used_columns(self._where) if self._where else []
        """The columns that the condition names."""

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
        spec, read, kept = self._spec, 0, 0

        def filtered() -> Iterator[DatasetRow]:
            nonlocal read, kept
            for row in self._good():
                read += 1
                if self._where is None or self._keeps(self._where, row):
                    kept += 1
                    yield row

        self.problems = []
        if "" in self._columns.known:
            hint = """name it with 'rename: {"": name}', or write item['']"""
            words = "a column has no name"
            self.problems.append(Problem(self.file, words, severity="warning", hint=hint))
        rows: Iterator[DatasetRow] = filtered()
        if spec.limit is not None:
            rows = islice(rows, spec.limit)
        if spec.sample is not None:
            rows = draw(rows, spec.sample, spec.seed, self._columns)
        yield from rows
        if read and not kept:
            words = "the only row" if read == 1 else f"any of the {read:,} rows"
            where = spec.where or ""
            may_compare = self.is_table and "|" not in where and any(map(str.isdigit, where))
            advice = f"a cell of a table is a text; {AS_NUMBER}" if may_compare else None
            raise spec.problem("where", f"'where' does not keep {words}", advice)
        if not read:
            lack = (
                "the file has a header but no rows"
                if self._columns.names
                else "the file has no rows"
            )
            if any(problem.line for problem in self.problems):
                lack = "no row can be read"
            raise self._source.problem(f"{lack}: the test would have no cases")

    def _used_columns(self, where: str) -> list[str]:
        """Return the columns that the condition names; raises `FileProblem` for an unknown one."""
        names = []
        for name in sorted(undeclared(where, self._spec.line_of("where") or 1) - {ITEM}):
            if name in self._columns.known:
                names.append(name)
            elif not is_global(name):
                hint = self.advice or suggest(name, [ITEM, *self._columns.known], "names")
                raise self._spec.problem("where", f"'where': unknown column '{name}'", hint)
        return names

    def _keeps(self, where: str, row: DatasetRow) -> bool:
        """Return whether the condition holds for a row; raises `FileProblem`."""
        scope: dict[str, Json] = {name: row.item[name] for name in self._used if name in row.item}
        scope[ITEM] = row.item
        try:
            return bool(run(where, self._spec.line_of("where") or 1, scope))
        except FileProblem as problem:
            message = problem.message.removeprefix("the template fails: ")
            place = f"line {row.line}" if row.line else f"row {row.number}"
            hint = None
            if "is undefined" in message or "has no attribute" in message:
                absent = "for rows without that column write 'item.NAME is defined and …'"
                hint = self.advice or absent
            elif "not supported between" in message and "'str'" in message:
                hint = f"the value is a text; {AS_NUMBER}"
            words = f"'where' fails for {place} of '{self.file}': {message}"
            raise self._spec.problem("where", words, hint) from problem

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
