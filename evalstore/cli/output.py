"""What a command prints: data on stdout, talk on stderr.

Text from models and files is never markup: control characters are shown as escapes, so
nothing a model says can move the cursor or colour the terminal.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import typer

from evalstore.errors import EvalstoreError, Problem, WorkspaceError

COLOURS = {
    "pass": "green",
    "fail": "red",
    "error": "red",
    "undecided": "yellow",
    "pending": "yellow",
    "broke": "red",
    "fixed": "green",
}

color: bool | None = None
"""True or False when the user said so; None: as the terminal allows."""
verbose = False
quiet = False


def use_color(choice: str) -> None:
    """Set the colour mode: `auto`, `always` or `never`; `NO_COLOR` turns `auto` off."""
    global color
    color = {"always": True, "never": False}.get(choice)
    if color is None and os.environ.get("NO_COLOR"):
        color = False


def safe(text: str, *, lines: bool = False) -> str:
    """The text with control characters shown as escapes; with `lines`, line ends and tabs stay."""
    if text.isprintable():
        return text
    keep = "\n\t" if lines else ""
    return "".join(
        one
        if one in keep or one.isprintable() or unicodedata.category(one) in ("Zs", "Co")
        else one.encode("unicode_escape").decode()
        for one in text
    )


def line(text: str = "") -> None:
    """A line of data."""
    typer.echo(text, color=color)


def talk(text: str) -> None:
    """A line for the person, not for the pipe."""
    if not quiet:
        typer.echo(text, err=True, color=color)


def paint(text: str, as_: str | None = None, *, bold: bool = False) -> str:
    """The text in the colour of a verdict or an event."""
    return typer.style(text, fg=COLOURS.get(as_ or text), bold=bold or None)


def faint(text: str) -> str:
    """The text in the background of attention."""
    return typer.style(text, dim=True)


def document(content: dict[str, Any]) -> None:
    """JSON in the stable format: a line for each member, and for each item of a list of objects.

    An iterator is a list, too, and is printed while it is read.
    """
    start = "{"
    for name, value in ({"format": 1} | content).items():
        start += f"\n  {_json(name)}: "
        if isinstance(value, Iterator):
            start = _items(start, value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            start = _items(start, iter(value))
        else:
            line_part(start + _json(value))
            start = ","
    line("\n}")


def _items(start: str, items: Iterator[Any]) -> str:
    """Print a list; returns what comes before the next member."""
    line_part(start + "[")
    start = ""
    for some in iter(lambda: list(islice(items, 100)), []):
        line_part(start + ",".join(f"\n    {_json(one)}" for one in some))
        start = ","
    line_part("\n  ]" if start else "]")
    return ","


def line_part(text: str) -> None:
    """A part of a line of data."""
    typer.echo(text, nl=False, color=color)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def short(id: str) -> str:
    """An id as people see it."""
    return id[:8]


def plural(count: int, word: str) -> str:
    """`1 case`, `2 cases`."""
    if word.endswith("y"):
        return f"{count:,} {word if count == 1 else word[:-1] + 'ies'}"
    return f"{count:,} {word if count == 1 else word + 's'}"


def money(usd: float | None) -> str:
    """A price for people."""
    if usd is None:
        return "price unknown"
    if usd == 0:
        return "$0"
    return f"${usd:.2f}" if usd >= 1 else f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def count(number: int) -> str:
    """A large number in few characters: `950`, `12.3k`, `4.56M`."""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.2f}M"


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.1f}%"


def ago(microseconds: int, now: int) -> str:
    """How long ago something was."""
    seconds = max(0, (now - microseconds) // 1_000_000)
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return (
                f"{plural(seconds // size, word) if word != 'day' else _days(seconds // size)} ago"
            )
    return "just now" if seconds < 5 else f"{seconds} seconds ago"


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"


def width() -> int:
    """Columns of the terminal; 100 in a pipe."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def columns_of(text: str) -> int:
    """How many columns a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def pad(text: str, columns: int) -> str:
    """The text filled up with blanks to so many columns."""
    return text + " " * max(0, columns - columns_of(text))


def clip(text: str, columns: int) -> str:
    """One line of at most so many columns."""
    text = safe(" ".join(text.split()))
    if columns_of(text) <= columns:
        return text
    while text and columns_of(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def wrap(text: str, columns: int) -> list[str]:
    """The text in lines of so many columns, broken between words."""
    return textwrap.wrap(safe(text), max(20, columns), break_on_hyphens=False) or [""]


def table(rows: Iterable[Sequence[str]], header: Sequence[str] | None = None) -> None:
    """Aligned columns, two blanks apart."""
    listed = [list(map(safe, row)) for row in rows]
    if header:
        listed.insert(0, [name.upper() for name in header])
    if not listed:
        return
    widths = [max(columns_of(row[number]) for row in listed) for number in range(len(listed[0]))]
    for number, row in enumerate(listed):
        text = "  ".join(pad(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip()
        line(faint(text) if header and number == 0 else text)


def failure(error: EvalstoreError) -> None:
    """An error, or all problems of all files, on stderr."""
    if isinstance(error, WorkspaceError):
        for found in error.problems:
            problem(found)
        count = sum(1 for found in error.problems if found.severity == "error")
        _err(
            f"{plural(count, 'error')} in {plural(len({p.file for p in error.problems}), 'file')}; "
            "nothing was asked"
        )
        return
    _err(f"{typer.style('error:', fg='red')} {safe(str(error), lines=True)}")
    if error.hint:
        _err(f"{typer.style('hint:', fg='cyan')} {safe(error.hint, lines=True)}")
    cause = error.__cause__
    while verbose and cause is not None:
        _err(faint(f"caused by {type(cause).__name__}: {safe(str(cause), lines=True)}"))
        cause = cause.__cause__


def problem(found: Problem) -> None:
    """One problem of a file on stderr, with the line of source when a column is known."""
    word = typer.style(f"{found.severity}:", fg="red" if found.severity == "error" else "yellow")
    _err(f"{word} {safe(found.place)}: {safe(found.message)}")
    if found.excerpt is not None and found.column:
        _err(f"    {safe(found.excerpt)}")
        _err("    " + " " * columns_of(safe(found.excerpt[: found.column - 1])) + "^")
    if found.hint:
        _err(f"{typer.style('hint:', fg='cyan')} {safe(found.hint)}")


def _err(text: str) -> None:
    typer.echo(text, err=True, color=color)
