"""Checks by a regular expression."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.checks.parser import read_check
from evalstore.checks.types.text import matches_all
from evalstore.core.errors import FileProblem
from tests.checks.checking import judged, verdict


@pytest.mark.parametrize(
    ("settings", "passing", "failing"),
    [
        ({"pattern": "b+"}, "abba", "aa"),
        ({"pattern": "b", "method": "match"}, "ba", "ab"),
        ({"pattern": "b|ba", "method": "fullmatch"}, "ba", "bab"),
        ({"pattern": "PARIS", "flags": "ignoreCase"}, "Paris", "Lyon"),
        ({"pattern": "PARIS", "ignoreCase": True}, "Paris", "Lyon"),
        ({"pattern": "Paris$", "ignoreCase": True, "normalize": "trim"}, "paris \n", "paris ."),
        ({"pattern": "^[A-Z]aris", "normalize": "squad"}, "The Paris", "A 4aris"),
        ({"pattern": "^b$", "flags": "multiline"}, "a\nb", "a\nab"),
        ({"pattern": "a.b", "flags": "dotAll"}, "a\nb", "ab"),
        ({"pattern": "a b # c", "flags": "verbose"}, "ab", "a b"),
        ({"pattern": r"^\w$", "flags": "ascii"}, "e", "é"),
    ],
    ids=str,
)
def test_a_pattern_is_found_or_not(settings: dict[str, Any], passing: str, failing: str) -> None:
    check = {"type": "regex", **settings}
    assert (verdict(check, passing), verdict(check, failing)) == ("pass", "fail")


def test_a_pattern_that_would_take_forever_is_an_error() -> None:
    pattern = "(.*)" * 7 + "[^a]$"
    assert judged({"regex": pattern}, "a" * 3_000) == (
        "error",
        f"the check failed: the pattern '{pattern}' timed out after 1 second on "
        "3,000 characters: it tries too many ways to match",
    )


def test_a_pattern_that_is_too_deep_is_a_problem() -> None:
    with pytest.raises(FileProblem, match="is not a regular expression"):
        read_check({"regex": "(" * 5_000 + ")" * 5_000})


@pytest.mark.parametrize(
    ("pattern", "so"), [("a*", True), ("", True), ("a|", True), ("a+", False), (r"\bx?", False)]
)
def test_a_pattern_that_is_found_in_every_text_is_known(pattern: str, so: bool) -> None:
    assert matches_all({"type": "regex", "pattern": pattern}) is so
