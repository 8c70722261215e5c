"""Files that a configuration names, and values that promptfoo shows in its own way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import read_workspace
from tests.builders import Files
from tests.exchange.importers.importing import Made, imported

PATH = "tests/tests.md"
LONG = "n" * 300


def config(path: Path, text: str, files: Files | None = None) -> Made:
    return imported(path, "promptfoo", {"promptfooconfig.yaml": text, **(files or {})})


def asked(made: Made, path: str = PATH) -> list[str]:
    """The last message of each case."""
    return [messages[-1][1] for messages in made.messages(path)]


def unjudged(made: Made) -> list[str]:
    """The last message of each case of a file that nothing judges."""
    reading = read_workspace(WorkspaceFolder(made.root))
    assert ["never judged" in problem.message for problem in reading.problems] == [True]
    cases = reading.files[PATH].cases
    return [
        json.loads(reading.contents[case.tests[0]][1])["messages"][-1]["content"] for case in cases
    ]


# --- names of files -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [LONG, "a\\0b", "x/" + LONG])
@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("prompts: ['{{q}}', 'file://NAME']\ntests: [{vars: {q: a}}]\n", 1),
        ("prompts: ['{{q}}']\ntests:\n  - vars: {q: a}\n  - file://NAME\n", 4),
        ("prompts: ['{{q}}']\ntests:\n  - vars: {q: a}\n  - vars: {q: 'file://NAME'}\n", 4),
        ("prompts: ['{{q}}']\ntests:\n  - vars: {q: a}\n  - vars: 'NAME'\n", 4),
        (
            "prompts: ['{{q}}']\ntests:\n  - vars: {q: a}\n    assert:\n"
            "      - {type: contains, value: 'file://NAME'}\n",
            5,
        ),
        ("prompts: ['{{q}}']\ndefaultTest:\n  vars: {q: 'file://NAME'}\n", 3),
    ],
)
def test_a_name_that_no_file_can_have_is_reported_with_its_place(
    tmp_path: Path, lines: str, line: int, name: str
) -> None:
    text = lines.replace("'file://NAME'", f'"file://{name}"').replace("'NAME'", f'"{name}"')
    text = text.replace("- file://NAME", f'- "file://{name}"')
    made = config(tmp_path, text)
    ((file, at, reason),) = made.left
    assert (file, at) == ("promptfooconfig.yaml", line)
    assert len(reason) < 200


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("p/**/*.txt", ["a", "b"]),
        ("p/**", ["a", "b"]),
        ("p/a**t", ["a"]),
        ("p/**.txt", ["a"]),
        ("p/{a,none}.txt", ["a"]),
        ("p/{a,in/b}.txt", ["a", "b"]),
    ],
)
def test_patterns_find_files(tmp_path: Path, pattern: str, found: list[str]) -> None:
    files = {"p/a.txt": "a", "p/in/b.txt": "b"}
    text = f"prompts: ['{{{{q}}}}']\ntests: [{{vars: {{q: 'file://{pattern}'}}}}]\n"
    assert asked(config(tmp_path, text, files)) == found


def test_a_pattern_with_very_many_alternatives_is_reported(tmp_path: Path) -> None:
    text = f"prompts: ['{{{{q}}}}', 'file://{'{a,b}' * 20}*']\ntests: [{{vars: {{q: a}}}}]\n"
    made = config(tmp_path, text)
    assert "more than 100 alternatives" in made.left[0][2]


def test_files_of_a_referenced_test_are_beside_the_configuration(tmp_path: Path) -> None:
    text = "prompts: ['{{q}}']\ntests: [file://sub/t.yaml]\n"
    files = {
        "sub/t.yaml": "- vars: {q: file://v.txt}\n  assert: [{type: equals, value: file://e.txt}]\n",
        "v.txt": "above",
        "sub/v.txt": "beside",
        "e.txt": "yes",
        "sub/e.txt": "no",
    }
    made = config(tmp_path, text, files)
    assert asked(made) == ["above"]
    assert [made.verdict(PATH, answer) for answer in ("yes", "no")] == ["pass", "fail"]


def test_a_file_of_variables_is_beside_the_test_that_names_it(tmp_path: Path) -> None:
    text = "prompts: ['{{q}} {{r}}']\ntests: [file://sub/t.yaml]\n"
    files = {"sub/t.yaml": "- vars: [v.yaml, w.yaml]\n", "sub/v.yaml": "q: 1", "sub/w.yaml": "r: 2"}
    assert asked(config(tmp_path, text, files)) == ["1 2"]


def test_the_value_of_a_file_is_no_template(tmp_path: Path) -> None:
    text = (
        "prompts: ['{{q}}']\n"
        "tests: [{vars: {q: a}, assert: [{type: contains-any, value: ['file://e.txt']}]}]\n"
    )
    made = config(tmp_path, text, {"e.txt": "<{{q}}>"})
    assert [made.verdict(PATH, answer) for answer in ("<{{q}}>", "<a>")] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("l.yaml", "[a, 1e3, null]", '["a",1000,null]'),
        ("l.json", '["a", "b"]\n', '["a", "b"]'),
        ("o.yaml", "k: {n: 1.0}", '{"k":{"n":1}}'),
    ],
)
def test_a_list_in_a_file_is_one_value(tmp_path: Path, name: str, content: str, shown: str) -> None:
    text = f"prompts: ['{{{{q}}}}']\ntests: [{{vars: {{q: 'file://{name}'}}}}]\n"
    assert asked(config(tmp_path, text, {name: content})) == [shown]


def test_only_text_files_hold_several_prompts(tmp_path: Path) -> None:
    text = "prompts: [p.md]\ntests: [{vars: {q: a}}]\n"
    assert asked(config(tmp_path, text, {"p.md": "one\n\n---\n\ntwo"})) == ["one\n\n---\n\ntwo"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("# A note.\n\n---\n- role: user\n  content: 'Hi {{ q | default(\"x\") }}'\n", "Hi a"),
        ("- content: Hi {{q}}\n  role: user\n", "Hi a"),
        ("task: Say {{q}}\n", '{"task":"Say a"}'),
        ("Say {{q}}\n", "Say a"),
    ],
)
def test_prompts_in_yaml_are_messages_or_their_json(
    tmp_path: Path, content: str, shown: str
) -> None:
    text = "prompts: [file://p.yaml]\ntests: [{vars: {q: a}}]\n"
    assert config(tmp_path, text, {"p.yaml": content}).messages(PATH) == [[("user", shown)]]


# --- variables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ('Hi {{ name | default("a friend") }}', ["Hi Bo", "Hi a friend"]),
        ('Hi {{name|d("you")}}{{name}}', ["Hi BoBo", "Hi you"]),
        ("Hi{% if name is defined %} {{name}}{% endif %}", ["Hi Bo", "Hi"]),
        ("Hi{% if name %} {{name}}{% endif %}", ["Hi Bo", "Hi"]),
        ("Hi {{ name | upper }}", ["Hi BO", "Hi "]),
    ],
)
def test_a_variable_that_a_test_lacks_stays_undefined(
    tmp_path: Path, prompt: str, shown: list[str]
) -> None:
    made = config(
        tmp_path, f"prompts: ['{prompt}']\ntests: [{{vars: {{name: Bo}}}}, {{vars: {{}}}}]\n"
    )
    assert asked(made) == [text.strip() for text in shown]


def test_a_variable_that_no_test_has_stays_undefined(tmp_path: Path) -> None:
    text = (
        "prompts: ['Hi {{ name | default(\"a friend\") }}, {{name}}']\ntests: [{description: d}]\n"
    )
    assert asked(config(tmp_path, text)) == ["Hi a friend,"]


def test_an_expected_value_asks_for_a_variable(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ntests:\n"
        "  - {vars: {q: a}, assert: [{type: equals, value: '{{ w | default(\"x\") }}'}]}\n"
        "  - {vars: {q: b, w: y}, assert: [{type: equals, value: '{{ w | default(\"x\") }}'}]}\n",
    )
    assert [made.verdict(PATH, answer, row) for row, answer in enumerate("xy")] == ["pass"] * 2


def test_a_path_that_a_value_lacks_is_empty(tmp_path: Path) -> None:
    text = (
        "prompts: ['{{u.name}}/{{u.a.b}}{% for x in u.list %}{{x}}{% endfor %}']\n"
        "tests: [{vars: {u: {name: Bo}}}, {vars: {u: {a: {b: 1}, list: [2]}}}]\n"
    )
    assert asked(config(tmp_path, text)) == ["Bo/", "/12"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1e3", "1000"),
        ("1.0", "1"),
        ("1.5", "1.5"),
        ("null", ""),
        ("true", "true"),
        ('"x\\n"', "x"),
    ],
)
def test_values_are_shown_as_there(tmp_path: Path, value: str, shown: str) -> None:
    made = config(tmp_path, f"prompts: ['<{{{{q}}}}>']\ntests:\n  - vars:\n      q: {value}\n")
    assert asked(made) == [f"<{shown}>"]


def test_cells_keep_their_blanks(tmp_path: Path) -> None:
    made = config(tmp_path, "prompts: ['<{{q}}>']\ntests: t.csv\n", {"t.csv": 'q\n" a "\n'})
    assert asked(made) == ["< a >"]


# --- expected values ----------------------------------------------------------------------


def asserting(path: Path, assertion: str, files: Files | None = None, variable: str = "hi") -> Made:
    test = f"  - vars: {{q: '{variable}'}}\n    assert: [{assertion}]\n"
    text = f"prompts: ['{{{{q}}}}']\ntests:\n{test}"
    return config(path, text, files)


@pytest.mark.parametrize(
    ("assertion", "good", "bad"),
    [
        ("{type: contains-any, value: 'red, blue'}", "a blue one", "none"),
        ("{type: contains-all, value: 'red,,blue,'}", "blue red", "red"),
        ("{type: icontains-any, value: 'RED, \"a, b\"'}", "A, B", "a b"),
        ('{type: icontains-all, value: \'"say ""hi""", b\'}', 'B say "HI"', "say hi b"),
        ("{type: not-contains-any, value: 'red, blue'}", "green", "blue"),
        ("{type: not-icontains-all, value: 'red, blue'}", "red", "Blue Red"),
        ('{type: contains-any, value: \'"a\\"b"\'}', 'a"b', "a"),
        ("{type: contains-all, value: '{{q}}, end'}", "one two end", "one end"),
        ("{type: contains, value: 1e3}", "1000", "1e3"),
        ("{type: equals, value: 2.0}", "2", "2.0"),
        ("{type: contains-any, value: [null, true]}", "null", "none"),
        ("{type: equals, value: {a: '{{q}}'}}", '{"a": "{{q}}"}', '{"a": "one, two"}'),
        (
            "{type: is-json, value: 'type: object\\nrequired: [a]'}".replace("'", '"'),
            '{"a": 1}',
            "{}",
        ),
    ],
)
def test_values_expect_what_they_expect_there(
    tmp_path: Path, assertion: str, good: str, bad: str
) -> None:
    made = asserting(tmp_path, assertion, variable="one, two")
    assert [made.verdict(PATH, answer) for answer in (good, bad)] == ["pass", "fail"]
    assert made.left == []


def test_texts_are_split_row_by_row(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ndefaultTest: {assert: [{type: contains-all, value: '{{words}}'}]}\n"
        "tests: [{vars: {q: a, words: 'x, y'}}, {vars: {q: b, words: z}}]\n",
    )
    answers = [("y x", 0), ("x", 0), ("z", 1)]
    assert [made.verdict(PATH, answer, row) for answer, row in answers] == ["pass", "fail", "pass"]


def test_quotes_that_a_variable_leaves_open_are_reported(tmp_path: Path) -> None:
    made = asserting(tmp_path, "{type: contains-all, value: '{{q}}'}", variable='"a, b')
    assert "the quotes in the value of 'contains-all'" in made.left[0][2]
    assert [made.verdict(PATH, answer) for answer in ("a b", '"a, b')] == ["fail", "pass"]


def test_a_rule_in_a_rubric_is_text(tmp_path: Path) -> None:
    rule = '"Be kind\\n---\\n  ---\\nand short"'
    made = asserting(tmp_path, f"{{type: llm-rubric, value: {rule}}}")
    assert made.instructions(PATH) == ["Be kind\n---\n  ---\nand short"]


def test_a_rubric_that_is_given_twice_is_imported_once(tmp_path: Path) -> None:
    made = asserting(
        tmp_path, "{type: llm-rubric, value: Be kind}, {type: llm-rubric, value: Be kind}"
    )
    assert made.instructions(PATH) == ["Be kind"]


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ("{type: contains-any, value: '\"a'}", "the quotes in the value of 'contains-any'"),
        ("{type: is-json, value: '[1]'}", "is not a mapping of fields"),
        ("{type: is-json, value: 'a: ['}", "the schema of 'is-json'"),
    ],
)
def test_a_value_that_is_wrong_is_reported(tmp_path: Path, assertion: str, reason: str) -> None:
    ((_, line, message),) = asserting(tmp_path, assertion).left
    assert (line, reason in message) == (4, True)


def test_criteria_of_g_eval_are_instructions(tmp_path: Path) -> None:
    made = asserting(tmp_path, "{type: g-eval, value: [Be kind, 'Say {{q}}'], threshold: 0.8}")
    assert made.instructions(PATH) == ["Be kind\n\nSay hi"]
    assert "the 'threshold' of 'g-eval' is not imported: the judge passes or fails" in made.warnings


# --- tests of which nothing is left to judge ----------------------------------------------


def test_a_test_with_code_alone_keeps_its_question(tmp_path: Path) -> None:
    code = '{type: javascript, value: "output.length\\n< 5"}, {type: similar, value: Hello}'
    made = asserting(tmp_path, code)
    assert unjudged(made) == ["hi"]
    assert made.text(PATH).startswith("---\ndataset: tests.jsonl\n---\n")
    assert made.text(PATH).endswith("\n---\n")
    assert len(made.left) == 2


def test_a_test_that_nothing_judges_says_so(tmp_path: Path) -> None:
    made = config(tmp_path, "prompts: [x]\ntests: [{assert: [{type: webhook, value: u}]}]\n")
    assert unjudged(made) == ["x"]
    assert "description: asked, but not judged\n" in made.text(PATH)


def test_an_unknown_option_of_all_tests_loses_none(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ndefaultTest: {options: {timeout: 1000}}\ntests: [{vars: {q: a}}]\n",
    )
    assert asked(made) == ["a"]
    assert "a test's 'options.timeout' is not imported" in made.warnings
    assert made.left == []


def test_a_transform_of_all_answers_leaves_the_questions(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        "prompts: ['{{q}}']\ndefaultTest: {options: {transform: output.x}}\n"
        "tests: [{vars: {q: a}, assert: [{type: equals, value: a}]}]\n",
    )
    assert unjudged(made) == ["a"]
