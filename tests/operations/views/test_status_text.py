"""What `status` says about changed files and about a plan."""

from __future__ import annotations

from evalstore.operations.status_report import FileChange
from evalstore.operations.views.status_text import change_text


def test_the_reason_follows_the_cases_that_it_is_about() -> None:
    change = FileChange("MM", "tests/a.md", 0, 2, 1, "instructions changed", new=3)
    assert change_text(change) == (
        "3 cases new, 1 case removed, 2 cases judged again: instructions changed"
    )
