"""The page of an answer: what the browser shows, in the way of the command line."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING

from evalstore.cli import output
from evalstore.cli.render.lines import print_block, print_lines
from evalstore.operations.views.answer_text import (
    conversation,
    criteria,
    footer_lines,
    judgement_lines,
    missing_lines,
    reasoning,
    together_lines,
)
from evalstore.operations.views.case_name import case_name
from evalstore.operations.views.styled_text import StyledLine, StyledSpan

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerPlace, AnswerView


def print_answer(view: AnswerView) -> None:
    """An answer; with `-v` also the reasoning of judges, and what was edited since."""
    now = time.time_ns() // 1000
    when = output.ago(view.facts.started, now) if view.facts else ""
    kind = output.paint("session", "pending")
    output.line(f"{kind} {output.short(view.id or '')}  {output.safe(view.model)}  {when}")
    several = len(view.places) > 1
    print_lines(_place(place, with_verdict=several) for place in view.places)
    print_lines(missing_lines(view, is_judged=any(one.is_judged for one in view.places)))
    for judgement in view.opinions:
        row = view.rows.get(judgement.id, "")
        print_lines(judgement_lines(judgement, now, signs={}, row=row))
    output.line()
    told = list(criteria(view))
    first = len([block for block in told if block.colour != "faint"])
    for block in conversation(view):
        print_block(block)
    if view.together:
        output.line(output.paint("judged together:", bold=True))
        print_lines(together_lines(view))
    for block in chain(told, reasoning(view)) if output.verbose else told[:first]:
        print_block(block)
    output.line()
    print_lines(footer_lines(view, now))


def _place(place: AnswerPlace, *, with_verdict: bool) -> StyledLine:
    """A case, with the name of its system prompt when it has several."""
    name = case_name(place.file, place.row, place.prompt)
    verdict = (StyledSpan(f"  {place.word}", place.word),) if with_verdict else ()
    return StyledLine((StyledSpan(output.safe(name)), *verdict))
