"""Reads lines of text from a data file, which is unpacked and decoded."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from evalstore.core.errors import FileProblem, Problem
from evalstore.files.access import LARGEST_DATASET, too_large


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
_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The longer ones first: one is the beginning of another."""


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
        if self.number == 1:
            for mark, encoding in _BOMS.items():
                if raw.startswith(mark):
                    message = f"this is not {name} but looks like {encoding.upper()}"
                    hint = f"write 'encoding: {encoding}'"
                    return self.source.problem(message, 1, hint=hint)
        if not isinstance(error, UnicodeDecodeError):
            return self.source.bad_row(f"not {name}", self.number)
        at = error.start
        message = f"not {name}: byte 0x{raw[at]:02x} at offset {start + at}"
        hint = "set its 'encoding', as in 'encoding: latin-1'"
        return self.source.bad_row(message, self.number, hint=hint)
