"""The list of cases."""

from __future__ import annotations

from evalstore.interfaces.tui.case_listing import (
    CaseGroup,
    CaseNavigator,
    count_cases,
    group_cases,
)
from evalstore.results.table.cases import CaseRow, Cases

PLACES = [
    ("a.md", "x", "brief"),
    ("a.md", "x", "long"),
    ("a.md", "y", "brief"),
    ("b.md", "", ""),
]
ROWS = [CaseRow(*place, (), ()) for place in PLACES]


def test_a_case_with_several_system_prompts_is_counted_once() -> None:
    assert count_cases(ROWS) == 3


def test_groups_and_the_title_of_an_answer_count_cases_as_the_list_does() -> None:
    cases = Cases(None, (), ROWS)
    grouped = group_cases(ROWS, "file")
    groups = [line for line in grouped if isinstance(line, CaseGroup)]
    assert [(group.name, group.count) for group in groups] == [("a.md", 2), ("b.md", 1)]
    for places, expected in (((0, 1, 2, 3), (1, 1, 2, 3)), ((0, 2, 3, 1, 2), (1, 2, 3, 1, 2))):
        listed = [ROWS[place] for place in places]
        numbers = [CaseNavigator(cases, listed, n, "").case_number for n in range(len(listed))]
        assert numbers == [(number, 3) for number in expected]
