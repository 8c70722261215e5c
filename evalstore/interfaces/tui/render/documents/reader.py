"""The case under the cursor in short: the last user message, the answer, and the verdicts on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.display import plural
from evalstore.core.styled_text import (
    BLANK,
    StyledLine,
    TextBlock,
    text_lines,
)
from evalstore.interfaces.tui.render.answer import (
    attempt_of,
    block_lines,
    lack_lines,
    place_lines,
    verdict_lines,
)
from evalstore.interfaces.tui.render.judgements import (
    MOST_OF_FEEDBACK,
    ROOMY_FEEDBACK,
    candidate_lines,
    history_spans,
)
from evalstore.interfaces.tui.render.pair import question_lines
from evalstore.interfaces.tui.widgets.text_view import wrap_line
from evalstore.results.answer.answer_text import conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.geometry import Size

    from evalstore.core.results import Result
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases


class _Most(NamedTuple):
    lines: int
    characters: int
    rows: int = 0
    """Rows of a wrapped text; 0: as many as there are."""
    width: int = 0


_USER, _ANSWER = _Most(12, 1_500), _Most(300, 10_000)
"""How much of a message and of an answer is shown."""
_BRIEF_LINES = 3
"""Lines of a message in a pane of few lines."""
_FEWEST_ROWS, _REASON_ROWS = 3, 5
"""Rows that an answer has at least, and those of a verdict and its reason that are seen."""


class ReaderTexts(NamedTuple):
    """What a reader shows, and the same as it is written."""

    lines: Sequence[StyledLine]
    written: Sequence[StyledLine]


def reader_texts(
    cases: Cases,
    case: CaseRow,
    picked: int,
    view: AnswerView,
    feedback: Mapping[str, str],
    history: Callable[[Result], Sequence[str]],
    images: Mapping[str, Sequence[StyledLine]],
    hint: str,
    cut_note: str,
    *,
    is_brief: bool = False,
    room: Size | None = None,
) -> ReaderTexts:
    """Return the texts of a case.

    `feedback` on the other candidates is by the ids of judgements, `images` are by their ids;
    `history` returns the last verdicts of a result.

    `hint` says how to get what is missing, `cut_note` how to read all of a text that is cut.
    With `is_brief` the message of the user has three lines at most. An answer that did not pass is
    cut where the reason would not be in the `room`.
    """
    result = case.results[picked]
    assert result
    mixed = cases.mixed.get(result.evaluations)
    place = [*place_lines(case, result, attempt_of(view, result), cases.labels, mixed)]
    blocks = _exchange(view)
    spans = tuple(history_spans(history(result)))
    last_runs = [StyledLine(spans)] if spans else []

    def exchange(most: _Most, *, rendered: bool) -> list[StyledLine]:
        return [
            line
            for block in blocks
            for line in (
                question_lines(block.text, _BRIEF_LINES)
                if is_brief and not block.by_candidate
                else _shortened(block, images, cut_note, rendered, most)
            )
        ]

    def judgements(most: int) -> tuple[list[StyledLine], list[StyledLine]]:
        others: list[StyledLine] = []
        for number in range(len(case.results)):
            lines = list(candidate_lines(cases, case, number, feedback, history, most))
            if number != picked and lines:
                others += [BLANK, *lines]
        return [*lack_lines(view, result, hint), *verdict_lines(view, most)], others

    verdicts, others = whole = judgements(ROOMY_FEEDBACK)
    if room and whole != (cut := judgements(MOST_OF_FEEDBACK)):
        lines = [*place, *exchange(_ANSWER, rendered=False), *verdicts, *last_runs, *others]
        if _count_rows(lines, room.width) > room.height:
            verdicts, others = cut
    most = _ANSWER
    if room and result.word not in ("pass", None):
        used = [*place, *exchange(_ANSWER._replace(lines=0), rendered=False)]
        most = most._replace(rows=_free_rows(room, used, verdicts), width=room.width)

    def texts(*, rendered: bool) -> list[StyledLine]:
        return [*place, *exchange(most, rendered=rendered), *verdicts, *last_runs, *others]

    return ReaderTexts(texts(rendered=True), texts(rendered=False))


def _exchange(view: AnswerView) -> list[TextBlock]:
    """Return the last message of the user and the last answer, as far as there are such."""
    blocks = list(zip(conversation(view), view.conversation, strict=True))
    users = [block for block, turn in blocks if turn.role == "user" and turn.answer is None]
    answers = [block for block, turn in blocks[-1:] if turn.answer]
    return [*users[-1:], *answers]


def _shortened(
    block: TextBlock,
    images: Mapping[str, Sequence[StyledLine]],
    cut_note: str,
    rendered: bool,
    most_of_answer: _Most,
) -> Iterator[StyledLine]:
    """Yield the beginning of a block; a note says how much is left out."""
    most = most_of_answer if block.by_candidate else _USER
    start = "\n".join(block.text[: most.characters].split("\n")[: most.lines])
    if most.rows and _count_rows(text_lines(start), most.width) > most.rows:
        start = _first_rows(start, most.rows - 1, most.width)
    yield BLANK
    yield from block_lines(block._replace(text=start), images, rendered=rendered)
    if left := len(block.text) - len(start):
        words = f"… {plural(left, 'more character')}{cut_note}"
        yield from text_lines(words, "faint", 2)


def _free_rows(room: Size, used: Sequence[StyledLine], verdicts: Sequence[StyledLine]) -> int:
    """Return the rows for an answer beside the `used` lines and the verdict with its reason."""
    reason = min(_count_rows(verdicts, room.width), _REASON_ROWS)
    return max(_FEWEST_ROWS, room.height - _count_rows(used, room.width) - reason)


def _count_rows(lines: Iterable[StyledLine], width: int) -> int:
    return sum(sum(1 for _ in wrap_line(line, width)) for line in lines)


def _first_rows(text: str, rows: int, width: int) -> str:
    """Return the lines of a text that fit into some rows; a line that is longer is cut."""
    kept: list[str] = []
    for line in text.split("\n"):
        needed = _count_rows(text_lines(line), width)
        if needed > rows:
            kept += [line[: rows * width]] if rows else []
            break
        kept.append(line)
        rows -= needed
    return "\n".join(kept)
