"""Configurations of promptfoo in the shapes in which people keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Files
from tests.exchange.importers.importing import Made, imported

PATH = "tests/tests.md"
CHECKED = "tests: [{vars: {q: hi}, assert: [{type: contains, value: x}]}]\n"


def config(path: Path, text: str, files: Files | None = None) -> Made:
    return imported(path, "promptfoo", {"promptfooconfig.yaml": text, **(files or {})})


# --- prompts ------------------------------------------------------------------------------


def test_a_bad_prompt_of_a_file_leaves_the_others(tmp_path: Path) -> None:
    prompts = "{{ q | shout }}\n---\nSay {{q}}\n"
    made = config(tmp_path, f"prompts: [p.txt]\n{CHECKED}", {"p.txt": prompts})
    assert (made.messages(PATH), len(made.left)) == ([[("user", "Say hi")]], 1)
    assert "the prompt 'p-1'" in made.left[0][2]


def test_prompts_are_a_mapping_from_files_to_labels(tmp_path: Path) -> None:
    text = f"prompts:\n  p.txt: short\n  'Tell: {{{{q}}}}': long\n{CHECKED}"
    made = config(tmp_path, text, {"p.txt": "{{q}}"})
    assert made.messages("tests/short.tests.md") == [[("user", "hi")]]
    assert made.messages("tests/long.tests.md") == [[("user", "Tell: hi")]]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("{{ q | dump }}", "hi"),
        ("{{q|dump}}", "hi"),
        ('"{{ q }} {{ {"a": "b"}["a"] }}"', "hi b"),
        ('"{% if q == "hi" %}yes{% endif %}"', "yes"),
        (r'"\"{{q}}\""', '"hi"'),
    ],
)
def test_conversations_in_json_hold_templates(tmp_path: Path, content: str, shown: str) -> None:
    prompt = f'[{{"role": "system", "content": "S"}}, {{"role": "user", "content": {content}}}]'
    made = config(tmp_path, f"prompts: [file://p.json]\n{CHECKED}", {"p.json": prompt})
    assert made.messages(PATH) == [[("system", "S"), ("user", shown)]]


def test_messages_that_only_a_filled_template_has_are_left(tmp_path: Path) -> None:
    prompt = '[{% for one in q %}{"role": "user", "content": "{{one}}"},{% endfor %}]'
    made = config(tmp_path, f"prompts: [file://p.json]\n{CHECKED}", {"p.json": prompt})
    assert (made.imported.files, made.left[0][1]) == ({}, 1)
    assert "not JSON before its template is filled" in str(made.left)


def test_a_prompt_with_the_answers_to_other_tests_is_left(tmp_path: Path) -> None:
    prompt = '[{% for one in _conversation %}{"role": "user", "content": "x"},{% endfor %}]'
    made = config(tmp_path, f"prompts: [file://p.json]\n{CHECKED}", {"p.json": prompt})
    assert "'_conversation'" in str(made.left)


def test_developers_speak_as_the_system(tmp_path: Path) -> None:
    prompt = '[{"role": "developer", "content": "S"}, {"role": "user", "content": "{{q}}"}]'
    made = config(tmp_path, f"prompts: [file://p.json]\n{CHECKED}", {"p.json": prompt})
    assert made.messages(PATH) == [[("system", "S"), ("user", "hi")]]


def test_a_configuration_that_asks_nothing_is_reported(tmp_path: Path) -> None:
    made = config(tmp_path, "targets: [openai:gpt-4o]\nredteam: {purpose: x}\n")
    assert made.imported.files == {}
    assert ("promptfooconfig.yaml", 1, "it has neither prompts nor tests") in made.left


# --- assertions ---------------------------------------------------------------------------


def asserting(path: Path, assertions: str, more: str = "", files: Files | None = None) -> Made:
    text = f"prompts: ['{{{{q}}}}']\ntests:\n  - vars: {{q: hi}}\n    assert:\n{assertions}{more}"
    return config(path, text, files)


def test_a_reference_stands_for_what_it_points_to(tmp_path: Path) -> None:
    more = "assertionTemplates:\n  loud: {type: icontains, value: arr, weight: 2}\n"
    made = asserting(
        tmp_path, "      - $ref: '#/assertionTemplates/loud'\n        weight: 1\n", more
    )
    assert (made.left, made.verdict(PATH, "ARR")) == ([], "pass")


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ("$ref: '#/assertionTemplates/none'", "no '#/assertionTemplates/none'"),
        ("$ref: '#/assertionTemplates/loop'", "its reference leads to itself"),
        ("type: assert-set\n        threshold: 0.5\n        assert: []", "its own threshold"),
        ("type: assert-set\n        weight: 2\n        assert: []", "its own weight"),
        ("type: assert-set\n        assert: {type: equals}", "without a list"),
        ("type: equals\n        value: x\n        transform: output.name", "'transform' changes"),
        ("value: x", "it has no 'type'"),
        (
            "type: llm-rubric\n        value: x\n        rubricPrompt: Rate it",
            "is the judge's prompt",
        ),
        ("type: contains\n        value: file://a.js", "is code"),
        ("type: contains\n        value: file://none.txt", "file 'none.txt' not found"),
    ],
)
def test_one_bad_assertion_leaves_the_others(tmp_path: Path, assertion: str, reason: str) -> None:
    more = "assertionTemplates:\n  loop: {$ref: '#/assertionTemplates/loop'}\n"
    made = asserting(
        tmp_path, f"      - {assertion}\n      - type: contains\n        value: ok\n", more
    )
    assert made.verdict(PATH, "ok") == "pass"
    ((file, line, message),) = made.left
    assert (file, line, reason in message) == ("promptfooconfig.yaml", 5, True)


def test_assertions_that_are_no_list_are_left(tmp_path: Path) -> None:
    more = "defaultTest: {assert: [{type: contains, value: ok}]}\n"
    made = config(
        tmp_path,
        f"{more}prompts: ['{{{{q}}}}']\ntests:\n  - vars: {{q: x}}\n    assert: {{type: equals}}\n",
    )
    assert made.left == [("promptfooconfig.yaml", 5, "an assertion: 'assert' is not a list")]
    assert made.verdict(PATH, "ok") == "pass"


def test_an_assertion_with_the_weight_0_decides_nothing_and_is_left_out(tmp_path: Path) -> None:
    made = asserting(
        tmp_path,
        "      - {type: contains, value: no, weight: 0}\n      - {type: contains, value: ok}\n",
    )
    assert made.verdict(PATH, "ok") == "pass"
    ((_, line, message),) = made.left
    assert (line, "'contains' has the weight 0: it only measures" in message) == (5, True)


def test_a_value_may_be_in_a_file(tmp_path: Path) -> None:
    made = asserting(
        tmp_path,
        "      - {type: is-json, value: file://s.json}\n      - {type: contains, value: file://t.txt}\n",
        files={"s.json": '{"type": "object"}', "t.txt": "key\n"},
    )
    assert [made.verdict(PATH, answer) for answer in ('{"key": 1}', "[]", "{}")] == [
        "pass",
        "fail",
        "fail",
    ]


def test_what_a_judge_is_not_shown_is_listed(tmp_path: Path) -> None:
    made = asserting(
        tmp_path, "      - {type: llm-rubric, value: Be kind, provider: x, weight: 2, metric: m}\n"
    )
    assert made.warnings == [
        "'provider' and 'weight' and 'metric' of 'llm-rubric' are not imported"
    ]


def test_an_assertion_of_all_tests_is_reported_where_it_stands(tmp_path: Path) -> None:
    text = (
        "prompts: ['{{q}}']\ntests: t.csv\ndefaultTest:\n  assert:\n    - type: javascript\n"
        "    - type: bleu\n      value: x\n"
    )
    made = config(tmp_path, text, {"t.csv": "q,__expected\na,contains: b\n"})
    assert [item[:2] for item in made.left] == [("promptfooconfig.yaml", 5)]
    (warning,) = made.imported.warnings
    assert (Path(warning.file).name, warning.line) == ("promptfooconfig.yaml", 6)


def test_an_empty_cell_expects_nothing(tmp_path: Path) -> None:
    text = (
        "prompts: ['{{q}}']\ntests: t.csv\n"
        "defaultTest: {assert: [{type: contains, value: '{{ word }}'}]}\n"
    )
    made = config(tmp_path, text, {"t.csv": "q,word\na,b\nc,\n"})
    assert [made.verdict(PATH, "x", row) for row in (0, 1)] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("transform: output.x", "'options.transform' changes the answer before it is judged"),
        ("transformVars: vars", "'options.transformVars' changes what is asked by code"),
        ("storeOutputAs: x", "'options.storeOutputAs' has no counterpart in evalstore"),
    ],
)
def test_options_that_mean_more_leave_the_test(tmp_path: Path, option: str, reason: str) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ntests:\n"
        f"  - {{vars: {{q: a}}, options: {{{option}}}, assert: [{{type: equals, value: a}}]}}\n",
    )
    assert reason in str(made.left)


def test_a_list_of_anything_but_texts_is_one_value(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{% for one in q %}{{ one.a }};{% endfor %}']\n"
        "tests: [{vars: {q: [{a: 1}, {a: 2}]}, assert: [{type: equals, value: a}]}]\n",
    )
    assert made.messages(PATH) == [[("user", "1;2;")]]


def test_values_are_filled_with_values(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ntests:\n"
        "  - {vars: {q: 'Dear {{ who }}, {{none}} {{n}}', who: '{{a}} B', a: A, n: 3}, "
        "assert: [{type: equals, value: a}]}\n",
    )
    assert made.messages(PATH) == [[("user", "Dear A B, {{none}} 3")]]


def test_values_that_name_themselves_come_to_an_end(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['Hi {{q}}']\n"
        "tests: [{vars: {q: '{{q}}'}, assert: [{type: equals, value: a}]}]\n",
    )
    assert made.messages(PATH) == [[("user", "Hi {{q}}")]]


def test_a_list_is_one_value_when_it_is_not_to_be_expanded(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ntests:\n  - {vars: {q: [a, b]}, options: {disableVarExpansion: true}, "
        "assert: [{type: equals, value: a}]}\n",
    )
    assert len(made.messages(PATH)) == 1


def test_what_is_merged_belongs_to_the_test(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\nx-checks: &checks [{type: contains, value: a}]\ntests:\n"
        "  - &first {vars: {q: one}, assert: *checks}\n"
        "  - {<<: *first, vars: {q: two}}\n  - {<<: [{description: d}, *first]}\n",
    )
    assert (made.left, made.warnings) == ([], [])
    assert made.messages(PATH) == [[("user", text)] for text in ("one", "two", "one")]


# --- pictures -----------------------------------------------------------------------------


def picture(path: Path, *parts: str, role: str = "user") -> Made:
    prompt = f'[{{"role": "{role}", "content": [{", ".join(parts)}]}}]'
    case = "{vars: {q: hi, url: 'https://x.example/a.png'}, assert: [{type: contains, value: x}]}"
    return config(path, f"prompts: [file://p.json]\ntests: [{case}]\n", {"p.json": prompt})


TEXT = '{"type": "text", "text": "What is it, {{q}}?"}'
IMAGE = '{"type": "image_url", "image_url": {"url": "{{url}}"}}'


def test_a_picture_is_shown_behind_its_text(tmp_path: Path) -> None:
    made = picture(tmp_path, TEXT, IMAGE)
    assert made.left == []
    assert "content: 'What is it, {{q}}?'" in made.text(PATH)
    assert "image: '{{url}}'" in made.text(PATH)
    made.read()


@pytest.mark.parametrize(
    ("parts", "role", "reason"),
    [
        ((TEXT, IMAGE, IMAGE), "user", "shows several pictures"),
        ((IMAGE,), "system", "is not the user's"),
        (('{"type": "input_audio"}',), "user", "a part of the type 'input_audio'"),
        (('{"type": "image_url", "image_url": {"url": "data:x"}}',), "user", "has no address"),
        (('"text"',), "user", "a part of the type 'None'"),
    ],
)
def test_pictures_that_have_no_place_are_left(
    tmp_path: Path, parts: tuple[str, ...], role: str, reason: str
) -> None:
    assert reason in picture(tmp_path, *parts, role=role).left[0][2]
