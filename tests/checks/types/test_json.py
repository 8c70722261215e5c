"""What the checks of JSON find, and how they are written."""

from __future__ import annotations

import json
import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.check_verdict import run_check
from evalstore.checks.parser import read_check
from evalstore.checks.types.json import JsonComparison, match
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply

FENCED = '```json\n{"a": 1}\n```'


def outcome(check: Json, answer: str | None) -> CheckOutcome:
    return run_check(read_check(check), CheckInput(Reply(answer), answer))


def verdict(check: Json, answer: str | None) -> str:
    return outcome(check, answer).verdict


def feedback(check: Json, answer: str | None) -> str:
    return outcome(check, answer).feedback


def problem(check: Json) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        read_check(check, 7)
    assert caught.value.line == 7
    return caught.value


# --- json


@pytest.mark.parametrize(
    ("check", "answer", "expected"),
    [
        ("json", "[1]", "pass"),
        ("json", '"text"', "pass"),
        ("json", "", "fail"),
        ("json", None, "fail"),
        ("json", "Sure: {}", "fail"),
        ({"json": {"of": "array"}}, "[]", "pass"),
        ({"json": {"of": "array"}}, "{}", "fail"),
        ({"json": {"of": "object"}}, "[]", "fail"),
    ],
)
def test_an_answer_that_parses_is_json(check: Json, answer: str | None, expected: str) -> None:
    assert verdict(check, answer) == expected


def test_the_stored_form_without_settings_asks_for_an_object() -> None:
    stored = {"type": "json", "revision": 2}
    assert read_check({"json": {"of": "object"}}) == stored
    assert run_check(stored, CheckInput(Reply("[]"), "[]")).verdict == "fail"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"a": 1}', "pass"),
        (FENCED, "pass"),
        (f"Here it is:\n\n{FENCED}\n\nBye.", "pass"),
        ('~~~\r\n{"a": 1}\r\n~~~', "pass"),
        ('````\n{"a": "```"}\n````', "pass"),
        (f"{FENCED}\n{FENCED}", "fail"),
        ('```json\n{"a": 1}', "fail"),
        ("```json\n{a: 1}\n```", "fail"),
        ('```{"a": 1}```', "fail"),
    ],
)
def test_fenced_code_is_json_where_the_check_says_so(answer: str, expected: str) -> None:
    assert verdict({"json": {"fenced": True}}, answer) == expected


def test_fenced_code_is_not_json_by_itself() -> None:
    assert verdict("json", FENCED) == "fail"


def test_the_feedback_says_why_it_is_not_json_and_what_was_found() -> None:
    words = "the answer is not JSON, found 'Sure.'"
    assert feedback("json", "Sure.") == words


# --- jsonSchema

SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}


@pytest.mark.parametrize(
    ("answer", "expected"), [('{"a": 1}', "pass"), ('{"a": "x"}', "fail"), ("{}", "fail")]
)
def test_a_schema_can_stand_in_the_check(answer: str, expected: str) -> None:
    assert verdict({"jsonSchema": SCHEMA}, answer) == expected


def test_the_feedback_names_the_place_that_breaks_the_schema() -> None:
    words = "a does not match the schema: 'x' is not of type 'number'"
    assert feedback({"jsonSchema": SCHEMA}, '{"a": "x"}') == words


@pytest.mark.parametrize("keyword", ["multipleOf", "maximum", "exclusiveMinimum", "const"])
@pytest.mark.parametrize("number", ["1" * 400, "-" + "7" * 4000, "1e400"])
def test_numbers_of_any_length_have_a_verdict(keyword: str, number: str) -> None:
    assert verdict({"jsonSchema": {keyword: 0.5}}, number) in ("pass", "fail")


def test_a_number_that_is_too_large_for_a_schema_does_not_match_it() -> None:
    words = "the answer has a number that is too large for the schema"
    assert feedback({"jsonSchema": {"multipleOf": 0.5}}, "1" * 400) == words


def test_one_schema_is_not_taken_for_another_that_python_finds_equal() -> None:
    assert verdict({"jsonSchema": {"const": 1}}, "1") == "pass"
    assert verdict({"jsonSchema": {"const": True}}, "1") == "fail"


def test_an_invalid_schema_is_a_problem() -> None:
    assert problem({"jsonSchema": {"type": "objekt"}}).message.startswith(
        "this is not a JSON Schema"
    )


def test_a_schema_with_an_endless_number_is_a_problem() -> None:
    assert "not finite" in problem({"jsonSchema": {"maximum": float("inf")}}).message


# --- jsonEquals


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ({"a": 1, "b": [1, 2]}, '{"b": [1, 2], "a": 1}'),
        ({"a": 1}, '{"a": 1.0}'),
        ({"a": None}, '{"a": null}'),
        ({"expected": 1}, '{"expected": 1}'),
        ("text", '"text"'),
        (0, "0"),
    ],
)
def test_equal_values_are_equal_however_they_are_written(expected: Json, answer: str) -> None:
    assert verdict({"type": "jsonEquals", "expected": expected}, answer) == "pass"


@pytest.mark.parametrize(
    ("expected", "answer", "words"),
    [
        (1, "true", "expected 1, found true"),
        (False, "0", "expected false, found 0"),
        (None, "0", "expected null, found 0"),
        ({"a": {"b": [1, 2]}}, '{"a": {"b": [1, 3]}}', "at a.b[1]: expected 2, found 3"),
        ({"a": 1}, "{}", "at a: expected 1, found no such key"),
        ({"a": 1}, '{"a": 1, "b c": 2}', 'at "b c": expected no such key, found 2'),
        ([1], "[1, 2]", "expected 1 element, found 2"),
        ([{"x": "abc"}], '[{"x": "abd"}]', "at [0].x: expected 'abc', found 'abd'"),
        ({"a": [1]}, '{"a": 1}', "at a: expected [1], found 1"),
    ],
)
def test_the_first_difference_is_named_by_its_place(
    expected: Json, answer: str, words: str
) -> None:
    assert feedback({"type": "jsonEquals", "expected": expected}, answer) == words


@pytest.mark.parametrize(
    ("expected", "answer", "result"),
    [
        ([1, 2, 2], "[2, 1, 2]", "pass"),
        ([1, 2, 2], "[2, 1, 1]", "fail"),
        ([[1, 2], [3]], "[[3], [2, 1]]", "pass"),
        ([{"a": [1, True]}], '[{"a": [true, 1.0]}]', "pass"),
        ([1], "[true]", "fail"),
        ([1], "[1, 1]", "fail"),
    ],
)
def test_the_order_of_lists_can_be_left_open(expected: Json, answer: str, result: str) -> None:
    check = {"type": "jsonEquals", "expected": expected, "ignoreOrder": True}
    assert verdict(check, answer) == result


def test_texts_are_prepared_before_they_are_compared() -> None:
    check = {"type": "jsonEquals", "expected": {"a": "Oslo"}, "ignoreCase": True}
    assert verdict(check, '{"a": "OSLO"}') == "pass"


@pytest.mark.parametrize(
    ("answer", "expected"), [("1", "pass"), ('{"a": 2}', "pass"), ("2", "fail"), ("x", "fail")]
)
def test_one_of_several_values_is_enough(answer: str, expected: str) -> None:
    assert verdict({"jsonEquals": [1, {"a": 2}], "anyOf": True}, answer) == expected


def test_several_values_must_be_a_list() -> None:
    assert "must be a list of values" in problem({"jsonEquals": {"a": 1}, "anyOf": True}).message


def test_nothing_expected_must_be_meant() -> None:
    assert "has an empty 'expected'" in problem({"jsonEquals": {}}).message


def test_an_expected_value_that_json_cannot_hold_is_a_problem() -> None:
    assert "not finite" in problem({"jsonEquals": [float("nan")]}).message
    assert "not finite" in problem({"equals": "a", "actual": [float("nan")]}).message


# --- jsonSubset


@pytest.mark.parametrize(
    ("expected", "answer", "result"),
    [
        ({"a": 1}, '{"a": 1, "b": 2}', "pass"),
        ({"a": {"b": 1}}, '{"a": {"b": 1, "c": 2}}', "pass"),
        ({"a": 1}, '{"b": 1}', "fail"),
        ([1, 3], "[1, 2, 3]", "pass"),
        ([3, 1], "[1, 2, 3]", "fail"),
        ([1, 1], "[1]", "fail"),
        ([{"a": 1}], '[{"b": 0}, {"a": 1, "b": 1}]', "pass"),
        ({"a": None}, "{}", "fail"),
    ],
)
def test_all_that_is_expected_must_be_in_the_answer(
    expected: Json, answer: str, result: str
) -> None:
    assert verdict({"type": "jsonSubset", "expected": expected}, answer) == result


@pytest.mark.parametrize(
    ("expected", "answer", "result"),
    [
        ([3, 1], "[1, 2, 3]", "pass"),
        ([{}, {"a": 1}], '[{"a": 1}, {"b": 1}]', "pass"),
        ([{"a": 1}, {"a": 1}], '[{"a": 1}, {"b": 1}]', "fail"),
    ],
)
def test_no_element_stands_for_two_in_any_order(expected: Json, answer: str, result: str) -> None:
    check = {"type": "jsonSubset", "expected": expected, "ignoreOrder": True}
    assert verdict(check, answer) == result


@pytest.mark.parametrize("rule", [{"ignoreCase": True}, {"normalize": ["trim", "casefold"]}])
def test_the_feedback_shows_texts_in_the_case_in_which_they_are_written(rule: Json) -> None:
    answer = '{"City": "In OSLO"}'
    assert feedback({"jsonEquals": {"City": "In oslo"}, **rule}, answer) == ""
    words = "at City: expected 'IN Rome', found 'In OSLO'"
    assert feedback({"jsonEquals": {"City": "IN Rome"}, **rule}, answer) == words


def test_a_long_text_is_shown_where_it_differs_but_for_its_case() -> None:
    expected, found = f"{'WORD ' * 40}Oslo", f"{'word ' * 40}Rome"
    shown = feedback({"jsonEquals": [expected], "ignoreCase": True}, json.dumps([found]))
    assert shown.startswith("at [0]: expected '…")
    assert "WORD Oslo'" in shown
    assert "word Rome'" in shown


def test_the_feedback_names_the_element_that_is_missing() -> None:
    words = "at a: expected the element 1, in this order, found [1, 3]"
    assert feedback({"jsonSubset": {"a": [3, 1]}}, '{"a": [1, 3]}') == words


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", 1.0, 0.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)
COMPARISONS = st.builds(JsonComparison, subset=st.booleans(), any_order=st.booleans())


@given(COMPARISONS, VALUES, VALUES)
def test_there_is_a_difference_just_when_values_do_not_agree(
    comparison: JsonComparison, expected: Json, actual: Json
) -> None:
    agrees = comparison.agrees(expected, actual)
    assert agrees == (comparison.difference(expected, actual) is None)


@given(COMPARISONS, VALUES)
def test_every_value_agrees_with_itself(comparison: JsonComparison, value: Json) -> None:
    assert comparison.agrees(value, json.loads(json.dumps(value)))


@given(st.lists(VALUES, max_size=4), st.lists(VALUES, max_size=4), st.booleans())
def test_in_any_order_is_in_one_of_all_orders(
    expected: list[Json], actual: list[Json], subset: bool
) -> None:
    ordered = JsonComparison(subset=subset)
    loose = JsonComparison(subset=subset, any_order=True)
    in_some = any(
        all(loose.agrees(*pair) for pair in zip(expected, permutation))  # noqa: B905
        for permutation in permutations(actual, min(len(expected), len(actual)))
        if len(permutation) == len(expected) and (subset or len(actual) == len(expected))
    )
    assert JsonComparison(subset=subset, any_order=True).agrees(expected, actual) == in_some
    assert in_some or not ordered.agrees(expected, actual)


@given(st.lists(st.lists(st.integers(0, 4), unique=True, max_size=5), max_size=5))
def test_a_match_is_as_large_as_can_be(options: list[list[int]]) -> None:
    actual = match(options)
    taken = [number for number in actual if number is not None]
    assert len(taken) == len(set(taken))
    assert all(item is None or item in row for row, item in zip(options, actual, strict=True))
    most = max(
        sum(at in row for row, at in zip(options, permutation, strict=False))
        for permutation in permutations(range(5))
    )
    assert len(taken) == most


# --- jsonPath

ORDER = '{"items": [{"name": "Tea", "price": 3}, {"name": "Jam", "price": 4}], "note": null}'


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("items[1].name", "pass"),
        ("items[?price > `3`].name | [0]", "pass"),
        ("items[5].name", "fail"),
        ("note", "fail"),
        ("length(items)", "pass"),
        ("length(nothing)", "fail"),
    ],
)
def test_a_path_must_lead_to_something(path: str, expected: str) -> None:
    assert verdict({"jsonPath": path}, ORDER) == expected


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ({"contains": "Tea"}, "pass"),
        ({"contains": "tea"}, "fail"),
        ({"contains": "tea", "ignoreCase": True}, "pass"),
        ({"contains": "Jam", "not": True}, "pass"),
    ],
)
def test_a_check_inside_looks_at_the_value_of_the_path(inner: Json, expected: str) -> None:
    assert verdict({"type": "jsonPath", "path": "items[0].name", "check": inner}, ORDER) == expected


@pytest.mark.parametrize(
    "check",
    [
        {"jsonPath": {"path": "a", "contains": "x"}},
        {"type": "jsonPath", "path": "a", "contains": "x"},
        {"jsonPath": "a", "contains": "x"},
        {"jsonPath": {"path": "a", "check": {"contains": "x"}}},
    ],
)
def test_the_check_inside_may_stand_beside_the_path(check: Json) -> None:
    assert read_check(check) == read_check({"jsonPath": "a", "check": {"contains": "x"}})


def test_a_check_beside_the_path_may_have_settings() -> None:
    inner = {"number": {"op": ">", "expected": 2}}
    assert verdict({"jsonPath": {"path": "items[0].price", **inner}}, ORDER) == "pass"
    assert (
        verdict({"jsonPath": {"path": "a", "equals": "", "allowEmpty": True}}, '{"a": ""}')
        == "pass"
    )
    beside = {"type": "jsonPath", "path": "a", "similar": "x"}
    with pytest.raises(FileProblem, match="needs 'pass'"):
        read_check(beside)


def test_what_prepares_texts_holds_for_the_check_inside() -> None:
    check = {"jsonPath": "items[0].name", "check": {"contains": "tea"}, "ignoreCase": True}
    assert verdict(check, ORDER) == "pass"


def test_a_value_that_is_missing_passes_no_check_that_asks_for_less() -> None:
    check = {"jsonPath": "nothing", "check": {"contains": "x", "not": True}}
    assert verdict(check, ORDER) == "fail"


def test_the_feedback_of_the_check_inside_has_its_path() -> None:
    check = {"jsonPath": "items[0].price", "check": {"contains": "5"}}
    assert feedback(check, ORDER) == "at 'items[0].price': '5' is not in '3'"


def test_the_check_inside_is_in_canonical_form() -> None:
    assert read_check({"jsonPath": "a", "check": {"contains": "x"}}) == {
        "type": "jsonPath",
        "revision": 2,
        "path": "a",
        "check": {"type": "contains", "revision": 1, "expected": ["x"]},
    }


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"jsonPath": "a["}, "this is not a JMESPath: 'a['"),
        ({"jsonPath": "a.lenght(@)"}, "JMESPath has no function 'lenght'"),
        ({"jsonPath": "(" * 5000}, "this is not a JMESPath"),
        ({"jsonPath": 3}, "'path' must be a text, not '3'"),
        ({"jsonPath": "a", "check": "toolCalls"}, "'toolCalls' cannot be used inside"),
        ({"jsonPath": {"path": "a", "toolCalls": "x"}}, "'toolCalls' cannot be used inside"),
        ({"jsonPath": {"path": "a", "contians": "x"}}, "has no setting 'contians'"),
        (
            {"jsonPath": {"path": "a", "contains": "x", "check": "json"}},
            "two checks inside: 'check' and 'contains'",
        ),
        ({"jsonPath": {"path": "a", "contains": "x", "equals": "y"}}, "two checks in one"),
        ({"jsonPath": "a", "contains": "x", "equals": "y"}, "two checks in one"),
        ({"jsonPath": "a", "check": {"contians": "x"}}, "unknown check 'contians'"),
        ({"jsonPath": "a", "check": {"contains": "x", "actual": "y"}}, "cannot have 'actual'"),
        ({"type": "jsonPath", "check": {"contains": "x"}}, "the check needs 'path'"),
    ],
)
def test_a_path_or_a_check_inside_that_is_wrong_is_a_problem(check: Any, words: str) -> None:
    assert words in problem(check).message


def test_a_check_inside_of_another_version_is_an_error() -> None:
    check = read_check({"jsonPath": "note", "check": {"contains": "x"}})
    check["check"]["revision"] = 99
    with pytest.raises(ValueError, match="does not know check"):
        run_check(check, CheckInput(Reply(None), {"note": "x"}))


@pytest.mark.parametrize(
    ("check", "answer", "reason"),
    [
        (
            {"jsonPath": "length(a)"},
            '{"a": 2}',
            "length() in the path 'length(a)' does not take 2",
        ),
        ({"jsonPath": "max(a)"}, '{"b": 2}', "max() in the path 'max(a)' does not take null"),
        ({"jsonPath": "a", "not": True}, '{"a": 2}', "expected no value at 'a', found 2"),
        ({"jsonPath": "a", "number": 2, "not": True}, '{"a": 2}', "at 'a': expected a number that"),
        ({"json": None}, '{"a": 1,}', "the answer is not JSON: a "),
        ({"jsonSubset": {"a": 1}, "not": True}, '{"a": 1}', "expected JSON without {"),
        (
            {"jsonSchema": {"type": "object"}, "not": True},
            "{}",
            "expected JSON that does not match",
        ),
    ],
)
def test_the_reason_of_a_fail_is_in_plain_words(check: Json, answer: str, reason: str) -> None:
    found = feedback(check, answer)
    assert found.startswith(reason)
    assert not re.search(r"JMESPath|received|Expecting|\(char |None|check number", found)
