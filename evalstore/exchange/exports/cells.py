"""Makes cells of CSV and inert Markdown from values of JSON.

A text of a model could call people, load pictures or show links. A backslash or an entity does not
prevent that everywhere: GitHub looks for mentions and links in the page that it has made of the
Markdown. It does not look into code, and neither does anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from evalstore.core.display import safe
from evalstore.core.values import Json

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


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Json]]) -> Iterator[str]:
    """Yield the lines of a table as CSV, without their ends."""
    import csv
    import io

    for row in chain([header], rows):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="").writerow(map(csv_cell, row))
        yield safe(buffer.getvalue(), lines=True)


def markdown_lines(header: Sequence[str], rows: Iterable[Sequence[Json]]) -> Iterator[str]:
    """Yield the lines of a table as Markdown."""
    yield f"| {' | '.join(map(markdown_cell, header))} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(map(markdown_cell, row))} |"


def _free_run(text: str, least: int) -> int:
    """Return a length that no run of backticks in the text has, and that is longer than each."""
    return max([least - 1, *map(len, _TICKS.findall(text))]) + 1
