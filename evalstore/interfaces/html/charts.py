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
from typing import TYPE_CHECKING

from evalstore.core.clock import minute
from evalstore.core.display import clip, percent, plural, safe, side_name, spread
from evalstore.interfaces.html.templates import Drawing

if TYPE_CHECKING:
    from evalstore.results.report_overview import Trend, TrendLine, TrendPoint


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

    def y(rate: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - rate)

    parts = [
        f'<line class="tick" x2="100%" y1="{y(rate):.1f}" y2="{y(rate):.1f}"/>'
        f'<text x="-9" y="{y(rate) + 4:.1f}" text-anchor="end">{100 * rate:.0f}%</text>'
        for rate in (0.0, 0.5, 1.0)
    ]
    parts += [*_dates(trend.dates, x), *_edits(trend, x, y(0.0))]
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


def _edits(trend: Trend, x: Callable[[int], float], bottom: float) -> Iterator[str]:
    """Yield a mark at each run in which edits broke results, and their names to the left of it.

    An older mark below such a name is short, and has no name. A browser cuts long names off.
    """
    free = 100.0
    for number, run in reversed([*enumerate(trend.runs)]):
        if not run.breaks:
            continue
        names, place = with_arrows(run.break_texts), x(number)
        text, width = escape(safe(names)), min(place, 100 * _LETTER * len(names) / _WIDTH)
        is_named = place <= free and width * _WIDTH / 100 >= _LETTER * min(len(names), _FEWEST)
        yield (
            f'<line class="edit" x1="{place:.2f}%" x2="{place:.2f}%"'
            f' y1="{_TOP - 8 * is_named}" y2="{bottom:.1f}"><title>{text}</title></line>'
        )
        if is_named:
            free = place - width
            yield (
                f'<foreignObject class="edit-name" x="{free:.2f}%" y="0"'
                f' width="{width:.2f}%" height="{_TOP - 8}">'
                f'<p title="{text}">{text}</p></foreignObject>'
            )
