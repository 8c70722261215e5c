"""The answer whose difference is shown is one that fails the check, for checks of every type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstore.checks.check_verdict import ChecksVerdict, HeldConversation, judge_by_checks
from evalstore.checks.difference_locator import (
    JOINT_LOCATORS,
    AnswerDifference,
    locate_difference,
)
from evalstore.checks.parser import known_kinds, read_check
from evalstore.core.values import Json, Reply, ToolCall, Usage

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2}}}
CALL = {"name": "book", "arguments": {"days": 2}}
CHECKS: Mapping[str, Sequence[Json]] = {
    "equals": [{"equals": "yes"}, {"equals": "Yes", "ignoreCase": True}],
    "oneOf": [{"oneOf": ["yes", "7"]}, {"oneOf": ["yes"], "normalize": ["trim"]}],
    "contains": [{"contains": "7"}, {"contains": "Bonjour"}],
    "containsAny": [{"containsAny": ["7", "yes"]}, {"containsAny": ["A", "b"], "ignoreCase": True}],
    "containsAll": [{"containsAll": ["7", "Bonjour"]}],
    "startsWith": [{"startsWith": "Bon"}, {"startsWith": ["y", "7"]}],
    "endsWith": [{"endsWith": "7"}, {"endsWith": ["s.", "s"], "ignoreCase": True}],
    "length": [{"length": {"max": 3}}, {"length": {"unit": "words", "min": 2}}],
    "refusal": [{"refusal": None}],
    "notEmpty": [{"notEmpty": None}],
    "regex": [
        {"regex": "^[A-Z]"},
        {"regex": "[a-z]+", "method": "match"},
        {"regex": "a|ab", "method": "fullmatch"},
        {"regex": "YES", "normalize": ["casefold"]},
    ],
    "exact": [{"exact": "the yes"}],
    "fuzzy": [{"fuzzy": "yes"}, {"fuzzy": ["a b", "7"]}],
    "f1": [{"f1": "Bonjour 7", "pass": 0.5}, {"f1": "Bonjour 7", "pass": "< 0.5"}],
    "similar": [{"similar": "yes", "pass": 0.8}, {"similar": "yes", "pass": "<= 0.4"}],
    "levenshtein": [{"levenshtein": "yes", "max": 1}],
    "bleu": [{"bleu": "Bonjour 7", "pass": 0.5}],
    "rouge": [{"rouge": "Bonjour 7", "pass": 0.5}],
    "number": [
        {"number": 7},
        {"number": {"expected": 7, "op": ">="}},
        {"number": {"expected": 7, "op": "!=", "epsilon": 1}},
        {"number": {"expected": 6.5, "epsilon": 0.5}},
    ],
    "json": [{"json": None}, {"json": {"of": "any", "fenced": True}}],
    "jsonSchema": [{"jsonSchema": SCHEMA}],
    "jsonEquals": [{"jsonEquals": {"a": 1}}, {"jsonEquals": 7}, {"jsonEquals": "yes"}],
    "jsonSubset": [{"jsonSubset": {"a": 1}}, {"jsonSubset": {"a": {"b": [3]}}}],
    "jsonPath": [
        {"jsonPath": "a", "number": 1},
        {"jsonPath": "a.b"},
        {"jsonPath": "a", "check": {"contains": "1", "not": True}},
    ],
    "toolCalls": [{"toolCalls": [CALL]}, {"toolCalls": {"count": 1}}],
    "noToolCalls": [{"noToolCalls": None}],
    "finishReason": [{"finishReason": "stop"}],
    "latency": [{"latency": 1}],
    "cost": [{"cost": 0.01}],
    "tokens": [{"tokens": {"max": 5}}],
    "expr": [{"expr": "len(answer) > 3"}],
    "allEqual": [
        {"allEqual": None},
        {"allEqual": None, "ignoreCase": True},
        {"allEqual": None, "normalize": ["spaces", "squad"]},
    ],
    "allSame": [{"allSame": "a"}, {"allSame": "a", "max": 1}, {"allSame": "A", "ignoreCase": True}],
    "monotonic": [
        {"monotonic": "increasing"},
        {"monotonic": "decreasing", "strict": True},
        {"monotonic": "increasing", "pattern": r"a\D*(\d)?"},
    ],
    "python": [{"python": {"file": "checks/long.py", "function": "judge"}}],
}
TEXTS = (
    *("", "yes", "Yes.", "YES", " yes\n", "no", "7", "42", "7.5", "Bonjour 7", "Bonjour, 7 days"),
    *('{"a": 1}', '{"a": 2, "b": "7"}', '{"b": 0, "a": "1"}', '{"a": {"b": [1, 3]}}', "[7]"),
    *('The answer: {"x": {"a": 5},\n "a": 3}', '```json\n{"a": 1}\n```', '{"a": 1,}', "1e999"),
    *("a 5", "a 3", "a", "ab", "I cannot help with that.", "The yes, the no"),
)
TEXT = st.sampled_from(TEXTS) | st.text(alphabet='abAB17. {}"\n:', max_size=14)
CALLS = st.lists(
    st.builds(
        lambda name, days: ToolCall(name, {"days": days}),
        st.sampled_from(("book", "cancel")),
        st.integers(1, 3),
    ),
    max_size=2,
)
SESSIONS = st.lists(
    st.builds(
        lambda text, calls, reason, latency, tokens: HeldConversation(
            (Reply(text, tuple(calls), reason, None, Usage(tokens, tokens), latency=latency),), 0.02
        ),
        st.none() | TEXT,
        CALLS,
        st.sampled_from(("stop", "length")),
        st.sampled_from((0.5, 2.0)),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=4,
)


def judge(check: Json, sessions: Sequence[HeldConversation]) -> ChecksVerdict:
    return judge_by_checks([check], sessions, {}, run_code=_is_long)


def _is_long(_check: Mapping[str, Json], actual: Json, _sessions: object) -> Json:
    return len(actual) > 3


def is_plain(difference: AnswerDifference) -> bool:
    """Whether a difference does not say that what is expected was found."""
    return difference.expected != difference.actual


def numbered(difference: AnswerDifference) -> tuple[int, str]:
    """The number of the answer that a place names, and the place in it."""
    answer, _, place = difference.place.partition(", ")
    return int(answer.removeprefix("answer ")), place


def test_there_are_examples_of_every_type_that_is_run() -> None:
    run = {name for name, kind in known_kinds().items() if not kind.by_models}
    assert set(CHECKS) == run


@pytest.mark.parametrize("turned_round", [False, True])
@pytest.mark.parametrize("name", sorted(set(CHECKS) - set(JOINT_LOCATORS)))
@settings(max_examples=40, deadline=None)
@given(data=st.data(), sessions=SESSIONS)
def test_a_place_is_one_in_an_answer_that_fails_alone(
    name: str, turned_round: bool, data: st.DataObject, sessions: list[HeldConversation]
) -> None:
    written = data.draw(st.sampled_from(CHECKS[name]))
    check = read_check({**written, "not": True} if turned_round else written)
    verdict = judge(check, sessions)
    located = locate_difference(check, sessions, {})
    if located is None:
        return
    assert verdict.verdict == "fail"
    assert is_plain(located)
    if len(sessions) > 1:
        number, place = numbered(located)
        assert judge(check, [sessions[number - 1]]).verdict == "fail"
        alone = locate_difference(check, [sessions[number - 1]], {})
        assert alone == located._replace(place=place)
        assert f"answer {number} of {len(sessions)}" in verdict.feedback


@pytest.mark.parametrize("name", sorted(JOINT_LOCATORS))
@settings(max_examples=150, deadline=None)
@given(data=st.data(), sessions=SESSIONS)
def test_a_place_is_one_in_an_answer_that_fails_beside_the_one_it_is_compared_with(
    name: str, data: st.DataObject, sessions: list[HeldConversation]
) -> None:
    check = read_check({**data.draw(st.sampled_from(CHECKS[name])), "scope": "case"})
    difference = locate_difference(check, sessions, {})
    assert (difference is not None) == (judge(check, sessions).verdict == "fail")
    if difference is None:
        return
    assert is_plain(difference)
    number, _ = numbered(difference)
    compared = re.fullmatch(r"compared with answer (\d+)", difference.note)
    numbers = [int(compared[1]), number] if compared else [number]
    assert judge(check, [sessions[each - 1] for each in numbers]).verdict == "fail"
    before = sessions[: number - 1]
    assert not before or judge(check, before).verdict == "pass" or "max" in check


def test_unequal_answers_are_quoted_as_they_were_written() -> None:
    check = read_check({"allEqual": None, "scope": "case", "normalize": ["trim", "casefold"]})
    sessions = [
        HeldConversation((Reply(text),), 0.0) for text in (" Oslo in Norway", "OSLO in Sweden")
    ]
    found = locate_difference(check, sessions, {})
    assert found is not None
    assert (found.expected, found.actual) == ("Oslo in Norway", "OSLO in Sweden")
