"""The list of cases."""

from __future__ import annotations

from evalstore.operations.views.cases import CaseRow
from evalstore.tui.state.case_listing import count_cases


def test_a_case_with_several_system_prompts_is_counted_once() -> None:
    places = [
        ("a.md", "x", "brief"),
        ("a.md", "x", "long"),
        ("a.md", "y", "brief"),
        ("b.md", "", ""),
    ]
    assert count_cases([CaseRow(*place, (), ()) for place in places]) == 3
