"""The texts of verdicts, rates and times in the browser."""

from __future__ import annotations

import time
from collections.abc import Sequence

from evalstore.comparison.statistics import Rate
from evalstore.core.display import BADGE, StyledLine, ago, verdict_span
from evalstore.core.results import Result
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
from evalstore.results.labels.labels import LabelIndex
from evalstore.results.verdict_order import SIGNS

_BADGES = frozenset({"pass", "fail", "error", "undecided"})


def verdict_cell(word: str | None) -> StyledCell:
    """Return a verdict as a cell: its sign, its word and its colour."""
    word = word or "answered"
    span = verdict_span(word, SIGNS)
    return StyledCell(span.text, span.colour, word)


def result_cell(result: Result, labels: LabelIndex, text: str = "") -> StyledCell:
    """Return the verdict, with the sign of a person who decided it or labelled it after the run.

    `text` is added to the verdict.
    """
    cell = verdict_cell(result.word)
    text = f"{cell.text}{text}"
    signs = labels.signs(result)
    if not signs:
        return cell._replace(text=text)
    plain = " ".join([f"{cell.plain}, labelled", *filter(None, (labels.word(result),))])
    return StyledCell(f"{text} {signs}", cell.colour, plain)


def badge_spans(line: StyledLine) -> StyledLine:
    """Return a line with the verdicts in it as badges: filled with their colours."""
    return line._replace(
        spans=tuple(
            span._replace(colour=f"{BADGE}{span.colour}") if span.colour in _BADGES else span
            for span in line.spans
        )
    )


def rate_text(rate: Rate) -> str:
    """Return `94.1% of 55 (95% interval 90.1 to 96.6%)`; without an interval the counts."""
    if rate.interval is None:
        return f"{rate.passed:,} of {rate.judged:,} passed" if rate.judged else "nothing judged"
    low, high = rate.interval
    return f"{rate.text} of {rate.judged:,} (95% interval {100 * low:.1f} to {100 * high:.1f}%)"


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without the folders that all names with a folder have in common."""
    parts = [name.split("/") for name in names]
    while True:
        folders = [part for part in parts if len(part) > 1]
        if len(folders) < 2 or len({part[0] for part in folders}) > 1:
            break
        parts = [part[1:] if len(part) > 1 else part for part in parts]
    shorter = ["/".join(part) for part in parts]
    return shorter if len({*shorter}) == len({*names}) else list(names)


def when(microseconds: int) -> str:
    """Describe how long ago a time was."""
    return ago(microseconds, time.time_ns() // 1000)
