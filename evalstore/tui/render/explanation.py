"""Why a result has its verdict: the sections on the page of an answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evalstore.operations.views.explanation_text import OTHERS, explanation_sections, other_lines
from evalstore.operations.views.styled_text import BLANK, StyledLine, heading
from evalstore.operations.views.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.operations.views.labels import LabelIndex
    from evalstore.operations.views.verdict_explanation import VerdictExplanation


def explained_lines(explanation: VerdictExplanation) -> Iterator[StyledLine]:
    """Yield the sections below the verdict in the words of the command line."""
    for title, lines in explanation_sections(explanation, time.time_ns() // 1000, SIGNS):
        yield from _section(title, lines)


def other_result_lines(explanation: VerdictExplanation, labels: LabelIndex) -> Iterator[StyledLine]:
    """Yield the results of other candidates and system prompts, if there are any."""
    lines = list(other_lines(explanation, SIGNS, labels))
    if lines:
        yield from _section(OTHERS, lines)


def _section(title: str, lines: Iterable[StyledLine]) -> Iterator[StyledLine]:
    yield BLANK
    yield heading(title)
    yield from (StyledLine(line.spans, max(0, line.indent - 2)) for line in lines)
