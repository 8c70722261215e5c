"""The table of cases: its columns, and the cells of a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.tui.render.reading import READING
from evalstore.tui.render.verdicts import verdict_cell
from evalstore.tui.state.case_filter import row_label
from evalstore.tui.state.case_groups import CaseGroup
from evalstore.tui.state.verdict_order import PERSON, SIGNS, verdict_counts
from evalstore.tui.widgets.grid_columns import NEVER, Column
from evalstore.tui.widgets.grid_lines import StyledCell

if TYPE_CHECKING:
    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.results import Result
    from evalstore.tui.state.case_filter import FilteredCases
    from evalstore.tui.state.case_listing import CaseListing
    from evalstore.tui.state.case_query import Query


_SPARSE = 8
"""The width of the column of a candidate that has few of the cases."""


def case_title(
    revision: str | None, listing: CaseListing, query: Query, progress: str
) -> Iterator[str]:
    """The parts of the title: the run, how many cases are listed, and how."""
    yield f"run {revision[:8]}" if revision else "workspace"
    if listing.cases is None or listing.filtered is None:
        yield READING
        return
    total = len(listing.cases.rows)
    part = f"{listing.row_count:,} of " if listing.row_count < total else ""
    yield f"{part}{plural(total, 'case')}"
    yield progress
    yield from (message for message, _ in listing.filtered.complaints(query))
    yield verdict_counts(listing.verdicts)
    yield "" if listing.order == "file" else f"by {listing.order}"


def case_columns(cases: Cases, filtered: FilteredCases, grouping: str) -> list[Column]:
    """The file, the row, and a column for each candidate."""
    labelled = dict.fromkeys(cases.labelled, 14)  # with room for the sign of a person
    models = [
        Column(model, labelled.get(model, _SPARSE), picks=True)
        if model in filtered.sparse_models and len(cases.models) > 1
        else Column(model, max(labelled.get(model, 11), min(18, len(model))), picks=True, least=11)
        for model in cases.models
    ]
    by_file = grouping == "file"  # its name is above
    return [
        Column("file", 9, grows=True, most=filtered.file_width, since=NEVER if by_file else 24),
        Column("row", 8, grows=True, most=filtered.row_width, since=0 if by_file else 35),
        *models,
    ]


def case_cells(cases: Cases, line: CaseRow | CaseGroup, width: int) -> Sequence[StyledCell]:
    """A cell for each column; of a group one cell of the width of the table."""
    if isinstance(line, CaseGroup):
        return (StyledCell(line.text(width), "group"),)
    return (
        StyledCell(line.file),
        StyledCell(row_label(line)),
        *(
            StyledCell("") if result is None else _result_cell(cases, result)
            for result in line.results
        ),
    )


def _result_cell(cases: Cases, result: Result) -> StyledCell:
    """The verdict, with the sign of a person who has decided it or labelled it after the run."""
    cell, labels = verdict_cell(result.word), cases.said
    if word := labels.word(result):
        plain = f"{cell.plain}, labelled {word}"
        return StyledCell(f"{cell.text} {PERSON}{SIGNS[word]}", cell.colour, plain)
    if labels.decides(result):
        return StyledCell(f"{cell.text} {PERSON}", cell.colour, f"{cell.plain}, labelled")
    return cell
