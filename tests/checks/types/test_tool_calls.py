"""Which tool calls are the expected ones."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.check_verdict import run_check
from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply, ToolCall

A1, A2, B = ToolCall("a", {"x": 1}), ToolCall("a", {"x": 2}), ToolCall("b", {})


def outcome(check: Json, *calls: ToolCall) -> CheckOutcome:
    return run_check(read_check(check), CheckInput(Reply(None, tool_calls=calls), None))


def a(**arguments: Json) -> Json:
    return {"name": "a", "arguments": arguments}


@pytest.mark.parametrize("check", ["toolCalls", {"toolCalls": None}, {"toolCalls": True}])
def test_without_expectations_any_call_will_do(check: Json) -> None:
    assert read_check(check) == {"type": "toolCalls", "revision": 2}
    assert outcome(check, A1).verdict == "pass"
    assert outcome(check).feedback == "the answer is a text, no tool was called"


@pytest.mark.parametrize(
    ("check", "calls", "expected"),
    [
        ({"toolCalls": ["a"]}, [A1], "pass"),
        ({"toolCalls": "a"}, [A1], "pass"),
        ({"toolCalls": {"name": "a"}}, [B], "fail"),
        ({"toolCalls": ["a"]}, [A1, B], "fail"),
        ({"toolCalls": ["a"], "extra": "allow"}, [A1, B], "pass"),
        ({"toolCalls": ["a"]}, [], "fail"),
        ({"toolCalls": ["a", "b"]}, [B, A1], "pass"),
        ({"toolCalls": ["a", "b"], "order": True}, [B, A1], "fail"),
        ({"toolCalls": ["a", "b"], "order": True}, [A1, B], "pass"),
        ({"toolCalls": ["a", "b"], "order": True, "extra": "allow"}, [B, A1, A2, B], "pass"),
        ({"toolCalls": ["a", "b"], "order": True, "extra": "allow"}, [B, A1, A2], "fail"),
        ({"toolCalls": [a(x=1), a(x=2)]}, [A2], "fail"),
        ({"toolCalls": [a(x=1), a(x=2)]}, [A2, A1], "pass"),
        ({"toolCalls": [a(x=1), a(x=1)]}, [A1, A2], "fail"),
        ({"toolCalls": ["a", a(x=1)]}, [A1, A2], "pass"),
        ({"toolCalls": [], "allowEmpty": True}, [], "pass"),
        ({"toolCalls": [], "allowEmpty": True}, [A1], "fail"),
    ],
)
def test_each_call_stands_for_one_expectation(
    check: Json, calls: list[ToolCall], expected: str
) -> None:
    assert outcome(check, *calls).verdict == expected


@pytest.mark.parametrize(
    ("required", "arguments", "mode", "expected"),
    [
        ({"x": 1}, {"x": 1.0}, "exact", "pass"),
        ({"x": 1}, {"x": True}, "exact", "fail"),
        ({"x": 1}, {"x": 1, "y": 2}, "exact", "fail"),
        ({"x": 1}, {"x": 1, "y": 2}, "subset", "pass"),
        ({"x": 1}, '{"x": 1', "exact", "fail"),
        ({}, None, "exact", "pass"),
        ({}, {"x": 1}, "exact", "fail"),
        ({}, {"x": 1}, "subset", "pass"),
    ],
)
def test_arguments_are_compared_as_json(
    required: Json, arguments: Json, mode: str, expected: str
) -> None:
    check = {"toolCalls": [{"name": "a", "arguments": required}], "arguments": mode}
    assert outcome(check, ToolCall("a", arguments)).verdict == expected


def test_texts_in_arguments_are_prepared() -> None:
    check = {"toolCalls": [a(city="Oslo")], "ignoreCase": True}
    assert outcome(check, ToolCall("a", {"city": "OSLO"})).verdict == "pass"
    words = outcome(check, ToolCall("a", {"city": "ROME"})).feedback
    assert words.endswith("in the arguments, at city: expected 'Oslo', found 'ROME'")


@pytest.mark.parametrize(
    ("check", "calls", "expected"),
    [
        ({"toolCalls": {"count": 2}}, [A1, B], "pass"),
        ({"type": "toolCalls", "count": 2}, [A1], "fail"),
        ({"toolCalls": {"count": 0}}, [], "pass"),
        ({"toolCalls": ["a"], "extra": "allow", "count": 2}, [A1, B], "pass"),
        ({"toolCalls": ["a"], "extra": "allow", "count": 2}, [A1, A1, B], "fail"),
        ("noToolCalls", [], "pass"),
        ("noToolCalls", [A1], "fail"),
    ],
)
def test_calls_are_counted(check: Json, calls: list[ToolCall], expected: str) -> None:
    assert outcome(check, *calls).verdict == expected


@pytest.mark.parametrize(
    ("check", "calls", "words"),
    [
        (
            {"toolCalls": [a(x=3)]},
            [B, A1],
            'expected the call a({"x": 3}), found b({}), a({"x": 1}); in the arguments, '
            "at x: expected 3, found 1",
        ),
        ({"toolCalls": ["a"]}, [], "expected the call a(…), found no tool call"),
        ({"toolCalls": ["a"]}, [A1, B], "expected no further call, found b({})"),
        ({"toolCalls": {"count": 2}}, [B], "expected 2 tool calls, found b({})"),
        (
            {"toolCalls": ["b", a(x=1)], "order": True},
            [A1, B],
            'expected the call b(…), found a({"x": 1}), b({})',
        ),
        ("noToolCalls", [B], "expected no tool call, found b({})"),
        (
            "noToolCalls",
            [B] * 9,
            "expected no tool call, found b({}), b({}), b({}), b({}), b({}) … (9 in all)",
        ),
    ],
)
def test_the_feedback_names_the_nearest_call(
    check: Json, calls: list[ToolCall], words: str
) -> None:
    assert outcome(check, *calls).feedback == words


def test_what_is_left_at_its_default_is_not_in_the_canonical_form() -> None:
    check = {"toolCalls": ["a"], "order": False, "extra": "forbid", "arguments": "exact"}
    assert read_check(check) == {"type": "toolCalls", "revision": 2, "expected": [{"name": "a"}]}


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"toolCalls": []}, "has an empty 'expected'"),
        ({"toolCalls": False}, "to expect no call at all, write 'noToolCalls'"),
        ({"toolCalls": [{"nam": "a"}]}, "an expected call must have a 'name'"),
        ({"toolCalls": [3]}, "an expected call must have a 'name', not be 3"),
        ({"toolCalls": [{"name": "a", "args": {}}]}, "an expected call has no field 'args'"),
        ({"toolCalls": [{"name": "a", "arguments": '{"x": 1}'}]}, "must be a mapping"),
        ({"toolCalls": ["a"], "count": 2}, "'count' is 2, but 'expected' has 1"),
        ({"type": "toolCalls", "order": True}, "'order' has an effect only with 'expected'"),
        ({"toolCalls": ["a"], "extra": "alow"}, "'extra' cannot be 'alow'"),
        ({"noToolCalls": "a"}, "takes no value"),
    ],
)
def test_an_expectation_that_is_wrong_is_a_problem(check: Any, words: str) -> None:
    with pytest.raises(FileProblem) as caught:
        read_check(check)
    assert words in caught.value.message


EXPECTED = st.lists(
    st.sampled_from(
        [{"name": "a"}, {"name": "b"}, a(), a(x=1), a(y=1), a(x=1, y=1), a(x=2), a(x=[1])]
    ),
    min_size=1,
    max_size=4,
)
CALLS = st.lists(
    st.sampled_from(
        [A1, A2, B, ToolCall("a", {"x": 1, "y": 1}), ToolCall("a", {}), ToolCall("a", {"x": [1]})]
    ),
    max_size=5,
)


def fits(required: Json, call: ToolCall, subset: bool) -> bool:
    if required["name"] != call.name:
        return False
    if "arguments" not in required:
        return True
    if subset:
        return bool(required["arguments"].items() <= call.arguments.items())
    return bool(required["arguments"] == call.arguments)


@given(EXPECTED, CALLS, st.booleans(), st.booleans(), st.booleans())
def test_calls_are_matched_as_trying_all_ways_would(
    expected: list[Json], calls: list[ToolCall], order: bool, extra: bool, subset: bool
) -> None:
    check = {
        "toolCalls": expected,
        "order": order,
        "extra": "allow" if extra else "forbid",
        "arguments": "subset" if subset else "exact",
    }
    by_force = (extra or len(calls) == len(expected)) and any(
        all(fits(item, calls[at], subset) for item, at in zip(expected, chosen, strict=True))
        for chosen in permutations(range(len(calls)), len(expected))
        if not order or list(chosen) == sorted(chosen)
    )
    assert (outcome(check, *calls).verdict == "pass") == by_force
