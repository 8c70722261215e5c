"""An answer as a file of Markdown: headings for the roles, and below them the texts themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.display import safe, short
from evalstore.operations.views.answer_text import title_of
from evalstore.tui.render.answer import facts_of
from evalstore.tui.render.export import in_line
from evalstore.tui.render.verdicts import verdict

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.cases import CaseRow
    from evalstore.operations.views.judgements import JudgementView
    from evalstore.values import Result


def as_markdown(case: CaseRow, result: Result, number: int, view: AnswerView) -> str:
    """All of it; `number` is that of the answer, from 0."""
    return "\n".join(_lines(case, result, number, view)).rstrip() + "\n"


def _lines(case: CaseRow, result: Result, number: int, view: AnswerView) -> Iterator[str]:
    place = (case.file, case.row, f"({case.prompt})" if case.prompt else "")
    yield f"# {in_line(' '.join(part for part in place if part))}\n"
    came_to = (verdict(result.word).text, result.model, *facts_of(result, number))
    yield f"{in_line(', '.join(came_to))}\n"
    for opinion in view.opinions:
        yield from _opinion(opinion)
    yield ""
    for turn in view.said:
        yield f"## {in_line(title_of(turn, view))}\n"
        for text in filter(None, (turn.text, turn.note)):
            yield f"{safe(text, lines=True)}\n"
    if view.id is None:
        yield "There is no answer yet.\n"
    for told in [*view.told.values()][:1]:
        if told.instructions:
            yield f"## instructions\n\n{safe(told.instructions, lines=True)}\n"
        if told.checks:
            yield "## checks\n"
            yield from (f"- {in_line(check)}" for check in told.checks)
            yield ""
    if view.id:
        yield f"session {short(view.id)}"


def _opinion(judgement: JudgementView) -> Iterator[str]:
    why_not = f" ({judgement.why_not})" if judgement.why_not else ""
    score = "" if judgement.score is None else f", score {judgement.score:g}"
    feedback = "" if any(check.feedback for check in judgement.checks) else judgement.feedback
    words = f"{verdict(judgement.verdict).text} by {judgement.by}{score}{why_not}"
    yield f"- {in_line(words + (f': {feedback}' if feedback else ''))}"
    for check in judgement.checks:
        sign = f"{verdict(check.verdict).text} " if check.verdict else ""
        told = f": {check.feedback}" if check.feedback else ""
        yield f"  - {in_line(f'{sign}{check.name}{told}')}"
