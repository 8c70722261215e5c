"""The standard streams: closed, full or without a reader, they end no command with a traceback."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from typing import Self

_NAMES = ("stdin", "stdout", "stderr")
_ASCII = ("ascii", "us-ascii", "ansi_x3.4-1968", "646")
"""Names of the encoding that a program gets without a locale."""


class Output(io.TextIOWrapper):
    """A stream that can be written to even if the other end is closed.

    From its first error on, all goes to the null device, so that the command ends as it would
    have. A character that the encoding does not have is written as an escape.
    """

    error: OSError | None = None
    """Why nothing can be written any more."""
    _original: io.TextIOWrapper | None = None

    @classmethod
    def over(cls, stream: io.TextIOWrapper) -> Self:
        """Return a stream that writes to the same place; without a locale, in UTF-8."""
        made = cls(
            stream.buffer,
            encoding="utf-8" if stream.encoding.lower() in _ASCII else stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        made._original = stream  # it would close the buffer
        return made

    def write(self, text: str) -> int:
        """Write a text; its length."""
        try:
            return super().write(text)
        except OSError as error:
            self._discard(error)
        return len(text)

    def flush(self) -> None:
        """Write what is waiting."""
        try:
            super().flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)
        self.error = error


class BinaryOutput:
    """The standard output for bytes, which are UTF-8 whatever the locale is."""

    def write(self, data: bytes) -> int:
        """Write bytes; their number."""
        if not hasattr(sys.stdout, "buffer"):  # a stream in memory
            sys.stdout.write(data.decode())
            return len(data)
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        except OSError as error:
            if not isinstance(sys.stdout, Output):
                raise
            sys.stdout._discard(error)
        return len(data)


def prepare() -> None:
    """Prepare all three streams for use; call it before any file is opened.

    A closed one becomes the null device, so that no file gets its number.
    """
    for name in _NAMES:
        if getattr(sys, name) is None:
            # The lowest free number is that of the closed stream: they are opened in order.
            null = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(null, True)  # as the standard streams are
            stream = os.fdopen(
                null, "r" if name == "stdin" else "w", encoding="utf-8", errors="replace"
            )
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        elif name != "stdin":
            setattr(sys, name, Output.over(getattr(sys, name)))


def lost_output() -> OSError | None:
    """Return why the standard output could not be written; None if all of it was."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return sys.stdout.error if isinstance(sys.stdout, Output) else None


def is_utf8() -> bool:
    """Return whether any character can be printed; a stream in memory has no encoding."""
    return (sys.stdout.encoding or "utf-8").lower() in ("utf-8", "utf8", "utf_8")


def end_with_stdin() -> None:
    """End this program, as SIGTERM does, when the standard input ends: its starter is gone."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
