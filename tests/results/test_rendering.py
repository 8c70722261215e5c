"""JSON that can be read, and nothing else that is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.parser import read_check
from evalstore.core.values import Reply, ToolCall
from evalstore.files.yaml12 import read_yaml
from evalstore.results.value_text import answer_text, check_yaml, pretty_json, references_of

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\{}[],: \n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(documents, st.sampled_from([None, 1]))
def test_json_is_laid_out_as_python_does(document: object, indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    expected = json.dumps(document, indent=2) if isinstance(document, list | dict) else text
    assert pretty_json(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "hello", "[not json", "{}x", "[" * 100_000, "[" * 100 + "]" * 100, '"text"', "12"],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert pretty_json(text) == text


def test_numbers_and_names_stay_as_they_are_written() -> None:
    assert pretty_json('{"a":1e5,"a":0.10}') == '{\n  "a": 1e5,\n  "a": 0.10\n}'


def test_what_is_very_long_stays_as_it_is() -> None:
    text = json.dumps(list(range(100_000)))
    assert pretty_json(text) is text


def test_an_answer_shows_calls_and_refusals() -> None:
    reply = Reply("Hm.", (ToolCall("look", {"at": 1}), ToolCall("go", "{bad")), refusal="No.")
    assert answer_text(reply) == (
        'Hm.\n\ncall look {\n  "at": 1\n}\n\ncall go {bad\n\n[The candidate refused: No.]'
    )
    assert answer_text(Reply(None)) == "[The candidate gave an empty answer]"


def test_an_answer_shows_why_it_was_cut() -> None:
    cut = Reply('{"a": 1}', finish_reason="length")
    assert answer_text(cut) == '{\n  "a": 1\n}\n\n[The token limit cut the answer off here]'
    withheld = Reply(None, finish_reason="content_filter")
    assert answer_text(withheld) == (
        "[There is no answer: the provider's content filter withheld it]"
    )


@pytest.mark.parametrize(
    "written",
    [
        "contains: hello",
        "containsAny: [a, b]\nignoreCase: true\nnormalize: [trim, nfc]\nname: either",
        f"containsAny:\n- {'a' * 40}\n- {'b' * 40}",
        "contains: hello\nnot: true\nname: polite",
        "length: {max: 25, unit: words}",
        "regex: ^\\d+$",
        "equals: |-\n  two\n  lines",
        "toolCalls:\n- name: check\n  arguments: {bike: cargo}",
        "number: 3\nop: '>='\nname: many\nscope: case",
        "noToolCalls",
        "equals: 'true'",
        "equals: '1e3'",
        "equals: '0o17'",
        "equals: é 漢字",
    ],
)
def test_a_check_is_shown_in_yaml_as_it_is_written(written: str) -> None:
    check = read_check(read_yaml(written).value)
    shown = check_yaml(check)
    assert read_check(read_yaml(shown).value) == check
    assert shown == written


def test_a_check_that_was_filled_in_is_shown_as_its_author_wrote_it() -> None:
    check = {
        "type": "contains",
        "revision": 1,
        "given": {"contains": "{{bike}}", "ignoreCase": True},
        "templates": [[["contains"], "{{bike}}"]],
        "turns": {"bike": 0},
    }
    assert check_yaml(check) == "contains: '{{bike}}'\nignoreCase: true"
    assert check_yaml({"type": "gone", "revision": 1, "limit": 3}) == "gone: {limit: 3}"
    assert check_yaml({"type": "gone", "text": "\x1b[31m"}) == 'gone: {text: "\\e[31m"}'


def test_a_check_from_the_store_has_its_settings_in_the_order_of_their_description() -> None:
    """The store sorts them; a judge's prompt and a schema are shown by their names."""
    judge: dict[str, Any] = {
        "choices": ["kind", "correct", "cold"],
        "pass": ">= 0.5",
        "prompts": ["4ebe72980000", "5ebe72980000"],
        "revision": 1,
        "scores": {"cold": 0, "correct": 0.5, "kind": 1},
        "type": "judge",
    }
    written = (
        "judge: {}\nchoices: [kind, correct, cold]\n"
        "scores: {{kind: 1, correct: 0.5, cold: 0}}\npass: '>= 0.5'"
    )
    names = dict.fromkeys(judge["prompts"], "tone")
    assert check_yaml(judge, names) == written.format("tone")
    one = {**judge, "prompts": judge["prompts"][:1]}
    assert check_yaml(one) == written.format("4ebe7298")
    schema = {"revision": 1, "schema": "9b793dc6d9ca", "type": "jsonSchema"}
    assert check_yaml(schema, {"9b793dc6d9ca": "booking"}) == "jsonSchema: booking"
    assert check_yaml(schema) == "jsonSchema: 9b793dc6"
    assert {*references_of([{"checks": [one, schema]}])} == {
        ("prompt", "4ebe72980000"),
        ("schema", "9b793dc6d9ca"),
    }
