"""Prints the page of an answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalstore.core.case_name import case_name
from evalstore.core.styled_text import StyledLine, StyledSpan, text_lines
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.render.lines import print_block, print_lines
from evalstore.results.answer.answer_text import (
    conversation,
    criteria,
    footer_lines,
    judgement_lines,
    missing_lines,
    note_lines,
    other_judgements,
    own_judgements,
    reasoning,
    together_lines,
)
from evalstore.results.answer.explanation_text import (
    OTHERS,
    explained_place,
    explanation_sections,
    other_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.results.answer.answer import AnswerPlace, AnswerView
    from evalstore.results.answer.judgements import JudgementView
    from evalstore.results.answer.verdict_explanation import VerdictExplanation


def print_answer(view: AnswerView, explanation: VerdictExplanation | None = None) -> None:
    """Print an answer; with `-v` also the reasoning of judges and earlier instructions.

    With an explanation: where the answer differs from what was expected, and since when.
    """
    now = time.time_ns() // 1000
    columns = output.table_width()
    when = output.ago(view.facts.started, now) if view.facts else ""
    kind = output.paint("session" if view.id else "case", "pending")
    model = view.model or (explanation.result.model if explanation else "")
    name = f"{kind} {output.short(view.id)}" if view.id else kind
    output.line(f"{name}  {output.safe(model)}  {when}".rstrip())
    several = len(view.places) > 1
    if explanation and not several:
        print_lines([explained_place(explanation)], columns)
    else:
        print_lines((_place(place, with_verdict=several) for place in view.places), columns)
    if explanation and explanation.run and explanation.edit:
        output.line(f"as in run {output.short(explanation.run)}, {explanation.edit}")
    is_judged = any(shown_place.is_judged for shown_place in view.places)
    print_lines(missing_lines(view, is_judged=is_judged), columns)
    own, others = own_judgements(view), [*other_judgements(view)]
    _print_judgements(view, own, now)
    print_lines(note_lines(view), columns)
    if explanation and explanation.planned:
        print_lines(text_lines(explanation.planned.text, "pending"), columns)
    if explanation:
        print_verdict_explanation(explanation)
    output.line()
    current, earlier = criteria(view)
    for block in conversation(view):
        print_block(block, columns=columns)
    if view.together:
        output.line(output.paint("judged together:", bold=True))
        print_lines(together_lines(view), columns)
    has_failed = explanation is not None and explanation.result.verdict not in ("pass", None)
    has_reasoning = output.verbose or has_failed
    for block in (*current, *(reasoning(own) if has_reasoning else ())):
        print_block(block, columns=columns)
    if explanation:
        print_other_results(explanation)
    for title, judgements in others:
        output.line(output.paint(f"{title}:", bold=True))
        _print_judgements(view, judgements, now, indent=4)
    earlier += [block for _, judgements in others for block in reasoning(judgements)]
    for block in earlier if output.verbose else ():
        print_block(block, columns=columns)
    output.line()
    print_lines(footer_lines(view, now), columns)


def _print_judgements(
    view: AnswerView, judgements: Iterable[JudgementView], now: int, indent: int = 0
) -> None:
    for judgement in judgements:
        row = view.rows.get(judgement.id, "")
        lines = judgement_lines(judgement, now, signs={}, row=row)
        shown = (line._replace(indent=line.indent + indent) for line in lines)
        print_lines(shown, output.table_width())


def print_verdict_explanation(explanation: VerdictExplanation) -> None:
    """Print where an answer differs from what was expected, and since when."""
    for title, lines in explanation_sections(explanation, time.time_ns() // 1000, {}):
        output.line(output.paint(f"{title}:", bold=True))
        print_lines(lines, output.table_width())


def print_other_results(explanation: VerdictExplanation) -> None:
    """Print the results of other candidates and system prompts, if there are any."""
    if others := list(other_lines(explanation, {})):
        output.line(output.paint(f"{OTHERS}:", bold=True))
        print_lines(others, output.table_width())


def _place(place: AnswerPlace, *, with_verdict: bool) -> StyledLine:
    """Return the place of a case, with the name of its system prompt when it has several."""
    name = case_name(place.file, place.row, place.prompt)
    verdict = (StyledSpan(f"  {place.word}", place.word),) if with_verdict else ()
    return StyledLine((StyledSpan(output.safe(name)), *verdict))
