"""The texts of the page of an answer: one answer, or two side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import TYPE_CHECKING

from evalstore.core.display import StyledLine, StyledSpan, case_name, plural, safe, short
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.answer import (
    answer_lines,
    asked_lines,
    closing_lines,
    compared_lines,
    lack_lines,
    place_lines,
    reason_lines,
    result_facts,
    verdict_lines,
)
from evalstore.interfaces.tui.render.export import markdown_line
from evalstore.interfaces.tui.render.verdicts import verdict_cell
from evalstore.results.answer.answer_text import (
    conversation,
    criteria,
    judgement_lines,
    note_lines,
    other_judgements,
    own_judgements,
)
from evalstore.results.rendering import LONGEST
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.state.navigation import Position
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.answer.judgements import Judgement
    from evalstore.results.table.case_rows import CaseRow


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """An answer as lines as it is written, and the answer of another candidate beside it."""

    view: AnswerView
    head: Sequence[StyledLine]
    """The case, the verdict, and what is missing."""
    reasons: Sequence[StyledLine] = ()
    """What the judges said, in short."""
    verdicts: Sequence[StyledLine] = ()
    """The verdicts of all judges."""
    written: Sequence[StyledLine] = ()
    """The conversation, and how it is judged, below an empty line."""
    laid_out: Sequence[StyledLine] = ()
    """The same with answers that are Markdown or JSON rendered."""
    closing: Sequence[StyledLine] = ()
    """Verdicts by other instructions or checks, and the facts."""
    other: Sequence[StyledLine] = ()
    explained: Sequence[StyledLine] = ()
    """Where the answer differs from what was expected, and the history; empty until read."""
    asked: Sequence[StyledLine] = ()
    """The question and the instructions of two answers side by side."""
    other_results: Sequence[StyledLine] = ()

    @property
    def lines(self) -> list[StyledLine]:
        """Return the whole page as it is written."""
        return [*self.begin(is_rendered=False), *self.rest]

    def begin(self, *, is_rendered: bool) -> list[StyledLine]:
        """Return the first part: the verdict with its reasons, the conversation, the criteria.

        If it `is_rendered`, answers that are Markdown or JSON are laid out.
        """
        return [*self.head, *self.reasons, *(self.laid_out if is_rendered else self.written)]

    @property
    def rest(self) -> list[StyledLine]:
        """Return the verdicts in full, their history, and the facts."""
        return [*self.verdicts, *self.explained, *self.other_results, *self.closing]

    def with_explanation(self, before: AnswerTexts | None) -> AnswerTexts:
        """Return the texts with the explanation that was shown, until it is read again."""
        if before is None or self.other:
            return self
        return replace(self, explained=before.explained, other_results=before.other_results)

    @property
    def is_rendered(self) -> bool:
        """Return whether something is not shown as it is written."""
        return self.laid_out != self.written

    @property
    def why_not_rendered(self) -> str:
        """Return the reason why an answer is shown as it is written."""
        is_long = len(self.view.answer) > LONGEST
        return f"the answer {'is too long to be rendered' if is_long else 'is not Markdown'}"


def head_lines(position: Position, result: Result) -> Iterator[StyledLine]:
    """Yield the place among cases, the verdict, and whether the files have the case no longer."""
    case, labels = position.case, position.labels
    return place_lines(case, result, position.attempt, labels, position.mixed, position.gone)


def answer_texts(
    position: Position,
    result: Result,
    view: AnswerView,
    files: Mapping[str, Sequence[StyledLine]],
    hint: str,
) -> AnswerTexts:
    """Return one answer; a `hint` when it or a judgement is missing.

    `files` are those of its messages, as lines by id.
    """
    return AnswerTexts(
        view,
        head=[*head_lines(position, result), *lack_lines(view, result, hint)],
        reasons=list(reason_lines(view)),
        verdicts=list(verdict_lines(view)),
        written=list(answer_lines(view, files)),
        laid_out=list(answer_lines(view, files, rendered=True)),
        closing=list(closing_lines(view)),
    )


def compared_texts(
    position: Position, results: tuple[Result, Result], views: tuple[AnswerView, AnswerView]
) -> AnswerTexts:
    """Return the answers of two candidates, with their differences marked."""
    left, right = compared_lines(*zip(results, views, strict=True))
    case, labels = position.case, position.labels
    return AnswerTexts(
        views[0],
        head=[*place_lines(case, results[0], position.attempt, labels)][1:],
        verdicts=left,
        other=[*[*place_lines(case, results[1], position.attempt_beside, labels)][1:], *right],
        asked=list(asked_lines(case, views[0], position.gone)),
    )


# --- text files of a test as lines below the message that has them


_MOST_FILES = 4
"""How many text files of a conversation are shown."""
_MOST_LINES, _MOST_CHARACTERS = 40, 4_000
"""How much of one is shown."""
_EDGE = "│ "


def render_text_files(
    view: AnswerView, read: Callable[[Sequence[str]], Mapping[str, bytes]]
) -> dict[str, list[StyledLine]]:
    """Read the first text files of a conversation as lines by id; none that cannot be read."""
    files = {file.id: file for turn in view.conversation for file in turn.text_files}
    ids = [*files][:_MOST_FILES]
    if not ids:
        return {}
    try:
        contents = read(ids)
    except EvalstoreError:  # it is named all the same
        return {}
    return {id: text_file_lines(files[id].path, data) for id, data in contents.items()}


def text_file_lines(path: str, data: bytes) -> list[StyledLine]:
    """Return the beginning of a file under its path, and how much more of it there is."""
    begin = data[: 4 * _MOST_CHARACTERS].decode("utf-8", "replace")[:_MOST_CHARACTERS]
    listed = begin.splitlines()[:_MOST_LINES]
    lines = [StyledLine((StyledSpan(f"{_EDGE}{safe(path)}", "faint"),))]
    for text in listed:
        spans = StyledSpan(_EDGE, "faint"), StyledSpan(safe(text, lines=True).expandtabs(4))
        lines.append(StyledLine(spans, mark=_EDGE))
    left = len(data) - len("\n".join(listed).encode())
    if left > 1 or len(listed) < len(begin.splitlines()):  # a file may end with the end of a line
        more = StyledSpan(f"{_EDGE}… {plural(left, 'more byte')}", "faint")
        lines.append(StyledLine((more,)))
    return lines


# --- an answer as a file of Markdown: headings for the roles, and below them the texts themselves


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
    for block in (*conversation(view), *criteria(view)[0]):
        text = indent(block.text, " " * 4) if block.lines else block.text  # checks are code
        yield f"## {markdown_line(block.title)}\n\n{safe(text, lines=True)}\n"
    if view.id is None:
        yield "No answer yet.\n"
    for title, others in other_judgements(view):
        yield f"## {title}\n"
        for judgement in others:
            yield from _judgement(judgement)
        yield ""
    if view.id:
        yield f"answer {short(view.id)}"


def _judgement(judgement: Judgement) -> Iterator[str]:
    """Yield a list of what the page shows of a judgement, without its age and its ids."""
    for line in judgement_lines(judgement, 0, signs=SIGNS):
        text = "".join(span.text for span in line.spans if span.colour != "faint")
        yield f"{'  ' if line.indent else ''}- {markdown_line(text)}"
