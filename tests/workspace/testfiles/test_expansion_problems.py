"""What is told of a file and its rows: problems with their places and hints, and dependencies."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evalstore.core import hashing
from evalstore.core.errors import FileProblem, LimitProblem, Problem
from evalstore.core.values import DEFAULT_PROMPT
from evalstore.files.datasets import Dataset
from evalstore.workspace.testfiles import expansion
from evalstore.workspace.testfiles.case_builder import CaseBuilder
from evalstore.workspace.testfiles.context import KEPT_AT_ONCE, Definitions, ExpandedFile
from evalstore.workspace.testfiles.expansion import expand_test
from evalstore.workspace.testfiles.parser import parse_prompt, parse_test
from evalstore.workspace.testfiles.template_filling import expand_prompt
from tests.builders import HELLO, expanded, library, test_file

# --- what a file says of its cases


def test_a_file_says_how_often_by_whom_and_from_when_on_its_cases_pass() -> None:
    actual = expanded(test_file("id: x", "attempts: 3", "evaluators: [j]", "threshold: 0.5")).file
    assert actual is not None
    assert (actual.id, actual.attempts, actual.evaluators, actual.threshold) == (
        "x",
        3,
        ("j",),
        0.5,
    )


def test_what_a_file_depends_on_is_kept_with_the_ids_it_had() -> None:
    known = library(
        {"a.txt": b"alpha"},
        prompts={"p": ("1", "2")},
        tools={"w": "3"},
        data={"q.jsonl": '{"q": "a"}\n'},
    )
    head = (
        "systemPrompts: [null, p, gone]",
        "availableTools: [w, gone]",
        "dataset: q.jsonl",
    )
    expanded_file = expanded(test_file(*head, shown="{{ q }} {{_file:a.txt}}"), known)
    assert expanded_file.dependencies == {
        "dataset:q.jsonl": hashing.hash_bytes(b'{"q": "a"}\n'),
        "columns": ["q"],
        "prompt:p": ["1", "2"],
        "prompt:gone": [],
        "tool:w": "3",
        "tool:gone": None,
    }
    assert [(problem.message, problem.line) for problem in expanded_file.problems] == [
        ("unknown system prompt 'gone'", 2),
        ("unknown tool 'gone'", 3),
    ]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (("systemPrompts:", "  - a", "  - gone"), 4),
        (("availableTools:", "  - w", "  - gone"), 4),
    ],
)
def test_an_unknown_id_is_reported_with_its_own_line(lines: tuple[str, ...], place: int) -> None:
    known = library(prompts={"a": ("1",)}, tools={"w": "1"})
    (problem,) = expanded(test_file(*lines), known).problems
    assert problem.line == place


def test_a_file_depends_on_its_schema() -> None:
    expanded_file = expanded(test_file("structuredResponseSchema: s"), library(schemas={"s": "4"}))
    assert expanded_file.dependencies == {"schema:s": "4"}


def test_an_evaluator_prompt_is_not_a_system_prompt() -> None:
    known = replace(library(), evaluator_prompts={"strict": ("1",)})
    (problem,) = expanded(test_file("systemPrompts: [strict]"), known).problems
    assert problem.hint == "it is a judge prompt (tag '_evaluator'), not a system prompt"


def test_data_that_cannot_be_opened_is_a_problem_of_the_file() -> None:
    def fail(_spec: object, _test: str) -> tuple[Dataset, str]:
        raise FileProblem("it is gone", 2, hint="bring it back")

    expanded_file = expanded(test_file("dataset: q.jsonl"), replace(library(), open_data=fail))
    assert expanded_file.problems == [Problem("tests/t.md", "it is gone", 2, hint="bring it back")]
    assert expanded_file.file is None


def test_a_file_that_could_not_be_read_comes_to_nothing() -> None:
    test = replace(parse_test("tests/t.md", HELLO), readable=False)
    assert expand_test(test, library()) == ExpandedFile()


def test_contents_go_to_the_sink_when_there_are_many() -> None:
    taken: dict[str, tuple[str, str]] = {}
    numbers = ", ".join(map(str, range(KEPT_AT_ONCE)))
    text = test_file(f"replacements: {{n: [{numbers}]}}", shown="{{n}}")
    test = parse_test("tests/t.md", text)
    result = expand_test(test, library(), lambda contents, _files: taken.update(contents))
    assert len(taken) == KEPT_AT_ONCE
    assert {**taken, **result.contents} == expand_test(test, library()).contents


# --- rows that cannot be filled


def broken_rows(*rows: str) -> list[tuple[int | None, str]]:
    text = test_file("dataset: q.jsonl", shown="{{ 1 // n }}{{ m }}")
    expanded_file = expanded(text, library(data={"q.jsonl": "\n".join(rows)}))
    assert expanded_file.file is None
    return [(problem.line, problem.message) for problem in expanded_file.problems]


GOOD_ROW, ZERO, TEXT_ROW = '{"n": 1, "m": 1}', '{"n": 0, "m": 1}', '{"n": "x", "m": 1}'


def test_a_problem_of_rows_is_reported_once_with_the_place_of_the_first() -> None:
    (item,) = broken_rows(GOOD_ROW, ZERO, GOOD_ROW)
    assert item[1].endswith(" (q.jsonl:2)")
    (item,) = broken_rows(GOOD_ROW, ZERO, ZERO)
    assert item[1].endswith(" (q.jsonl:2 and other rows)")
    first, second = broken_rows(TEXT_ROW, ZERO, GOOD_ROW, ZERO)
    assert first[1].endswith(" (q.jsonl:1)")
    assert second[1].endswith(" (q.jsonl:2 and other rows)")


def test_a_dataset_is_named_where_it_makes_too_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MOST_CASES", 1)
    text = test_file("id: x", "dataset: q.jsonl", shown="{{ q }}")
    expanded_file = expanded(text, library(data={"q.jsonl": '{"q": "a"}\n{"q": "b"}\n'}))
    assert [(problem.line, problem.severity) for problem in expanded_file.problems] == [
        (3, "error")
    ]


def test_all_broken_rows_of_replacements_are_reported() -> None:
    numbers = ", ".join(map(str, range(25)))
    text = test_file(f"replacements: {{n: [0, x], m: [{numbers}]}}", shown="{{ 1 // n }}{{ m }}")
    assert len(expanded(text).problems) == 2


def test_a_group_is_named_where_it_has_no_effect() -> None:
    text = test_file("id: x", "group: '{{ g }}'", "replacements: {g: [a, b]}", shown="{{g}}")
    assert problem_of(text).line == 3


def test_an_unknown_prompt_has_those_there_are_as_a_hint() -> None:
    known = library(prompts={"helpful": ("1",)})
    assert problem_of(test_file("systemPrompts: [zzz]"), known).hint == (
        "the system prompts are helpful"
    )


def test_a_schema_is_named_with_its_own_line() -> None:
    assert problem_of(test_file("id: x", "structuredResponseSchema: gone")).line == 3


def test_after_twenty_broken_rows_no_more_are_read() -> None:
    text = test_file("dataset: q.jsonl", shown="{{ 1 // n }}")

    def told_of(zeros: int) -> list[str]:
        data = '{"n": 0}\n' * zeros + '{"n": "x"}\n'
        expanded_file = expanded(text, library(data={"q.jsonl": data}))
        return [problem.message.rpartition(" (")[2] for problem in expanded_file.problems]

    assert told_of(19) == ["q.jsonl:1 and other rows)", "q.jsonl:20)"]
    assert told_of(20) == ["q.jsonl:1 and other rows)"]


# --- warnings and problems of groups


def problem_of(text: str, library_: Definitions | None = None) -> Problem:
    (problem,) = expanded(text, library_).problems
    return problem


def test_a_test_that_nobody_judges_is_a_warning() -> None:
    assert problem_of(test_file(evaluation="")) == Problem(
        "tests/t.md",
        "nothing below '---' says how to judge the answer, so it is never judged",
        1,
        severity="warning",
        hint="write the instructions for the judge below the line '---'",
    )
    batch = test_file("replacements: {e: ['', Judge.]}", evaluation="{{e}}")
    assert problem_of(batch).severity == "warning"


@pytest.mark.parametrize("type", ["[]", "{a: 1}", "3"])
@pytest.mark.parametrize("inner", ["type: %s", "check: {type: %s}"])
def test_the_type_of_a_nested_check_must_be_text(inner: str, type: str) -> None:
    block = f"~~~checks\n- {{jsonPath: {{path: a, {inner % type}}}}}\n~~~"
    (problem,) = expanded(test_file(shown="Hi", evaluation=block)).problems
    assert (problem.line, problem.severity) == (8, "error")


GROUP = "~~~checks\n- {allEqual: , scope: group}\n~~~"


def test_a_check_of_a_group_must_be_the_same_for_all_of_it() -> None:
    text = test_file(
        "replacements: {q: [a, b]}",
        shown="{{q}}",
        evaluation="~~~checks\n- {equals: '{{ q }}', scope: group}\n~~~",
    )
    assert problem_of(text) == Problem(
        "tests/t.md",
        "a check of the scope 'group' is not the same for all rows of the group",
        11,
        hint="mention only values that all of them share, or split them with the field 'group'",
    )


def test_a_group_that_parts_nothing_is_a_warning() -> None:
    head = ("group: '{{ g }}'", "replacements: {g: [a, b]}")
    assert problem_of(test_file(*head, shown="{{g}}")) == Problem(
        "tests/t.md",
        "'group' has no effect: no check has the scope 'group'",
        2,
        severity="warning",
        hint="give one, as in '{allEqual: , scope: group}'",
    )
    same = ("group: 'same'", "replacements: {g: [a, b]}")
    assert problem_of(test_file(*same, shown="{{g}}", evaluation=GROUP)) == Problem(
        "tests/t.md",
        "'group' is the same for all rows, so all of them are one group",
        2,
        severity="warning",
        hint='write what a group has in common, such as "{{ item.template }}"; or leave it out',
    )
    assert expanded(test_file(*head, shown="{{g}}", evaluation=GROUP)).problems == []


# --- problems of prompts


def prompt_of(text: str, path: str = "prompts/p.md") -> tuple[tuple[str, ...], ExpandedFile]:
    return expand_prompt(parse_prompt(path, text), library())


def test_special_tags_of_a_prompt_are_part_of_it_and_others_are_not() -> None:
    (id,), expansion = prompt_of("---\ntags: [_json_mode, plain]\n---\nHi\n")
    kind, content = expansion.contents[id]
    assert (kind, json.loads(content)["specialTags"]) == ("prompt", ["_json_mode"])


def test_all_problems_of_a_prompt_are_reported_once() -> None:
    text = "---\nreplacements: {n: [0, 1, 0.0, 2], z: a}\n---\n{{ 1 // n }} {{ gone }}\n"
    actual, expansion = prompt_of(text)
    assert actual == ()
    assert [(problem.line, problem.message) for problem in expansion.problems] == [
        (4, "'gone' is not defined"),
        (2, "replacement 'z' is never used"),
    ]
    text = "---\nreplacements: {n: [1, 0], m: [3, 4]}\n---\n{{ 1 // n }}{{ m }}\n"
    actual, expansion = prompt_of(text)
    assert actual == ()
    assert len(expansion.problems) == 1


@pytest.mark.parametrize(("problem", "tries"), [(LimitProblem, 1), (FileProblem, 3)])
def test_what_reaches_a_limit_is_not_filled_with_further_rows(
    problem: type[FileProblem], tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[object] = []

    def fail(*arguments: object) -> None:
        filled.append(arguments)
        raise problem("it takes too long")

    monkeypatch.setattr("evalstore.workspace.testfiles.template_filling.fill_turn", fail)
    monkeypatch.setattr(CaseBuilder, "draft", fail)
    head = "replacements: {n: [1, 2, 3]}"
    _, expansion = prompt_of(f"---\n{head}\n---\n{{{{n}}}}\n")
    assert len(filled) == tries
    assert [item.message for item in expansion.problems] == ["it takes too long"]
    expanded_file = expanded(test_file(head, shown="{{n}}"))
    assert len(filled) == 2 * tries
    assert [item.message for item in expanded_file.problems] == ["it takes too long"]


def test_a_prompt_may_show_a_file() -> None:
    prompt = parse_prompt("prompts/p.md", "See {{_file:a.txt}}\n")
    (id,), expansion = expand_prompt(prompt, library({"a.txt": b"alpha"}))
    (file,) = expansion.files
    assert f'"file":"{file}"' in expansion.contents[id][1]
    assert expansion.dependencies == {"file:a.txt": file}


def test_an_evaluator_prompt_that_shows_no_instructions_is_for_tests_without_any() -> None:
    known = replace(library(), evaluator_prompts={"silent": ("1",)}, silent=frozenset({"1"}))
    judge = "~~~checks\n- judge: {prompt: silent}\n~~~"
    assert expanded(test_file(evaluation=judge), known).problems == []
    message = problem_of(test_file(evaluation=f"Be strict.\n\n{judge}"), known).message
    assert message.startswith("the judge prompt 'silent' never uses")


def test_warnings_of_the_data_are_warnings_of_the_file() -> None:
    text = test_file("dataset: {path: q.csv}", shown="{{ q }}")
    expanded_file = expanded(text, library(data={"q.csv": "q,\na,b\n"}))
    assert [(problem.severity, "q.csv" in str(problem)) for problem in expanded_file.problems] == [
        ("warning", True)
    ]
    assert expanded_file.file is not None


def test_the_default_prompt_must_show_the_instructions_and_the_answer() -> None:
    def missing(id: str) -> list[tuple[str, str | None]]:
        text = f"---\nid: {id}\ntags: [_evaluator]\n---\nJudge.\n"
        return [(problem.message, problem.hint) for problem in prompt_of(text)[1].problems]

    def problem(name: str) -> tuple[str, str | None]:
        message = f"the judge prompt never uses '{name}'"
        return message, f"write `{{{{{name}}}}}` where it belongs"

    assert missing("other") == [problem("_actualResponse")]
    lines = [
        problem.line
        for problem in prompt_of("---\ntags: [_evaluator]\n---\n# 👤\nHi\n")[1].problems
    ]
    assert lines == [4]
    names = ("_evaluationInstructions", "_actualResponse")
    assert sorted(missing(DEFAULT_PROMPT)) == sorted(map(problem, names))
