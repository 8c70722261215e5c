"""An answer as lines: its verdicts, the conversation, the criteria and its facts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.comparison.word_diff import compare_side_by_side
from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    TextBlock,
    case_name,
    clip,
    heading,
    marked_spans,
    safe,
    text_lines,
    verdict_span,
)
from evalstore.interfaces.tui.render.documents.markdown_text import render_text
from evalstore.interfaces.tui.render.pair import MIN_SHARED, question_lines
from evalstore.interfaces.tui.render.verdicts import badge_spans, result_cell, short_names
from evalstore.results.answer.answer_text import (
    check_text,
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
from evalstore.results.attempts import failed_text
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.comparison.word_diff import Pieces
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.state.navigation import CaseNavigator
    from evalstore.interfaces.tui.widgets.title_line import TitlePart
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.answer.judgements import Judgement
    from evalstore.results.attempts import MixedAttempts
    from evalstore.results.labels.labels import LabelIndex
    from evalstore.results.table.case_rows import CaseRow

_INDENT = 2
_REASONS = 150
"""Characters of all reasons in one line: two rows of a narrow terminal."""
_LINES = 3
"""Lines of a question and of instructions above two answers."""


def place_lines(
    case: CaseRow,
    result: Result,
    attempt: int,
    labels: LabelIndex,
    mixed: MixedAttempts | None = None,
    gone: str = "",
) -> Iterator[StyledLine]:
    """Yield the case, and the verdict on a candidate; `attempt` is the answer's number, from 0.

    `mixed` are the attempts if they differ, and `gone` says that the files lack the case.
    """
    yield heading("  ".join((case_name(case.file, case.row, case.prompt), *case.tags)))
    cell = result_cell(result, labels)
    facts = result_facts(result, attempt, mixed)
    spans = (
        StyledSpan(cell.text, cell.colour),
        StyledSpan(f"  {safe(result.model)}"),
        StyledSpan(safe("".join(f"  {fact}" for fact in facts)), "faint"),
    )
    yield badge_spans(StyledLine(spans))
    if gone:
        yield from text_lines(gone, "pending")


def attempt_of(view: AnswerView, result: Result) -> int:
    """Return the number of an answer among those of its result, from 0."""
    return result.sessions.index(view.id) if view.id in result.sessions else 0


def result_facts(result: Result, attempt: int, mixed: MixedAttempts | None = None) -> list[str]:
    """Return the score, how many attempts fail, and which of several answers this is."""
    facts = [] if result.score is None else [f"score {result.score:g}"]
    facts += [failed_text(mixed.total - mixed.passed, mixed.total)] if mixed else []
    if result.required_answers > 1 or len(result.sessions) > 1:
        have = len(result.sessions)
        facts.append(f"answer {attempt + 1} of {have}" if have else "no answer")
        facts += [f"{result.required_answers} wanted"] if have < result.required_answers else []
    return facts


def answer_lines(
    view: AnswerView, files: Mapping[str, Sequence[StyledLine]], *, rendered: bool = False
) -> Iterator[StyledLine]:
    """Yield the conversation and how it is judged.

    Answers that are Markdown are `rendered` as such. Below messages are their `files`, images and
    texts: lines by id.
    """
    if not view.conversation:
        yield BLANK
        yield from text_lines("What was asked is not in the store.", "faint")
    current, _ = criteria(view, SIGNS)
    for block in (*conversation(view), *current, *reasoning(own_judgements(view))):
        yield BLANK
        yield from block_lines(block, files, rendered=rendered)
    if view.together:
        yield BLANK
        yield heading("judged together")
        yield from together_lines(view)


def closing_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield what stands last on the page: the other verdicts on the answer, and the facts."""
    _, blocks = criteria(view, SIGNS)
    for title, others in other_judgements(view):
        yield BLANK
        yield heading(title)
        for judgement in others:
            yield from judgement_lines(judgement, _now(), signs=SIGNS)
        blocks += reasoning(others)
    for block in blocks:
        yield BLANK
        yield from block_lines(block, {}, rendered=False)
    yield BLANK
    yield from footer_lines(view, _now())


def block_lines(
    block: TextBlock, files: Mapping[str, Sequence[StyledLine]], *, rendered: bool
) -> Iterator[StyledLine]:
    """Yield a title and the text below it.

    With `rendered` an answer that is Markdown or JSON is laid out, and files are shown.
    """
    title = heading(f"▌ {block.title}" if block.by_candidate else block.title)
    lines: Iterable[StyledLine] = block.lines or text_lines(block.text, block.colour)
    if block.by_candidate and rendered and (text := render_text(block.text)):
        lines = text.lines
        if text.is_markdown:
            title = title._replace(spans=(*title.spans, StyledSpan("  as Markdown", "faint")))
    yield title
    for line in lines:
        yield line._replace(indent=line.indent + _INDENT)
    for id in block.files if rendered else ():
        for line in files.get(id, ()):
            yield line._replace(indent=_INDENT)


def lack_lines(view: AnswerView, result: Result, hint: str) -> Iterator[StyledLine]:
    """Yield what is missing, with a `hint` how to get it, or that nothing judges the answer."""
    if missing := list(missing_lines(view, is_judged=bool(result.evaluation))):
        yield BLANK
        yield from missing
        yield from text_lines(hint, "faint")
    elif not result.evaluation:
        yield from text_lines("Nothing judges it: it has no instructions and no checks.", "faint")


def reason_lines(view: AnswerView) -> Iterator[StyledLine]:
    """Yield in one line what each judge said, of checks the first that did not pass."""
    said = [(each, reason) for each in own_judgements(view) if (reason := _reason(each))]
    spans: list[StyledSpan] = []
    for judgement, reason in said:
        sign = verdict_span(judgement.verdict, SIGNS)
        text = clip(f"{judgement.by}: {' '.join(reason.split())}", _REASONS // len(said))
        spans += [StyledSpan("  ")] * bool(spans)
        spans += [sign._replace(text=f"{sign.text.partition(' ')[0]} "), StyledSpan(safe(text))]
    if spans:
        yield StyledLine(tuple(spans))


def _reason(judgement: Judgement) -> str:
    failed = (check_text(check) for check in judgement.checks if check.verdict != "pass")
    return next(failed, "") or judgement.feedback


def verdict_lines(view: AnswerView, most: int | None = None) -> Iterator[StyledLine]:
    """Yield the verdicts on the case.

    With `most`, each check has one line of at most so many columns.
    """
    for judgement in own_judgements(view):
        yield from _judgement(judgement, most)
    yield from note_lines(view)


def _judgement(judgement: Judgement, most: int | None = None) -> Iterator[StyledLine]:
    yield BLANK
    yield from judgement_lines(judgement, _now(), signs=SIGNS, most=most)


def _now() -> int:
    return time.time_ns() // 1000


# --- two answers side by side


def asked_lines(case: CaseRow, view: AnswerView, gone: str = "") -> Iterator[StyledLine]:
    """Yield what stands above two answers: the case, its question and its instructions."""
    yield heading("  ".join((case_name(case.file, case.row, case.prompt), *case.tags)))
    if gone:
        yield from text_lines(gone, "pending")
    users = [turn.text for turn in view.conversation if turn.role == "user" and not turn.answer]
    yield from question_lines(users[-1] if users else "", _LINES)
    for block in criteria(view, SIGNS)[0]:
        yield from question_lines(block.text, _LINES, f"{block.title}  ")


def compared_lines(
    one: tuple[Result, AnswerView], other: tuple[Result, AnswerView]
) -> tuple[list[StyledLine], list[StyledLine]]:
    """Show two answers, with the words marked that differ, and the verdicts on each."""
    (_, first), (_, second) = one, other
    differences = compare_side_by_side(first.answer, second.answer)
    is_marked = None not in (first.id, second.id)
    if first.answer and second.answer:
        same = sum(
            len(piece.text) for line in differences[0] for piece in line if not piece.differs
        )
        if same < MIN_SHARED * max(len(first.answer), len(second.answer)):
            is_marked = False
    differ = any(piece.differs for lines in differences for line in lines for piece in line)
    sides: list[list[StyledLine]] = []
    for number, (result, view) in enumerate((one, other)):
        lines = [BLANK]
        if view.id is None:
            lines += text_lines("No answer yet.", "pending")
        elif is_marked:
            colour = ("old", "new")[number]
            if differ:
                lines.append(_legend(colour, result.model))
            lines += [_piece_line(pieces, colour) for pieces in differences[number]]
        else:
            lines += text_lines(view.answer)
        for judgement in view.judgements:
            if not judgement.why_not:
                lines += _judgement(judgement)
        lines += note_lines(view)
        sides.append(lines)
    return sides[0], sides[1]


def _legend(colour: str, model: str) -> StyledLine:
    """Return the meaning of the signs around words that differ."""
    meaning = StyledSpan(f" only in the answer of {safe(model)}", "faint")
    return StyledLine((*marked_spans("words", colour), meaning))


def _piece_line(pieces: Pieces, colour: str) -> StyledLine:
    spans: list[StyledSpan] = []
    for piece in pieces:
        text = safe(piece.text, lines=True).expandtabs(4)
        spans += marked_spans(text, colour) if piece.differs else [StyledSpan(text)]
    return StyledLine(tuple(spans))


# --- the title of the page of an answer


def answer_title(navigator: CaseNavigator, progress: str) -> tuple[TitlePart, ...]:
    """Return the parts of the title; with an answer beside another one their candidates first."""
    case, run = navigator.case, navigator.cases.run
    place = _place_texts(navigator)
    models = navigator.cases.models
    short = dict(zip(models, short_names(models), strict=True))
    beside = ""
    if navigator.other:
        beside = " beside ".join(short_names([navigator.model, navigator.other]))
    owner = f"run {run[:8]}" if run else "workspace"
    return (
        "" if beside else owner,
        place,
        progress,
        beside,
        (owner, "") if beside else "",
        case.file,
        case.row,
        case.prompt,
        "" if beside else (navigator.model, short[navigator.model]),
    )


def _place_texts(navigator: CaseNavigator) -> TitlePart:
    """Return which of the listed cases this is, with and without which of its system prompts."""
    (number, count), (prompt, prompts) = navigator.case_number, navigator.prompt_number
    case = f"case {number:,} of {count:,}" if count > 1 else ""
    numbered = f"prompt {prompt} of {prompts}" if prompts > 1 else ""
    return ", ".join(filter(None, (case, numbered))), case
