"""Why a result has its verdict: the sections below an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.operations.views.explanation_text import explanation_sections
from evalstore.operations.views.styled_text import BLANK, StyledLine, heading
from evalstore.operations.views.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.operations.views.verdict_explanation import VerdictExplanation


def explained_lines(explanation: VerdictExplanation) -> Iterator[StyledLine]:
    """Yield the sections in the words of the command line, each behind a blank line."""
    now = time.time_ns() // 1000
    for title, lines in explanation_sections(explanation, now, signs=SIGNS):
        yield BLANK
        yield heading(title)
        yield from (StyledLine(line.spans, max(0, line.indent - 2)) for line in lines)
