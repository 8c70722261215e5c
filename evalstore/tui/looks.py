"""How verdicts, shares and times look in the browser: a sign, a word and a colour."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.tui.grid import Cell
from evalstore.wording import ago

if TYPE_CHECKING:
    from evalstore.report.statistics import Rate

SIGNS = {
    "pass": "✓",
    "fail": "✗",
    "undecided": "?",
    "error": "!",
    "no reply": "!",
    "pending": "…",
    "answered": "·",
    "none": "–",
}
MEANINGS = {
    "pass": "the answer is as it must be",
    "fail": "the answer is not as it must be",
    "undecided": "the judges tied, or a reply could not be read",
    "error": "a check could not be computed; the answer's page says why",
    "no reply": "a call to the candidate or to a judge failed; the answer's page says why",
    "pending": "an answer or a judgement is missing",
    "answered": "there is an answer, and nothing judges it",
    "none": "of a person: a label is taken back",
}
PERSON = "✎"
OF_PEOPLE = {
    f"{SIGNS['pass']} pass {PERSON}": "a person has decided",
    f"{SIGNS['fail']} fail {PERSON}{SIGNS['pass']}": (
        "a person has said pass after this run: it counts in the workspace, not in the run"
    ),
}
"""What signs mean that stand behind verdicts."""
URGENCY = ("error", "no reply", "fail", "undecided", "pending", "answered", "pass")
"""Verdicts in the order in which somebody wants to see them."""
FAILING = ("fail", "error", "no reply", "undecided")
"""Verdicts that somebody has to look at."""
_COLOURS = {"no reply": "error", "answered": "faint", "none": "faint"}
_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def verdict(word: str | None) -> Cell:
    """A verdict as a cell."""
    word = word or "answered"
    return Cell(f"{SIGNS[word]} {word}", _COLOURS.get(word, word), word)


def bar(share: float | None, width: int) -> str:
    """A share as a bar of so many characters."""
    if share is None:
        return ""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def spark(shares: Sequence[float | None], width: int) -> str:
    """The last shares as a line of small bars, the newest at the right."""
    shown = shares[-width:]
    return "".join(" " if one is None else _BLOCKS[1 + round(one * 7)] for one in shown)


def counted(verdicts: Mapping[str, int]) -> str:
    """`183 ✓ pass, 4 ✗ fail`."""
    return ", ".join(f"{count:,} {SIGNS[word]} {word}" for word, count in verdicts.items() if count)


def interval(rate: Rate) -> str:
    """`94.1% of 55 (95% interval 90.1 to 96.6%)`."""
    if rate.interval is None:
        return "nothing judged"
    low, high = rate.interval
    return f"{rate.text} of {rate.judged:,} (95% interval {100 * low:.1f} to {100 * high:.1f}%)"


def when(microseconds: int) -> str:
    """How long ago."""
    return ago(microseconds, time.time_ns() // 1000)
