"""Draws charts as SVG text: pure functions of numbers.

The page needs two small drawings. A charting library would add between 70 KB and 1 MB of script
to each report, would need a policy that allows its styles, and would show nothing without
JavaScript.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.clock import minute
from evalstore.core.display import clip, percent, plural, safe, side_name, spread
from evalstore.interfaces.html.templates import Drawing

if TYPE_CHECKING:
    from evalstore.results.stats.trend import Trend, TrendLine, TrendPoint


_WIDTH, _HEIGHT = 850, 156
"""The least width at which the names of edits are shown, and the height."""
_TOP, _BOTTOM = 26, 26
"""The room for the names of edits and for the dates."""
_LETTER = 7
"""About the width of a letter."""
_LONGEST = 24
_FEWEST = 12
"""The fewest letters of the name of an edit, if it has so many."""
_LINE = 15
"""The least distance of names below each other."""
_MOST_NAMES = 9
"""The most names that there is room for."""
_DATES = 4
"""The most dates on the axis."""
_DATE_WIDTH = 14
"""The least distance between two of them, in percent of the axis."""
COLOURS = 6
"""How many colours lines have; further ones are dashed."""


def interval_chart(rate: float | None, interval: tuple[float, float] | None) -> Drawing:
    """Return a rate as a mark on a scale from 0 to 100 %, and its interval as a bar."""
    if rate is None or interval is None:
        return Drawing("")
    low, high = interval
    name = f"{percent(rate)}, 95% interval {percent(low)} to {percent(high)}"
    ticks = "".join(
        f'<rect class="tick" x="{x}" y="3" width=".5" height="10"/>'
        for x in (0, 49.75, 99.75, 149.75, 199.5)
    )
    content = (
        f'<rect class="tick" x="0" y="7.5" width="200" height="1"/>{ticks}'
        f'<rect class="interval" x="{200 * low:.1f}" y="4"'
        f' width="{max(1.0, 200 * (high - low)):.1f}" height="8"/>'
        f'<rect class="rate" x="{max(0.0, min(198.4, 200 * rate - 0.8)):.1f}" y="1"'
        ' width="1.6" height="14"/>'
    )
    return Drawing(
        '<svg class="interval-chart" viewBox="0 0 200 16" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(name)}">{content}</svg>'
    )


def trend_chart(trend: Trend) -> Drawing:
    """Return the pass rates of runs, a line for each candidate; empty with fewer than two runs.

    Its axis is the whole range of rates. What stands for some of the cases is a hollow point that
    no line joins. Of equal lines each is wider than the next, which covers it. It is as wide as
    there is room; the names stand beside it.
    """
    lines = [line for line in trend.lines if line.points]
    runs = {point.run for line in lines for point in line.points}
    if len(runs) < 2:
        return Drawing("")
    last = len(trend.runs) - 1
    ends = [line.points[-1] for line in lines]
    names = [line.candidate.rpartition("/")[2] or line.candidate for line in lines]
    shown = [
        f"{clip(name, _LONGEST)} {trend.end_text(line)}".rstrip()
        for name, line in zip(names, lines, strict=True)
    ]

    def x(run: int) -> float:
        return 100 * run / last

    edits = [*_place_edits(trend, x)]
    top = _TOP + _LINE * max((it.row for it in edits), default=0)

    def y(rate: float) -> float:
        return top + (_HEIGHT - top - _BOTTOM) * (1 - rate)

    parts = [
        f'<line class="tick" x2="100%" y1="{y(rate):.1f}" y2="{y(rate):.1f}"/>'
        f'<text x="-9" y="{y(rate) + 4:.1f}" text-anchor="end">{100 * rate:.0f}%</text>'
        for rate in (0.0, 0.5, 1.0)
    ]
    parts += [*_dates(trend.dates, x), *_edits(trend, edits, x, top, y(0.0))]
    texts = []
    covering = Counter((point.run, point.rate) for line in lines for point in line.points)
    heights = spread([y(point.rate) for point in ends[:_MOST_NAMES]], _LINE, _HEIGHT - 6)
    for number, line in enumerate(lines):
        covering.subtract((point.run, point.rate) for point in line.points)
        over = [min(3, covering[point.run, point.rate]) for point in line.joined]
        kind = f"line-{line.number % COLOURS}" + " dashed" * (line.number >= COLOURS)
        path = "".join(
            f'<line x1="{x(start.run):.2f}%" y1="{y(start.rate):.1f}" x2="{x(end.run):.2f}%"'
            f' y2="{y(end.rate):.1f}" stroke-width="{2 + 3 * min(both)}"/>'
            for (start, end), both in zip(pairwise(line.joined), pairwise(over), strict=True)
        )
        dots = "".join(
            f'<circle class="{"hollow" if point.is_partial else "dot"}"'
            f' cx="{x(point.run):.2f}%" cy="{y(point.rate):.1f}"'
            f' r="{4 + 2 * min(3, covering[point.run, point.rate])}">'
            f"<title>{escape(_point_text(trend, line, point))}</title></circle>"
            for point in line.points
        )
        end = line.points[-1]
        if number < _MOST_NAMES and end.run < last:  # joined to its name
            path += (
                f'<line class="leader" x1="{x(end.run):.2f}%" y1="{y(end.rate):.1f}"'
                f' x2="100%" y2="{heights[number]:.1f}"/>'
            )
        parts.append(f'<g class="{kind}">{path}{dots}</g>')
        if number < _MOST_NAMES:
            title = f"<title>{escape(safe(line.candidate))}</title>"
            text = (
                f'<text y="{heights[number] + 4:.1f}">{escape(safe(shown[number]))}{title}</text>'
            )
            texts.append(f'<g class="{kind}">{text}</g>')
    name = f"Pass rates of {plural(len(lines), 'candidate')} in {plural(len(trend.runs), 'run')}"
    width = 8 * max(map(len, shown[:_MOST_NAMES])) + 4  # they are bold
    return Drawing(
        f'<div class="plot"><svg class="trend-chart" height="{_HEIGHT}" role="img"'
        f' aria-label="{escape(name)}">{"".join(parts)}</svg>'
        f'<svg class="trend-names" width="{width}" height="{_HEIGHT}">{"".join(texts)}</svg></div>'
    )


def _point_text(trend: Trend, line: TrendLine, point: TrendPoint) -> str:
    run = trend.runs[point.run]
    counts = run.rates[line.candidate]
    pending = counts.results - counts.judged
    part = " (partial)" if run.is_partial else f" ({pending:,} pending)" if pending else ""
    return (
        f"{safe(line.candidate)}: {percent(point.rate)}, {counts.passed:,} of {counts.judged:,}"
        f"{part}, {side_name(run.id)}, {minute(run.at)}"
    )


def _dates(texts: Sequence[str], x: Callable[[int], float]) -> Iterator[str]:
    """Yield dates below the first of their runs: the newest, the oldest, then others."""
    last = len(texts) - 1
    steps = min(_DATES - 1, last)
    shown: list[int] = []
    for number in (last, 0, *(last * step // steps for step in range(steps - 1, 0, -1))):
        place = texts.index(texts[number])
        if any(abs(x(place) - x(other)) < _DATE_WIDTH for other in shown):
            continue
        shown.append(place)
        text = texts[place]
        anchor = "start" if place == 0 else "end" if place == last else "middle"
        yield (f'<text x="{x(place):.2f}%" y="{_HEIGHT - 6}" text-anchor="{anchor}">{text}</text>')


def with_arrows(edits: Iterable[str], separator: str = ", ") -> str:
    """Return edits as a text of a page: `temperature 0.3 → 0.5`."""
    return separator.join(edits).replace(" -> ", "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}")


class _EditName(NamedTuple):
    """Where the name of the edits before a run is drawn."""

    run: int
    row: int
    """0, or 1 above it."""
    left: float
    width: float
    """0 without room for a name."""
    anchor: str


def _place_edits(trend: Trend, x: Callable[[int], float]) -> Iterator[_EditName]:
    """Yield each run in which edits broke results, with a place for their name if there is room.

    A name begins at its mark, or ends there if no other mark is in between; where the next mark is
    too close, in a second row, into which no line of an earlier mark reaches.
    """
    free = [_WIDTH + 4.0, _WIDTH + 4.0]
    marked = [number for number, run in enumerate(trend.runs) if run.breaks]
    for before, number in reversed([*zip([0, *marked], marked, strict=False)]):
        letters, start = len(with_arrows(trend.runs[number].break_texts)), _WIDTH * x(number) / 100
        places = [
            (room, row, anchor)
            for row, left in enumerate((_WIDTH * x(before) / 100, 0.0))
            for anchor, room in (("start", free[row] - start), ("end", start - left))
            if free[row] >= start and room // _LETTER >= min(letters, _FEWEST)
        ]
        whole = (each for each in places if each[0] // _LETTER >= letters)
        room, row, anchor = next(whole, max(places, default=(0.0, 0, "")))
        width = room if anchor == "start" else min(room, letters * _LETTER)
        left = start - width * (anchor == "end")
        if anchor:
            free[0] = min(free[0], start)
            free[row] = left
        yield _EditName(number, row, left, width, anchor)


def _edits(
    trend: Trend, edits: Iterable[_EditName], x: Callable[[int], float], top: int, bottom: float
) -> Iterator[str]:
    """Yield a mark at each of these runs, and the edits; a browser cuts them off at the next."""
    for run, row, left, width, anchor in edits:
        text = escape(safe(with_arrows(trend.runs[run].break_texts)))
        place, above = f"{x(run):.2f}%", top - _TOP - _LINE * row
        yield (
            f'<line class="edit" x1="{place}" x2="{place}" y1="{above + _TOP - 8}"'
            f' y2="{bottom:.1f}"><title>{text}</title></line>'
        )
        if width:
            yield (
                f'<foreignObject class="edit-name" x="{100 * left / _WIDTH:.2f}%" y="{above}"'
                f' width="{100 * width / _WIDTH:.2f}%" height="{_TOP - 8}">'
                f'<p class="{anchor}" title="{text}">{text}</p></foreignObject>'
            )
