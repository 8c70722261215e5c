"""Verdicts and judgements as text, and pairs of results in detail."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evalstore.comparison.comparison import Pair
from evalstore.comparison.statistics import Rate
from evalstore.comparison.version_diff import Difference, Stretch, compare_words
from evalstore.core.display import (
    BADGE,
    BLANK,
    PERSON,
    SIGNS,
    StyledLine,
    StyledSpan,
    ago,
    clip,
    heading,
    marked_spans,
    safe,
    text_lines,
    verdict_span,
)
from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.core.values import Decision, Result
from evalstore.interfaces.tui.grid import StyledCell
from evalstore.interfaces.tui.render.charts import spark_spans, spark_words
from evalstore.results.compare.diff_result import Diff, pair_line, side_lines
from evalstore.results.labels import LabelIndex
from evalstore.runs.status.status_text import edit_lines

_BADGES = frozenset({"pass", "fail", "error", "undecided"})


def verdict_cell(word: str | None) -> StyledCell:
    """Return a verdict as a cell: its sign, its word and its colour."""
    word = word or "answered"
    span = verdict_span(word, SIGNS)
    return StyledCell(span.text, span.colour, word)


def result_cell(result: Result, labels: LabelIndex, text: str = "") -> StyledCell:
    """Return the verdict, with the sign of a person who decided it or labelled it after the run.

    `text` is added to the verdict.
    """
    cell = verdict_cell(result.word)
    text = f"{cell.text}{text}"
    signs = labels.signs(result)
    if not signs:
        return cell._replace(text=text)
    plain = " ".join([f"{cell.plain}, labelled", *filter(None, (labels.word(result),))])
    return StyledCell(f"{text} {signs}", cell.colour, plain)


def badge_spans(line: StyledLine) -> StyledLine:
    """Return a line with the verdicts in it as badges: filled with their colours."""
    return line._replace(
        spans=tuple(
            span._replace(colour=f"{BADGE}{span.colour}") if span.colour in _BADGES else span
            for span in line.spans
        )
    )


def rate_text(rate: Rate, *, is_of_some: bool = False) -> str:
    """Return `94.1% of 55 (95% interval 90.1 to 96.6%)`; without an interval the counts.

    Those of a run of some cases, too, whose rate would be taken for that of all.
    """
    if is_of_some or rate.interval is None:
        return f"{rate.passed:,} of {rate.judged:,} passed" if rate.judged else "nothing judged"
    low, high = rate.interval
    return f"{rate.text} of {rate.judged:,} (95% interval {100 * low:.1f} to {100 * high:.1f}%)"


def when(microseconds: int) -> str:
    """Describe how long ago a time was."""
    return ago(microseconds, time.time_ns() // 1000)


# --- the texts of a page that is being read, and of a problem


_LISTED = 5
"""Problems of a workspace that are listed."""


def problem_text(problem: EvalstoreError) -> str:
    """Return a problem as the command line shows it."""
    if isinstance(problem, WorkspaceError):
        problems = sorted(problem.problems, key=lambda item: item.severity != "error")
        lines = [
            f"{entry.severity}: {entry.place}: {entry.message}" for entry in problems[:_LISTED]
        ]
        hints = [f"hint: {entry.hint}" for entry in problems[:1] if entry.hint]
        more = len(problems) - _LISTED
        return "\n".join([*lines, *([f"… {more} more"] if more > 0 else []), *hints])
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"error: {problem}{hint}"


# --- the verdict on a candidate beside others


MOST_OF_FEEDBACK = 2_000
"""Columns of the feedback on an answer that is one of several; its page has all of it."""


def candidate_lines(
    result: Result, labels: LabelIndex, reasons: str, last: Sequence[str]
) -> Iterator[StyledLine]:
    """Yield the verdict on a candidate with its reasons, or the labels that it is from.

    Later labels are below them, too. `last` are the last verdicts.
    """
    cell = result_cell(result, labels)
    verdict = StyledSpan(f"{cell.text}  ", cell.colour)
    yield StyledLine((verdict, StyledSpan(safe(result.model)), *history_spans(last)))
    if reasons and not labels.decides(result):
        yield from text_lines(clip(reasons, MOST_OF_FEEDBACK), indent=2)
    for label in labels.of(result):
        is_removed = label.verdict == "none"
        given = "label removed" if is_removed else label.verdict
        text = ": ".join(filter(None, (f"{PERSON} {given} by {label.person}", label.note)))
        yield from text_lines(text, "faint" if is_removed else label.verdict, 2)


def history_spans(words: Sequence[str]) -> Iterator[StyledSpan]:
    """Yield the last verdicts as signs and in words, when there are several."""
    if len(words) > 1:
        yield StyledSpan("  last runs: ", "faint")
        yield from spark_spans(words)
        yield StyledSpan(f" {spark_words(words)}", "faint")


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
    edits: Sequence[Difference] = (),
) -> Iterator[StyledLine]:
    """Yield a pair in detail: the feedback, the question and the answers when they are known.

    Below them are the `edits` of the case.
    """
    yield badge_spans(pair_line(diff, pair, signs=SIGNS))
    yield from side_lines(diff, pair, feedback)
    yield from question_lines(question)
    if answers is not None:
        yield from _answers(diff, pair, answers)
    if edits and answers is not None:
        yield BLANK
    yield from [heading("edits")] if edits else ()
    for edit in edits[:_EDITS]:
        yield from edit_lines(edit, width=_WIDTH, indent=2)
    if len(edits) > _EDITS:
        yield from text_lines(f"… {len(edits) - _EDITS} more", "faint", indent=2)


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
