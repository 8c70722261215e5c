"""What was said of a case: the feedback of judges and the labels of people, by candidate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from evalstore.tui.looks import verdict, when
from evalstore.tui.reader import Line, Span, heading, text_lines

if TYPE_CHECKING:
    from evalstore.operations.browsing import CaseRow, Cases


def said_of(
    cases: Cases, case: CaseRow, picked: int, feedback: Mapping[str, str]
) -> Iterator[Line]:
    """Of the picked candidate first; the feedback by the ids of the judgements."""
    tags = f"  {' '.join(case.tags)}" if case.tags else ""
    yield heading(f"{case.file} {case.row}{tags}")
    for number in sorted(range(len(case.results)), key=lambda number: number != picked):
        one = case.results[number]
        if one is None:
            continue
        cell = verdict(one.word)
        yield Line((Span(f"{cell.text}  ", cell.colour), Span(cases.models[number])))
        said = cases.said.of(one)
        ids = [id for id in one.evaluations if id not in {label.id for label in said}]
        for text in dict.fromkeys(feedback[id] for id in ids if feedback.get(id)):
            yield from text_lines(text, indent=2)
        for label in said:
            after = "" if label.id in one.evaluations else ", after this run"
            yield from text_lines(
                f"✎ {label.verdict}  by {label.person}, {when(label.at)}{after}"
                + (f": {label.note}" if label.note else ""),
                label.verdict,
                2,
            )
