"""Reads why a result has its verdict, and appends it to the page of its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.tui.render.explanation import explained_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalstore.operations.views.verdict_explanation import VerdictExplanation
    from evalstore.tui.render.answer_texts import AnswerTexts
    from evalstore.tui.screens.base import Page
    from evalstore.tui.state.navigation import CaseNavigator


def append_explanation(
    page: Page,
    navigator: CaseNavigator,
    texts: AnswerTexts,
    show: Callable[[AnswerTexts], None],
) -> None:
    """Read the explanation in a worker, then show the texts with its sections at their end.

    Nothing is shown when the reader has moved on, or when the explanation cannot be read.
    """
    source, result, run = page.source, navigator.result, navigator.cases.run
    position = navigator.position

    def append(explanation: VerdictExplanation | None) -> None:
        if explanation and position == navigator.position:
            lines = list(explained_lines(explanation))
            written, rendered = [*texts.lines, *lines], [*texts.rendered, *lines]
            show(replace(texts, lines=written, rendered=rendered))

    page.fetch(lambda: source.explanation(result, run, texts.view), append, group="explanation")
