"""The judgements on a case: the feedback of judges and the labels of people, by candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    case_name,
    clip,
    heading,
    plural,
    safe,
    text_lines,
)
from evalstore.core.results import Decision, Result
from evalstore.interfaces.tui.render.plot import LAST_RUNS, spark_spans, spark_words
from evalstore.interfaces.tui.render.verdicts import result_cell, when
from evalstore.results.labels.labels import PersonLabel
from evalstore.results.table.case_rows import CaseRow
from evalstore.results.table.cases import Cases
from evalstore.results.verdict_order import PERSON

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
