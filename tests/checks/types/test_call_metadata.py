"""Checks of the call that brought the answer."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.check_verdict import run_check
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply, Usage

REPLY = Reply("hi", finish_reason="stop", usage=Usage(10, 5), latency=1.5)


def outcome(check: Json, reply: Reply = REPLY, usd: float | None = 0.02) -> CheckOutcome:
    return run_check(read_check(check), CheckInput(reply, reply.text, usd=usd))


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ({"finishReason": "stop"}, "pass"),
        ({"finishReason": ["length", "stop"]}, "pass"),
        ({"finishReason": "length"}, "fail"),
        ({"finishReason": "STOP", "ignoreCase": True}, "pass"),
        ({"latency": 1.5}, "pass"),
        ({"latency": {"max": 1}}, "fail"),
        ({"cost": 0.02}, "pass"),
        ({"cost": 0}, "fail"),
        ({"tokens": 15}, "pass"),
        ({"tokens": 14}, "fail"),
        ({"tokens": {"min": 15}}, "pass"),
        ({"tokens": {"min": 16}}, "fail"),
        ({"tokens": {"max": 10, "of": "input"}}, "pass"),
        ({"tokens": {"max": 9, "of": "input"}}, "fail"),
        ({"tokens": {"min": 5, "max": 5, "of": "output"}}, "pass"),
    ],
)
def test_facts_are_held_against_their_bounds(check: Json, expected: str) -> None:
    assert outcome(check).verdict == expected


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"finishReason": ["a", "b"]}, "expected the finish reason 'a' or 'b', found 'stop'"),
        ({"latency": 1}, "expected at most 1 s, found 1.5 s"),
        ({"cost": 0.001}, "expected at most 0.001 USD, found 0.02"),
        (
            {"tokens": {"min": 1, "max": 2}},
            "expected at least 1 and at most 2 tokens in total, found 15",
        ),
    ],
)
def test_the_feedback_has_the_bound_and_the_fact(check: Json, words: str) -> None:
    assert outcome(check).feedback == words


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"finishReason": "stop"}, "did not report why"),
        ({"cost": 1}, "the cost of the call is unknown"),
        ({"tokens": 1}, "did not report how many tokens"),
        ({"tokens": {"max": 1, "of": "output"}}, "how many output tokens"),
    ],
)
def test_a_fact_that_nobody_knows_is_an_error(check: Json, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        outcome(check, Reply("hi"), usd=None)


def test_one_side_of_the_tokens_is_not_their_total() -> None:
    with pytest.raises(ValueError, match="how many tokens"):
        outcome({"tokens": 100}, Reply("hi", usage=Usage(output_tokens=5)))


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("finishReason", "the check needs 'expected'"),
        ("latency", "the check needs 'max'"),
        ({"latency": -1}, "'max' must be a number of at least 0"),
        ({"cost": float("inf")}, "'max' must be a number of at least 0"),
        ({"cost": "1 USD"}, "'max' must be a number, not '1 USD'"),
        ({"tokens": None}, "the check needs 'min' or 'max'"),
        ({"tokens": {"min": 3, "max": 2}}, "'min' is 3, which is above 'max', 2"),
        ({"tokens": {"max": 2, "of": "ouput"}}, "'of' cannot be 'ouput'"),
        ({"tokens": 1.5}, "must be a whole number"),
    ],
)
def test_a_bound_that_is_wrong_is_a_problem(check: Any, words: str) -> None:
    with pytest.raises(FileProblem) as caught:
        read_check(check)
    assert words in caught.value.message


def test_the_total_is_not_in_the_canonical_form() -> None:
    canonical = {"type": "tokens", "revision": 1, "max": 3}
    assert read_check({"tokens": {"max": 3, "of": "total"}}) == canonical
