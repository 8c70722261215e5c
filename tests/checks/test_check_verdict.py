"""What all checks together say of one conversation, or of several."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.checks.base import BLOCK
from evalstore.checks.check_verdict import (
    ChecksVerdict,
    HeldConversation,
    judge_by_checks,
    schemas_of,
)
from evalstore.checks.parser import read_check
from evalstore.core.values import Json, Reply


def judged(checks: list[Json], *answers: str) -> ChecksVerdict:
    held = [HeldConversation((Reply(answer),)) for answer in answers]
    return judge_by_checks([read_check(check) for check in checks], held, {})


def in_block(rule: str, checks: list[Json], *answers: str) -> ChecksVerdict:
    block = {"type": BLOCK, "revision": 1, "pass": rule, "checks": [*map(read_check, checks)]}
    return judge_by_checks([block], [HeldConversation((Reply(answer),)) for answer in answers], {})


BROKEN: Json = {"expr": "1 / 0 == 1"}


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([{"equals": "a"}, {"contains": "a"}], "pass"),
        ([{"equals": "a"}, {"contains": "b"}], "fail"),
        ([{"contains": "b"}, BROKEN], "error"),
        ([BROKEN, {"contains": "b"}], "error"),
    ],
)
def test_all_checks_must_pass_and_an_error_is_worse_than_a_fail(
    checks: list[Json], verdict: str
) -> None:
    assert judged(checks, "a").verdict == verdict


@pytest.mark.parametrize(
    ("rule", "checks", "verdict"),
    [
        ("any", [{"equals": "b"}, {"equals": "a"}], "pass"),
        ("any", [{"equals": "b"}, {"equals": "c"}], "fail"),
        ("any", [BROKEN, {"equals": "a"}], "pass"),
        ("any", [BROKEN, {"equals": "b"}], "error"),
        (">= 0.5", [{"equals": "a"}, {"equals": "b"}], "pass"),
        (">= 0.6", [{"equals": "a"}, {"equals": "b"}], "fail"),
        (">= 0.75", [{"equals": "a", "weight": 3}, {"equals": "b"}], "pass"),
        (">= 0.5", [{"equals": "a"}, BROKEN], "error"),
        (">= 0", [{"equals": "b"}], "pass"),
    ],
)
def test_not_all_of_a_block_must_pass(rule: str, checks: list[Json], verdict: str) -> None:
    assert in_block(rule, checks, "a").verdict == verdict


@pytest.mark.parametrize(
    ("answers", "verdict", "words"),
    [
        (("a", "a"), "pass", ""),
        (("a", "b"), "fail", "answer 2 of 2: expected 'a', found 'b'"),
        (("c", "a", "b"), "fail", "answer 1 of 3 (and 1 more): expected 'a', found 'c'"),
    ],
)
def test_a_check_of_each_answer_must_pass_for_all(
    answers: tuple[str, ...], verdict: str, words: str
) -> None:
    actual = judged([{"equals": "a"}], *answers)
    assert (actual.verdict, actual.feedback) == (verdict, words)


def test_the_first_error_among_answers_takes_precedence_over_a_fail() -> None:
    verdict = judged([{"expr": "1 / int(answer) > 0"}], "-1", "0")
    assert verdict.verdict == "error"
    assert verdict.feedback.startswith("answer 2 of 2 (and 1 more): the check failed")


@pytest.mark.parametrize("scope", ["case", "group"])
def test_a_check_of_several_answers_looks_at_the_last(scope: str) -> None:
    assert judged([{"equals": "b", "scope": scope}], "a", "b").verdict == "pass"


def test_an_expression_sees_all_answers() -> None:
    check = {"expr": "answers == ['a', 'b'] and answer == 'b'", "scope": "case"}
    assert judged([check], "a", "b").verdict == "pass"


@pytest.mark.parametrize(
    ("checks", "score"),
    [
        ([{"equals": "a"}], None),
        ([{"equals": "a", "weight": 3}, {"equals": "b"}], 0.75),
        ([{"similar": "ab", "pass": ">= 0.1"}], 2 / 3),
    ],
)
def test_a_score_is_there_when_it_says_more_than_the_verdict(
    checks: list[Json], score: float | None
) -> None:
    assert judged(checks, "a").score == (score if score is None else pytest.approx(score))


def test_the_least_score_of_several_answers_counts() -> None:
    checks: list[Json] = [{"similar": "ab", "pass": ">= 0"}]
    assert judged(checks, "ab", "zz").score == 0


def test_every_check_has_a_result_with_its_name() -> None:
    checks: list[Json] = [{"equals": "a", "name": "first"}, {"equals": "b"}]
    first, second = judged(checks, "a").results
    assert first == {"type": "equals", "verdict": "pass", "name": "first"}
    assert (second["type"], second["verdict"]) == ("equals", "fail")


def test_half_a_surrogate_pair_in_a_feedback_can_be_stored() -> None:
    verdict = judge_by_checks(
        [{"type": "expr", "revision": 2, "expression": "json"}],
        [HeldConversation((Reply('"\\ud83d"'),))],
        {},
    )
    assert verdict.feedback.encode()


def test_a_feedback_has_an_end() -> None:
    expected = [f"{number:05}" * 40 for number in range(2_000)]
    checks: list[Json] = [{"contains": item} for item in expected]
    assert len(judged(checks, "a").feedback) <= 20_000


def test_a_check_of_another_revision_is_an_error() -> None:
    held = [HeldConversation((Reply("a"),))]
    check: dict[str, Any] = {"type": "equals", "revision": 99, "expected": "a"}
    assert judge_by_checks([check], held, {}).verdict == "error"


def test_schemas_are_found_inside_of_blocks() -> None:
    block = {"type": BLOCK, "checks": [{"type": "jsonSchema", "schema": "1"}]}
    inline = {"type": "jsonSchema", "schema": {"type": "object"}}
    assert schemas_of([block, inline, {"type": "jsonSchema", "schema": "2"}]) == {"1", "2"}
