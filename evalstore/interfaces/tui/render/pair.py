"""A pair of results as lines: the feedback on both, how the answers differ, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.comparison.word_diff import Stretch, compare_words
from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    clip,
    heading,
    marked_spans,
    safe,
    text_lines,
)
from evalstore.interfaces.tui.render.verdicts import badge_spans, history_spans
from evalstore.results.compare.diff_text import pair_line, side_lines
from evalstore.results.edits.change_text import edit_lines
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Pair
    from evalstore.comparison.version_diff import Difference
    from evalstore.core.results import Decision, Result
    from evalstore.results.compare.diff_result import Diff

_USER = "user  "
_EDITS = 4
"""Edits of the case that are shown."""
_WIDTH = 160
"""Characters of a text of an edit."""
MIN_SHARED = 0.3
"""The share of the longer answer that both must have to be shown as one text."""


def pair_lines(
    diff: Diff,
    pair: Pair,
    feedback: Mapping[Decision, str],
    answers: Mapping[str, str] | None = None,
    question: str = "",
    *,
    edits: Sequence[Difference] = (),
    history: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[StyledLine]:
    """Yield a pair in detail: the feedback, the question and the answers when they are known.

    Below them are the `edits` of the case, and `history`, the last verdicts on its candidates.
    """
    yield badge_spans(pair_line(diff, pair, signs=SIGNS))
    yield from side_lines(diff, pair, feedback)
    yield from question_lines(question)
    if answers is not None:
        yield from _answers(diff, pair, answers)
    last: list[StyledLine] = []
    for model, words in (history or {}).items():
        last += history_lines(model if diff.models else "", words)
    edited = [heading("edits")] if edits else []
    for edit in edits[:_EDITS]:
        edited += edit_lines(edit, width=_WIDTH, indent=2)
    if len(edits) > _EDITS:
        edited += text_lines(f"… {len(edits) - _EDITS} more", "faint", indent=2)
    for part in (edited, last):
        if part and answers is not None:
            yield BLANK
        yield from part


def history_lines(candidate: str, words: Sequence[str]) -> Iterator[StyledLine]:
    """Yield the last verdicts on a candidate as signs and in words, when there are several."""
    if len(words) > 1:
        head, *signs = history_spans(words)
        name = f"{safe(candidate)}{head.text}" if candidate else head.text.lstrip()
        yield StyledLine((head._replace(text=name), *signs))


def question_lines(question: str, most: int = 1, title: str = _USER) -> Iterator[StyledLine]:
    """Yield a question behind its title as one line, if there is one, or as at most so many."""
    if not question:
        return
    texts = [question]
    if most > 1:
        texts = [line for line in question[: 4 * most * _WIDTH].split("\n") if line.strip()]
    for number, text in enumerate(texts[:most]):
        line = clip(" ".join(text[: 4 * _WIDTH].split()), _WIDTH)
        cut = " …" if number + 1 == most < len(texts) else ""
        role = StyledSpan("" if number else title, "faint")
        indent = len(title) if number else 0
        yield StyledLine((role, StyledSpan(safe(line)), StyledSpan(cut, "faint")), indent)


def _answers(diff: Diff, pair: Pair, answers: Mapping[str, str]) -> Iterator[StyledLine]:
    """Yield both answers; when they have enough in common, as one text with the differences."""
    models, (was, now) = diff.models, diff.shown_sessions(pair)
    old = answers.get(was) if was else None
    new = answers.get(now) if now else None
    numbers = [_number(pair.was, was), _number(pair.now, now)]
    if old is None and new is None:
        yield from text_lines("no answer", "faint")
    elif old is None or new is None or old == new:
        whose = models[old is None] if models else ""
        title = "the same answer" if old == new else f"answer of {whose}" if whose else "answer"
        yield heading(f"{title}{_numbers(numbers)}")
        yield from text_lines(old or new or "")
    else:
        stretches = compare_words(old, new)
        alike = sum(len(stretch.text) for stretch in stretches if stretch.kind == "same")
        if alike >= MIN_SHARED * max(len(old), len(new)):
            legend = zip(models, ("old", "new"), strict=True) if models else ()
            marks = (span for name, sign in legend for span in marked_spans(safe(name), sign))
            title = f"how the answers differ{_numbers(numbers)}{': ' if models else ''}"
            yield StyledLine((StyledSpan(title, "heading"), *marks))
            yield from stretch_lines(stretches)
        else:
            sides = [f"of {safe(name)}" for name in models] if models else ["before", "after"]
            for side, text, colour, number in zip(
                sides, (old, new), ("old", "new"), numbers, strict=True
            ):
                title = f"answer {side}{_numbers([number])}"
                yield StyledLine((StyledSpan(title, colour),))
                yield from text_lines(text)


def _number(result: Result | None, session: str | None) -> str:
    """Return which of several answers is shown: `2 of 5`; empty when there is one."""
    if result is None or len(result.sessions) < 2 or session not in result.sessions:
        return ""
    return f"{result.sessions.index(session) + 1} of {len(result.sessions)}"


def _numbers(numbers: Iterable[str]) -> str:
    """Return the numbers of the answers of both sides in brackets."""
    known = dict.fromkeys(number for number in numbers if number)
    return f" ({' -> '.join(known)})" if known else ""


def stretch_lines(stretches: Iterable[Stretch]) -> Iterator[StyledLine]:
    """Yield two texts as one, with removed and new words in their signs."""
    spans: list[StyledSpan] = []
    for kind, text in stretches:
        for number, part in enumerate(safe(text, lines=True).expandtabs(4).split("\n")):
            if number:
                yield StyledLine(tuple(spans))
                spans = []
            spans += [StyledSpan(part)] if kind == "same" else marked_spans(part, kind)
    yield StyledLine(tuple(spans))
