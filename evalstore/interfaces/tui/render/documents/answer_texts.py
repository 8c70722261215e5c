"""The texts of the page of an answer: one answer, or two side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalstore.interfaces.tui.render.answer import (
    answer_lines,
    closing_lines,
    compared_lines,
    place_lines,
    verdict_lines,
)
from evalstore.results.markdown_tokens import LONGEST

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.styled_text import StyledLine
    from evalstore.interfaces.tui.state.navigation import Position
    from evalstore.results.answer.answer import AnswerView


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """An answer as lines as it is written, and the answer of another candidate beside it."""

    view: AnswerView
    verdict: Sequence[StyledLine]
    """The case and the judgements on it."""
    written: Sequence[StyledLine] = ()
    """The conversation, and how it is judged, below an empty line."""
    laid_out: Sequence[StyledLine] = ()
    """The same with answers that are Markdown or JSON rendered."""
    closing: Sequence[StyledLine] = ()
    """Verdicts by other instructions or checks, and the facts."""
    other: Sequence[StyledLine] = ()
    explained: Sequence[StyledLine] = ()
    """Where the answer differs from what was expected, and the history; empty until read."""
    other_results: Sequence[StyledLine] = ()

    @property
    def lines(self) -> list[StyledLine]:
        """Return the whole page as it is written."""
        return self._page(self.written)

    @property
    def beside(self) -> list[StyledLine]:
        """Return all but the conversation, and how it is judged: what stands beside these."""
        return self._page(())

    @property
    def rendered(self) -> list[StyledLine]:
        """Return the whole page with answers that are Markdown or JSON rendered."""
        return self._page(self.laid_out)

    def with_explanation(self, before: AnswerTexts | None) -> AnswerTexts:
        """Return the texts with the explanation that was shown, until it is read again."""
        if before is None or self.other:
            return self
        return replace(self, explained=before.explained, other_results=before.other_results)

    def _page(self, body: Sequence[StyledLine]) -> list[StyledLine]:
        return [*self.verdict, *self.explained, *body, *self.other_results, *self.closing]

    @property
    def is_rendered(self) -> bool:
        """Return whether something is not shown as it is written."""
        return self.laid_out != self.written

    @property
    def why_not_rendered(self) -> str:
        """Return the reason why an answer is shown as it is written."""
        is_long = len(self.view.answer) > LONGEST
        return f"the answer {'is too long to be rendered' if is_long else 'is not Markdown'}"


def head_lines(position: Position, result: Result) -> Iterator[StyledLine]:
    """Yield the place among cases, the verdict, and whether the files have the case no longer."""
    case, labels = position.case, position.labels
    return place_lines(case, result, position.attempt, labels, position.mixed, position.gone)


def answer_texts(
    position: Position,
    result: Result,
    view: AnswerView,
    files: Mapping[str, Sequence[StyledLine]],
    hint: str,
) -> AnswerTexts:
    """Return one answer; a `hint` when it or a judgement is missing.

    `files` are those of its messages, as lines by id.
    """
    return AnswerTexts(
        view,
        verdict=[*head_lines(position, result), *verdict_lines(view, result, hint)],
        written=list(answer_lines(view, files)),
        laid_out=list(answer_lines(view, files, rendered=True)),
        closing=list(closing_lines(view)),
    )


def compared_texts(
    position: Position, results: tuple[Result, Result], views: tuple[AnswerView, AnswerView]
) -> AnswerTexts:
    """Return the answers of two candidates, with their differences marked."""
    left, right = compared_lines(*zip(results, views, strict=True))
    case, labels = position.case, position.labels
    return AnswerTexts(
        views[0],
        verdict=[
            *place_lines(case, results[0], position.attempt, labels, gone=position.gone),
            *left,
        ],
        other=[
            *place_lines(case, results[1], position.attempt_beside, labels),
            *right,
        ],
    )
