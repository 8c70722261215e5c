"""Writes the rows of an export as JSON Lines, CSV, JSON or Markdown, one after the other."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from evalstore.core.display import safe
from evalstore.core.values import Json
from evalstore.exchange.exports.cells import csv_cell, markdown_cell
from evalstore.exchange.exports.columns import NAMES, SCHEMA_VERSION, Row
from evalstore.exchange.exports.rows import Export


class ByteWriter(Protocol):
    """A file that is open for writing bytes, or the standard output."""

    def write(self, data: bytes, /) -> Any:
        """Write bytes."""


Writer = Callable[["Export", ByteWriter], None]
"""Writes all rows to a file."""
FolderWriter = Callable[["Export", "Path"], None]
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
    separator = b"\n"
    for row in export.rows:
        file.write(separator + encode(row))
        separator = b",\n"
    file.write(b"\n]}\n")


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
    lines = csv.writer(_TextWriter(file), lineterminator="\n")

    def write_record(values: Iterable[Json]) -> None:
        lines.writerow([safe(csv_cell(value), lines=True) for value in values])

    return write_record


class _TextWriter:
    """Writes the lines of a CSV writer to a file."""

    def __init__(self, file: ByteWriter) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.encode())


def write_markdown(export: Export, file: ByteWriter) -> None:
    """Write a table with the columns that people read."""
    for line in _table(export.rows):
        file.write(f"{line}\n".encode())


def _table(rows: Iterator[Row]) -> Iterator[str]:
    yield f"| {' | '.join(_IN_MARKDOWN)} |"
    yield "|" + "---|" * len(_IN_MARKDOWN)
    for row in rows:
        yield f"| {' | '.join(markdown_cell(_shorten(row[name])) for name in _IN_MARKDOWN)} |"


def _shorten(value: Json) -> Json:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}… ({len(value) - _LONGEST:,} more characters)"
    return value


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
