"""Draws charts as SVG text: pure functions of numbers.

The page needs four small drawings. A charting library would add between 70 KB and 1 MB of script
to each report, would need a policy that allows its styles, and would show nothing without
JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from evalstore.core.clock import minute
from evalstore.core.display import percent, plural, safe
from evalstore.core.side_names import side_name

if TYPE_CHECKING:
    from evalstore.results.stats.trend import Trend, TrendLine, TrendPoint


class Drawing(str):
    """An SVG image, which a template inserts as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


_WIDTH, _HEIGHT = 960, 156
_LEFT, _TOP, _BOTTOM = 44, 26, 26
"""The room for the numbers, for the names of edits and for the dates."""
_LETTER = 7
"""About the width of a letter."""
_LONGEST_NAME = 24
_LINE = 15
"""The least distance of names below each other."""
_MOST_NAMES = 9
"""The most names that there is room for."""
_DATES = 5
"""The most dates on the axis."""
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
    return _svg(200, 16, name, content, "interval-chart", stretch=True)


def verdict_bar(counts: Mapping[str, int]) -> Drawing:
    """Return the shares of the verdicts as one bar."""
    total = sum(counts.values())
    if not total:
        return Drawing("")
    parts, place = [], 0.0
    for word, count in counts.items():
        width = 1000 * count / total
        if count:
            parts.append(
                f'<rect class="verdict-{escape(word.replace(" ", "-"))}" x="{place:.2f}" y="0"'
                f' width="{width:.2f}" height="20"/>'
            )
        place += width
    name = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    return _svg(1000, 20, name, "".join(parts), "verdict-bar", stretch=True)


def trend_chart(trend: Trend) -> Drawing:
    """Return the pass rates of runs, a line for each candidate; empty with fewer than two runs.

    Its axis is the whole range of rates, as in the browser. What stands for some of the cases is a
    hollow point that no line joins.
    """
    lines = [line for line in trend.lines if line.points]
    runs = {point.run for line in lines for point in line.points}
    if len(runs) < 2:
        return Drawing("")
    names = [_clipped(line.candidate.rpartition("/")[2] or line.candidate) for line in lines]
    right = _WIDTH - _LETTER * max(map(len, names[:_MOST_NAMES])) - 16

    def x(run: int) -> float:
        return _LEFT + 6 + (right - _LEFT - 12) * run / max(1, len(trend.runs) - 1)

    def y(rate: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - rate)

    parts = [
        f'<line class="tick" x1="{_LEFT}" x2="{right}" y1="{y(rate):.1f}" y2="{y(rate):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{y(rate) + 4:.1f}" text-anchor="end">{100 * rate:.0f}%</text>'
        for rate in (0.0, 0.5, 1.0)
    ]
    parts += [*_dates(trend, x), *_edits(trend, x, y(0.0))]
    ends = [(line.joined or line.points)[-1] for line in lines]
    heights = _apart([y(point.rate) for point in ends[:_MOST_NAMES]])
    for number, line in enumerate(lines):
        kind = f"line-{number % COLOURS}" + " dashed" * (number >= COLOURS)
        path = " ".join(f"{x(point.run):.1f},{y(point.rate):.1f}" for point in line.joined)
        dots = "".join(
            f'<circle class="{"hollow" if point.is_partial else "dot"}"'
            f' cx="{x(point.run):.1f}" cy="{y(point.rate):.1f}" r="4">'
            f"<title>{escape(_point_text(trend, line, point))}</title></circle>"
            for point in line.points
        )
        name = ""
        if number < _MOST_NAMES:
            place = f'x="{right + 8}" y="{heights[number] + 4:.1f}"'
            title = f"<title>{escape(safe(line.candidate))}</title>"
            name = f"<text {place}>{escape(safe(names[number]))}{title}</text>"
        parts.append(f'<g class="{kind}"><polyline points="{path}"/>{dots}{name}</g>')
    name = f"Pass rates of {plural(len(lines), 'candidate')} in {plural(len(trend.runs), 'run')}"
    return _svg(_WIDTH, _HEIGHT, name, "".join(parts), "trend-chart")


def _point_text(trend: Trend, line: TrendLine, point: TrendPoint) -> str:
    run = trend.runs[point.run]
    counts = run.rates[line.candidate]
    part = " (some of the cases)" if point.is_partial else ""
    return (
        f"{safe(line.candidate)}: {percent(point.rate)}, {counts.passed:,} of {counts.judged:,}"
        f"{part}, {side_name(run.id)}, {minute(run.at)}"
    )


def _dates(trend: Trend, x: Callable[[int], float]) -> Iterator[str]:
    """Yield dates below the axis, or times where all runs are of one day."""
    texts = trend.dates
    last = len(texts) - 1
    step = max(1, -(-last // (_DATES - 1)))
    for number in range(last, -1, -step):
        anchor = "start" if number == 0 else "end" if number == last else "middle"
        place = f'x="{x(number):.1f}" y="{_HEIGHT - 6}"'
        yield f'<text {place} text-anchor="{anchor}">{texts[number]}</text>'


def _edits(trend: Trend, x: Callable[[int], float], bottom: float) -> Iterator[str]:
    """Yield a mark at each run in which something broke, with the name of the edit before it."""
    free = float(_WIDTH)
    for number in range(len(trend.runs) - 1, -1, -1):
        run = trend.runs[number]
        if not run.edits:
            continue
        place = x(number)
        more = f" and {len(run.edits) - 1} more" if run.edits[1:] else ""
        text = _clipped(run.edits[0], 2 * _LONGEST_NAME) + more
        title = escape(safe(", ".join(run.edits)))
        yield (
            f'<line class="edit" x1="{place:.1f}" x2="{place:.1f}" y1="{_TOP - 8}"'
            f' y2="{bottom:.1f}"><title>{title}</title></line>'
        )
        if place + 4 > free:
            continue
        width = _LETTER * len(text)
        is_left = place + width > free
        start = place - width if is_left else place
        if start < 0:
            continue
        anchor = "end" if is_left else "start"
        yield (
            f'<text class="edit-name" x="{place:.1f}" y="{_TOP - 12}" text-anchor="{anchor}">'
            f"{escape(safe(text))}<title>{title}</title></text>"
        )
        free = start


def _apart(heights: Sequence[float]) -> list[float]:
    """Return the heights of names, moved so that none covers another."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = [*heights]
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + _LINE)
    limit = _HEIGHT - 6.0
    for number in reversed(order):
        placed[number] = min(placed[number], limit)
        limit = placed[number] - _LINE
    return placed


def _clipped(text: str, most: int = _LONGEST_NAME) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def share_bar(share: float) -> Drawing:
    """Return a bar for a number as a share of the largest one; the number stands beside it."""
    return Drawing(
        '<svg class="share-bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="share" x="0" y="0" width="{100 * min(1.0, share):.1f}" height="8"/></svg>'
    )


def _svg(
    width: int, height: int, name: str, content: str, kind: str, *, stretch: bool = False
) -> Drawing:
    ratio = f' preserveAspectRatio="{"none" if stretch else "xMinYMid"}"'
    return Drawing(
        f'<svg class="{kind}" viewBox="0 0 {width} {height}"{ratio} role="img"'
        f' aria-label="{escape(name)}">{content}</svg>'
    )
