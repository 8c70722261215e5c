"""Draws charts as SVG text: pure functions of numbers.

The page needs four small drawings. A charting library would add between 70 KB and 1 MB of script
to each report, would need a policy that allows its styles, and would show nothing without
JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from evalstore.core.display import percent


class Drawing(str):
    """An SVG image, which a template inserts as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


class TrendPoint(NamedTuple):
    """A run in the chart of the trend."""

    label: str
    rate: float | None
    """0..1; None when nothing was judged."""
    cost: float | None
    """USD."""
    is_current: bool


_WIDTH, _HEIGHT, _MARGIN = 640, 150, 12


def interval_chart(rate: float | None, interval: tuple[float, float] | None) -> Drawing:
    """Return a rate as a dot on a scale from 0 to 100 %, and its interval as a bar."""
    if rate is None or interval is None:
        return Drawing("")
    low, high = interval
    name = f"{percent(rate)}, 95% interval {percent(low)} to {percent(high)}"
    ticks = "".join(
        f'<line class="tick" x1="{x}" x2="{x}" y1="3" y2="13"/>' for x in (0.5, 50, 100, 150, 199.5)
    )
    return _svg(
        200,
        16,
        name,
        f'<line class="axis" x1="0" x2="200" y1="8" y2="8"/>{ticks}'
        f'<rect class="interval" x="{200 * low:.1f}" y="4" rx="3"'
        f' width="{max(1.0, 200 * (high - low)):.1f}" height="8"/>'
        f'<circle class="rate" cx="{200 * rate:.1f}" cy="8" r="4"/>',
        "interval-chart",
    )


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


def trend_chart(points: Sequence[TrendPoint]) -> Drawing:
    """Return the pass rates of runs as a line, oldest first; empty with fewer than two rates.

    Its axis is the whole range of rates, as in the browser.
    """
    rates = [point.rate for point in points if point.rate is not None]
    if len(rates) < 2:
        return Drawing("")
    grid = [0.0, 0.5, 1.0]

    def x(number: int) -> float:
        return 44 + (_WIDTH - 44 - _MARGIN) * number / max(1, len(points) - 1)

    def y(rate: float) -> float:
        return _MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - rate)

    lines = "".join(
        f'<line class="tick" x1="44" x2="{_WIDTH}" y1="{y(rate):.1f}" y2="{y(rate):.1f}"/>'
        f'<text x="38" y="{y(rate) + 4:.1f}" text-anchor="end">{100 * rate:.0f}%</text>'
        for rate in grid
    )
    places = [
        (x(number), y(point.rate), point)
        for number, point in enumerate(points)
        if point.rate is not None
    ]
    path = " ".join(f"{left:.1f},{top:.1f}" for left, top, _ in places)
    dots = "".join(
        f'<circle class="{"rate current" if point.is_current else "rate"}" cx="{left:.1f}"'
        f' cy="{top:.1f}" r="{6 if point.is_current else 4}">'
        f"<title>{escape(point.label)}: {percent(point.rate)}</title></circle>"
        for left, top, point in places
    )
    name = f"Pass rates of {len(rates)} runs, from {percent(rates[0])} to {percent(rates[-1])}"
    return _svg(
        _WIDTH,
        _HEIGHT,
        name,
        f'{lines}<polyline class="trend" points="{path}"/>{dots}',
        "trend-chart",
    )


def share_bar(share: float) -> Drawing:
    """Return a bar for a number as a share of the largest one; the number stands beside it."""
    return Drawing(
        '<svg class="share-bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="share" x="0" y="0" width="{100 * min(1.0, share):.1f}" height="8"/></svg>'
    )


def _svg(
    width: int, height: int, name: str, content: str, kind: str, *, stretch: bool = False
) -> Drawing:
    ratio = ' preserveAspectRatio="none"' if stretch else ""
    return Drawing(
        f'<svg class="{kind}" viewBox="0 0 {width} {height}"{ratio} role="img"'
        f' aria-label="{escape(name)}">{content}</svg>'
    )
