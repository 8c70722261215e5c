"""Tables, providers and scenarios of promptfoo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.importers.importing import Made
from tests.exchange.importers.promptfoo.test_promptfoo_shapes import CHECKED, PATH, config


def table(path: Path, text: str) -> Made:
    return config(path, "prompts: ['{{q}}']\ntests: t.csv\n", {"t.csv": text})


def test_columns_without_a_name_go(tmp_path: Path) -> None:
    made = table(tmp_path, "q,__expected,\nhi,contains: x,\n")
    assert made.text("tests/tests.jsonl") == '{"q": "hi"}\n'


def test_grade_in_a_table_is_a_rubric(tmp_path: Path) -> None:
    made = table(tmp_path, "q,__expected\nhi,grade: is kind\n")
    assert made.text(PATH).endswith("---\n\nis kind\n")


@pytest.mark.parametrize("cell", ["fn: true", "eval: true", "file://a.js", "file://a.py:f"])
def test_code_in_a_table_is_code(tmp_path: Path, cell: str) -> None:
    made = table(tmp_path, f"q,__expected\nhi,{cell}\n")
    assert "code, which is not run" in str(made.left)


def test_a_table_sets_bounds_and_metrics(tmp_path: Path) -> None:
    made = table(
        tmp_path,
        "q,__expected1,__config:__expected1:threshold,__metric\nhi,levenshtein: abc,1,near\n",
    )
    assert "- levenshtein: {expected: abc, max: 1}\n  name: near\n" in made.text(PATH)


def test_a_bound_in_a_table_is_a_number(tmp_path: Path) -> None:
    made = table(tmp_path, "q,__expected,__config:__expected:threshold\nhi,bleu: abc,high\n")
    assert made.left == [("t.csv", 2, "a test: a bound is not a number: 'high'")]


def test_the_grader_of_texts_is_the_evaluator(tmp_path: Path) -> None:
    options = "{provider: {text: openai:gpt-4o, embedding: openai:embedding:x}}"
    made = config(tmp_path, f"prompts: [x]\ndefaultTest: {{options: {options}}}\n{CHECKED}")
    assert made.imported.settings == {"evaluators": ["openai/gpt-4o"]}


def test_providers_for_some_prompts_are_reported(tmp_path: Path) -> None:
    made = config(
        tmp_path, f"prompts: [x]\nproviders: [{{id: openai:gpt-4o, prompts: [a]}}]\n{CHECKED}"
    )
    assert made.warnings == [
        "the provider 'openai:gpt-4o' is for some prompts only: here every candidate gets all"
    ]


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("bedrock:converse:us.meta.llama3-1:0", "bedrock/converse/us.meta.llama3-1:0"),
        ("bedrock:arn:aws:x", "bedrock/arn:aws:x"),
        ("ollama:chat:llama3:8b", "ollama_chat/llama3:8b"),
    ],
)
def test_models_have_the_names_of_litellm(tmp_path: Path, name: str, id: str) -> None:
    made = config(tmp_path, f"prompts: [x]\nproviders: ['{name}']\n{CHECKED}")
    assert made.imported.settings == {"candidates": [id]}


@pytest.mark.parametrize("name", ["openai:embedding:e3", "openai:image:dall-e-3", "openai"])
def test_models_that_do_not_chat_are_left(tmp_path: Path, name: str) -> None:
    made = config(tmp_path, f"prompts: [x]\nproviders: ['{name}']\n{CHECKED}")
    assert f"the provider '{name}' names no model" in made.left[0][2]


# --- scenarios ----------------------------------------------------------------------------

SCENARIO = """\
config:
  - vars: {to: French, hello: Bonjour}
  - vars: {to: Dutch, hello: Hallo}
    assert: [{type: not-contains, value: hi}]
tests:
  - vars: {q: Hello}
    assert: [{type: contains, value: '{{hello}}'}]
"""


def test_every_test_of_a_scenario_meets_every_set_of_variables(tmp_path: Path) -> None:
    text = "prompts: ['{{to}}: {{q}}']\nscenarios: [file://s/*.yaml]\n"
    made = config(tmp_path, text, {"s/a.yaml": SCENARIO})
    assert made.left == []
    assert made.messages("tests/contains.md") == [[("user", "French: Hello")]]
    assert made.verdict("tests/not-contains.md", "Hallo, hi") == "fail"


def test_a_scenario_stands_beside_tests(tmp_path: Path) -> None:
    scenario = "".join(f"    {line}\n" for line in SCENARIO.splitlines())
    text = f"prompts: ['{{{{q}}}}']\n{CHECKED}scenarios:\n  -\n{scenario}"
    made = config(tmp_path, text)
    assert made.imported.rows == 3


@pytest.mark.parametrize(
    ("scenario", "line", "reason"),
    [
        ("{tests: []}", 3, "it needs a list 'config'"),
        ("{config: [$values: file://x.yaml]}", 3, "is in another file ('$values')"),
        ("file://none.yaml", 3, "file 'none.yaml' not found"),
    ],
)
def test_a_bad_scenario_is_reported(tmp_path: Path, scenario: str, line: int, reason: str) -> None:
    made = config(tmp_path, f"prompts: ['{{{{q}}}}']\n{CHECKED}scenarios: [{scenario}]\n")
    ((_, there, message),) = made.left
    assert (there, reason in message, made.imported.rows) == (line, True, 1)
