"""Prints the page of an answer."""

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
    """Print an answer; with `-v` also the reasoning of judges and earlier instructions."""
    now = time.time_ns() // 1000
    when = output.ago(view.facts.started, now) if view.facts else ""
    kind = output.paint("session", "pending")
    output.line(f"{kind} {output.short(view.id or '')}  {output.safe(view.model)}  {when}")
    several = len(view.places) > 1
    print_lines(_place(place, with_verdict=several) for place in view.places)
    print_lines(
        missing_lines(view, is_judged=any(shown_place.is_judged for shown_place in view.places))
    )
    for judgement in view.opinions:
        row = view.rows.get(judgement.id, "")
        print_lines(judgement_lines(judgement, now, signs={}, row=row))
    output.line()
    blocks = list(criteria(view))
    first = len([block for block in blocks if block.colour != "faint"])
    for block in conversation(view):
        print_block(block)
    if view.together:
        output.line(output.paint("judged together:", bold=True))
        print_lines(together_lines(view))
    for block in chain(blocks, reasoning(view)) if output.verbose else blocks[:first]:
        print_block(block)
    output.line()
    print_lines(footer_lines(view, now))


def _place(place: AnswerPlace, *, with_verdict: bool) -> StyledLine:
    """A case, with the name of its system prompt when it has several."""
    name = case_name(place.file, place.row, place.prompt)
    verdict = (StyledSpan(f"  {place.word}", place.word),) if with_verdict else ()
    return StyledLine((StyledSpan(output.safe(name)), *verdict))
