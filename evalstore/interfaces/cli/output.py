"""What a command prints: data on stdout, talk on stderr; and these streams, which may be closed.

Text from models and files is never markup: control characters are shown as escapes, so
nothing a model says can move the cursor or colour the terminal.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

import typer

from evalstore.core import clock, display
from evalstore.core.display import clip as clip
from evalstore.core.display import columns_of as columns_of
from evalstore.core.display import count as count
from evalstore.core.display import money as money
from evalstore.core.display import pad as pad
from evalstore.core.display import percent as percent
from evalstore.core.display import plural as plural
from evalstore.core.display import plural_is as plural_is
from evalstore.core.display import safe as safe
from evalstore.core.display import short as short
from evalstore.core.display import wrap as wrap
from evalstore.core.errors import OK, EvalstoreError, Problem, WorkspaceError, hide_passwords
from evalstore.files.json_output import Members, to_json

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


def prepare_streams() -> None:
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


COLOURS = {
    "pass": "green",
    "fail": "red",
    "error": "red",
    "undecided": "yellow",
    "pending": "yellow",
    "broke": "red",
    "fixed": "green",
    "old": "red",
    "new": "green",
    "match": "red",
}

_FORCED = ("FORCE_COLOR", "CLICOLOR_FORCE")

_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
"""Matches what GitHub Actions takes for a command at the start of a line."""

_COMMANDS = ("evalstore ", "cd ")
"""How the commands begin that a message lists, which are copied whole."""
color: bool | None = None
"""True or False when the user said so; None: as the terminal allows."""
format: Literal["table", "json", "jsonl", "csv", "md"] = "table"
"""How the command prints what it has found."""
verbose = False
quiet = False
wide = False
"""Tables show all columns, also those that do not fit the terminal."""
_warned: set[str] = set()
_pager: Pager | None = None
_pager_command: str | None = None
"""The pager that is started at the first output."""
_exit_code = OK
"""What a command ends with when the user leaves the pager."""


def ago(microseconds: int, *, dated: bool = False, in_brackets: bool = False) -> str:
    """Return how long ago a time was; `dated`, or with `-v`, behind its date."""
    text = display.ago(microseconds, clock.now())
    if not (dated or verbose):
        return text
    date = clock.local_minute(microseconds)
    return f"{date}, {text}" if in_brackets else f"{date} ({text})"


def use_color(choice: str) -> None:
    """Set the colour mode: `auto`, `always` or `never`.

    `NO_COLOR` turns `auto` off; else `FORCE_COLOR` or `CLICOLOR_FORCE`, unless 0, turn it on; else
    `TERM=dumb` turns it off.
    """
    global color
    color = {"always": True, "never": False}.get(choice)
    if color is None and os.environ.get("NO_COLOR"):
        color = False
    elif color is None and any(os.environ.get(name, "0") not in ("", "0") for name in _FORCED):
        color = True
    elif color is None and os.environ.get("TERM") == "dumb":
        color = False


def use_pager(command: str | None) -> None:
    """Show all further output through this pager; None: print it."""
    global _pager_command, _exit_code
    _pager_command, _exit_code = command, OK


def end_with(exit_code: int) -> None:
    """Set what the command ends with, also when the user leaves the pager early."""
    global _exit_code
    _exit_code = exit_code


def close_pager() -> bool:
    """Wait until the user leaves the pager; returns False when it could not be started."""
    global _pager, _pager_command
    pager, _pager, _pager_command = _pager, None, None
    return pager is None or pager.close()


def _write(text: str, *, nl: bool = True, err: bool = False) -> None:
    global _pager, _pager_command
    if _pager_command and not err:
        _pager, _pager_command = start_pager(_pager_command), None
    if _pager and (not err or (sys.stderr.isatty() and _pager.is_open)):
        if _pager.write(text + "\n" * nl, color=color is not False):
            return
        if not err:
            raise SystemExit(_exit_code)
    typer.echo(text, nl=nl, err=err, color=color)


def line(text: str = "") -> None:
    """Write a line of text; in a terminal one that is too long is wrapped between words."""
    columns = None if wide or "\n" in text else table_width()
    is_short = columns is None or not text.strip() or shown_columns(text) <= columns
    for part in [text] if is_short else wrap_sentence(text, columns or 0):
        _write(_inert(part))


def data_line(text: str) -> None:
    """Write a line for a program, as it is."""
    _write(text)


def is_github() -> bool:
    """Return whether the program runs as a step of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _inert(text: str) -> str:
    """Escape, on GitHub Actions, what a runner would take for a command."""
    if not is_github():
        return text
    return _COMMAND.sub(r"\1\\x3a:", text).replace("##[", r"#\x23[")


def workflow_command(text: str) -> None:
    """Write a command for GitHub Actions to stderr, because stdout may be data."""
    _write(text, err=True)


def talk(text: str) -> None:
    """Write a line for the user to stderr, apart from the data.

    In a terminal it is wrapped between words, if it is not a command.
    """
    if quiet:
        return
    text = for_here(text)
    if not text.lstrip().startswith(_COMMANDS):
        text = folded(text)
    _write(_inert(text), err=True)


def fitted(parts: Iterable[str], before: int = 0) -> str:
    """Return the parts of a line side by side; those beyond the terminal are cut.

    `before` are the columns that are taken already.
    """
    columns, line = None if wide else table_width(), ""
    for part in parts:
        longer = f"{line}  {part}" if line else part
        if columns is not None and before + shown_columns(longer) > columns:
            left = columns - before - shown_columns(line) - 2 * bool(line)
            return f"{line}  {clip(STYLE.sub('', part), left)}" if left > 1 else line
        line = longer
    return line


def sentence(text: str) -> None:
    """Write a sentence as `line` does, with commands for the current folder."""
    line(for_here(text))


def warn(text: str) -> None:
    """Write a warning, also with `--quiet`; a repeated one is shown once."""
    if text in _warned:
        return
    _warned.add(text)
    to_stderr(folded(f"{typer.style('warning:', fg='yellow')} {safe(for_here(text))}"))


def folded(text: str) -> str:
    """Return lines for the user, wrapped between words where stderr is a terminal."""
    if not sys.stderr.isatty():
        return text
    columns = _stderr_columns()
    return "\n".join(
        "\n".join(wrap_sentence(part, columns)) if shown_columns(part) > columns else part
        for part in text.split("\n")
    )


def _stderr_columns() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def paint(text: str, as_: str | None = None, *, bold: bool = False) -> str:
    """Style a text in the colour of a verdict or an event."""
    return typer.style(text, fg=COLOURS.get(as_ or text), bold=bold or None)


def faint(text: str) -> str:
    """Dim a text."""
    return typer.style(text, dim=True)


def document(content: Any) -> None:
    """Write JSON in the stable format: a line for each member and each item of a list of objects.

    An iterator is a list, too, and is printed while it is read.
    """
    pieces = _members({"format": 1} | to_json(content))
    for text in iter(lambda: "".join(islice(pieces, 100)), ""):
        _write(text, nl=False)
    line()


def _members(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a document in pieces."""
    start = "{"
    for name, value in document.items():
        yield f"{start}\n  {_json(name)}: "
        is_of_objects = isinstance(value, list) and value and isinstance(value[0], dict)
        if is_of_objects or isinstance(value, Iterator):
            yield from _pieces(iter(value), "\n    ")
        else:
            yield from _pieces(value)
        start = ","
    yield "\n}"


def _pieces(value: Any, before: str = "") -> Iterator[str]:
    """Yield JSON in pieces; iterators and `Members` in it are read meanwhile.

    `before` is written before each item, instead of the blanks between items.
    """
    if not _is_streamed(value):
        yield _json(value)
        return
    if isinstance(value, Iterator):
        (first, last), items = "[]", (("", item) for item in value)
    else:
        pairs = value.items() if isinstance(value, dict) else value.pairs
        (first, last), items = "{}", ((f"{_json(name)}: ", inner) for name, inner in pairs)
    start = first + before
    for name, item in items:
        if _is_streamed(item):
            yield start + name
            yield from _pieces(item)
        else:
            yield start + name + _json(item)
        start = f",{before or ' '}"
    yield first + last if start == first + before else before[:-2] + last


def _is_streamed(value: Any) -> bool:
    """Return whether a value, or a member of an object, is read while it is printed."""
    values = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, Iterator | Members) for each in values)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=not is_utf8())


def width() -> int:
    """Return the columns to which texts are wrapped: `table_width`, or 100 when nothing sets it."""
    return table_width() or 100


def table_width() -> int | None:
    """Return the columns of the terminal, or of `COLUMNS`; None in a file or a pipe without it."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return shutil.get_terminal_size((100, 24)).columns


def failure(error: EvalstoreError) -> None:
    """Write an error, or all problems of all files, to stderr."""
    if isinstance(error, WorkspaceError):
        for entry in error.problems:
            problem(entry)
        count = sum(1 for entry in error.problems if entry.severity == "error")
        files = plural(len({p.file for p in error.problems}), "file")
        to_stderr(folded(f"{plural(count, 'error')} in {files}; nothing was done"))
        if error.hint:
            to_stderr(folded(hint_line(error.hint)))
        return
    to_stderr(folded(f"{typer.style('error:', fg='red')} {safe(for_here(str(error)), lines=True)}"))
    if error.hint:
        to_stderr(folded(hint_line(error.hint)))
    cause = error.__cause__
    while verbose and cause is not None:
        words = safe(hide_passwords(str(cause)), lines=True)
        to_stderr(faint(f"caused by {type(cause).__name__}: {words}"))
        cause = cause.__cause__


def hint_line(hint: str) -> str:
    """Return the line of a hint, with commands for the current folder."""
    return f"{typer.style('hint:', fg='cyan')} {safe(for_here(hint), lines=True)}"


def problem(entry: Problem) -> None:
    """Write a problem of a file to stderr, with the line of source when a column is known."""
    word = typer.style(f"{entry.severity}:", fg="red" if entry.severity == "error" else "yellow")
    to_stderr(folded(f"{word} {safe(entry.place)}: {safe(entry.message)}"))
    if entry.excerpt is not None and entry.column:
        before, text = safe(entry.excerpt[: entry.column - 1]), safe(entry.excerpt)
        if not sys.stderr.isatty() or columns_of(text) + 4 <= _stderr_columns():
            to_stderr(f"    {text}")
            to_stderr("    " + " " * columns_of(before) + "^")
    if entry.hint:
        to_stderr(folded(hint_line(entry.hint)))


def left_out(problems: list[Problem]) -> None:
    """Write the errors of files that are left out, and which files those are."""
    for entry in problems:
        problem(entry)
    files = sorted({entry.file for entry in problems})
    if files:
        names = ", ".join(map(safe, files))
        to_stderr(folded(f"{plural_is(len(files), 'file', ' with errors')} left out: {names}"))


def to_stderr(text: str) -> None:
    """Write a line for the user to stderr, also with `--quiet`."""
    _write(_inert(text), err=True)


# --- wraps lines of a terminal, which may have styles, between words


_WORD = re.compile(r"(?:\"evalstore [^\"\n]*\"|'evalstore [^'\n]*'|\S)+")
"""Matches a word, or a command in quotation marks with what is attached to it."""
STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""Matches what begins or ends a style."""


def shown_columns(text: str) -> int:
    """Return the columns of a text that may have styles."""
    return columns_of(STYLE.sub("", text))


def wrap_sentence(text: str, columns: int) -> list[str]:
    """Return a sentence wrapped between words; a command in quotation marks counts as one.

    A longer word is not broken. All lines have the indent of the first. Several blanks between
    words of a line, as in a value that is quoted, remain.
    """
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word, blanks, end = match[0], text[end : match.start()], match.end()
        joined = f"{blanks if blanks.strip(' ') == '' else ' '}{word}"
        if lines and shown_columns(f"{lines[-1]}{joined}") <= columns:
            lines[-1] += joined
            continue
        lines.append(indent + word)
    return lines


# --- adapts the commands in hints to the folder of `-C`, so that they work where they are typed


_folder: str | None = None
_hinted: re.Pattern[str] | None = None
"""Matches the start of a command in quotation marks, or of one that ends a hint."""


def use_folder(folder: Path | None, commands: Iterable[str] = ()) -> None:
    """Set the folder that `-C` names on the command line, and the commands; None: there is none."""
    global _folder, _hinted
    if folder is None:
        _folder = _hinted = None
        return
    names = "|".join(map(re.escape, commands))
    _folder = shlex.quote(str(folder))
    _hinted = re.compile(rf"(^|[\"']|, or |: )evalstore (?=(?:{names})\b)", re.MULTILINE)


def for_here(text: str) -> str:
    """Return a text with commands for the current folder: they name that of `-C`."""
    if _hinted is None:
        return text
    return _hinted.sub(lambda match: f"{match[1]}evalstore -C {_folder} ", text)


# --- long output in a terminal goes through a pager, as in git


PAGED = frozenset({"diff", "grep", "log", "ls", "show", "sql", "stats"})
"""The commands whose output is read."""
_NO_PAGER = ("", "cat")
_PROGRAM = re.compile(r"[\w./+-]+")
"""What the shell takes for the name of a program, whatever else it knows."""
_NOT_STARTED = (126, 127)
"""What a shell ends with when it cannot start a program."""
_PAGER_SETTINGS = {"LESS": "FRX", "LV": "-c"}
"""Quit if all fits, show colours, leave the text on the screen; unless the user has set others."""


class Pager:
    """A running pager."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin
        self._stream = io.TextIOWrapper(
            process.stdin, encoding=sys.stdout.encoding, errors="backslashreplace"
        )

    @property
    def is_open(self) -> bool:
        """Return whether the pager still runs."""
        return self._process.poll() is None

    def write(self, text: str, *, color: bool) -> bool:
        """Show a text; returns whether the user has not left the pager."""
        try:
            typer.echo(text, nl=False, file=self._stream, color=color)
        except BrokenPipeError:
            return False
        return True

    def close(self) -> bool:
        """Show the rest, and wait until the user leaves the pager; returns whether it is one."""
        while True:
            try:
                with suppress(BrokenPipeError):
                    self._stream.close()
                return self._process.wait() not in _NOT_STARTED
            except KeyboardInterrupt:  # meant for the pager, where it ends a search
                continue


def find_pager() -> str | None:
    """Return the command line of the pager; None if the output is not paged.

    It is what the user's own environment names: `EVALSTORE_PAGER`, else `PAGER`, else `less` where
    it is installed. `cat`, an empty text, or a program that is not installed, means none.
    """
    streams = (sys.stdin, sys.stdout)
    if os.name != "posix" or not all(stream.isatty() for stream in streams):
        return None
    named = os.environ.get("EVALSTORE_PAGER", os.environ.get("PAGER"))
    if named is None:
        return "less" if shutil.which("less") else None
    if named.strip() in _NO_PAGER:
        return None
    program = named.split()[0]
    is_missing = _PROGRAM.fullmatch(program) and shutil.which(program) is None
    return None if is_missing else named


def start_pager(command: str) -> Pager | None:
    """Start a pager; None when that fails."""
    sys.stdout.flush()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            env={**_PAGER_SETTINGS, **os.environ},
        )
    except OSError:
        return None
    return Pager(process)
