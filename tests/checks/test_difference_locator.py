"""The exact place at which an answer differs from what a failed check expects."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from evalstore.checks.base import BLOCK
from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.checks.difference_locator import AnswerDifference, flat_checks, locate_difference
from evalstore.checks.parser import known_kinds, read_check
from evalstore.core.values import Json, Reply, ToolCall

LONG = "You owe us 20 euros.\nPlease pay at the counter."
FEE = "is 10.00 euros"
KEEP = "Most days count. You can keep it for 14 days. Please bring it back."
SCHEMA = {"type": "object", "properties": {"days": {"type": "integer"}}}


def located(check: Json, *answers: str | None, **facts: Json) -> AnswerDifference | None:
    """The difference of answers that fail the check."""
    sessions = [HeldConversation((Reply(answer, **facts),)) for answer in answers]
    read = read_check(check)
    assert judge_by_checks([read], sessions, {}).verdict == "fail"
    return locate_difference(read, sessions, {})


@pytest.mark.parametrize(
    ("check", "answer", "expected", "actual", "place"),
    [
        ({"equals": "20 euros"}, "20 Euros", "20 euros", "20 Euros", "line 1, column 4"),
        ({"oneOf": ["no", "20 euros"]}, "20 Euro", "20 euros", "20 Euro", "line 1, column 4"),
        ({"startsWith": "You pay"}, LONG, "You pay", "You owe", "line 1, column 5"),
        ({"endsWith": "the desk."}, LONG, "the desk.", " counter.", "line 2, column 18"),
        ({"contains": "us 30 euro"}, LONG, "us 30 euro", "us 20 euros", "line 1, column 9"),
        ({"containsAny": ["zzz", "20 Euros"]}, LONG, "20 Euros", "20 euros", "line 1, column 12"),
        ({"containsAll": ["euros", "Pay at"]}, LONG, "Pay at", "pay at", "line 2, column 8"),
        ({"contains": "3.00 euros"}, FEE, "3.00 euros", "10.00 euros", "line 1, column 4"),
        (
            {"contains": "94 euros"},
            "It costs 105 euros.",
            "94 euros",
            "105 euros",
            "line 1, column 10",
        ),
        ({"contains": "0.80 euros"}, FEE, "0.80 euros", "10.00 euros", "line 1, column 4"),
        (
            {"contains": "1.00 euros"},
            "is **2.00** euros",
            "1.00 euros",
            "2.00** euros",
            "line 1, column 6",
        ),
        ({"startsWith": "is 3"}, FEE, "is 3", "is 10.00", "line 1, column 4"),
        ({"endsWith": "4.00 euros"}, FEE, "4.00 euros", "10.00 euros", "line 1, column 4"),
        ({"contains": "7 days"}, KEEP, "7 days", "14 days", "line 1, column 38"),
        (
            {"contains": "you may keep it 14 days"},
            KEEP,
            "you may keep it 14 days",
            "You can keep it for 14 days",
            "line 1, column 18",
        ),
        (
            {"contains": "PLEASE PAY NOW", "ignoreCase": True},
            LONG,
            "PLEASE PAY NOW",
            "Please pay at",
            "line 2, column 1",
        ),
        (
            {"equals": "GU10 Bulb", "ignoreCase": True},
            "GU5 bulb",
            "GU10 Bulb",
            "GU5 bulb",
            "line 1, column 3",
        ),
        (
            {"startsWith": "an E27 BULB", "normalize": ["trim"], "ignoreCase": True},
            "\nAn E14 bulb, or an e14 bulb.",
            "an E27 BULB",
            "an e14 bulb",
            "line 2, column 5",
        ),
        (
            {"contains": "EUROS", "not": True, "ignoreCase": True},
            "20 Euros",
            "not 'EUROS'",
            "'20 Euros'",
            "line 1, column 4",
        ),
        (
            {"jsonPath": "a", "check": {"contains": "20 EUROS", "ignoreCase": True}},
            '{"a": "30 Euros"}',
            "20 EUROS",
            "30 Euros",
            "a, line 1, column 1",
        ),
        (
            {"contains": "euros", "not": True},
            LONG,
            "not 'euros'",
            "'You owe us 20 euros.\nPlease pay at the counter.'",
            "line 1, column 15",
        ),
        (
            {"regex": "[0-9]+", "method": "match"},
            LONG,
            "a match of '[0-9]+' at the start",
            "'20'",
            "line 1, column 12",
        ),
        (
            {"regex": "P[a-z]+", "not": True},
            LONG,
            "no match of 'P[a-z]+'",
            "'Please'",
            "line 2, column 1",
        ),
        ({"number": 30}, LONG, "30", "20", "line 1, column 12"),
        ({"number": {"expected": 30, "op": ">="}}, "-5", ">= 30", "-5", "line 1, column 1"),
        ({"jsonEquals": {"a": {"b": [1, 2]}}}, '{"a": {"b": [1, 3]}}', "2", "3", "a.b[1]"),
        (
            {"jsonEquals": {"a": ["A Bulb"]}, "ignoreCase": True},
            '{"a": ["A Lamp"]}',
            "A Bulb",
            "A Lamp",
            "a[0]",
        ),
        ({"jsonSubset": {"a": {"b": 1}}}, '{"a": {}}', "1", "no such key", "a.b"),
        (
            {"jsonSchema": SCHEMA},
            '{"days": "three"}',
            "type: 'integer'",
            "'three'",
            "days",
        ),
        (
            {"jsonSchema": {"type": "object", "properties": {"days": False}}},
            '{"days": 3}',
            "no value",
            "3",
            "",
        ),
        ({"jsonPath": "a.b", "number": 2}, '{"a": {"b": 3}}', "2", "3", "a.b, line 1, column 1"),
        ({"jsonPath": "a.c"}, '{"a": {"b": 3}}', "a value", "none", "a.c"),
        ({"json": {"of": "any"}}, '{"a": 1,}', "JSON", "'{\"a\": 1,}'", "line 1, column 9"),
    ],
)
def test_the_place_of_a_difference(
    check: Json, answer: str, expected: str, actual: str, place: str
) -> None:
    difference = located(check, answer)
    assert difference is not None
    assert difference[:3] == (expected, actual, place)


@pytest.mark.parametrize(
    ("steps", "answer", "place"),
    [
        (["trim"], "\n\n  You owe 20 EUR.\n", "line 3, column 11"),
        (["trim", "casefold"], "\n\n  You owe 20 EUR.\n", "line 3, column 11"),
        (["quotes"], "“Well”,\nyou owe 20 EUR.", "line 2, column 9"),
        (["spaces"], "You\nowe  20 EUR.", ""),
        (["markdown"], "# Bill\n\n**You** owe 20 EUR.", ""),
    ],
)
@pytest.mark.parametrize(
    "check",
    [{"contains": "20 EUROS"}, {"regex": "20", "not": True}, {"contains": "20", "not": True}],
)
def test_the_place_is_one_in_the_answer_as_it_is_written(
    check: Json, steps: list[str], answer: str, place: str
) -> None:
    difference = located({**check, "normalize": steps}, answer)
    assert difference
    assert difference.place == place


def test_the_gap_between_numbers_is_given() -> None:
    difference = located({"number": {"expected": 480, "epsilon": 10}}, "It is 2.5.")
    assert difference == ("480 ± 10", "2.5", "line 1, column 7", False, "difference -477.5")
    assert located({"number": 3}, "none") == ("3", "", "", False, "no number in the answer")


def test_a_text_that_is_not_there_is_reported() -> None:
    difference = located({"contains": "zebra"}, "20")
    assert difference == ("zebra", "", "", False, "not in 2 characters")
    fee = "You can keep it for four weeks.\n- Late returns cost 0.50 euros a day"
    assert located({"contains": "28 days"}, fee) == (
        *("28 days", "", "", False),
        f"not in {len(fee)} characters",
    )
    assert located({"contains": "E27", "ignoreCase": True}, "GU5") == (
        *("E27", "", "", False),
        "not in 3 characters",
    )
    assert located({"regex": "z+"}, "20") == (
        *("a match of 'z+'", "", "", False),
        "no match in 2 characters",
    )


@pytest.mark.parametrize(
    "expected", ["You pay 30 euros", "".join(f"{number} euros, " for number in range(900))]
)
def test_a_long_answer_is_not_searched_for_the_nearest_passage(expected: str) -> None:
    answer = "You pay 20 euros. " * (1_200 if len(expected) < 100 else 1_000)
    difference = located({"contains": expected}, answer)
    note = f"not in {len(answer):,} characters"
    assert difference == AnswerDifference(expected, "", note=note)


def test_the_argument_of_a_tool_call_that_differs_is_named() -> None:
    check = {"toolCalls": [{"name": "book", "arguments": {"bike": {"size": "M"}, "days": 2}}]}
    call = ToolCall("book", {"bike": {"size": "L"}, "days": 2})
    difference = located(check, None, tool_calls=(call,))
    assert difference == ("M", "L", "book.bike.size", True, "")
    assert located(check, "no call at all") is None


def test_of_several_answers_the_one_that_differs_is_named() -> None:
    difference = located({"equals": "yes"}, "yes", "yess")
    assert difference == ("yes", "yess", "answer 2, line 1, column 4", True, "")


def test_checks_of_a_block_have_the_order_of_their_results() -> None:
    inner = [read_check({"contains": text}) for text in "ab"]
    block = {"type": BLOCK, "revision": 1, "checks": inner, "pass": "any"}
    checks = [read_check({"contains": "c"}), block]
    results = judge_by_checks(checks, [HeldConversation((Reply("x"),))], {}).results
    types = [check["expected"] for check in flat_checks(checks)]
    assert (types, len(results)) == ([["c"], ["a"], ["b"]], 3)


def test_a_check_that_mentions_the_answer_is_compared_with_what_it_was_filled_with() -> None:
    check = {
        "type": "equals",
        "revision": 1,
        "given": {"equals": "{{first}}!"},
        "templates": [[["equals"], "{{first}}!"]],
        "turns": {"first": 0},
    }
    sessions = [HeldConversation((Reply("yes"), Reply("no")))]
    assert locate_difference(check, sessions, {}) == (
        *("yes!", "no", "line 1, column 1", True),
        "",
    )


@pytest.mark.parametrize("name", sorted(known_kinds()))
def test_no_check_makes_the_search_for_a_place_fail(name: str) -> None:
    kind = known_kinds()[name]
    for answer in ("", "x" * 50_000, '{"a": [', "1e999999"):
        check = {"type": name, "revision": kind.revision, "expected": ["a"], "pattern": "(a+)+$"}
        for wrong in (check, {**check, "not": True}, {**check, "expected": 3, "schema": "?"}):
            locate_difference(wrong, [HeldConversation((Reply(answer),))], {})


def test_a_pattern_that_takes_long_has_no_place() -> None:
    sessions = [HeldConversation((Reply("a" * 5_000 + "b"),))]
    assert locate_difference(read_check({"regex": "(a+)+$"}), sessions, {}) is None


@pytest.mark.parametrize(
    "check",
    [
        {"contains": "ab" * 5_000},
        {"containsAny": [f"{number} {'ab' * 100}" for number in range(500)]},
    ],
)
def test_no_passage_is_searched_when_it_would_take_long(check: Json) -> None:
    """A search for ten thousand characters in twenty thousand took a minute."""
    sessions = [HeldConversation((Reply("ba c" * 4_900),))]
    with patch("evalstore.checks.difference_locator._align") as search:
        difference = locate_difference(read_check(check), sessions, {})
    assert difference is not None
    assert difference.note == "not in 19,600 characters"
    search.assert_not_called()
