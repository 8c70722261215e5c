"""What `status` and `diff` say about changed files, about a plan and about values."""

from __future__ import annotations

import pytest

from evalstore.comparison.version_diff import Difference
from evalstore.planning.status_report import FileChange
from evalstore.runs.status.status_text import change_text, edit_lines, value_lines

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
    change = FileChange("MM", "tests/a.md", 0, 2, 1, "recorded answer", was=was, now=now)
    lines = list(value_lines(change, width=40))
    assert [line.spans[0].text.split()[0] for line in lines] == signs
    whole = list(value_lines(change, width=None))
    assert [line.spans[0].text[2:] for line in whole] == [
        " ".join(text.split()) for text in (was, now) if text and signs
    ]


@pytest.mark.parametrize("reason", ["{}", "{} (and 2 more changes)", "{}; also changed: checks"])
@pytest.mark.parametrize(
    ("was", "now", "below"),
    [
        (None, "- Two years.", ["+ - Two years."]),
        ("Two years.", None, ["- Two years."]),
        ("- Two", "- Three", ["- - Two", "+ - Three"]),
        ("Two", "Three", []),
        ("-1", "-2", []),
    ],
)
def test_a_line_of_a_text_that_is_new_or_removed_or_in_a_list_stands_below_its_number(
    was: str | None, now: str | None, below: list[str], reason: str
) -> None:
    edit = Difference("line 4", was, now)
    first, *values = [line.text for line in edit_lines(edit, width=60)]
    assert (first, values) == ("line 4" if below else f"line 4: {was} -> {now}", below)
    change = FileChange("MM", "a.md", 1, 0, 0, reason.format(edit), was=was, now=now)
    assert [line.text for line in value_lines(change, width=60)] == below
