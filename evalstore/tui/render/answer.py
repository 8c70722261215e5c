"""An answer as lines to read: its verdicts, the conversation, what it was judged by, its facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstore.display import clip, money, safe, short
from evalstore.reports.word_diff import words_apart
from evalstore.tui.render.pair import MIN_SHARED, question_lines
from evalstore.tui.render.verdicts import verdict_cell, when
from evalstore.tui.widgets.text_view import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    marked_spans,
    text_lines,
)
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from evalstore.operations.views.answer import AnswerView, SessionFacts, TurnView
    from evalstore.operations.views.cases import CaseRow
    from evalstore.operations.views.judgements import JudgementView
    from evalstore.reports.word_diff import Pieces
    from evalstore.results import Result

_INDENT = 2
_SHOWN = 120
"""Characters of an answer that others are judged together with."""


def place_lines(case: CaseRow, result: Result, attempt: int) -> Iterator[StyledLine]:
    """The case, and the verdict on a candidate; `attempt` is the number of the answer, from 0."""
    parts = [case.file, case.row, f"({case.prompt})" if case.prompt else "", *case.tags]
    yield heading("  ".join(part for part in parts if part))
    cell = verdict_cell(result.word)
    yield StyledLine(
        (
            StyledSpan(f"{cell.text}  ", cell.colour),
            StyledSpan(safe(result.model)),
            StyledSpan(
                safe("".join(f"  {fact}" for fact in result_facts(result, attempt))), "faint"
            ),
        )
    )


def result_facts(result: Result, attempt: int) -> list[str]:
    """The score, and which of several answers this is."""
    facts = [] if result.score is None else [f"score {result.score:g}"]
    if result.wanted > 1 or len(result.sessions) > 1:
        have = len(result.sessions)
        facts.append(f"answer {attempt + 1} of {have}" if have else "no answer")
        facts += [f"{result.wanted} wanted"] if have < result.wanted else []
    return facts


def answer_lines(view: AnswerView) -> Iterator[StyledLine]:
    """All of an answer but the verdicts."""
    yield from _conversation(view)
    yield from _criteria(view)
    for judgement in view.opinions:
        if judgement.reasoning:
            yield BLANK
            yield heading(f"reasoning of {judgement.by}")
            yield from text_lines(judgement.reasoning, "faint", _INDENT)
    if view.together:
        yield BLANK
        yield heading("judged together")
        for number, (id, answer) in enumerate(view.together, 1):
            mark = "▸" if id == view.id else " "
            text = clip(answer[: 4 * _SHOWN], _SHOWN)
            yield StyledLine(
                (
                    StyledSpan(f"{mark} {number}  "),
                    StyledSpan(f"{short(id)}  ", "faint"),
                    StyledSpan(text),
                ),
                2,
            )
    yield BLANK
    for text in (*view.offered, *(_facts(view.facts) if view.facts else ())):
        yield from text_lines(text, "faint")
    ids = ", ".join(f"{kind} {short(id)}" for kind, id in view.ids)
    yield from text_lines(ids, "faint")


def verdict_lines(view: AnswerView, result: Result, hint: str) -> Iterator[StyledLine]:
    """The judgements on an answer; a `hint` when the answer or a judgement is missing."""
    missing = ""
    if view.id is None:
        missing = "There is no answer yet."
    elif result.evaluation and not any(not judgement.why_not for judgement in view.opinions):
        missing = "It is not judged yet."
    if missing:
        yield BLANK
        yield from text_lines(missing, "pending")
        for text in view.failures:
            yield from text_lines(f"The call failed: {text}", "error", _INDENT)
        yield from text_lines(hint, "faint")
    elif not result.evaluation:
        yield from text_lines("Nothing judges it: it has no instructions and no checks.", "faint")
    for judgement in view.opinions:
        yield from _judgement(judgement)


def _judgement(judgement: JudgementView) -> Iterator[StyledLine]:
    cell = verdict_cell(judgement.verdict)
    facts = [] if judgement.score is None else [f"score {judgement.score:g}"]
    facts += [f"choice {judgement.label}"] if judgement.label else []
    marks = [when(judgement.started), short(judgement.id)]
    marks += [f"{len(judgement.sessions)} judged together"] if len(judgement.sessions) > 1 else []
    person = " (a person)" if judgement.is_person else ""
    yield BLANK
    yield StyledLine(
        (
            StyledSpan(f"{cell.text}  ", cell.colour),
            StyledSpan(safe(f"by {judgement.by}{person}" + "".join(f"  {fact}" for fact in facts))),
            StyledSpan(f"  ({judgement.why_not})" if judgement.why_not else "", "pending"),
            StyledSpan(safe("".join(f"  {mark}" for mark in marks)), "faint"),
        )
    )
    for check in judgement.checks:
        check_cell = verdict_cell(check.verdict) if check.verdict else None
        text = check.feedback or check.name
        if not text.startswith(check.name):
            text = f"{check.name}: {text}"
        for number, line in enumerate(text_lines(text)):
            sign = (
                (StyledSpan(f"{check_cell.text}  ", check_cell.colour),)
                if check_cell and not number
                else ()
            )
            yield StyledLine((*sign, *line.spans), 2 * _INDENT)
    if judgement.feedback and not any(check.feedback for check in judgement.checks):
        yield from text_lines(judgement.feedback, indent=_INDENT)


def _conversation(view: AnswerView) -> Iterator[StyledLine]:
    if not view.said:
        yield BLANK
        yield from text_lines("What was asked is not in the store.", "faint")
    for turn in view.said:
        yield BLANK
        if turn.answer is None:
            yield heading(turn_title(turn, view))
            yield from text_lines(turn.text, indent=_INDENT)
            continue
        yield heading(f"▌ {turn_title(turn, view)}")
        if turn.answer:
            yield from text_lines(turn.text, indent=_INDENT)
        else:
            yield from text_lines("(filled by the candidate)", "faint", _INDENT)


def turn_title(turn: TurnView, view: AnswerView) -> str:
    """The role of a turn, or the number of the candidate's answer."""
    if turn.answer is None:
        return f"{turn.role} {turn.name}".rstrip()
    answers = sum(1 for other in view.said if other.answer)
    which = f"answer {turn.answer} of {answers}" if answers > 1 else "answer"
    return which if turn.answer else "assistant"


def _criteria(view: AnswerView) -> Iterator[StyledLine]:
    """The instructions and checks of evaluators, those of the case first."""
    from evalstore.operations.views.judgements import EARLIER  # not before an answer is read

    earlier = {judgement.evaluation for judgement in view.opinions if judgement.why_not == EARLIER}
    for number, (id, criteria) in enumerate(view.told.items()):
        order = "before" if id in earlier else "after"
        which = f" {order} an edit ({short(id)})" if number else ""
        if criteria.instructions:
            yield BLANK
            yield heading(f"instructions{which}")
            yield from text_lines(criteria.instructions, "faint" if number else "", _INDENT)
        if criteria.checks:
            yield BLANK
            yield heading(f"checks{which}")
            for check in criteria.checks:
                yield from text_lines(check, "faint" if number else "", _INDENT)


def _facts(facts: SessionFacts) -> Iterator[str]:
    tokens = ""
    if facts.input_tokens is not None or facts.output_tokens is not None:
        tokens = f"{facts.input_tokens or 0:,} in + {facts.output_tokens or 0:,} out tokens"
        inner = [f"{facts.cached_tokens:,} cached"] if facts.cached_tokens else []
        inner += [f"{facts.reasoning_tokens:,} reasoning"] if facts.reasoning_tokens else []
        tokens += f" ({', '.join(inner)})" if inner else ""
    facts_shown = (
        facts.origin if facts.origin == RECORDED else money(facts.cost),
        tokens,
        f"{facts.latency:.4g} s" if facts.latency else "",
        "" if facts.temperature is None else f"temperature {facts.temperature:g}",
        "" if facts.seed is None else f"seed {facts.seed}",
        f"finish reason {facts.finish_reason}" if facts.finish_reason else "",
        f"cut off at {facts.cut_at:,} tokens" if facts.cut_at else "",
        ", ".join(facts.resolved),
        when(facts.started),
        f"from {facts.origin}" if facts.origin not in ("run", RECORDED) else "",
    )
    yield ", ".join(fact for fact in facts_shown if fact)


# --- two answers side by side


def compared_lines(
    first: AnswerView, second: AnswerView
) -> tuple[list[StyledLine], list[StyledLine]]:
    """Two answers below the question, with the words marked that the other one does not have."""
    differences = words_apart(first.answer, second.answer)
    note = "" if differences else "(too long for a comparison word by word)"
    if differences and first.answer and second.answer:
        same = sum(
            len(piece.text) for line in differences[0] for piece in line if not piece.differs
        )
        if same < MIN_SHARED * max(len(first.answer), len(second.answer)):
            note = "(too different for a comparison word by word)"
    sides: list[list[StyledLine]] = []
    for number, view in enumerate((first, second)):
        users = [turn.text for turn in view.said if turn.role == "user" and turn.answer is None]
        lines = [*question_lines(users[-1] if users else ""), BLANK]
        if view.id is None:
            lines += text_lines("There is no answer yet.", "pending")
        elif note or not differences or None in (first.id, second.id):
            lines += [*(text_lines(note, "faint") if note else ()), *text_lines(view.answer)]
        else:
            lines += [_piece_line(pieces, ("old", "new")[number]) for pieces in differences[number]]
        for judgement in view.opinions:
            if not judgement.why_not:
                lines += _judgement(judgement)
        sides.append(lines)
    return sides[0], sides[1]


def _piece_line(pieces: Pieces, colour: str) -> StyledLine:
    spans: list[StyledSpan] = []
    for piece in pieces:
        text = safe(piece.text, lines=True).expandtabs(4)
        spans += marked_spans(text, colour) if piece.differs else [StyledSpan(text)]
    return StyledLine(tuple(spans))
