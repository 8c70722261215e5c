"""Reads the answer that stands for a result, or one that the reader has chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.state.data_source import WorkspaceSource
    from evalstore.results.answer.answer import AnswerView


def read_shown_answer(
    source: WorkspaceSource,
    result: Result,
    session: str | None,
    run: str | None,
    *,
    is_chosen: bool = False,
) -> AnswerView:
    """Return the page of an answer; without a session that of the question in a run.

    Of answers that are judged together it is the first that fails, unless this one `is_chosen`.
    """
    from evalstore.results.answer import failed_checks

    if session is None:
        return source.question(result, run)
    if not is_chosen:
        session = failed_checks.failing_answer_of(source.location, result, session)
    return source.session(session, result)
