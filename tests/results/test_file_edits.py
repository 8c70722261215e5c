"""The edits of test files, by what was edited."""

from __future__ import annotations

import pytest

from evalstore.comparison.version_diff import Difference
from evalstore.results.edits.edits import by_subject

FILE = "tests/a.md"


def test_each_edit_is_told_once_in_the_order_of_the_first() -> None:
    edits = {
        FILE: [Difference("row 2", "a", "b"), Difference("row 1", "a", "b")],
        "tests/b.md": [Difference("row 2", "a", "b")],
    }
    sources = {FILE: ["tests/shared.md"], "tests/b.md": ["tests/shared.md"]}
    assert by_subject(edits, sources) == {"tests/shared.md": edits[FILE]}


def test_very_many_edits_of_a_file_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edits = [Difference(f"row {number}", "a", "b") for number in range(2_000)]
    compared, equal = 0, Difference.__eq__

    def count(own: Difference, other: object) -> bool:
        nonlocal compared
        compared += 1
        return bool(equal(own, other))

    monkeypatch.setattr(Difference, "__eq__", count)
    by_subject({FILE: edits}, {})
    assert compared <= len(edits)
