"""Small pictures of numbers: lines in braille dots, bars, and strips of verdicts. Pure functions.

What is drawn can be told apart without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from evalstore.core.display import clip, columns_of, safe
from evalstore.core.styled_text import StyledLine, StyledSpan
from evalstore.results.verdict_order import SIGNS

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille character, by column and row of its dots."""
_CELLS = {"pass": "█", "fail": "░"}
"""The verdicts whose cells are blocks; the others are their signs."""
LAST_RUNS = "last runs, with reuse"
"""The name of the last verdicts in texts: a run that reuses answers has one, too."""
_COLOURS = {"no reply": "error", "answered": "faint"}
"""Words of results that have no colour of their own."""


class Series(NamedTuple):
    """Numbers in the order of time, with the texts of an axis that starts at 0."""

    title: str
    values: Sequence[float | None]
    """The oldest first; None where there is no number."""
    first: str
    """The text of the oldest number."""
    last: str
    """The text of the newest number."""
    top: str = "100%"
    """The text of the upper end of the axis."""
    most: float = 1.0
    """The number at the upper end of the axis."""
    bottom: str = "0%"
    middle: str = ""
    """The text of the middle of the axis, where there is room for it."""

    @property
    def shares(self) -> list[float | None]:
        """Return the numbers as shares of the axis, 0 to 1."""
        return [None if value is None else value / self.most for value in self.values]


def bar(share: float | None, width: int) -> str:
    """Draw a share as a bar of up to `width` characters."""
    if share is None:
        return ""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def sparkline(shares: Sequence[float | None], width: int) -> str:
    """Draw the last shares as a line of small bars, the newest at the right."""
    shown = shares[-width:]
    return "".join(" " if number is None else _BLOCKS[1 + round(number * 7)] for number in shown)


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


def plot(shares: Sequence[float | None], width: int, height: int) -> list[str]:
    """Draw a line through shares (0 to 1) as `height` rows of braille dots, `width` wide.

    Both ends of the axis are in the middles of rows, where the ticks of labels are. Without a
    number the line has a gap. When there are more numbers than dots, the last are shown.
    """
    across, down = 2 * width, 4 * height
    edge = 1 if height > 1 else 0
    shown = shares[-across:]
    step = (across - 1) / max(1, len(shown) - 1)
    cells = [[0] * width for _ in range(height)]
    before: tuple[int, int] | None = None
    for number, share in enumerate(shown):
        point = None
        if share is not None:
            level = max(0.0, min(1.0, share))
            point = round(number * step), edge + round((1 - level) * (down - 1 - 2 * edge))
            for x, y in _between(before or point, point):
                cells[y // 4][x // 2] |= _DOTS[x % 2][y % 4]
        before = point
    return ["".join(chr(_BRAILLE + bits) if bits else " " for bits in row) for row in cells]


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a straight line, without a gap."""
    (left, top), (right, bottom) = start, end
    steps = max(right - left, abs(bottom - top), 1)
    for number in range(steps + 1):
        part = number / steps
        yield left + round(part * (right - left)), top + round(part * (bottom - top))


def series_lines(series: Series, width: int, height: int) -> Iterator[StyledLine]:
    """Yield a plot with its axis, and below it the oldest and the newest number.

    `height` counts all lines. With less than three the plot is a line of bars.
    """
    if height < 3:
        yield series_line(series, width)
        return
    rows = height - 1
    margin = max(columns_of(series.top), columns_of(series.bottom))
    room = max(1, width - margin - 2)
    labels = [series.top, *[""] * (rows - 2), series.bottom]
    if rows % 2 and rows > 2:
        labels[rows // 2] = series.middle
    for label, dots in zip(labels, plot(series.shares, room, rows), strict=True):
        yield StyledLine(
            (
                StyledSpan(f"{label:>{margin}} {'┤' if label else '│'}", "faint"),
                StyledSpan(dots.rstrip()),
            )
        )
    first, last, title = safe(series.first), safe(series.last), safe(series.title)
    pad = " " * (margin + 2)
    gap = room - columns_of(first) - columns_of(last)
    if len(series.values) < 2:
        texts = [f"{title} {last}"]
    elif gap > columns_of(title) + 1:
        left = (gap - columns_of(title)) // 2
        texts = [first, " " * left, title, " " * (gap - columns_of(title) - left), last]
    else:
        texts = [f"{title} {first} → {last}"]
    yield StyledLine((StyledSpan(pad + "".join(texts)),))


def series_line(series: Series, width: int) -> StyledLine:
    """Draw the numbers as bars between the oldest and the newest: `50% ▄▅▇ 83% (0% to 100%)`."""
    title, first, last = map(safe, (series.title, series.first, series.last))
    scale = f"({series.bottom} to {series.top})"
    fixed = columns_of(title) + columns_of(first) + columns_of(last) + columns_of(scale) + 6
    bars = sparkline(series.shares, max(2, width - fixed))
    head = (StyledSpan(f"{title}  ", "faint"),) if title else ()
    if len(series.values) < 2:
        room = width - columns_of("".join(span.text for span in head))
        return StyledLine((*head, StyledSpan(clip(last, max(1, room)))))
    return StyledLine(
        (*head, StyledSpan(f"{first} {bars} {last}"), StyledSpan(f"  {scale}", "faint"))
    )


def beside(
    left: Sequence[StyledLine], right: Sequence[StyledLine], width: int
) -> Iterator[StyledLine]:
    """Yield lines side by side; those at the left are as wide as `width` at most."""
    for number in range(max(len(left), len(right))):
        spans = left[number].spans if number < len(left) else ()
        other = right[number].spans if number < len(right) else ()
        used = columns_of("".join(span.text for span in spans))
        yield StyledLine((*spans, StyledSpan(" " * max(0, width - used)), *other))
