"""Numbers of several answers that go one way."""

from __future__ import annotations

import pytest

from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply


def verdict(*answers: str, **settings: Json) -> str:
    check = read_check({"type": "monotonic", "scope": "case", **settings})
    held = [HeldConversation((Reply(answer),)) for answer in answers]
    return judge_by_checks([check], held, {}).verdict


@pytest.mark.parametrize(
    ("by", "expected"),
    [([1, 2, 3], "fail"), ([2, 1, 3], "pass"), (["20", "1e1", 30.5], "pass")],
)
def test_answers_are_taken_in_the_order_of_other_numbers(by: list[Json], expected: str) -> None:
    assert verdict("2", "1", "3", by=by) == expected


def test_null_leaves_an_answer_out_of_the_order() -> None:
    assert verdict("1", "99", "2", by=[1, None, 2]) == "pass"


def test_a_pattern_says_which_number_counts() -> None:
    assert verdict("[1] of 9", "[2] of 5", pattern=r"\[(\d)\]", strict=True) == "pass"


@pytest.mark.parametrize("answer", ["none", "[x]"])
def test_an_answer_without_what_the_pattern_finds_fails(answer: str) -> None:
    assert verdict("[1]", answer, pattern=r"\[(.)\]") == "fail"


def test_other_numbers_than_answers_are_an_error() -> None:
    assert verdict("1", "2", by=[1]) == "error"


@pytest.mark.parametrize(
    "settings", [{"by": []}, {"by": ["x"]}, {"by": [True]}, {"by": 3}, {"pattern": "("}]
)
def test_an_invalid_order_or_pattern_is_reported(settings: dict[str, Json]) -> None:
    with pytest.raises(FileProblem):
        read_check({"type": "monotonic", "scope": "case", **settings})
