"""How verdicts, shares and times look in the browser: a sign, a word and a colour."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.display import ago
from evalstore.operations.views.styled_text import verdict_span
from evalstore.tui.state.verdict_order import SIGNS
from evalstore.tui.widgets.grid_lines import StyledCell

if TYPE_CHECKING:
    from evalstore.reports.statistics import Rate

_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def verdict_cell(word: str | None) -> StyledCell:
    """A verdict as a cell."""
    word = word or "answered"
    span = verdict_span(word, SIGNS)
    return StyledCell(span.text, span.colour, word)


def bar(share: float | None, width: int) -> str:
    """A share as a bar of so many characters."""
    if share is None:
        return ""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def sparkline(shares: Sequence[float | None], width: int) -> str:
    """The last shares as a line of small bars, the newest at the right."""
    shown = shares[-width:]
    return "".join(" " if number is None else _BLOCKS[1 + round(number * 7)] for number in shown)


def rate_text(rate: Rate) -> str:
    """`94.1% of 55 (95% interval 90.1 to 96.6%)`."""
    if rate.interval is None:
        return "nothing judged"
    low, high = rate.interval
    return f"{rate.text} of {rate.judged:,} (95% interval {100 * low:.1f} to {100 * high:.1f}%)"


def when(microseconds: int) -> str:
    """How long ago."""
    return ago(microseconds, time.time_ns() // 1000)
