"""An answer as a file of Markdown: headings for the roles, and below them the texts themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.core.case_name import case_name
from evalstore.core.display import safe, short
from evalstore.interfaces.tui.render.answer import result_facts
from evalstore.interfaces.tui.render.export import markdown_line
from evalstore.interfaces.tui.render.verdicts import verdict_cell
from evalstore.results.answer.answer_text import (
    judgement_lines,
    note_lines,
    other_judgements,
    own_judgements,
    turn_title,
)
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.answer.judgements import JudgementView
    from evalstore.results.table.case_rows import CaseRow


def as_markdown(case: CaseRow, result: Result, number: int, view: AnswerView) -> str:
    """Return the answer with its verdicts; `number` is that of the answer, from 0."""
    return "\n".join(_lines(case, result, number, view)).rstrip() + "\n"


def _lines(case: CaseRow, result: Result, number: int, view: AnswerView) -> Iterator[str]:
    yield f"# {markdown_line(case_name(case.file, case.row, case.prompt))}\n"
    summary = (verdict_cell(result.word).text, result.model, *result_facts(result, number))
    yield f"{markdown_line(', '.join(summary))}\n"
    for judgement in own_judgements(view):
        yield from _judgement(judgement)
    for line in note_lines(view):
        yield f"\n{markdown_line(line.text)}"
    yield ""
    for turn in view.conversation:
        yield f"## {markdown_line(turn_title(turn, view))}\n"
        yield f"{safe(turn.text, lines=True)}\n"
    if view.id is None:
        yield "There is no answer yet.\n"
    for criteria in [*view.criteria.values()][:1]:
        if criteria.instructions:
            yield f"## instructions\n\n{safe(criteria.instructions, lines=True)}\n"
        if criteria.checks:
            yield "## checks\n"
            for check in criteria.checks:
                text = safe(check.text, lines=True).replace("\n", "\n      ")
                yield f"    - {text}"
            yield ""
    for title, others in other_judgements(view):
        yield f"## {title}\n"
        for judgement in others:
            yield from _judgement(judgement)
        yield ""
    if view.id:
        yield f"session {short(view.id)}"


def _judgement(judgement: JudgementView) -> Iterator[str]:
    """Yield a list of what the page shows of a judgement, without its age and its ids."""
    for line in judgement_lines(judgement, 0, signs=SIGNS):
        text = "".join(span.text for span in line.spans if span.colour != "faint")
        yield f"{'  ' if line.indent else ''}- {markdown_line(text)}"
