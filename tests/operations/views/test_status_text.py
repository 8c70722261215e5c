"""Long values of a difference stand below it, each on its own line."""

from __future__ import annotations

import pytest

from evalstore.operations.views.status_text import value_lines

LONG = "word " * 40


@pytest.mark.parametrize(
    ("was", "now", "signs"),
    [(LONG, f"{LONG}!", ["-", "+"]), (LONG, None, ["-"]), (None, LONG, ["+"]), ("a", "b", [])],
)
def test_a_value_that_is_new_or_removed_stands_alone(
    was: str | None, now: str | None, signs: list[str]
) -> None:
    lines = value_lines(was, now, width=40)
    assert [line.spans[0].text.split()[0] for line in lines] == signs
