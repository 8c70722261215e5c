"""Reads why a result has its verdict, and appends it to the page of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.tui.render.explanation import explained_lines
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from evalstore.operations.views.verdict_explanation import VerdictExplanation
    from evalstore.tui.render.answer_texts import AnswerTexts
    from evalstore.tui.screens.actions import CaseActionsPage
    from evalstore.tui.state.navigation import CaseNavigator, Position


def append_explanation(
    page: CaseActionsPage, navigator: CaseNavigator, position: Position, texts: AnswerTexts
) -> None:
    """Read in a worker, then show the sections below the lines of the answer.

    Nothing is shown when the reader has moved on, or when they cannot be read.
    """
    source, result, run = page.source, navigator.result, navigator.cases.run

    def show(explanation: VerdictExplanation | None) -> None:
        if explanation and position == navigator.position:
            lines = [*texts.lines, *explained_lines(explanation)]
            page.query_one("#text", TextView).show(lines, stay=True)

    page.fetch(lambda: source.explanation(result, run, texts.view), show, group="explanation")
