"""The case under the cursor in short: the last user message, the answer, and the verdicts on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.display import (
    BLANK,
    StyledLine,
    TextBlock,
    plural,
    text_lines,
)
from evalstore.interfaces.tui.render.answer import (
    attempt_of,
    block_lines,
    lack_lines,
    place_lines,
    reason_lines,
    verdict_lines,
)
from evalstore.interfaces.tui.render.judgements import (
    MOST_OF_FEEDBACK,
    ROOMY_FEEDBACK,
    candidate_lines,
    history_spans,
)
from evalstore.interfaces.tui.render.pair import question_lines
from evalstore.results.answer.answer_text import conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalstore.core.results import Decision, Result
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases


class _Most(NamedTuple):
    lines: int
    characters: int


_USER, _ANSWER = _Most(12, 1_500), _Most(300, 10_000)
"""How much of a message and of an answer is shown."""
_BRIEF_LINES = 3
"""Lines of a message in a pane of few lines."""


class ReaderTexts(NamedTuple):
    """What a reader shows, and the same as it is written."""

    lines: Sequence[StyledLine]
    written: Sequence[StyledLine]


def reader_texts(
    cases: Cases,
    case: CaseRow,
    picked: int,
    view: AnswerView,
    feedback: Mapping[Decision, str],
    history: Callable[[Result], Sequence[str]],
    images: Mapping[str, Sequence[StyledLine]],
    hint: str,
    cut_note: str,
    *,
    is_brief: bool = False,
) -> ReaderTexts:
    """Return the texts of a case.

    `feedback` has the reasons for the verdicts on the other candidates, `images` are by their ids;
    `history` returns the last verdicts of a result.

    `hint` says how to get what is missing, `cut_note` how to read all of a text that is cut.
    With `is_brief`, where the verdicts may not be seen below the answer, the reasons are above it,
    and the message of the user has three lines at most.
    """
    result = case.results[picked]
    assert result
    mixed = cases.mixed.get(result.evaluations)
    place = [*place_lines(case, result, attempt_of(view, result), cases.labels, mixed)]
    place += reason_lines(view) if is_brief else ()
    most = MOST_OF_FEEDBACK if is_brief else ROOMY_FEEDBACK
    below = [*lack_lines(view, result, hint), *verdict_lines(view, most)]
    if spans := tuple(history_spans(history(result))):
        below.append(StyledLine(spans))
    for number in range(len(case.results)):
        lines = list(candidate_lines(cases, case, number, feedback, history, most))
        if number != picked and lines:
            below += [BLANK, *lines]

    def exchange(*, rendered: bool) -> Iterator[StyledLine]:
        for block in _exchange(view):
            if is_brief and not block.by_candidate:
                yield from question_lines(block.text, _BRIEF_LINES)
            else:
                yield from _shortened(block, images, cut_note, rendered)

    shown, written = ([*exchange(rendered=rendered)] for rendered in (True, False))
    return ReaderTexts([*place, *shown, *below], [*place, *written, *below])


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
) -> Iterator[StyledLine]:
    """Yield the beginning of a block; a note says how much is left out."""
    most = _ANSWER if block.by_candidate else _USER
    start = "\n".join(block.text[: most.characters].split("\n")[: most.lines])
    yield BLANK
    yield from block_lines(block._replace(text=start), images, rendered=rendered)
    if left := len(block.text) - len(start):
        words = f"… {plural(left, 'more character')}{cut_note}"
        yield from text_lines(words, "faint", 2)
