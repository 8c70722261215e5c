"""The verdicts of a run by test file: a strip for each, those with new failures first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from evalstore.core.display import columns_of, plural
from evalstore.core.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    text_lines,
)
from evalstore.interfaces.tui.render.plot import beside, verdict_strip
from evalstore.interfaces.tui.widgets.column_names import ShortenedNames

if TYPE_CHECKING:
    from evalstore.results.table.file_verdicts import FileVerdicts, RunFiles

_STRIP, _LONG_STRIP = 10, 20
"""Cells of a strip, and those where there is room."""
_ROOMY = 66
"""The width of a line from which on there is room for a long strip."""
_COLUMN = 58
"""The least width of a column of files beside another."""
_GAP = 2
_FEWEST = 3
"""Lines with files that there are in any case: a short text is scrolled."""


def file_lines(run: RunFiles | None, width: int, height: int) -> Iterator[StyledLine]:
    """Yield a strip for each file, as many as fit into the height, and how many there are more."""
    if run is None or not run.files:
        return
    yield BLANK
    yield heading("verdicts by file")
    rows = max(_FEWEST, height - 2)
    columns = max(1, width // _COLUMN)
    total = len(run.files) + run.more
    if total > rows * columns:
        rows = max(_FEWEST, rows - 1)
    shown = run.files[: rows * columns]
    per_column = -(-len(shown) // columns)
    lines = list(_strips(shown, width // columns - _GAP * (columns > 1)))
    blocks = [lines[at : at + per_column] for at in range(0, len(lines), per_column)]
    listed = blocks[0]
    for number, block in enumerate(blocks[1:], 1):
        listed = list(beside(listed, block, number * (width // columns)))
    yield from listed
    if more := total - len(shown):
        yield from text_lines(f"and {more:,} more", "faint", _GAP)


def _strips(files: Sequence[FileVerdicts], width: int) -> Iterator[StyledLine]:
    """Yield the name of each file, its strip, how many of its cases passed, and new failures."""
    cells = _LONG_STRIP if width >= _ROOMY else _STRIP
    figures = [_passed_text(each) for each in files]
    marks = [plural(it.new_failures, "new failure") if it.new_failures else "" for it in files]
    counted, marked = max(map(len, figures)), max(map(len, marks))
    names = ShortenedNames(lambda _group: [each.file for each in files])
    needed = max(columns_of(each.file) for each in files)
    room = min(needed, max(_STRIP, width - 4 * _GAP - cells - counted - marked))
    for each, figure, mark in zip_longest(files, figures, marks):
        name = names.shorten(each.file, room)
        strip = verdict_strip(each.verdicts, cells)
        used = sum(columns_of(span.text) for span in strip)
        yield StyledLine(
            (
                StyledSpan(f"{' ' * _GAP}{name}{' ' * (room - columns_of(name) + _GAP)}"),
                *strip,
                StyledSpan(f"{' ' * (cells - used + _GAP)}{figure:>{counted}}"),
                StyledSpan(f"{' ' * _GAP}{mark}" if mark else "", "fail"),
            )
        )


def _passed_text(each: FileVerdicts) -> str:
    """Return how many of the judged cases passed: `7/8`."""
    judged = sum(count for word, count in each.verdicts.items() if word != "pending")
    return f"{each.verdicts.get('pass', 0):,}/{judged:,}" if judged else "-"
