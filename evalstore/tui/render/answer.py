"""An answer as lines to read: its verdicts, the conversation, what it was judged by, its facts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.display import safe
from evalstore.operations.views.answer_text import (
    conversation,
    criteria,
    footer_lines,
    judgement_lines,
    missing_lines,
    reasoning,
    together_lines,
)
from evalstore.reports.word_diff import words_apart
from evalstore.tui.render.pair import ALIKE, question_lines
from evalstore.tui.render.verdicts import verdict
from evalstore.tui.state.verdict_order import SIGNS
from evalstore.tui.widgets.text_view import (
    BLANK,
    StyledLine,
    StyledSpan,
    changed,
    heading,
    text_lines,
)

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.cases import CaseRow
    from evalstore.operations.views.judgements import JudgementView
    from evalstore.reports.word_diff import Pieces
    from evalstore.values import Result

_INDENT = 2


def tell_place(case: CaseRow, result: Result, number: int) -> Iterator[StyledLine]:
    """Where the reader is, and what the case came to; `number` is that of the answer, from 0."""
    parts = [case.file, case.row, f"({case.prompt})" if case.prompt else "", *case.tags]
    yield heading("  ".join(part for part in parts if part))
    cell = verdict(result.word)
    yield StyledLine(
        (
            StyledSpan(f"{cell.text}  ", cell.colour),
            StyledSpan(safe(result.model)),
            StyledSpan(safe("".join(f"  {one}" for one in facts_of(result, number))), "faint"),
        )
    )


def facts_of(result: Result, number: int) -> list[str]:
    """The score, and which of several answers this is."""
    facts = [] if result.score is None else [f"score {result.score:g}"]
    if result.wanted > 1 or len(result.sessions) > 1:
        have = len(result.sessions)
        facts.append(f"answer {number + 1} of {have}" if have else "no answer")
        facts += [f"{result.wanted} wanted"] if have < result.wanted else []
    return facts


def tell(view: AnswerView) -> Iterator[StyledLine]:
    """All of an answer but the verdicts."""
    if not view.said:
        yield BLANK
        yield from text_lines("What was asked is not in the store.", "faint")
    for block in (*conversation(view), *criteria(view), *reasoning(view)):
        yield BLANK
        yield heading(f"▌ {block.title}" if block.by_candidate else block.title)
        yield from text_lines(block.text, block.colour, _INDENT)
    if view.together:
        yield BLANK
        yield heading("judged together")
        yield from together_lines(view)
    yield BLANK
    yield from footer_lines(view, _now())


def tell_verdicts(view: AnswerView, result: Result, helps: str) -> Iterator[StyledLine]:
    """What was said of it; of what is missing it is said what `helps`."""
    if missing := list(missing_lines(view, is_judged=bool(result.evaluation))):
        yield BLANK
        yield from missing
        yield from text_lines(helps, "faint")
    elif not result.evaluation:
        yield from text_lines("Nothing judges it: it has no instructions and no checks.", "faint")
    for opinion in view.opinions:
        yield from _opinion(opinion)


def _opinion(judgement: JudgementView) -> Iterator[StyledLine]:
    yield BLANK
    yield from judgement_lines(judgement, _now(), signs=SIGNS)


def _now() -> int:
    return time.time_ns() // 1000


# --- two answers side by side


def tell_beside(one: AnswerView, other: AnswerView) -> tuple[list[StyledLine], list[StyledLine]]:
    """Two answers below the question, with the words marked that the other one does not have."""
    apart = words_apart(one.answer, other.answer)
    note = "" if apart else "(too long to be compared word by word)"
    if apart and one.answer and other.answer:
        same = sum(len(piece.text) for line in apart[0] for piece in line if not piece.differs)
        if same < ALIKE * max(len(one.answer), len(other.answer)):
            note = "(too little in common to be compared word by word)"
    sides: list[list[StyledLine]] = []
    for number, view in enumerate((one, other)):
        users = [said.text for said in view.said if said.role == "user" and said.answer is None]
        lines = [*question_lines(users[-1] if users else ""), BLANK]
        if view.id is None:
            lines += text_lines("There is no answer yet.", "pending")
        elif note or not apart or None in (one.id, other.id):
            lines += [*(text_lines(note, "faint") if note else ()), *text_lines(view.answer)]
        else:
            lines += [_pieces(pieces, ("old", "new")[number]) for pieces in apart[number]]
        for opinion in view.opinions:
            if not opinion.why_not:
                lines += _opinion(opinion)
        sides.append(lines)
    return sides[0], sides[1]


def _pieces(pieces: Pieces, colour: str) -> StyledLine:
    spans: list[StyledSpan] = []
    for piece in pieces:
        text = safe(piece.text, lines=True).expandtabs(4)
        spans += changed(text, colour) if piece.differs else [StyledSpan(text)]
    return StyledLine(tuple(spans))
