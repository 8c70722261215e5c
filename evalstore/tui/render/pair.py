"""A pair of results as lines: what changed, the feedback on both, and how the answers differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from evalstore.display import clip, safe
from evalstore.operations.views.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    marked_spans,
    text_lines,
)
from evalstore.reports.version_diff import focus
from evalstore.reports.word_diff import Stretch, compare_words
from evalstore.tui.render.verdicts import verdict_cell

if TYPE_CHECKING:
    from evalstore.operations.diff import Diff
    from evalstore.reports.comparison import Pair
    from evalstore.results import Result

_EDITS = 4
"""Edits of the test file that are shown."""
_WIDTH = 160
"""Characters of a text of an edit."""
MIN_SHARED = 0.3
"""The share of the longer answer that both must have to be shown as one text."""


def answers_to_compare(pair: Pair) -> tuple[str | None, str | None]:
    """The sessions to compare: of several attempts, the first two that are not the same."""
    was = pair.was.sessions if pair.was else ()
    now = pair.now.sessions if pair.now else ()
    for both in zip(was, now, strict=False):
        if both[0] != both[1]:
            return both
    return was[0] if was else None, now[0] if now else None


def pair_lines(
    diff: Diff,
    pair: Pair,
    feedback: Mapping[str, str],
    answers: Mapping[str, str] | None = None,
    question: str = "",
) -> Iterator[StyledLine]:
    """A pair in detail, with the answers and the question when they are known."""
    result = pair.either
    prompt = diff.prompts.get(result.file, {}).get(result.prompt)
    parts = (
        result.file,
        result.row,
        f"({prompt})" if prompt else "",
        "" if diff.models else result.model,
    )
    yield heading("  ".join(part for part in parts if part))
    yield from question_lines(question)
    reason = diff.reason(pair)
    if reason:
        yield StyledLine((StyledSpan(safe(reason), "undecided"),))
        yield from _edits(diff, result.file, reason)
    for name, side in zip(diff.names, (pair.was, pair.now), strict=True):
        if side is not None:
            yield from _side(name, side, feedback)
    if answers is not None:
        yield BLANK
        yield from _answers(pair, answers)


def question_lines(question: str) -> Iterator[StyledLine]:
    """What was asked, in one line."""
    if question:
        text = clip(" ".join(question[: 4 * _WIDTH].split()), _WIDTH)
        yield StyledLine((StyledSpan("user  ", "faint"), StyledSpan(safe(text))))


def _edits(diff: Diff, file: str, reason: str) -> Iterator[StyledLine]:
    """What was edited in the test file, when the case changed with it."""
    edits = diff.edits.get(file, []) if "changed" in reason else []
    for edit in edits[:_EDITS]:
        yield from text_lines(str(edit), "faint", indent=2)
        if not edit.fits:
            old, new = focus(edit.was, edit.now, _WIDTH)
            yield from text_lines(f"- {old}", "old", indent=4)
            yield from text_lines(f"+ {new}", "new", indent=4)
    if len(edits) > _EDITS:
        yield from text_lines(f"… {len(edits) - _EDITS} more edits", "faint", indent=2)


def _side(name: str, side: Result, feedback: Mapping[str, str]) -> Iterator[StyledLine]:
    cell = verdict_cell(side.word)
    score = "" if side.score is None else f"  score {side.score:.2g}"
    yield StyledLine(
        (StyledSpan(f"{cell.text}{score}  ", cell.colour), StyledSpan(safe(name), "faint"))
    )
    for text in dict.fromkeys(feedback[id] for id in side.evaluations if feedback.get(id)):
        yield from text_lines(text, indent=2)


def _answers(pair: Pair, answers: Mapping[str, str]) -> Iterator[StyledLine]:
    was, now = answers_to_compare(pair)
    old = answers.get(was) if was else None
    new = answers.get(now) if now else None
    if old is None and new is None:
        yield from text_lines("no answer", "faint")
    elif old is None or new is None or old == new:
        title = "the same answer" if old == new else "answer"
        yield heading(f"{title}{_number(pair)}")
        yield from text_lines(old or new or "")
    else:
        stretches = compare_words(old, new)
        alike = sum(len(stretch.text) for stretch in stretches if stretch.kind == "same")
        if alike >= MIN_SHARED * max(len(old), len(new)):
            yield heading(f"how the answers differ{_number(pair)}")
            yield from stretch_lines(stretches)
        else:
            for title, text, colour in (("was", old, "old"), ("now", new, "new")):
                yield StyledLine((StyledSpan(f"answer, {title}{_number(pair)}", colour),))
                yield from text_lines(text)


def _number(pair: Pair) -> str:
    """Which of several attempts."""
    result = pair.either
    if len(result.sessions) < 2:
        return ""
    was, now = answers_to_compare(pair)
    session = now if result is pair.now else was
    number = result.sessions.index(session) + 1 if session in result.sessions else 1
    return f" ({number} of {len(result.sessions)})"


def stretch_lines(stretches: Iterable[Stretch]) -> Iterator[StyledLine]:
    """Two texts as one: what is gone and what is new, each in its signs."""
    spans: list[StyledSpan] = []
    for kind, text in stretches:
        for number, part in enumerate(safe(text, lines=True).expandtabs(4).split("\n")):
            if number:
                yield StyledLine(tuple(spans))
                spans = []
            spans += [StyledSpan(part)] if kind == "same" else marked_spans(part, kind)
    yield StyledLine(tuple(spans))
