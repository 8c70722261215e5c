"""Checks of several answers at once."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply


def judged(check: Json, *answers: str | None, scope: str = "group") -> tuple[str, str]:
    """The verdict on one conversation for each answer, and the feedback."""
    held = [HeldConversation((Reply(answer),)) for answer in answers]
    verdict = judge_by_checks([read_check({**check, "scope": scope})], held, {})
    return verdict.verdict, verdict.feedback


def of_scores(*scores: str) -> list[str]:
    return [f'{{"score": {score}}}' for score in scores]


# --- allEqual -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "answers", "verdict"),
    [
        ({}, ["a"], "pass"),
        ({}, ["a", "a", "a"], "pass"),
        ({}, ["a", "a", "b"], "fail"),
        ({}, ["a", "A"], "fail"),
        ({"ignoreCase": True}, ["a", "A"], "pass"),
        ({}, ["a", " a"], "fail"),
        ({"normalize": ["trim"]}, ["a", " a\n"], "pass"),
        ({}, ["", None], "pass"),
        ({"not": True}, ["a", "b"], "pass"),
        ({"not": True}, ["a", "a"], "fail"),
    ],
)
def test_all_equal(settings: dict[str, Any], answers: list[str], verdict: str) -> None:
    assert judged({"allEqual": None, **settings}, *answers)[0] == verdict


def test_all_equal_says_which_answer_differs() -> None:
    words = "expected equal answers: answer 1 is 'a', answer 3 is 'b'"
    assert judged({"allEqual": None}, "a", "a", "b") == ("fail", words)
    words = "expected equal answers: answer 1 is 'A', answer 2 is 'B'"
    assert judged({"allEqual": None, "ignoreCase": True}, "A", " B ")[1] == words.replace(
        "B", " B "
    )


def test_all_turns_of_one_conversation_are_compared() -> None:
    held = HeldConversation((Reply("a"), Reply("b")))
    check = read_check({"allEqual": None, "scope": "case"})
    assert judge_by_checks([check], [held], {}).verdict == "fail"


# --- allSame ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "answers", "verdict"),
    [
        ({}, of_scores("1", "1"), "pass"),
        ({}, of_scores("1", "1.0"), "pass"),
        ({}, of_scores("1", "2"), "fail"),
        ({}, of_scores('"a"', '"a"'), "pass"),
        ({}, of_scores("null", "null"), "pass"),
        ({}, of_scores("[1, 2]", "[1, 2]"), "pass"),
        ({"max": 1}, of_scores("1", "2", "1.5"), "pass"),
        ({"max": 1}, of_scores("1", "2.01"), "fail"),
        ({"max": 0.1}, of_scores("0.1", "0.2"), "pass"),
        ({"max": 1}, of_scores('"1"', '" 2 "'), "pass"),
        ({"max": 0}, of_scores("true", "1"), "pass"),
        ({"max": 1}, of_scores('"high"', '"high"'), "pass"),
        ({"max": 0}, of_scores("null", "null"), "pass"),
        ({"max": 0}, of_scores("[1]", "[1]"), "pass"),
        ({"max": 1, "not": True}, of_scores('"high"', '"high"'), "fail"),
        ({"max": 1}, of_scores('"high"', '"low"'), "error"),
        ({"max": 1}, of_scores('"high"', "1"), "error"),
        ({}, ['Here: {"score": 1}.', '```json\n{"score": 1, "more": 2}\n```'], "pass"),
        ({}, ['{a} {"score": 1}', '{"score": 1}'], "pass"),
    ],
)
def test_all_same(settings: dict[str, Any], answers: list[str], verdict: str) -> None:
    assert judged({"allSame": "score", **settings}, *answers)[0] == verdict


@pytest.mark.parametrize(
    ("settings", "answer", "message"),
    [
        ({}, "a", "answer 2 holds no JSON object: 'a'"),
        ({}, "", "answer 2 holds no JSON object: ''"),
        ({}, "[1]", "answer 2 holds no JSON object: '[1]'"),
        ({}, "{" * 3_000, "answer 2 holds no JSON object"),
        ({}, '{"value": 1}', "answer 2 has no 'score'"),
        ({"max": 1}, '{"score": "many"}', "answer 2 has many, which is not a number"),
        ({"max": 1}, '{"score": null}', "answer 2 has null, which is not a number"),
        ({"max": 1}, '{"score": NaN}', "answer 2 holds no JSON object"),
        ({"max": 1}, '{"score": [1]}', "which is not a number"),
    ],
)
def test_an_answer_without_a_value_is_an_error(
    settings: dict[str, Any], answer: str, message: str
) -> None:
    verdict, feedback = judged({"allSame": "score", **settings}, '{"score": 1}', answer)
    assert verdict == "error"
    assert message in feedback


def test_all_same_says_which_answers_differ() -> None:
    words = "expected 'score' to differ by at most 1: answer 2 has 1, answer 1 has 3"
    answers = of_scores("3", "1", "2")
    assert judged({"allSame": "score", "max": 1}, *answers) == ("fail", words)


# --- monotonic ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "answers", "verdict"),
    [
        ({"monotonic": "increasing"}, ["1", "1", "2"], "pass"),
        ({"monotonic": "increasing", "strict": True}, ["1", "1"], "fail"),
        ({"monotonic": "increasing"}, ["2", "1"], "fail"),
        ({"monotonic": "decreasing"}, ["2", "1", "-1.5"], "pass"),
        ({"monotonic": "decreasing"}, ["1", "2"], "fail"),
        ({"monotonic": "increasing"}, ["9 of 10", "1 of 11"], "pass"),
        ({"monotonic": "increasing", "commas": True}, ["999", "1,000"], "pass"),
        ({"monotonic": "increasing", "pattern": "^[0-9]+"}, ["9 of 10", "1 of 11"], "fail"),
        ({"monotonic": "increasing", "pattern": "n=([0-9]+)"}, ["n=1 9", "n=2 3"], "pass"),
        ({"monotonic": "increasing", "pattern": "n=([0-9]+)"}, ["n=1", "none"], "fail"),
        ({"monotonic": "increasing", "by": [2, 1]}, ["2", "1"], "pass"),
        ({"monotonic": "increasing", "by": ["2", "10", None]}, ["1", "2", "0"], "pass"),
        ({"monotonic": "increasing"}, ["1"], "pass"),
    ],
)
def test_monotonic(settings: dict[str, Any], answers: list[str], verdict: str) -> None:
    assert judged(settings, *answers)[0] == verdict


@pytest.mark.parametrize(
    ("settings", "answer", "message"),
    [
        ({}, "none", "answer 2 holds no number: 'none'"),
        ({"by": [1]}, "2", "'by' has 1 numbers, there are 2 answers"),
    ],
)
def test_monotonic_cannot_always_be_computed(
    settings: dict[str, Any], answer: str, message: str
) -> None:
    verdict, feedback = judged({"monotonic": "increasing", **settings}, "1", answer)
    assert verdict == "error"
    assert message in feedback


def test_monotonic_says_where_it_breaks() -> None:
    words = "expected increasing numbers: 3 of answer 1 is followed by 2 of answer 3"
    verdict = judged({"monotonic": "increasing", "by": [1, 3, 2]}, "3", "5", "2")
    assert verdict == ("fail", words)


# --- settings -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"allEqual": None}, "needs a 'scope'"),
        ({"allEqual": None, "scope": "answer"}, "needs a 'scope'"),
        ({"allSame": "", "scope": "case"}, "empty 'key'"),
        ({"allSame": None, "scope": "case"}, "needs 'key'"),
        ({"allSame": "a", "max": -1, "scope": "case"}, "'max' must be a number of at least 0"),
        ({"allSame": "a", "max": float("inf"), "scope": "case"}, "'max' must be a number"),
        ({"monotonic": "sideways", "scope": "case"}, "'order' cannot be 'sideways'"),
        ({"monotonic": "increasing", "pattern": "(", "scope": "case"}, "not a regular expression"),
        ({"monotonic": "increasing", "by": "1", "scope": "case"}, "'by' must be a list"),
        ({"monotonic": "increasing", "by": ["x"], "scope": "case"}, "'x', which is not a number"),
        ({"monotonic": "increasing", "by": [True], "scope": "case"}, "which is not a number"),
        ({"allEqual": None, "scope": "all"}, "'scope' cannot be 'all'"),
    ],
)
def test_wrong_settings_are_reported(check: Json, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        read_check(check)
