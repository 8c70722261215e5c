"""Reads a data file, which is unpacked and decoded: lines of text, and JSON or JSON Lines.

JSON is read strictly: malformed values are reported, not repaired.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from evalstore.core.batches import in_batches
from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem, Problem
from evalstore.core.hashing import is_deeper
from evalstore.core.values import Json
from evalstore.files.access import LARGEST_DATASET, LARGEST_DOCUMENT, too_large
from evalstore.files.yaml12 import hint_on_comma, unique_members


class DataProblem(FileProblem):
    """A problem that is reported at a line of the data file."""

    def __init__(
        self,
        file: str,
        message: str,
        line: int | None = None,
        *,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, line, column=column, hint=hint)
        self.file = file
        """The name of the data file in messages."""

    def at(self, file: str, lines: list[str] | None = None) -> Problem:
        """Return the problem with the place in the data file, whichever file was being read."""
        return Problem(self.file, self.message, self.line, self.column, hint=self.hint)


class BadRow(DataProblem):
    """An unusable row, after which reading can continue."""

    def as_warning(self) -> Problem:
        """Return the warning about a skipped row."""
        return Problem(
            self.file,
            f"this row is skipped: {self.message}",
            self.line,
            self.column,
            severity="warning",
            hint=self.hint,
        )


MOST_BYTES = 64 * 1024 * 1024
"""Of one line."""
_POINTER = b"version https://git-lfs.github.com/spec/"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TextSource:
    """A data file that can be opened again and again."""

    open_binary: Callable[[], BinaryIO]
    file: str
    """The name of the file in messages."""
    encoding: str
    zipped: bool
    """Whether its name says so."""

    @contextmanager
    def open(self) -> Iterator[Lines]:
        """Read the lines of the file from its start; raises `DataProblem`."""
        try:
            binary = self.open_binary()
        except OSError as error:
            raise self.problem(f"cannot be read: {error.strerror or error}") from error
        with binary:
            try:
                head = binary.read(len(_POINTER))
                binary.seek(0)
            except OSError as error:
                raise self.problem(f"cannot be read: {error.strerror or error}") from error
            if head == _POINTER:
                raise self.problem(
                    "this is a Git LFS pointer: the data themselves are not here",
                    hint="run 'git lfs pull'",
                )
            if head[:2] == _GZIP:
                with gzip.GzipFile(fileobj=binary) as unpacked:
                    yield Lines(self, io.BufferedReader(unpacked, 1 << 18))  # type: ignore[arg-type,unused-ignore]
                return
            if self.zipped and head:
                raise self.problem("this is not gzip data, though the name ends in '.gz'")
            yield Lines(self, binary)

    def problem(
        self,
        message: str,
        line: int | None = None,
        *,
        column: int | None = None,
        hint: str | None = None,
    ) -> DataProblem:
        """Return a problem with this file after which reading cannot continue."""
        return DataProblem(self.file, message, line, column=column, hint=hint)

    def bad_row(
        self, message: str, line: int | None, column: int | None = None, hint: str | None = None
    ) -> BadRow:
        """Return a problem with one row of this file."""
        return BadRow(self.file, message, line, column=column, hint=hint)


class Lines:
    """The lines of a file with their ends; reading can continue after a `BadRow`."""

    def __init__(self, source: TextSource, binary: BinaryIO | io.BufferedReader) -> None:
        self.source = source
        self.number = 0
        """The number of the line that was read last, counted from 1."""
        self._offset = 0
        """Bytes up to the next line; characters where a byte is not always one."""
        self._encoding = source.encoding
        self._readline: Callable[[int], bytes | str] = binary.readline
        try:
            single = "\n".encode(self._encoding) == b"\n"
        except UnicodeError:
            single = False
        if not single:  # a byte that looks like a line end need not be one
            text = io.TextIOWrapper(binary, self._encoding, newline="\n")
            self._readline = text.readline

    def __iter__(self) -> Lines:
        """Return the lines themselves: they can be read once."""
        return self

    def __next__(self) -> str:
        """Return the next line, without the byte order mark; raises `BadRow` and `DataProblem`."""
        try:
            raw = self._readline(MOST_BYTES)
        except (OSError, EOFError, zlib.error, UnicodeError) as error:
            raise self._broken(error) from error
        if not raw:
            raise StopIteration
        self.number += 1
        length = len(raw)
        self._offset += length
        if length == MOST_BYTES or self._offset > LARGEST_DATASET:
            raise self._too_much(length)
        if isinstance(raw, str):
            text = raw
        else:
            try:
                text = raw.decode(self._encoding)
            except UnicodeError as error:
                raise self._undecodable(raw, self._offset - length, error) from error
        return text if self.number > 1 else text.removeprefix("\ufeff")

    def _too_much(self, length: int) -> DataProblem:
        """Return the problem of a long line or file: compressed data may be much longer."""
        if length == MOST_BYTES:
            return self.source.problem("this line is too long for a row", self.number)
        problem = too_large(self._offset, LARGEST_DATASET)
        return self.source.problem(problem.message, self.number, hint=problem.hint)

    def _broken(self, error: Exception) -> DataProblem:
        """Return the problem after which reading cannot continue; its place is approximate."""
        after = f", somewhere behind line {self.number:,}" if self.number else ""
        if isinstance(error, EOFError):
            return self.source.problem(f"the gzip data are cut off{after}")
        if isinstance(error, zlib.error | gzip.BadGzipFile):
            return self.source.problem(f"the gzip data are damaged{after}")
        if isinstance(error, OSError):
            return self.source.problem(f"cannot be read: {error.strerror or error}")
        hint = "set its 'encoding'"
        return self.source.problem(f"this is not {self._encoding.upper()}{after}", hint=hint)

    def _undecodable(self, raw: bytes, start: int, error: UnicodeError) -> DataProblem:
        name = self._encoding.upper()
        if not isinstance(error, UnicodeDecodeError):
            return self.source.bad_row(f"not {name}", self.number)
        at = error.start
        message = f"not {name}: byte 0x{raw[at]:02x} at offset {start + at}"
        hint = "set its 'encoding', as in 'encoding: latin-1' or 'encoding: utf-16'"
        return self.source.bad_row(message, self.number, hint=hint)


DEEPEST = 100
"""The most levels of nesting."""
MOST_COLUMNS = 10_000
"""The most columns of all rows of a file."""
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
_SPACE = " \t\r\n"
_DEEP = "the value is nested too deeply"


class Record(NamedTuple):
    """A row as it is in the file."""

    line: int | None
    values: dict[str, Json]


class ValueReader:
    """Reads values from a text."""

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self._decode = json.JSONDecoder(
            object_pairs_hook=unique_members, parse_constant=_refuse, parse_float=_finite
        ).raw_decode

    def read(self, text: str, start: int, line: int) -> tuple[Json, int]:
        """Parse the value at an offset; returns it and its end, raises `BadRow` if it is not JSON.

        `line` is where the text begins.
        """
        try:
            return self._decode(text, start)
        except FileProblem as problem:
            raise self._source.bad_row(problem.message, line) from problem
        except json.JSONDecodeError as error:
            message = (error.msg[0].lower() + error.msg[1:]).removesuffix(" starting at")
            raise self.unreadable(message, text, error.pos, line) from error
        except RecursionError as error:
            raise self.unreadable(_DEEP, text, start, line) from error
        except ValueError as error:
            raise self.unreadable("a number has too many digits", text, start, line) from error

    def check(self, value: Json, line: int | None, text: str | None = None) -> dict[str, Json]:
        """Return a value that can be a row; raises `BadRow`. Passing its text is faster."""
        if not isinstance(value, dict):
            kind = "null" if value is None else _KINDS.get(type(value), "a number")
            hint = 'as in {"question": "…", "answer": "…"}'
            raise self._source.bad_row(f"a row must be an object, not {kind}", line, hint=hint)
        if (text is None or text.count("[") + text.count("{") > DEEPEST) and is_deeper(
            value, DEEPEST
        ):
            raise self._source.bad_row(_DEEP, line)
        if (text is None or "\\u" in text) and not _is_text(value):
            message = (
                "a text holds half of a surrogate pair, such as '\\ud83d', which is not a character"
            )
            raise self._source.bad_row(message, line)
        return value

    def unreadable(self, message: str, text: str, at: int, line: int) -> BadRow:
        """Return the problem with the text at an offset."""
        column = at - text.rfind("\n", 0, at)
        line, hint = line + text.count("\n", 0, at), hint_on_comma(text, at)
        return self._source.bad_row(f"not JSON: {message}", line, column, hint=hint)


def _refuse(name: str) -> Json:
    raise FileProblem(f"'{name}' is not a JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise FileProblem(f"the number {shorten(text)} is too large")
    return value


def _is_text(value: Json) -> bool:
    """Return whether every text in a value can be encoded as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


class JsonLines:
    """A file with an object on each line; it is read twice, and not loaded into memory."""

    def __init__(self, source: TextSource) -> None:
        self._source = source

    def columns(self) -> dict[str, str]:
        """Map the keys of all rows, in the order of appearance, to the names as written."""
        keys: dict[str, str] = {}
        for record in self.records():
            if isinstance(record, Record):
                keys.update({key: key for key in record.values if key not in keys})
                if len(keys) > MOST_COLUMNS:
                    message = f"the rows have more than {MOST_COLUMNS:,} different keys"
                    raise self._source.problem(message, record.line)
        return keys

    def records(self) -> Iterator[Record | BadRow]:
        """Yield the rows in order, and the problems of unreadable ones."""
        reader = ValueReader(self._source)
        text = ""
        with self._source.open() as lines:
            while True:
                try:
                    text = next(lines).rstrip(_SPACE)
                    if not text:
                        continue
                    value, end = reader.read(text, _skip(text, 0), lines.number)
                    if end != len(text):
                        words, hint = (
                            "there is more behind the row",
                            "every row must be on its own line",
                        )
                        raise self._source.bad_row(words, lines.number, _skip(text, end) + 1, hint)
                    yield Record(lines.number, reader.check(value, lines.number, text))
                except StopIteration:
                    return
                except BadRow as bad:
                    if lines.number == 1 and text in ("[", "{"):
                        bad.hint = "if this is one document over several lines: 'format: json'"
                    yield bad


class JsonDocument:
    """A file that is one JSON document with a list of rows; it is loaded into memory."""

    def __init__(self, source: TextSource, path: str | None) -> None:
        self._source = source
        self._path = path
        self._records: list[Record | BadRow] | None = None

    def columns(self) -> dict[str, str]:
        """Map the keys of all rows, in the order of appearance, to the names as written."""
        rows = (record.values for record in self.records() if isinstance(record, Record))
        return {key: key for values in rows for key in values}

    def records(self) -> Iterator[Record | BadRow]:
        """Yield the rows in order, with the problems of unusable ones; their lines are unknown."""
        if self._records is None:
            self._records = list(self._read())
        yield from self._records

    def _read(self) -> Iterator[Record | BadRow]:
        text, reader = self._text(), ValueReader(self._source)
        if not text.strip(_SPACE):
            return
        try:
            value, end = reader.read(text, _skip(text, 0), 1)
            if (at := _skip(text, end)) < len(text):
                bad = reader.unreadable("more than one document", text, at, 1)
                bad.hint = "if every line is a row: 'format: jsonl'"
                raise bad
        except BadRow as bad:  # nothing after it can be read
            line = bad.line if bad.column else None
            raise self._source.problem(bad.message, line, column=bad.column, hint=bad.hint) from bad
        known = None if "\\u" in text or _may_be_deep(text) else ""
        for number, element in enumerate(self._find_list(value), 1):
            try:
                yield Record(None, reader.check(element, None, known))
            except BadRow as bad:
                bad.message = f"row {number}: {bad.message}"
                yield bad

    def _text(self) -> str:
        """Read the whole document; joined in parts, as there may be many short lines."""
        parts: list[str] = []
        length = 0
        with self._source.open() as lines:
            for batch in in_batches(lines):
                part = "".join(batch)
                parts.append(part)
                length += len(part)
                if length > LARGEST_DOCUMENT:
                    problem = too_large(length, LARGEST_DOCUMENT)
                    hint = "write each row on its own line, as JSON Lines: they may be larger"
                    raise self._source.problem(problem.message, hint=hint)
        return "".join(parts)

    def _find_list(self, value: Json) -> list[Json]:
        """Return the list of rows, at the path if there is one."""
        place = "the document"
        for step in self._path.split(".") if self._path else ():
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                known_keys = (
                    ", ".join(map(shorten, list(value)[:12])) if isinstance(value, dict) else ""
                )
                raise self._source.problem(
                    f"'rows': {place} has no {shorten(step)}",
                    hint=f"there are {known_keys}" if known_keys else None,
                )
            place = shorten(step)
        if not isinstance(value, list):
            hint = None
            if isinstance(value, dict):
                lists = [name for name, inner in value.items() if isinstance(inner, list)]
                example = f", as in 'rows: {lists[0]}'" if lists else ""
                hint = f"give the place of the rows{example}"
            raise self._source.problem(f"{place} must be a list of rows", 1, hint=hint)
        return value


def _may_be_deep(text: str) -> bool:
    """Return whether a document may be nested too deeply, by its brackets alone."""
    signs = re.sub(r"[^\[\]{}]+", "", text)
    for _ in range(DEEPEST):
        signs = signs.replace("[]", "").replace("{}", "")
    return bool(signs)


def _skip(text: str, at: int) -> int:
    """Return the offset of the next character that is not white space."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
