"""Reads why a result has its verdict, and adds it to the page of its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.tui.render.explanation import explained_lines, other_result_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalstore.operations.views.verdict_explanation import VerdictExplanation
    from evalstore.tui.render.answer_texts import AnswerTexts
    from evalstore.tui.screens.base import Page
    from evalstore.tui.state.navigation import CaseNavigator


def add_explanation(
    page: Page,
    navigator: CaseNavigator,
    texts: AnswerTexts,
    show: Callable[[AnswerTexts], None],
) -> None:
    """Read the explanation in a worker, then show the texts with it below the verdict.

    Nothing is shown when the reader has moved on, or when the explanation cannot be read.
    """
    source, result, run = page.source, navigator.result, navigator.cases.run
    position, cells, labels = navigator.position, navigator.results_of_case, navigator.cases.labels

    def add(explanation: VerdictExplanation | None) -> None:
        if explanation and position == navigator.position:
            explained = list(explained_lines(explanation))
            others = list(other_result_lines(explanation, labels))
            show(replace(texts, explained=explained, other_results=others))

    page.fetch(lambda: source.explanation(result, run, texts.view, cells), add, group="explanation")
