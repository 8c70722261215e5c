"""What `status` and `diff` say about changed files, about a plan and about values."""

from __future__ import annotations

import pytest

from evalstore.operations.status_report import FileChange
from evalstore.operations.views.status_text import change_text, value_lines

LONG = "word " * 40


def test_the_reason_follows_the_cases_that_it_is_about() -> None:
    change = FileChange("MM", "tests/a.md", 0, 2, 1, "instructions changed", new=3)
    assert change_text(change) == (
        "3 cases new, 1 case removed, 2 cases judged again: instructions changed"
    )


@pytest.mark.parametrize(
    ("was", "now", "signs"),
    [(LONG, f"{LONG}!", ["-", "+"]), (LONG, None, ["-"]), (None, LONG, ["+"]), ("a", "b", [])],
)
def test_a_value_that_is_new_or_removed_stands_alone(
    was: str | None, now: str | None, signs: list[str]
) -> None:
    lines = value_lines(was, now, width=40)
    assert [line.spans[0].text.split()[0] for line in lines] == signs
