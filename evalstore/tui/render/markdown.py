"""An answer as a file of Markdown: headings for the roles, and below them the texts themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.display import safe, short
from evalstore.operations.views.answer_text import turn_title
from evalstore.tui.render.answer import result_facts
from evalstore.tui.render.export import markdown_line
from evalstore.tui.render.verdicts import verdict_cell

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.cases import CaseRow
    from evalstore.operations.views.judgements import JudgementView
    from evalstore.results import Result


def as_markdown(case: CaseRow, result: Result, number: int, view: AnswerView) -> str:
    """All of it; `number` is that of the answer, from 0."""
    return "\n".join(_lines(case, result, number, view)).rstrip() + "\n"


def _lines(case: CaseRow, result: Result, number: int, view: AnswerView) -> Iterator[str]:
    place = (case.file, case.row, f"({case.prompt})" if case.prompt else "")
    yield f"# {markdown_line(' '.join(part for part in place if part))}\n"
    summary = (verdict_cell(result.word).text, result.model, *result_facts(result, number))
    yield f"{markdown_line(', '.join(summary))}\n"
    for judgement in view.opinions:
        yield from _judgement(judgement)
    yield ""
    for turn in view.said:
        yield f"## {markdown_line(turn_title(turn, view))}\n"
        yield f"{safe(turn.text, lines=True)}\n"
    if view.id is None:
        yield "There is no answer yet.\n"
    for criteria in [*view.told.values()][:1]:
        if criteria.instructions:
            yield f"## instructions\n\n{safe(criteria.instructions, lines=True)}\n"
        if criteria.checks:
            yield "## checks\n"
            yield from (f"- {markdown_line(check)}" for check in criteria.checks)
            yield ""
    if view.id:
        yield f"session {short(view.id)}"


def _judgement(judgement: JudgementView) -> Iterator[str]:
    why_not = f" ({judgement.why_not})" if judgement.why_not else ""
    score = "" if judgement.score is None else f", score {judgement.score:g}"
    feedback = "" if any(check.feedback for check in judgement.checks) else judgement.feedback
    words = f"{verdict_cell(judgement.verdict).text} by {judgement.by}{score}{why_not}"
    yield f"- {markdown_line(words + (f': {feedback}' if feedback else ''))}"
    for check in judgement.checks:
        sign = f"{verdict_cell(check.verdict).text} " if check.verdict else ""
        feedback = f": {check.feedback}" if check.feedback else ""
        yield f"  - {markdown_line(f'{sign}{check.name}{feedback}')}"
