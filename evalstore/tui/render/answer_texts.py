"""The texts of the page of an answer: one answer, or two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.operations.views.markdown_tokens import LONGEST
from evalstore.tui.render.answer import answer_lines, compared_lines, place_lines, verdict_lines

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.styled_text import StyledLine
    from evalstore.results import Result
    from evalstore.tui.state.navigation import Position


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """An answer as lines as it is written, and the answer of another candidate beside it."""

    view: AnswerView
    lines: Sequence[StyledLine]
    rendered: Sequence[StyledLine]
    """The same lines with answers that are Markdown or JSON rendered."""
    other: Sequence[StyledLine] = ()

    @property
    def is_rendered(self) -> bool:
        """Return whether something is not shown as it is written."""
        return self.rendered != self.lines

    @property
    def why_not_rendered(self) -> str:
        """Return the reason why an answer is shown as it is written."""
        is_long = len(self.view.answer) > LONGEST
        return f"the answer {'is too long to be rendered' if is_long else 'is not Markdown'}"


def answer_texts(
    position: Position,
    result: Result,
    view: AnswerView,
    images: Mapping[str, Sequence[StyledLine]],
    hint: str,
) -> AnswerTexts:
    """Return one answer with its `images` by id; a `hint` when it or a judgement is missing."""
    place = place_lines(position.case, result, position.attempt)
    verdicts = [*place, *verdict_lines(view, result, hint)]
    lines = list(answer_lines(view, images))
    rendered = list(answer_lines(view, images, rendered=True))
    return AnswerTexts(view, [*verdicts, *lines], [*verdicts, *rendered])


def compared_texts(
    position: Position, results: tuple[Result, Result], views: tuple[AnswerView, AnswerView]
) -> AnswerTexts:
    """Return the answers of two candidates, with their differences marked."""
    left, right = compared_lines(*views)
    lines = [*place_lines(position.case, results[0], position.attempt), *left]
    return AnswerTexts(
        views[0],
        lines,
        lines,
        [*place_lines(position.case, results[1], 0), *right],
    )
