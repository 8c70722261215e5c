"""Reads CSV and TSV: every cell is a text, and every row has a cell for each column."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import dropwhile
from typing import TYPE_CHECKING

from evalstore.core.display import shorten
from evalstore.files.datasets.columns import stable_names
from evalstore.files.datasets.errors import BadRow, DataProblem
from evalstore.files.datasets.json_rows import MOST_COLUMNS, Record

if TYPE_CHECKING:
    from evalstore.files.datasets.text_source import Lines, TextSource

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
            hint = "a quote inside of a quoted cell is written twice"
            return self._source.bad_row(f"a quoted cell is never closed{to_end}", line, hint=hint)
        if "expected after" in message:
            hint = "a quote inside of a quoted cell is written twice"
            problem = f"text behind the closing quote of a cell{to_end}"
            return self._source.bad_row(problem, line, hint=hint)
        if "new-line" in message:
            hint = "lines end with LF or CRLF; put quotes round the cell to keep it"
            return self._source.bad_row("a carriage return inside of the line", line, hint=hint)
        return self._source.bad_row(f"not a row of cells: {message}", line)

    def _uneven(self, line: int, cells: list[str]) -> BadRow:
        """Return the problem of a row that is too short or too long."""
        expected, actual = len(self._header), len(cells)
        if actual < expected:
            missing = shorten(self._header[actual])
            message = f"the row has {_cells(actual)} for {expected} columns: {missing} is missing"
        else:
            surplus = shorten(cells[expected])
            message = f"the row has {_cells(actual)} for {expected} columns: {surplus} is too much"
        hint = self.advice() or f"put quotes round a cell that holds {shorten(self._delimiter)}"
        return self._source.bad_row(message, line, hint=hint if actual > expected else None)


def _is_blank(cells: list[str]) -> bool:
    """Return whether this is a line of blanks, rather than a row."""
    return len(cells) == 1 and not cells[0].strip()


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
