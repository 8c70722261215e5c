"""In what two stored descriptions differ: whatever differs is named."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.comparison.version_diff import (
    changed_lines,
    differ_evaluations,
    differ_models,
    differ_prompts,
    differ_tests,
    in_place,
    pair_checks,
    recorded_text,
    shorten_line,
    unified,
)
from evalstore.core import hashing
from evalstore.core.hashing import canonical_json
from evalstore.core.values import (
    EvaluationVersion,
    FileRef,
    Json,
    Message,
    ModelVersion,
    Options,
    Part,
    PromptVersion,
    TestVersion,
    Text,
)

CONTENTS: dict[str, Json] = {
    "tool1": {"name": "look", "parameters": {"properties": {"at": {"pattern": "a"}}}},
    "tool2": {"name": "look", "parameters": {"properties": {"at": {"pattern": "b"}}}},
    "tool3": {"name": "stop"},
    "schema1": {"schema": {"type": "object"}},
    "schema2": {"schema": {"type": "array"}},
}


def shown(*texts: str | Part, **fields: Any) -> Json:
    parts = tuple(Text(text) if isinstance(text, str) else text for text in texts)
    return hashing.describe_test(TestVersion((Message("user", parts),), **fields))


def described_evaluation(text: str, *checks: Json) -> Json:
    return hashing.describe_evaluation(EvaluationVersion((Text(text),), checks))


def said_of(was: Json, now: Json) -> list[str]:
    differences = differ_tests(
        was, now, lambda _kind, id: CONTENTS.get(id), lambda _kind, _id: None
    )
    return [str(difference) for difference in differences]


def picture(path: str = "a.png", id: str = "1") -> FileRef:
    return FileRef(path, "image/png", id)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (shown("a\nb\nc"), shown("a\nB\nc"), ["message 1, line 2: b -> B"]),
        (shown("a"), shown("a\nb"), ["message 1, line 2"]),
        (shown("a"), shown("a", special_tags=("_x",)), ["special tag _x is new"]),
        (shown("a", special_tags=("_x",)), shown("a"), ["special tag _x is gone"]),
        (
            shown("a", tools=("tool1",)),
            shown("a", tools=("tool2",)),
            ["tool look changed: parameters.properties.at.pattern: a -> b"],
        ),
        (shown("a"), shown("a", tools=("tool3",)), ["tool stop is new"]),
        (shown("a", tools=("tool3",)), shown("a"), ["tool stop is gone"]),
        (
            shown("a", tools=("tool1",)),
            shown("a", tools=("tool1", "tool2")),
            ["tool look is new"],
        ),
        (
            shown("a", schema="schema1"),
            shown("a", schema="schema2"),
            ["schema schema2 changed: type: object -> array"],
        ),
        (
            shown("a", options=Options(temperature=0.5)),
            shown("a"),
            ["option temperature 0.5 -> removed"],
        ),
        (shown(picture()), shown(picture(id="2")), ["file a.png changed"]),
        (
            shown(picture()),
            shown(picture("b.png")),
            ["message 1, line 1: [file a.png] -> [file b.png]"],
        ),
        (shown("a", "b"), shown("ab"), ["message 1 changed"]),
        (shown("[file a.png]"), shown(picture()), ["message 1 changed"]),
        (shown("a"), shown("a"), []),
    ],
)
def test_what_differs_between_two_tests(was: Json, now: Json, expected: list[str]) -> None:
    assert said_of(was, now) == expected


def test_a_message_more_and_another_role_are_named() -> None:
    first = hashing.describe_test(TestVersion((Message("user", (Text("a"),)),)))
    two = hashing.describe_test(
        TestVersion((Message("system", (Text("a"),)), Message("user", (Text("b"),))))
    )
    assert said_of(first, two) == ["message 1 role: user -> system", "message 2 (user) is new"]
    assert said_of(two, first)[1] == "message 2 (user) is gone"


def test_the_text_of_a_prompt_is_named_by_its_line() -> None:
    was, now = (
        hashing.describe_prompt(PromptVersion((Message("system", (Text(text),)),)))
        for text in ("a\nb", "a\nc")
    )
    assert [str(difference) for difference in differ_prompts(was, now)] == ["line 2: b -> c"]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (
            described_evaluation("a"),
            described_evaluation("b"),
            "instructions changed: line 1: a -> b",
        ),
        (
            described_evaluation("a"),
            described_evaluation("a", {"type": "json"}),
            "check 1 (json) is new",
        ),
        (
            described_evaluation("a", {"type": "json"}),
            described_evaluation("a"),
            "check 1 (json) is gone",
        ),
        (
            described_evaluation("a", {"type": "json", "revision": 1}),
            described_evaluation("a", {"type": "json", "revision": 2}),
            "check 1 changed: revision: 1 -> 2",
        ),
        (
            described_evaluation("a", {"type": "json"}),
            described_evaluation("a", {"type": "json", "x": None}),
            "check 1 changed: x: not set -> null",
        ),
        (
            described_evaluation("a", {"type": "startsWith", "revision": 1, "expected": ["No"]}),
            described_evaluation("a", {"type": "regex", "revision": 2, "pattern": r"\bNo\b"}),
            r"check 1 changed: startsWith 'No' -> regex '\bNo\b'",
        ),
        (
            described_evaluation("a", {"type": "length", "max": 9, "min": 1, "weight": 2}),
            described_evaluation("a", {"type": "contains", "expected": ["b"], "weight": 2}),
            "check 1 changed: length max 9, min 1 -> contains 'b'",
        ),
        (
            described_evaluation("a", {"type": "contains", "expected": ["b"]}),
            described_evaluation("a", {"type": "equals", "expected": ["b"]}),
            "check 1 changed: contains -> equals",
        ),
        (
            described_evaluation("a", {"type": "contains", "given": {"contains": "b"}}),
            described_evaluation("a", {"type": "judge", "prompts": ["1" * 64]}),
            "check 1 changed: contains 'b' -> judge",
        ),
        (
            described_evaluation("a", {"type": "jsonSchema", "schema": "1" * 64}),
            described_evaluation("a", {"type": "python", "file": {"path": "c.py", "id": "1"}}),
            "check 1 changed: jsonSchema -> python file c.py",
        ),
        (
            described_evaluation(
                "a", {"type": "jsonPath", "path": "b", "check": {"type": "number", "min": 1}}
            ),
            described_evaluation(
                "a", {"type": "jsonPath", "path": "b", "check": {"type": "equals", "expected": [1]}}
            ),
            "check 1 changed: check: number min 1 -> equals 1",
        ),
        (
            described_evaluation("a", {"type": "jsonPath", "path": "b", "check": {"type": "json"}}),
            described_evaluation("a", {"type": "json"}),
            "check 1 changed: jsonPath json, path 'b' -> json",
        ),
        *(
            (
                described_evaluation("a", was),
                described_evaluation("a", now),
                f"check 1 changed: {said}",
            )
            for was, now, said in (
                (
                    {"type": "containsAll", "expected": ["a", "b"]},
                    {"type": "containsAll", "expected": ["a", "c"]},
                    "containsAll, value 2: b -> c",
                ),
                (
                    {"type": "containsAny", "expected": ["a"]},
                    {"type": "containsAny", "expected": ["a", "c"]},
                    'containsAny: ["a"] -> ["a", "c"]',
                ),
                (
                    {"type": "containsAll", "given": {"expected": ["a", "b"]}},
                    {"type": "containsAll", "given": {"expected": ["a", "c"]}},
                    "containsAll, value 2: b -> c",
                ),
                (
                    {"type": "jsonEquals", "expected": {"x": 1}},
                    {"type": "jsonEquals", "expected": {"x": 2}},
                    "jsonEquals.x: 1 -> 2",
                ),
                (
                    {"type": "jsonPath", "path": "b", "check": {"type": "regex", "pattern": "a"}},
                    {"type": "jsonPath", "path": "b", "check": {"type": "regex", "pattern": "b"}},
                    "regex: a -> b",
                ),
                (
                    {"type": "number", "expected": 1, "within": 2},
                    {"type": "number", "expected": 1, "within": 3},
                    "within: 2 -> 3",
                ),
            )
        ),
    ],
)
def test_what_differs_between_two_evaluations(was: Json, now: Json, expected: str) -> None:
    assert [str(difference) for difference in differ_evaluations(was, now)] == [expected]


A, B, C = ({"type": "contains", "expected": [text]} for text in ("abc", "xyz", "ab"))
REFUND, REFUNDS = (
    {"type": "contains", "expected": [f"refund in {days} days"]} for days in (30, 14)
)
JSON, WORDS = {"type": "json"}, {"type": "words", "max": 9}


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ([A, B], [C, A, B], ["check 1 (contains) is new"]),
        ([A, B, JSON], [B, JSON], ["check 1 (contains) is gone"]),
        (
            [A, B],
            [JSON, C, B],
            ["check 1 (json) is new", "check 2 changed: contains: abc -> ab"],
        ),
        ([A, B], [JSON, B], ["check 1 changed: contains 'abc' -> json"]),
        ([A, JSON], [JSON, WORDS], ["check 2 (words) is new", "check 1 (contains) is gone"]),
        ([A, B], [B, A], ["order of the checks"]),
        ([A, A, B], [C, A, A, B], ["check 1 (contains) is new"]),
        (
            [A, B],
            [REFUND, C, B],
            ["check 1 (contains) is new", "check 2 changed: contains: abc -> ab"],
        ),
        (
            [A, REFUND],
            [REFUNDS, C],
            [
                "check 1 changed: contains: refund in 30 days -> refund in 14 days",
                "check 2 changed: contains: abc -> ab",
                "order of the checks",
            ],
        ),
    ],
    ids=[
        *("on top", "from the top", "similar", "another type", "two edits", "moved", "twice"),
        *("new and edited", "moved and edited"),
    ],
)
def test_checks_are_paired_by_content(
    was: list[Json], now: list[Json], expected: list[str]
) -> None:
    old, new = described_evaluation("a", *was), described_evaluation("a", *now)
    assert [str(difference) for difference in differ_evaluations(old, new)] == expected


def test_very_many_edited_checks_are_paired_in_their_order() -> None:
    was, now = (
        [{"type": "contains", "value": f"{edition}{n}"} for n in range(3_000)] for edition in "ab"
    )
    assert pair_checks(was, now) == {n: n for n in range(3_000)}


def test_options_of_a_model_are_named() -> None:
    was = hashing.describe_model(ModelVersion("p", "m", None, {"thinking": True}))
    now = hashing.describe_model(ModelVersion("p", "n", None, {"thinking": 1}))
    assert [str(difference) for difference in differ_models(was, now)] == [
        "model code: m -> n",
        "model thinking: true -> 1",
    ]


@pytest.mark.parametrize("answers", [["Rome"], [""]])
def test_recorded_answers_differ_in_their_text(answers: list[str]) -> None:
    was, now = (
        hashing.describe_model(ModelVersion("recorded", "recorded", None, {"answers": each}))
        for each in (answers, ["Oslo"])
    )
    (difference,) = differ_models(was, now)
    assert (difference.was, difference.now) == (*answers, "Oslo")
    assert difference.subject == "recorded answer"


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"a": [1, 2, 3]}, {"a": [1, 0, 3]}, ["a[1]: 2 -> 0"]),
        ({"a": [1, 2]}, {"a": [3, 4]}, ["a[0]: 1 -> 3", "a[1]: 2 -> 4"]),
        ({"a": [{"b": [1, [2]]}]}, {"a": [{"b": [1, [3]]}]}, ["a[0].b[1][0]: 2 -> 3"]),
        ([1, 2], [1, 3], ["[1]: 2 -> 3"]),
        (1, 2, ["content: 1 -> 2"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: [1] -> [1, 2]"]),
        (
            {"a": [1], "b": 1},
            {"b": True, "c": "x"},
            [
                "a: [1] -> removed",
                "b: 1 -> true",
                "c: not set -> x",
            ],
        ),
    ],
)
def test_a_difference_has_the_path_to_its_place(was: Json, now: Json, expected: list[str]) -> None:
    differences = differ_models(was, now)
    assert [str(difference) for difference in differences] == [f"model {text}" for text in expected]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=6,
)


@given(json_values, json_values)
def test_any_two_contents_differ_just_when_their_json_does(was: Json, now: Json) -> None:
    same = canonical_json(was) == canonical_json(now)
    assert (not differ_models({"a": was}, {"a": now})) == same


parts = st.lists(
    st.sampled_from(
        [Text("a"), Text("b"), Text("[file a.png]"), picture(), picture(id="2"), picture("b.png")]
    ),
    max_size=3,
)
versions = st.builds(
    lambda content, tags, tools, schema: shown(
        *content, special_tags=tuple(tags), tools=tuple(tools), schema=schema
    ),
    parts,
    st.lists(st.sampled_from(["_x", "_y"]), max_size=2),
    st.lists(st.sampled_from(["tool1", "tool2", "tool3"]), max_size=2),
    st.sampled_from([None, "schema1", "schema2"]),
)


@given(versions, versions)
def test_any_two_tests_differ_in_something_that_is_named(was: Json, now: Json) -> None:
    assert (not said_of(was, now)) == (was == now)


@given(st.text(alphabet="ab\n", max_size=12), st.text(alphabet="ab\n", max_size=12))
def test_the_lines_that_differ_make_the_new_text_of_the_old_one(was: str, now: str) -> None:
    changes = changed_lines(was, now)
    assert bool(changes) == (was != now)
    lines = Counter(was.split("\n"))
    lines.subtract(old for _, old, _ in changes if old is not None)
    lines.update(new for _, _, new in changes if new is not None)
    assert {line: n for line, n in lines.items() if line and n} == Counter(
        filter(None, now.split("\n"))
    )
    for number, old, new in changes:
        shown = was if new is None else now
        assert shown.split("\n")[number - 1] == (old if new is None else new)


@given(st.text(" ab", max_size=3), st.text(" ab", max_size=3))
def test_texts_of_one_line_differ_as_the_same_line_of_longer_ones(was: str, now: str) -> None:
    assert changed_lines(was, now) == changed_lines(f"{was}\nend", f"{now}\nend")


def test_a_new_paragraph_is_shown_and_not_the_blank_line_above_it() -> None:
    assert changed_lines("a", "a\n\nb") == [(3, None, "b")]
    assert changed_lines("a\n\nb", "a") == [(3, "b", None)]
    assert changed_lines("a", "a\n") == [(2, None, "")]


def test_a_line_before_a_text_does_not_replace_it() -> None:
    assert changed_lines("How?", "Hi.\nHow?\nBye.") == [(1, None, "Hi."), (3, None, "Bye.")]


def test_every_changed_line_is_named_up_to_a_few() -> None:
    was, now = ("\n".join(f"{word} {n}" for n in range(9)) for word in ("old", "new"))
    both = [{"messages": [{"role": "system", "content": text}]} for text in (was, now)]
    actual = list(map(str, differ_prompts(*both)))
    assert actual == [
        *(f"line {n + 1}: old {n} -> new {n}" for n in range(5)),
        "4 more changed lines",
    ]


@given(st.text(max_size=200), st.integers(8, 60))
def test_a_shortened_line_fits_its_width(text: str, width: int) -> None:
    assert len(shorten_line(text, width)) <= width


def test_a_unified_diff_has_the_names_of_both_sides() -> None:
    assert unified("a\nb", "a\nc", "one", "two") == [
        "--- one",
        "+++ two",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
    ]


def test_long_texts_that_differ_everywhere_are_compared_as_one_block() -> None:
    old = [f"line {n}" for n in range(30_000)]
    new = [f"line {n}" for n in reversed(range(30_000))]
    shown = unified("\n".join(["same", *old]), "\n".join(["same", *new]), "a", "b")
    assert shown[2] == "@@ -2,30000 +2,30000 @@"
    assert shown[3:] == [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]


def test_another_version_that_is_used_is_no_edit() -> None:
    named = in_place("schema", "place", "town")
    assert str(named) == "schema place in place of town"
    unnamed = in_place("system prompt", "brief")
    assert str(unnamed) == "system prompt brief in place of another system prompt"


def test_schemas_of_two_names_are_not_versions_of_one() -> None:
    contents = {"1": {"schema": {"type": "object"}}, "2": {"schema": {"type": "array"}}}
    names = {"1": "town", "2": "place"}
    [difference] = differ_tests(
        {"schema": "1"},
        {"schema": "2"},
        lambda _, id: contents[id],
        lambda _, id: names[id],
    )
    assert difference == in_place("schema", "place", "town")


@pytest.mark.parametrize(
    ("options", "text"),
    [({"answers": ["one", "two"]}, "one\ntwo"), ({"answers": -1}, ""), ({}, "")],
)
def test_recorded_answers_are_text_whatever_is_stored(options: dict[str, Any], text: str) -> None:
    assert recorded_text({"options": options}) == text
