"""The results of an evaluation of promptfoo, as recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.importers.importing import Made, imported, lines

CONTAINS = {"type": "contains", "value": "{{city}}"}
RESULT: dict[str, Any] = {
    "cost": 0.5,
    "latencyMs": 20,
    "prompt": {"raw": "Where is Oslo?", "label": "Where is {{city}}?"},
    "promptIdx": 0,
    "provider": {"id": "openai:gpt-4o", "label": ""},
    "response": {"output": "In Norway, Oslo.", "tokenUsage": {"prompt": 4, "completion": 5}},
    "score": 1,
    "success": True,
    "testCase": {"vars": {"city": "Oslo"}, "assert": [CONTAINS], "options": {}},
    "testIdx": 0,
    "vars": {"city": "Oslo"},
}
FILE = "tests/openai-gpt-4o.md"


def output(*results: Any) -> str:
    """The file that `promptfoo eval -o results.json` writes."""
    document = {"evalId": "e", "results": {"version": 3, "results": list(results)}, "config": {}}
    return json.dumps(document, indent=1)


def made_of(path: Path, *results: Any) -> Made:
    """What is made of results in one file."""
    return imported(path, "promptfoo", {"results.json": output(*results)}, "results.json")


def test_an_answer_is_judged_by_the_assertions_of_its_test(tmp_path: Path) -> None:
    failed = {
        **RESULT,
        "testIdx": 1,
        "vars": {"city": "Bari"},
        "prompt": {"raw": "Where is Bari?"},
        "response": {"output": "In Italy."},
    }
    made = made_of(tmp_path, RESULT, failed)
    assert made.messages(FILE) == [[("user", "Where is Oslo?")], [("user", "Where is Bari?")]]
    answers = [answer or "" for answer in made.recorded(FILE)]
    assert answers == ["In Norway, Oslo.", "In Italy."]
    assert [made.verdict(FILE, text, row) for row, text in enumerate(answers)] == ["pass", "fail"]
    first, _ = made.text("tests/openai-gpt-4o.jsonl").splitlines()
    assert json.loads(first) == {
        "city": "Oslo",
        "id": "test-1-prompt-1",
        "input": [{"role": "user", "content": "Where is Oslo?"}],
        "answer": "In Norway, Oslo.",
        "recorded": {
            "model": "openai:gpt-4o",
            "usage": {"input_tokens": 4, "output_tokens": 5},
            "cost": 0.5,
            "latency_ms": 20,
            "success": True,
            "score": 1,
        },
    }


def test_results_may_be_json_lines(tmp_path: Path) -> None:
    source = {"r.jsonl": lines(RESULT, {**RESULT, "testIdx": 1})}
    made = imported(tmp_path, "promptfoo", source, "r.jsonl")
    assert made.recorded(FILE) == ["In Norway, Oslo."] * 2


def test_older_results_have_their_assertions_in_the_grades(tmp_path: Path) -> None:
    older = {name: value for name, value in RESULT.items() if name != "testCase"}
    graded = {"gradingResult": {"componentResults": [{"assertion": CONTAINS}]}}
    document = {"version": 2, "results": [{**older, **graded}]}
    source = {"r.json": json.dumps({"results": document})}
    assert imported(tmp_path, "promptfoo", source, "r.json").verdict(FILE, "Rome") == "fail"


def test_a_prompt_of_messages_and_an_answer_in_json(tmp_path: Path) -> None:
    chat = [{"role": "developer", "content": "Be brief"}, {"role": "user", "content": "Hi"}]
    result = {**RESULT, "prompt": {"raw": json.dumps(chat)}, "response": {"output": {"a": "Oslo"}}}
    made = made_of(tmp_path, result)
    assert made.messages(FILE) == [[("system", "Be brief"), ("user", "Hi")]]
    assert made.recorded(FILE) == ['{"a": "Oslo"}']


CALLS = [
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": "1, 1"}}]},
    {"role": "tool", "content": "2"},
]


@pytest.mark.parametrize(
    ("raw", "messages"),
    [
        ("[INST] Hi [/INST]", [("user", "[INST] Hi [/INST]")]),
        ("[1, 2]", [("user", "[1, 2]")]),
        (
            json.dumps(CALLS),
            [("user", "1 + 1?"), ("assistant", "[calls add(1, 1)]"), ("user", "[result] 2")],
        ),
        (
            "- role: system\n  content: a\n- role: user\n  content: b",
            [("system", "a"), ("user", "b")],
        ),
        ('[{"role": "user", "content": "{{ a }}"}]', [("user", "{{ a }}")]),
    ],
)
def test_a_prompt_is_read_as_it_was_sent(
    tmp_path: Path, raw: str, messages: list[tuple[str, str]]
) -> None:
    made = made_of(tmp_path, {**RESULT, "prompt": {"raw": raw}})
    assert made.messages(FILE) == [messages]
    assert made.warnings == []


@pytest.mark.parametrize("in_yaml", [True, False])
def test_a_prompt_with_a_picture_has_a_test_of_its_own(tmp_path: Path, in_yaml: bool) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
    content = [{"type": "text", "text": "Where?"}, image]
    raw = f"- role: user\n  content: {json.dumps(content)}\n"
    if not in_yaml:
        raw = json.dumps([{"role": "user", "content": content}])
    values = {"input": "Oslo"}
    made = made_of(tmp_path, {**RESULT, "prompt": {"raw": raw}, "vars": values}, RESULT)
    path = "tests/openai-gpt-4o-pictures.md"
    assert made.shown(path) == [[("Where?", "https://a.example/b.png")]]
    assert made.recorded(path) == made.recorded(FILE) == ["In Norway, Oslo."]


def test_variables_keep_their_names(tmp_path: Path) -> None:
    values = {"Answer": "Oslo", "id": 7}
    test = {"assert": [{"type": "contains", "value": "{{Answer}}"}]}
    result = {**RESULT, "vars": values, "testCase": test}
    made = made_of(tmp_path, result, {**result, "promptIdx": 1})
    assert made.recorded(FILE) == ["In Norway, Oslo."] * 2
    assert made.verdict(FILE, "Oslo") == "pass"
    assert [case.row for case in made.read().files[FILE].cases] == [
        "recorded_id=test-1-prompt-1",
        "recorded_id=test-1-prompt-2",
    ]


def test_providers_have_tests_of_their_own(tmp_path: Path) -> None:
    other = {**RESULT, "provider": {"id": "openai:gpt-4o", "label": "hot"}}
    made = made_of(tmp_path, RESULT, other)
    assert [name for name in made.imported.files if name.endswith(".md")] == [
        FILE,
        "tests/hot.md",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"response": {"error": "x"}}, "the result has no answer: the call failed (result 1)"),
        ({"prompt": {}}, "the result does not contain its prompt (result 1)"),
    ],
)
def test_a_result_that_lacks_a_part_is_reported(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    made = made_of(tmp_path, {**RESULT, **change})
    assert ("results.json", None, reason) in made.left
    assert made.imported.files == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"testCase": {"assert": [{"type": "cost", "threshold": 1}]}},
            "an assertion: 'cost' judges the call, and recorded answers have none",
        ),
        (
            {"testCase": {"assert": [{"type": "javascript", "value": "1"}]}},
            "an assertion: 'javascript' is code, which is not run",
        ),
        (
            {"testCase": {"assert": [{"type": "contains", "value": "file://../secret"}]}},
            "an assertion: file '../secret' not found",
        ),
    ],
)
def test_an_answer_that_nothing_judges_is_kept_without_a_verdict(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    made = made_of(tmp_path, {**RESULT, **change})
    assert ("results.json", None, reason) in made.left
    assert made.text(FILE).endswith("\n---\n")


def test_half_a_surrogate_pair_breaks_nothing(tmp_path: Path) -> None:
    half = "\ud800"
    test = {"assert": [{"type": "contains", "value": half}], "description": half}
    made = made_of(tmp_path, {**RESULT, "vars": {half: half}, "testCase": test})
    assert made.recorded(FILE) == ["In Norway, Oslo."]
