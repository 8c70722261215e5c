"""The texts of verdicts and judgements, rates, times, problems and readings in the browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from evalstore.comparison.statistics import Rate
from evalstore.core.display import (
    BADGE,
    StyledLine,
    StyledSpan,
    ago,
    case_name,
    clip,
    heading,
    plural,
    safe,
    text_lines,
    verdict_span,
)
from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.core.results import Decision, Result
from evalstore.interfaces.tui.render.plot import LAST_RUNS, spark_spans, spark_words
from evalstore.interfaces.tui.widgets.grid_columns import StyledCell
from evalstore.results.labels.labels import LabelIndex, PersonLabel
from evalstore.results.table.case_rows import CaseRow
from evalstore.results.table.cases import Cases
from evalstore.results.verdict_order import PERSON, SIGNS
from evalstore.store.wanted import Reached

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


def rate_text(rate: Rate) -> str:
    """Return `94.1% of 55 (95% interval 90.1 to 96.6%)`; without an interval the counts."""
    if rate.interval is None:
        return f"{rate.passed:,} of {rate.judged:,} passed" if rate.judged else "nothing judged"
    low, high = rate.interval
    return f"{rate.text} of {rate.judged:,} (95% interval {100 * low:.1f} to {100 * high:.1f}%)"


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without the folders that all names with a folder have in common."""
    parts = [name.split("/") for name in names]
    while True:
        folders = [part for part in parts if len(part) > 1]
        if len(folders) < 2 or len({part[0] for part in folders}) > 1:
            break
        parts = [part[1:] if len(part) > 1 else part for part in parts]
    shorter = ["/".join(part) for part in parts]
    return shorter if len({*shorter}) == len({*names}) else list(names)


def when(microseconds: int) -> str:
    """Describe how long ago a time was."""
    return ago(microseconds, time.time_ns() // 1000)


# --- the texts of a page that is being read, and of a problem


READING = "reading …"
"""A part of the title while the page is being read."""
_LISTED = 5
"""Problems of a workspace that are listed."""


def reading_text(reached: Reached) -> str:
    """Return how far a reading has come: `reading … 250,000 of 1,000,000 cases`."""
    total = f" of {reached.total:,}" if reached.total else ""
    return f"{READING} {reached.done:,}{total} {reached.counted}"


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


# --- the judgements on a case: the feedback of judges and the labels of people, by candidate


MOST_OF_FEEDBACK = 160
"""Columns of the feedback on an answer that is one of several, where room is scarce."""
ROOMY_FEEDBACK = 2_000
"""Columns of it where there is room; on the page of the answer there is all."""


def case_judgement_lines(
    cases: Cases,
    case: CaseRow,
    picked: int,
    feedback: Mapping[Decision, str],
    history: Callable[[Result], Sequence[str]] = lambda _result: (),
) -> Iterator[StyledLine]:
    """Yield the judgements on a case, first on the picked candidate.

    `feedback` has the reasons for verdicts; `history` returns the last verdicts of a result.
    """
    yield heading("  ".join((case_name(case.file, case.row, case.prompt), *case.tags)))
    for number in sorted(range(len(case.results)), key=lambda number: number != picked):
        yield from candidate_lines(cases, case, number, feedback, history)


def candidate_lines(
    cases: Cases,
    case: CaseRow,
    number: int,
    feedback: Mapping[Decision, str],
    history: Callable[[Result], Sequence[str]] = lambda _result: (),
    most: int = MOST_OF_FEEDBACK,
) -> Iterator[StyledLine]:
    """Yield the verdict on one candidate with its reasons; nothing when it lacks the case.

    The reasons have at most so many columns. Labels have lines of their own.
    """
    result = case.results[number]
    if result is None:
        return
    cell = result_cell(result, cases.labels)
    yield StyledLine(
        (
            StyledSpan(f"{cell.text}  ", cell.colour),
            StyledSpan(safe(cases.models[number])),
            *history_spans(history(result)),
        )
    )
    labels = cases.labels.of(result)
    is_labelled = any(label.id in result.evaluations for label in labels)
    if not is_labelled and (reasons := feedback.get(result.decision)):
        yield from text_lines(clip(reasons, most), indent=2)
    yield from _label_lines(labels, result)


def history_spans(words: Sequence[str]) -> Iterator[StyledSpan]:
    """Yield the last verdicts as signs and in words, when there are several."""
    if len(words) > 1:
        yield StyledSpan(f"  {LAST_RUNS}: ", "faint")
        yield from spark_spans(words)
        yield StyledSpan(f" {spark_words(words)}", "faint")


def _label_lines(labels: Sequence[PersonLabel], result: Result) -> Iterator[StyledLine]:
    """Yield the labels of people; the same label of several answers once."""
    alike: dict[tuple[str, str, str, bool], list[PersonLabel]] = {}
    for label in labels:
        is_later = label.id not in result.evaluations
        alike.setdefault((label.person, label.verdict, label.note, is_later), []).append(label)
    for (person, word, note, is_later), group in alike.items():
        count = sum(len(label.sessions) for label in group)
        facts = [
            f"label removed by {person}" if word == "none" else f"{word}  by {person}",
            when(max(label.at for label in group)),
            *(["after this run"] if is_later else []),
            *([plural(count, "answer")] if count > 1 else []),
        ]
        text = f"{PERSON} {', '.join(facts)}" + (f": {note}" if note else "")
        yield from text_lines(text, "faint" if word == "none" else word, 2)
