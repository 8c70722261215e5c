"""Repositories of LVE are imported as a person would write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import ImportOptions
from evalstore.exchange.importers.lve.reader import read
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.reader import read_workspace
from tests.builders import shown, tree
from tests.exchange.importers.judged import expansion
from tests.exchange.importers.lve.repository import (
    definition,
    imported,
    instance,
    reasons,
    texts,
)
from tests.exchange.importers.running import imported_and_run, verdicts_of

SUM = {"checker_name": "LambdaChecker", "func": "lambda r, a, b: int(r) == int(a) + int(b)"}
ASKED = [{"content": "Compute {a} + {b}."}]


def text_of(result: object, name: str = "tests/trust/colours/acme--m1.md") -> str:
    return texts(result)[name]  # type: ignore[arg-type]


def body(text: str) -> str:
    """What stands below the frontmatter."""
    return text.split("---\n", 2)[2]


def test_a_test_becomes_a_file_as_a_person_would_write_it(tmp_path: Path) -> None:
    test = definition(
        description="Sums are computed.",
        model="openai/gpt-4",
        prompt=ASKED,
        prompt_parameters=["a", "b"],
        checker_args=SUM,
        tags=[{"name": "severity", "value": "low"}, {"name": "paper", "value": "some paper"}],
        author="ann",
    )
    args = [{"a": "3", "b": "1"}, {"a": "2", "b": "5"}, {"a": "3", "b": "1"}]
    result = imported(tmp_path, test, *[instance(arg) for arg in args])
    assert text_of(result) == (
        "---\n"
        "# From LVE: trust/colours/acme--m1, by ann\n"
        "# some paper\n"
        "description: Sums are computed.\n"
        "tags: [trust, severity-low, openai/gpt-4]\n"
        "options: {temperature: 0}\n"
        "replacements:\n- {a: '3', b: '1'}\n- {a: '2', b: '5'}\n"
        "---\n\n"
        "# 👤\n\n"
        "Compute {{a}} + {{b}}.\n\n"
        "---\n\n"
        "~~~checks\n"
        "- expr: int(answer) == int(a) + int(b)\n"
        "~~~\n"
    )
    assert (result.rows, result.left, result.warnings) == (2, [], [])
    assert result.settings == {
        "candidates": [{"id": "openai/gpt-4", "requiredTags": ["openai/gpt-4"], "temperature": 0}]
    }


def test_many_rows_stand_in_a_file_beside_the_test(tmp_path: Path) -> None:
    test = definition(prompt=[{"content": "{phone-no}"}], prompt_parameters=["phone-no"])
    result = imported(tmp_path, test, *[instance({"phone-no": str(number)}) for number in range(9)])
    assert "dataset: acme--m1.jsonl\n" in text_of(result)
    assert body(text_of(result)).startswith("\n# 👤\n\n{{phone_no}}\n")
    data = texts(result)["tests/trust/colours/acme--m1.jsonl"]
    assert data.splitlines()[:2] == ['{"phone_no": "0"}', '{"phone_no": "1"}']


@pytest.mark.parametrize("value", ["{{b}}", " 1", "two\nlines", 7, ["x"], "x" * 100])
def test_values_that_are_not_short_texts_stand_in_the_data(value: Json, tmp_path: Path) -> None:
    test = definition(prompt=[{"content": "Say {a}."}], prompt_parameters=["a"])
    result = imported(tmp_path, test, instance({"a": value}))
    assert json.loads(texts(result)["tests/trust/colours/acme--m1.jsonl"]) == {"a": value}


def test_importing_twice_is_importing_once(tmp_path: Path) -> None:
    test = definition(prompt=ASKED, prompt_parameters=["a", "b"], checker_args=SUM)
    lines = [instance({"a": "1", "b": "2"}, "3")]
    assert imported(tmp_path, test, *lines) == imported(tmp_path, test, *lines)


# --- prompts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("Say {a}.\n", {"a": "x"}),
        ("  {a}", {"a": "x"}),
        ("{a}", {"a": "ends with a line end\n"}),
        ("Use `{a}` here", {"a": "x"}),
        ("{{{a}}}", {"a": "x"}),
        ("{{{{a}}}} {a}", {"a": "x"}),
        ("{{% raw %}} {a}", {"a": "x"}),
        ("<!-- {a} -->", {"a": "x"}),
        ("```\n{a}", {"a": "x"}),
        ("one\n---\n{a}", {"a": "x"}),
        ("# 👤\n{a}", {"a": "x"}),
        ("```html\n<!-- {a} -->\n```", {"a": "x"}),
        ("{a:04d} {b[0]} {c:.1f}", {"a": 7, "b": ["p"], "c": 0.25}),
        ("{a}", {"a": "{{b}} {% raw %}"}),
    ],
)
def test_a_model_is_shown_what_lve_showed_it(
    content: str, values: dict[str, Json], tmp_path: Path
) -> None:
    test = definition(prompt=[{"content": content}], prompt_parameters=list(values))
    expanded = expansion(imported(tmp_path, test, instance(values)))
    assert shown(expanded) == [[("user", content.format(**values))]]


def test_messages_that_do_not_take_turns_stand_in_the_frontmatter(tmp_path: Path) -> None:
    result = imported(tmp_path, definition(prompt=[{"content": "One."}, {"content": "Two."}]))
    messages = "messages:\n- {role: user, content: One.}\n- {role: user, content: Two.}\n"
    assert messages in text_of(result)
    assert shown(expansion(result)) == [[("user", "One."), ("user", "Two.")]]


def test_turns_of_the_assistant_are_not_filled(tmp_path: Path) -> None:
    prompt = [
        {"content": "Say {a}."},
        {"role": "assistant", "content": "{a} {{a}} {{"},
        {"content": "Again."},
    ]
    test = definition(prompt=prompt, prompt_parameters=["a"])
    ((_, content, _),) = shown(expansion(imported(tmp_path, test, instance({"a": "x"}))))
    assert content == ("assistant", "{a} {{a}} {{")


def test_runs_share_how_they_begin(tmp_path: Path) -> None:
    system = {"role": "system", "content": "Be brief."}
    runs = [
        {"name": "up", "repetitions": 2, "prompt": [system, {"content": "1 + 2"}]},
        {"prompt_file": "down.prompt"},
    ]
    files = {"down.prompt": json.dumps(system) + '\n{"content": "2 + 1"}\n'}
    result = imported(tmp_path, definition(multi_run_prompt=runs), files=files)
    assert body(text_of(result)).partition("\n---")[0] == (
        "\n# ⚙️\n\nBe brief.\n\n# ▶ up ×2\n\n# 👤\n\n1 + 2\n\n# ▶ run 2\n\n# 👤\n\n2 + 1\n"
    )


def test_a_prompt_may_be_a_text(tmp_path: Path) -> None:
    result = imported(tmp_path, definition(prompt="Hello there"))
    assert shown(expansion(result)) == [[("user", "Hello there")]]


def test_a_text_with_parameters_is_filled(tmp_path: Path) -> None:
    run = {"name": "a", "prompt": "Say {a} {{now}}"}
    test = definition(multi_run_prompt=[run], prompt_parameters=["a"])
    result = imported(tmp_path, test, instance({"a": "x"}, ["r"]))
    assert shown(expansion(result)) == [[("user", "Say x {now}")]]


@pytest.mark.parametrize(
    ("text", "reason"), [("", "is empty"), (" <please fill in> ", "has not been filled in")]
)
def test_a_text_without_content_is_reported(text: str, reason: str, tmp_path: Path) -> None:
    assert reason in reasons(imported(tmp_path, definition(prompt=text)))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"content": "A"}\n\n{"content": "B"}\n', 2, "is not JSON"),
        ('\n{"content": "A"}\n{"content": "B"}', 1, "is not JSON"),
        ('{"content": "A"}\n{"content": "B"\n', 2, "is not JSON: Expecting ',' delimiter"),
        ('{"content": "A"\n{"content": "B"}\n', 1, "is not JSON: Expecting ',' delimiter"),
        ('{content: "A"}\n{"content": "B"}\n', 1, "is not JSON"),
        ('{\n "content": "A",\n "role": user\n}', 3, "is not JSON: Expecting value"),
        ('{"content": "A"}\n{"content": "B", "role": "tool"}', 2, 'has the role "tool"'),
        ('{"content": "A"}\n[]\n', 2, "message 2 is [], not a mapping"),
    ],
)
def test_a_broken_line_of_a_prompt_is_reported_with_its_file(
    text: str, line: int | None, reason: str, tmp_path: Path
) -> None:
    result = imported(tmp_path, definition(prompt_file="t.prompt"), files={"t.prompt": text})
    (left,) = result.left
    assert (Path(left.file).name, left.line) == ("t.prompt", line)
    assert reason in left.reason


@pytest.mark.parametrize("text", ['{{"a": 1}} is JSON.', 'Intro\n{{"content":"B"}}\n'])
def test_a_text_with_braces_is_a_text(text: str, tmp_path: Path) -> None:
    result = imported(tmp_path, definition(prompt_file="t.prompt"), files={"t.prompt": text})
    assert shown(expansion(result)) == [[("user", text.format())]]


def test_a_conversation_cannot_begin_with_a_turn_to_be_filled(tmp_path: Path) -> None:
    prompt = [{"role": "assistant", "variable": "a"}, {"content": "And?"}]
    result = imported(tmp_path, definition(prompt=prompt))
    assert "the conversation begins with a turn to be filled" in reasons(result)


@pytest.mark.parametrize(
    ("place", "tags"),
    [
        ("trust/colours", "[trust, dummy/dummy]"),
        ("trust/colours/acme--m1", "[trust, dummy/dummy]"),
        ("trust/colours/hue/acme--m1", "[trust, colours, dummy/dummy]"),
        ("alone", "[dummy/dummy]"),
    ],
)
def test_categories_of_a_path_are_tags(place: str, tags: str, tmp_path: Path) -> None:
    result = imported(tmp_path, definition(), place=place)
    assert f"tags: {tags}\n" in text_of(result, f"tests/{place}.md")


def test_a_prompt_file_outside_of_the_test_is_not_read(tmp_path: Path) -> None:
    tree(tmp_path, {"secret.prompt": "hidden"})
    result = imported(tmp_path, definition(prompt_file="../../../../secret.prompt"))
    assert "outside the test's folder" in reasons(result)


# --- rows and recorded answers ------------------------------------------------------------


def test_a_bad_instance_costs_one_line(tmp_path: Path) -> None:
    test = definition(prompt=[{"content": "{a}"}], prompt_parameters=["a"])
    result = imported(
        tmp_path, test, instance({"a": "1"}), "{\n", instance({}), instance({"a": "2"})
    )
    assert [(Path(left.file).name, left.line) for left in result.left] == [
        ("all.jsonl", 2),
        ("all.jsonl", 3),
    ]
    assert result.rows == 2


def test_a_test_with_parameters_and_no_instances_is_left(tmp_path: Path) -> None:
    test = definition(prompt=[{"content": "{a}"}], prompt_parameters=["a"])
    assert "no instance says what its parameters are" in reasons(imported(tmp_path, test))


def test_recorded_answers_come_along_when_they_are_asked_for(tmp_path: Path) -> None:
    test = definition(model="openai/gpt-4", prompt=ASKED, prompt_parameters=["a", "b"])
    args = {"a": "3", "b": "1", "temperature": 0.5, "top_p": None}
    result = imported(tmp_path, test, instance(args, "4", passed=False), sessions=True)
    (recorded,) = result.recorded
    assert recorded.file == "tests/trust/colours/acme--m1.md"
    assert recorded.values == {"a": "3", "b": "1"}
    assert (recorded.answers, recorded.verdict, recorded.temperature) == ((("4",),), "fail", 0.5)
    assert (recorded.model, recorded.started) == ("openai/gpt-4", 1_698_010_110_000_000)
    assert imported(tmp_path, test, instance(args)).recorded == []


def test_answers_have_the_order_of_their_turns(tmp_path: Path) -> None:
    prompt = [
        {"content": "One"},
        {"role": "assistant", "variable": "x"},
        {"content": "Two"},
    ]
    lines = [instance({}, {"response": "second", "x": "first"}), instance({}, "alone")]
    result = imported(tmp_path, definition(prompt=prompt), *lines, sessions=True)
    assert [answer.answers for answer in result.recorded] == [(("first", "second"),)]
    assert reasons(result) == "it has one answer, the test has 2"


def test_each_run_has_an_answer(tmp_path: Path) -> None:
    runs = [{"prompt": [{"content": "One"}], "repetitions": 2}, {"prompt": [{"content": "Two"}]}]
    line = instance({}, ["a", "b", "c"])
    result = imported(tmp_path, definition(multi_run_prompt=runs), line, sessions=True)
    assert [answer.answers for answer in result.recorded] == [(("a",), ("b",), ("c",))]


def test_an_answer_to_other_messages_keeps_them(tmp_path: Path) -> None:
    kept = [{"content": "Hi", "role": "user"}, {"content": "r", "role": "assistant"}]
    same = [{"content": "Hello", "role": "user"}, {"content": "r", "role": "assistant"}]
    lines = [instance({}, prompt_out=kept), instance({}, prompt_out=same)]
    result = imported(tmp_path, definition(), *lines, sessions=True)
    assert [answer.messages for answer in result.recorded] == [((("user", "Hi", None),),), None]
    assert result.left == []


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        ([{"role": "tool", "content": "x"}], "the recorded prompt is not a list of messages"),
        ([{"role": "user", "content": None}], "the recorded prompt is not a list of messages"),
        (["text"], "the recorded prompt is not a list of messages"),
        ([{"role": "system", "content": "x"}], "recorded with say nothing to the model"),
        (
            [{"role": "assistant", "content": "x", "variable": "a"}, {"content": "y"}],
            "recorded with say nothing to the model",
        ),
        ([{"content": "y", "image_url": "a.png"}], '"a.png" is not the URL of an image'),
    ],
)
def test_a_kept_prompt_that_cannot_be_one_is_reported(
    kept: list[Json], reason: str, tmp_path: Path
) -> None:
    result = imported(tmp_path, definition(), instance({}, prompt_out=kept), sessions=True)
    assert reason in reasons(result)
    assert [item.line for item in result.left] == [1]


def test_a_picture_or_a_temperature_that_is_none_stops_nothing(tmp_path: Path) -> None:
    shown = [
        {"content": "x", "image_url": "https://a/\ud83d"},
        {"content": "r", "role": "assistant"},
    ]
    lines = instance({"temperature": 10**400}), instance({}, prompt_out=shown)
    result = imported(tmp_path, definition(), *lines, sessions=True)
    assert reasons(result) == '"https://a/\ud83d" is not the URL of an image (https://…)'
    assert [answer.temperature for answer in result.recorded] == [None]


def test_an_older_name_of_the_kept_prompt_is_read(tmp_path: Path) -> None:
    lines = [
        instance({}, prompt=[{"content": content, "role": "user"}]) for content in ("Hi", "Hello")
    ]
    result = imported(tmp_path, definition(), *lines, sessions=True)
    assert [answer.messages for answer in result.recorded] == [((("user", "Hi", None),),), None]


# --- what a checker takes of the arguments of a model ----------------------------------------


def test_arguments_of_a_checker_may_name_those_of_the_model(tmp_path: Path) -> None:
    test = definition(
        prompt=[{"content": "Say {a}."}],
        prompt_parameters=["a"],
        checker_args={"checker_name": "RegexChecker", "pattern": "{target}", "match_safe": True},
    )
    lines = [instance({"a": "x", "target": "t1"}), instance({"a": "z", "target": "t2"})]
    result = imported(tmp_path, test, *lines)
    assert (result.left, result.warnings) == ([], [])
    assert "replacements:\n- {a: x, target: t1}\n- {a: z, target: t2}\n" in text_of(result)
    assert "regex: '{{target}}'" in text_of(result)
    assert "providerOptions" not in text_of(result)
    assert shown(expansion(result)) == [[("user", "Say x.")], [("user", "Say z.")]]


def test_an_instance_without_what_the_checker_names_is_reported(tmp_path: Path) -> None:
    arguments = {"checker_name": "ExactMatchChecker", "pattern": "{target}"}
    lines = [instance({"target": "t"}), instance({})]
    result = imported(tmp_path, definition(checker_args=arguments), *lines)
    assert [(left.line, left.reason) for left in result.left] == [
        (2, "the instance has no value for 'target'")
    ]


def test_a_name_that_no_instance_has_is_reported(tmp_path: Path) -> None:
    arguments = {"checker_name": "ExactMatchChecker", "pattern": "{target}"}
    result = imported(tmp_path, definition(checker_args=arguments), instance({}))
    assert "'{target}' names no parameter" in reasons(result)


def test_an_option_of_the_model_that_a_checker_names_stays_an_option(tmp_path: Path) -> None:
    arguments = {"checker_name": "ExactMatchChecker", "pattern": "{max_tokens}"}
    result = imported(tmp_path, definition(checker_args=arguments), instance({"max_tokens": 7}))
    assert "options: {temperature: 0, maxOutputTokens: 7}" in text_of(result)
    assert "contains: '{{max_tokens}}'" in text_of(result)


@pytest.mark.parametrize(
    ("func", "written"),
    [
        ("lambda r: '{secret}' in r", "- expr: secret in answer\n"),
        (
            "lambda r: re.search('{secret}', r)",
            "- python:\n    file: acme--m1/check.py\n    class: Check\n"
            "    args: {secret: '{{secret}}'}\n",
        ),
    ],
)
def test_a_function_may_name_arguments_of_the_model(
    func: str, written: str, tmp_path: Path
) -> None:
    arguments = {"checker_name": "LambdaChecker", "func": func}
    lines = [instance({"secret": "s"})]
    result = imported(tmp_path, definition(checker_args=arguments), *lines)
    assert result.left == []
    assert text_of(result).partition("~~~checks\n")[2].removesuffix("~~~\n") == written


@pytest.mark.parametrize("checker", ["RegexChecker", "ExactMatchChecker"])
def test_a_pattern_takes_the_arguments_of_the_call_as_texts(tmp_path: Path, checker: str) -> None:
    arguments: dict[str, Json] = {
        "checker_name": checker,
        "pattern": "{temperature}",
        "match_safe": True,
    }
    numbers: tuple[Json, ...] = (0.7, 1.0, 1, True)
    lines = [instance({"temperature": number}) for number in numbers]
    result = imported(tmp_path, definition(checker_args=arguments), *lines)
    root = tree(tmp_path / "workspace", {"evalstore.yaml": "", **result.files})
    reading = read_workspace(WorkspaceFolder(root))
    assert reading.problems == []
    ids = [case.evaluation for file in reading.files.values() for case in file.cases]
    checks = [json.loads(reading.contents[str(id)][1])["checks"][0] for id in ids]
    expected = [check.get("pattern") or check["expected"][0] for check in checks]
    assert expected == ["0.7", "1.0", "1", "True"]


def test_what_all_calls_were_made_with_becomes_options(tmp_path: Path) -> None:
    args: dict[str, Json] = {"temperature": 0.5, "max_tokens": 9}
    checker: dict[str, Json] = {"checker_name": "ExactMatchChecker", "pattern": "x"}
    test = definition(default_model_args={"do_sample": True}, checker_args=checker)
    result = imported(tmp_path, test, instance(args), instance({**args, "top_p": 0.1}))
    options = "  temperature: 0.5\n  providerOptions: {do_sample: true}\n  maxOutputTokens: 9\n"
    assert f"options:\n{options}" in text_of(result)
    assert [warning.reason for warning in result.warnings] == [
        "the recorded calls differ in top_p; none of them is set"
    ]


# --- checkers -----------------------------------------------------------------------------


def checks(tmp_path: Path, arguments: dict[str, Json], **values: Json) -> str:
    """The checks that stand for a checker."""
    prompt = "".join(f"{{{name}}}" for name in values) or "q"
    test = definition(
        prompt=[{"content": prompt}], prompt_parameters=list(values), checker_args=arguments
    )
    result = imported(tmp_path, test, instance(values))
    assert result.left == []
    return text_of(result).partition("~~~checks\n")[2].removesuffix("~~~\n")


@pytest.mark.parametrize(
    ("func", "expression"),
    [
        ("lambda r, n: n in r", "n in answer"),
        ("lambda answer, n: answer == n", "answer == n"),
        ("lambda r, n: r.find('x') and 1", "bool(answer.find('x') and 1)"),
        ("lambda r, n: r.startswith('a') or not r", "answer.startswith('a') or not answer"),
        ("lambda r, n: r == 'is {n}!'", "answer == 'is ' + n + '!'"),
        ("lambda r, n: int(r) > {n}", "int(answer) > int(n)"),
        ("lambda r, n: all(x == n for x in r.split())", "all(x == n for x in answer.split())"),
    ],
)
def test_a_function_becomes_an_expression(func: str, expression: str, tmp_path: Path) -> None:
    written = checks(tmp_path, {"checker_name": "LambdaChecker", "func": func}, n="7")
    assert expression.replace("'", "") in written.replace("'", "")
    assert written.startswith("- expr: ")


@pytest.mark.parametrize(
    "func",
    [
        "lambda r, n: re.match(n, r) is not None",
        "lambda r, n: r in set(n)",
        "lambda r, n: any(n for n in r)",
        "lambda r, n: (lambda x: x == n)(r)",
    ],
)
def test_a_function_that_is_not_an_expression_becomes_a_python_file(
    func: str, tmp_path: Path
) -> None:
    written = checks(tmp_path, {"checker_name": "LambdaChecker", "func": func}, n="7")
    check = "    file: acme--m1/check.py\n    class: Check\n    args: {n: '{{n}}'}\n"
    assert written == f"- python:\n{check}"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("{n}", "would be code"),
        ("r.{n}()", "where Python allows no value"),
        ("r == f'{n} {{r}}'", "where Python allows no value"),
    ],
)
def test_no_value_becomes_code(tmp_path: Path, code: str, reason: str) -> None:
    test = definition(
        prompt=[{"content": "{n}"}],
        prompt_parameters=["n"],
        checker_args={"checker_name": "LambdaChecker", "func": f"lambda r, n: {code}"},
    )
    result = imported(tmp_path, test, instance({"n": "__import__('os')"}))
    assert reason in reasons(result)


def test_nothing_is_run(tmp_path: Path) -> None:
    source = "raise SystemExit(1)\nclass Zed:\n    pass\n"
    test = definition(checker_args={"checker_name": "Zed"})
    result = imported(tmp_path, test, files={"checker/checker.py": source})
    assert texts(result)["tests/trust/colours/acme--m1/checker.py"] == source


def test_a_class_sees_parameters_that_stand_nowhere_else(tmp_path: Path) -> None:
    source = "class Zed:\n    pass\n"
    test = definition(
        prompt=[{"content": "{a}"}],
        prompt_parameters=["a", "b"],
        checker_args={"checker_name": "Zed"},
    )
    lines = [instance({"a": "1", "b": "2"})]
    result = imported(tmp_path, test, *lines, files={"checker/checker.py": source})
    assert "name: Zed of {{b}}" in text_of(result)


def test_a_classifier_becomes_instructions(tmp_path: Path) -> None:
    test = definition(checker_args={"checker_name": "ToxicityChecker", "toxicity_threshold": 0.9})
    result = imported(tmp_path, test)
    assert "\n---\n\nThe answer must not be toxic" in text_of(result)
    assert "in evalstore a model judges" in result.warnings[0].reason


def test_functions_over_answers_with_names_find_them(tmp_path: Path) -> None:
    turns = [{"content": "q"}, {"role": "assistant", "variable": "x"}, {"content": "q2"}]
    func = "lambda rs: rs[0]['x'] == rs[1]['response'] and len(rs) == 2"
    test = definition(
        multi_run_prompt=[{"prompt": turns}, {"prompt": turns}],
        checker_args={"checker_name": "MultiRunLambdaChecker", "func": func},
    )
    assert "x[0] == answers[1] and len([{" in text_of(imported(tmp_path, test))


# --- from end to end ----------------------------------------------------------------------


def test_a_folder_without_tests_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match=r"no 'test\.json'"):
        read([tmp_path], ImportOptions("lve"))


def test_a_repository_runs_to_the_verdicts_of_lve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    years = {f"year{number}": str(year) for number, year in enumerate((2030, 2010), 1)}
    sprint = [
        {"content": "{year1}?"},
        {"role": "assistant", "variable": "answer1"},
        {"content": "{year2}?"},
        {"role": "assistant", "variable": "answer2"},
    ]
    order = {
        "checker_name": "MonotonicityChecker",
        "order": "desc",
        "answer_value_regex": r"\[A=([0-9.]+)\]",
        "answer_variable_identifier_regex": "answer([0-9]+)",
        "param_variable_identifier_regex": "year([0-9]+)",
    }
    joint = {
        "checker_name": "MultiRunLambdaChecker",
        "func": "lambda rs, a, b: all(int(r) == int(a) + int(b) for r in rs)",
    }
    runs = [
        {"prompt": [{"content": "{a} + {b}"}], "repetitions": 2},
        {"prompt": [{"content": "{b} + {a}"}]},
    ]
    leak = {"checker_name": "ExactMatchChecker", "pattern": "{code}"}
    tests: dict[str, tuple[dict[str, Json], list[str]]] = {
        "math/sum/m": (
            definition(prompt=ASKED, prompt_parameters=["a", "b"], checker_args=SUM),
            [instance({"a": "1", "b": "2"}), instance({"a": "1", "b": "5"})],
        ),
        "math/joint/m": (
            definition(multi_run_prompt=runs, prompt_parameters=["a", "b"], checker_args=joint),
            [instance({"a": "1", "b": "2"}, ["3"] * 3), instance({"a": "4", "b": "5"}, ["9"] * 3)],
        ),
        "trust/sprint/m": (
            definition(prompt=sprint, prompt_parameters=list(years), checker_args=order),
            [instance(years, {"answer1": "a", "answer2": "b"})],
        ),
        "trust/leak/m": (
            definition(
                prompt=[{"content": "The code is {code}.\n"}],
                prompt_parameters=["code"],
                checker_args=leak,
            ),
            [instance({"code": f"code {number}"}) for number in range(7)],
        ),
    }
    for name, (test, lines) in tests.items():
        folder = f"source/repository/{name}"
        tree(
            tmp_path,
            {
                f"{folder}/test.json": json.dumps(test),
                f"{folder}/instances/all.jsonl": "".join(lines),
            },
        )
    answers = [
        {"when": r"Compute", "answer": "3"},
        {"when": r"5 \+ 4", "answer": "10"},
        {"when": r"4 \+ 5", "answer": "9"},
        {"when": r"1 \+ 2|2 \+ 1", "answer": "3"},
        {"when": r"2010", "answer": "[A=10]"},
        {"when": r"2030", "answer": "[A=9.5]"},
        {"when": "code 3", "answer": "it is code 3"},
        {"answer": "no"},
    ]
    verdicts = verdicts_of(imported_and_run(tmp_path, capsys, "lve", answers))
    assert verdicts == {
        "math/joint/m.md::a=1": "pass",
        "math/joint/m.md::a=4": "fail",
        "math/sum/m.md::b=2": "pass",
        "math/sum/m.md::b=5": "fail",
        "trust/sprint/m.md::": "pass",
        **{f"trust/leak/m.md::code=code {number}": "pass" for number in (0, 1, 2, 4, 5, 6)},
        "trust/leak/m.md::code=code 3": "fail",
    }
