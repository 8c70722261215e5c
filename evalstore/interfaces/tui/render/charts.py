"""Small pictures of numbers for a terminal: bars, strips of verdicts, series, and plots.

What is drawn can be told apart without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.display import SIGNS, StyledLine, StyledSpan, clip, columns_of, safe, spread

if TYPE_CHECKING:
    from evalstore.results.report_overview import TrendPoint

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille character, by column and row of its dots."""
_CELLS = {"pass": "█", "fail": "░"}
"""The verdicts whose cells are blocks; the others are their signs."""
_COLOURS = {"no reply": "error", "answered": "faint"}
"""Words of results that have no colour of their own."""


class Series(NamedTuple):
    """Shares in the order of time, the oldest first, with the texts of both ends."""

    values: Sequence[float]
    first: str
    last: str


def bar(share: float, width: int) -> str:
    """Draw a share as a bar of up to `width` characters."""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def verdict_strip(verdicts: Mapping[str, int], width: int) -> tuple[StyledSpan, ...]:
    """Draw the shares of verdicts as cells: one for each result, or `width` in proportion.

    Shares are rounded to the nearest cell, but each verdict that occurs has at least one.
    """
    counts = {word: count for word, count in verdicts.items() if count}
    total = sum(counts.values())
    if not 0 < len(counts) <= width:
        return ()
    cells = counts
    if total > width:
        exact = {word: width * count / total for word, count in counts.items()}
        cells = {word: max(1, int(share)) for word, share in exact.items()}
        while (missing := width - sum(cells.values())) > 0:
            cells[max(exact, key=lambda word: (exact[word] - cells[word], word != "pass"))] += 1
        for _ in range(-missing):  # those with a cell for a small share take it from the others
            cells[max(exact, key=lambda word: (cells[word] > 1, cells[word] - exact[word]))] -= 1
    return tuple(
        StyledSpan(_CELLS.get(word, SIGNS.get(word, "?")) * count, _COLOURS.get(word, word))
        for word, count in cells.items()
    )


def spark_spans(words: Sequence[str]) -> tuple[StyledSpan, ...]:
    """Return the signs of verdicts, the oldest first: `✓✓✗`."""
    return tuple(StyledSpan(SIGNS.get(word, "?"), _COLOURS.get(word, word)) for word in words)


def spark_words(words: Sequence[str]) -> str:
    """Return verdicts in words, the oldest first: `2 pass, then 1 fail`."""
    return ", then ".join(f"{len(list(group))} {word}" for word, group in groupby(words))


class PlottedLine(NamedTuple):
    """The pass rates of one name, the oldest first."""

    name: str
    points: Sequence[TrendPoint]
    end: str
    """The text of the newest rate, beside the name."""


_AXIS = 6
"""Columns of the numbers at the left, and of their axis."""
_LINE_COLOURS = ("heading", "", "code", "code-string", "faint")
"""The colours of lines; green and red are those of verdicts."""
_MOST_NAME = 24


def plot_lines(
    lines: Sequence[PlottedLine], dates: Sequence[str], width: int, height: int
) -> Iterator[StyledLine]:
    """Yield a line through the numbers of each name, which stands at its end, and the dates.

    `height` counts all lines; `dates` has a text for each run. Where all numbers are above 50%,
    the scale begins there.
    """
    lowest = min((point.rate for line in lines for point in line.points), default=0.0)
    start = 0.5 if lowest > 0.5 else 0.0
    names = [f"{clip(line.name, _MOST_NAME)} {line.end}".rstrip() for line in lines]
    right = max(map(columns_of, names), default=0) + 1
    room, rows = max(2, width - _AXIS - right - 1), max(2, height - 1)
    canvas = _Canvas(room, rows, len(dates), start)
    for number, line in enumerate(lines):
        canvas.draw(line, _LINE_COLOURS[number % len(_LINE_COLOURS)])
    places = spread([canvas.row(line.points[-1].rate) for line in lines], 1, rows - 1)
    middle = [(1 + start) / 2] * (rows > 4)
    scale = {canvas.row(share): f"{share:.0%}" for share in (start, *middle, 1.0)}
    for row in range(rows):
        named = [number for number, place in enumerate(places) if place == row]
        ends = (StyledSpan(f" {names[n]}", _LINE_COLOURS[n % len(_LINE_COLOURS)]) for n in named)
        axis = f"{scale.get(row, ''):>4} {'┤' if row in scale else '│'}"
        yield StyledLine((StyledSpan(axis, "faint"), *canvas.spans(row), *ends))
    yield StyledLine((StyledSpan(f"{'':{_AXIS}}{canvas.dates(dates)}", "faint"),))


class _Canvas:
    """Draws lines as braille dots with a point for each number, in rows of characters."""

    def __init__(self, width: int, rows: int, runs: int, start: float) -> None:
        self._width, self._rows, self._runs, self._start = width, rows, runs, start
        self._bits = [[0] * width for _ in range(rows)]
        self._colours = [[""] * width for _ in range(rows)]
        self._points: dict[tuple[int, int], StyledSpan] = {}

    def column(self, run: int) -> int:
        """Return the column of a run."""
        return round((self._width - 1) * run / (self._runs - 1)) if self._runs > 1 else 0

    def row(self, share: float) -> int:
        """Return the row of a number, 0 at the top."""
        return self._dot(share) // 4

    def _dot(self, share: float) -> int:
        """Return the row of dots of a number: four are a row of characters."""
        return round(4 * (1 - share) / (1 - self._start) * (self._rows - 1)) + 1

    def draw(self, line: PlottedLine, colour: str) -> None:
        """Draw a line; what was drawn before at the same place is covered."""
        before: tuple[int, int] | None = None
        for run, share, is_partial in line.points:
            x, y = self.column(run), self.row(share)
            if not is_partial:
                dot = 2 * x, self._dot(share)
                for across, down in _between(before or dot, dot):
                    self._bits[down // 4][across // 2] |= _DOTS[across % 2][down % 4]
                    self._colours[down // 4][across // 2] = colour
                before = dot
            self._points[y, x] = StyledSpan("○" if is_partial else "●", colour)

    def spans(self, row: int) -> Iterator[StyledSpan]:
        """Yield the characters of a row."""
        for column, bits in enumerate(self._bits[row]):
            drawn = StyledSpan(chr(_BRAILLE + bits) if bits else " ", self._colours[row][column])
            yield self._points.get((row, column), drawn)

    def dates(self, texts: Sequence[str]) -> str:
        """Return the dates below their runs, each once: the newest, the oldest, then others."""
        line = [" "] * self._width
        shown: set[str] = set()
        for run in [len(texts) - 1, 0, *range(len(texts) - 2, 0, -1)]:
            start = max(0, min(self.column(run), self._width - len(texts[run])))
            end = start + len(texts[run])
            is_free = all(mark == " " for mark in line[max(0, start - 2) : end + 2])
            if texts[run] not in shown and is_free and end <= self._width:
                line[start:end] = texts[run]
                shown.add(texts[run])
        return "".join(line)


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a straight line, without a gap."""
    (left, top), (right, bottom) = start, end
    steps = max(right - left, abs(bottom - top), 1)
    for number in range(steps + 1):
        part = number / steps
        yield left + round(part * (right - left)), top + round(part * (bottom - top))


def series_line(series: Series, width: int) -> StyledLine:
    """Draw the numbers as bars between the oldest and the newest: `50% ▄▅▇ 83% (0% to 100%)`."""
    first, last = safe(series.first), safe(series.last)
    scale = "(0% to 100%)"
    fixed = columns_of(first) + columns_of(last) + columns_of(scale) + 6
    shown = series.values[-max(2, width - fixed) :]
    bars = "".join(_BLOCKS[1 + round(share * 7)] for share in shown)
    if len(series.values) < 2:
        return StyledLine((StyledSpan(clip(last, max(1, width))),))
    return StyledLine((StyledSpan(f"{first} {bars} {last}"), StyledSpan(f"  {scale}", "faint")))


def beside(
    left: Sequence[StyledLine], right: Sequence[StyledLine], width: int
) -> Iterator[StyledLine]:
    """Yield lines side by side; those at the left are as wide as `width` at most."""
    for number in range(max(len(left), len(right))):
        spans = left[number].spans if number < len(left) else ()
        other = right[number].spans if number < len(right) else ()
        used = columns_of("".join(span.text for span in spans))
        yield StyledLine((*spans, StyledSpan(" " * max(0, width - used)), *other))
