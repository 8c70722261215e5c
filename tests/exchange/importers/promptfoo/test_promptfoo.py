"""Configurations of promptfoo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Reply
from tests.builders import Files
from tests.exchange.importers.importing import Made, imported

PATH = "tests/tests.md"


def config(path: Path, text: str, files: Files | None = None) -> Made:
    return imported(path, "promptfoo", {"promptfooconfig.yaml": text, **(files or {})})


def with_assertion(path: Path, assertion: str, value: str = "Oslo") -> Made:
    return config(
        path,
        f"prompts: ['Where is {{{{city}}}}?']\n"
        f"tests:\n  - vars: {{city: {value}}}\n    assert: [{assertion}]\n",
    )


def test_a_prompt_and_its_tests_become_one_readable_test(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['Translate `{{text}}` to {{language}}']\ntests:\n"
        "  - vars: {text: Hi, language: French}\n    assert: [{type: icontains, value: bonjour}]\n"
        "  - vars: {text: Bye, language: Dutch}\n    assert: [{type: icontains, value: dag}]\n",
    )
    assert made.text(PATH) == (
        "---\ndataset: tests.jsonl\n---\n\n# 👤\n\n"
        'Translate {{ "`" }}{{text}}` to {{language}}\n\n---\n\n'
        "~~~checks\n- {contains: '{{ expected }}', ignoreCase: true}\n~~~\n"
    )
    assert made.messages(PATH)[1] == [("user", "Translate `Bye` to Dutch")]
    assert [made.verdict(PATH, "Dag!", row) for row in (0, 1)] == ["fail", "pass"]


def test_lists_of_values_are_combined(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{a}}{{b}}']\n"
        "tests: [{vars: {a: ['1', '2'], b: [x, y]}, assert: [{type: regex, value: .}]}]",
    )
    assert [messages[0][1] for messages in made.messages(PATH)] == ["1x", "1y", "2x", "2y"]


@pytest.mark.parametrize(
    ("assertion", "good", "bad"),
    [
        ("{type: equals, value: It is here}", "It is here", "it is here"),
        ("{type: equals, value: {a: 1}}", '{"a": 1.0}', '{"a": 2}'),
        ("{type: contains, value: 42}", "a 42 b", "a 41 b"),
        ("{type: not-contains, value: sorry}", "yes", "I am sorry"),
        ("{type: contains-any, value: [a, b]}", "xb", "xc"),
        ("{type: icontains-all, value: [A, b]}", "aB", "a"),
        ("{type: starts-with, value: 'Yes'}", "Yes, so", "So: Yes"),
        ("{type: contains, value: '{{city}}'}", "in Oslo", "in Rome"),
        ("{type: regex, value: '^\\d+$'}", "12", "a12"),
        ("{type: is-json}", "[1]", "{x"),
        ("{type: is-json, value: {type: object, required: [a]}}", '{"a": 1}', "{}"),
        ("{type: levenshtein, value: kitten, threshold: 3}", "sitting", "sittings"),
        ("{type: word-count, value: {max: 2}}", "two words", "three words here"),
        ("{type: is-refusal}", "I'm sorry, but I can't help with that.", "Sure!"),
        ("{type: assert-set, assert: [{type: contains, value: a}]}", "a", "b"),
    ],
)
def test_assertions_are_checks(tmp_path: Path, assertion: str, good: str, bad: str) -> None:
    made = with_assertion(tmp_path, assertion)
    assert [made.verdict(PATH, answer) for answer in (good, bad)] == ["pass", "fail"]


def test_milliseconds_become_seconds(tmp_path: Path) -> None:
    made = with_assertion(tmp_path, "{type: latency, threshold: 1500}")
    slow, fast = Reply("x", latency=1.6), Reply("x", latency=1.4)
    assert [made.verdict(PATH, reply) for reply in (fast, slow)] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("assertion", "words"),
    [
        ("{type: javascript, value: 'true'}", "is code, which is not run"),
        ("{type: similar, value: x}", "needs a model for embeddings"),
        ("{type: contains-json}", "'json: {fenced: true}' finds it in a code block"),
        ("{type: not-llm-rubric, value: x}", "write what must hold instead"),
        ("{type: is-valid-openai-tools-call}", "has no check here"),
        ("{type: cost}", "costs are always stored"),
    ],
)
def test_assertions_without_a_check_are_left_with_their_line(
    tmp_path: Path, assertion: str, words: str
) -> None:
    made = with_assertion(tmp_path, f"{{type: contains, value: a}}, {assertion}")
    (item,) = made.left
    assert item[:2] == ("promptfooconfig.yaml", 4)
    assert words in item[2]
    assert made.verdict(PATH, "a") == "pass"


def test_rubrics_are_given_to_the_judge(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{a}}']\ntests:\n"
        "  - {vars: {a: 1}, assert: [{type: llm-rubric, value: 'is {{a}}'}]}\n"
        "  - {vars: {a: 2}, assert: [{type: llm-rubric, value: is nice}]}\n",
    )
    assert made.instructions(PATH) == ["is 1", "is nice"]


def test_tests_with_other_assertions_are_another_test(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{a}}']\ndefaultTest: {assert: [{type: latency, threshold: 9000}]}\ntests:\n"
        "  - {vars: {a: 1}, assert: [{type: equals, value: x}]}\n"
        "  - {vars: {a: 2}, assert: [{type: is-json}]}\n",
    )
    assert sorted(made.imported.files) == [
        "tests/equals.jsonl",
        "tests/equals.md",
        "tests/is-json.jsonl",
        "tests/is-json.md",
    ]
    assert made.text("tests/equals.md").endswith("- latency: 9\n- equals: x\n~~~\n")


def test_a_threshold_is_a_share_of_the_weights(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: [x]\ntests:\n  - threshold: 0.5\n    assert:\n"
        "      - {type: contains, value: a, weight: 3}\n      - {type: contains, value: b}\n",
    )
    assert [made.verdict(PATH, answer) for answer in ("a", "b")] == ["pass", "fail"]


def test_variables_of_the_default_test_and_of_files(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{tone}} {{text}} {{data}}{{data.k}} {{missing}}!']\n"
        "defaultTest: {vars: {tone: kind}}\n"
        "tests: [{vars: {text: file://t.txt, data: file://d.json}, assert: [{type: is-json}]}]",
        {"t.txt": "Hello\n", "d.json": '{"k": 7}'},
    )
    assert made.messages(PATH) == [[("user", 'kind Hello {"k": 7} !')]]


def test_names_that_are_not_columns_here_are_found(tmp_path: Path) -> None:
    text = (
        "prompts: ['{{userName | upper}} {{item}}']\n"
        "tests: [{vars: {userName: Bo, item: x}, assert: [{type: is-json}]}]"
    )
    assert config(tmp_path, text).messages(PATH) == [[("user", "BO x")]]


def test_prompts_are_texts_files_and_conversations(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "S {{a}}"}, {"role": "user", "content": "U"}]
    made = config(
        tmp_path,
        "prompts: [file://p.txt, {id: file://chat.json, label: My chat}, file://gen.py]\n"
        "tests: [{vars: {a: 1}, assert: [{type: is-json}]}]",
        {"p.txt": "one {{a}}\n---\ntwo", "chat.json": json.dumps(chat)},
    )
    assert sorted(path for path in made.imported.files if path.endswith(".md")) == [
        "tests/My-chat.tests.md",
        "tests/p-1.tests.md",
        "tests/p-2.tests.md",
    ]
    assert made.messages("tests/My-chat.tests.md") == [[("system", "S 1"), ("user", "U")]]
    assert made.left == [
        ("promptfooconfig.yaml", 1, "a prompt: 'file://gen.py' is code, which is not run")
    ]


def test_structure_in_a_prompt_is_text(tmp_path: Path) -> None:
    text = "a <!-- b -->\n---\n# 👤 c\n{# gone #}```"
    document = json.dumps({"prompts": [text], "tests": [check()]}, indent="\t")
    made = imported(tmp_path, "promptfoo", {"promptfooconfig.json": document})
    assert made.messages(PATH) == [[("user", "a <!-- b -->\n---\n# 👤 c\n```")]]


def check() -> dict[str, Any]:
    return {"assert": [{"type": "is-json"}]}


def test_tables_bring_tests(tmp_path: Path) -> None:
    table = (
        "q,__expected,__expected2,__description\n"
        '1,Note: this,"contains-any: a,b",first\n2,Two,"contains-any: c,d",\n'
    )
    made = config(tmp_path, "prompts: ['{{q}}']\ntests: file://t.csv\n", {"t.csv": table})
    assert made.text(PATH).endswith(
        "- equals: '{{ expected }}'\n- containsAny: '{{ expected_2 }}'\n~~~\n"
    )
    assert '"expected": "Note: this"' in made.text("tests/tests.jsonl")


def test_a_bad_test_is_reported_and_the_good_ones_are_written(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{a}}']\ntests:\n  - {vars: {a: 1}, assert: [{type: is-json}]}\n"
        "  - {vars: {a: file://none.txt}, assert: [{type: is-json}]}\n"
        "  - {vars: {a: 2}, options: {transform: x}, assert: [{type: is-json}]}\n  - oops\n",
    )
    assert [item[1] for item in made.left] == [4, 6, 5]
    assert made.imported.rows == 2


def test_providers_become_settings_to_paste(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: [x]\nproviders:\n  - openai:chat:gpt-4o\n  - {id: 'ollama:chat:llama3', config: "
        "{temperature: 0.7, apiKey: sk-1}}\n  - python:x.py\n"
        "defaultTest: {options: {provider: 'anthropic:messages:claude'}}\n"
        "evaluateOptions: {repeat: 3}\ntests: [{assert: [{type: is-json}]}]\n",
    )
    assert made.imported.settings == {
        "attempts": 3,
        "candidates": ["openai/gpt-4o", {"id": "ollama_chat/llama3", "temperature": 0.7}],
        "evaluators": ["anthropic/claude"],
    }
    assert made.left == [
        (
            "promptfooconfig.yaml",
            5,
            "the provider 'python:x.py' names no model that can be imported",
        )
    ]


def test_a_model_at_an_address_is_called_there(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: [x]\nproviders:\n"
        "  - {id: 'openai:chat:a/b', config: {apiBaseUrl: 'http://desk:80/v1', apiKeyEnvar: K}}\n"
        "  - {id: 'openai:chat:c', config: {apiBaseUrl: 'http://desk:80/v1', max_tokens: 5}}\n"
        "  - {id: 'openai:chat:d', config: {apiBaseUrl: '{{env.BASE}}'}}\n"
        "tests: [{assert: [{type: is-json}]}]\n",
    )
    assert made.imported.settings == {"candidates": ["a/b", "c"]}
    assert made.text("models/a-b.yaml") == (
        "id: a/b\nprovider: desk-80-v1-K\nproviderModelCode: a/b\n"
    )
    assert made.text("providers/desk-80-v1-K.yaml") == (
        "code: desk-80-v1-K\ntype: openai-compatible\nbaseURL: http://desk:80/v1\napiKeyEnvVar: K\n"
    )
    assert "apiKeyEnvVar" not in made.text("providers/desk-80-v1.yaml")
    assert [reason for _, _, reason in made.left] == [
        "openai:chat:d: 'apiBaseUrl' is not an address of a server"
    ]
    assert made.warnings == [
        "the provider 'openai:chat:c': not imported from its 'config': max_tokens"
    ]


def test_tests_without_assertions_let_everything_pass_and_that_is_reported(tmp_path: Path) -> None:
    made = config(tmp_path, "prompts: [x]\ntests: [{vars: {}}]\n")
    assert made.verdict(PATH, "") == "pass"
    assert made.warnings == ["tests without assertions: every answer passes"]


def test_a_folder_without_a_configuration_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match="no promptfoo configuration"):
        imported(tmp_path, "promptfoo", {"a.txt": "x"})


def test_lists_that_make_very_many_cases_are_reported_and_left_out(tmp_path: Path) -> None:
    values = json.dumps([f"v{n}" for n in range(300)])
    made = config(
        tmp_path,
        "prompts: ['{{a}}{{b}}{{c}}{{d}}']\n"
        f"tests:\n- vars: {{a: {values}, b: {values}, c: {values}, d: {values}}}\n"
        "  assert: [{type: contains, value: x}]\n"
        "- vars: {a: a, b: b, c: c, d: d}\n"
        "  assert: [{type: contains, value: x}]\n",
    )
    assert any("make more than 20,000 cases" in reason for _, _, reason in made.left)
    assert [messages[0][1] for messages in made.messages(PATH)] == ["abcd"]
