"""Columns of results hold whatever a store may hold."""

from __future__ import annotations

from evalstore.comparison.comparison import change_of_tests
from tests.comparison.test_comparison import compare, result


def test_the_largest_number_of_answers_that_a_store_has_is_compared() -> None:
    most = 2**63 - 1
    was, now = result(), result(required_answers=most)
    assert [*compare([was], [now]).attempts()] == [(1, most)]
    assert change_of_tests(was, now) == [f"attempts 1 -> {most}"]
