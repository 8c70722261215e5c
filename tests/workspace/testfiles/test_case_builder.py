"""Rows of data to cases: what they are called, what they share, and what changes no id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstore.core.values import Case
from evalstore.workspace.testfiles import expansion as expand_module
from evalstore.workspace.testfiles.context import ExpandedFile
from tests.builders import expanded, instructions_of, library, shown

TEST = """\
---
dataset: {path}
{head}
---

{body}
---

Expect {{{{ ideal }}}}.
{checks}"""
ONE = "# 👤\n\n{{ q }}\n\n"
A, B = {"q": "a", "ideal": "x", "g": "1"}, {"q": "b", "ideal": "y", "g": "2"}


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def expand(
    data: str,
    *head: str,
    path: str = "q.jsonl",
    body: str = ONE,
    checks: str = "",
    evaluation: str | None = None,
) -> ExpandedFile:
    """What a test file with this data comes to."""
    block = f"\n~~~checks\n{checks}\n~~~\n" if checks else ""
    text = TEST.format(path=path, head="\n".join(head), body=body, checks=block)
    if evaluation is not None:
        text = text.replace("Expect {{ ideal }}.\n", evaluation)
    return expanded(text, library(data={path: data}))


def cases(*arguments: Any, **more: Any) -> tuple[Case, ...]:
    expansion = expand(*arguments, **more)
    assert expansion.file is not None, expansion.problems
    return tuple(expansion.file.cases)


def ids(cases: tuple[Case, ...]) -> set[tuple[Any, ...]]:
    return {(case.key, case.tests, case.evaluation) for case in cases}


# --- how many ---------------------------------------------------------------------------


def test_a_dataset_makes_so_many_cases_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert expand_module.MOST_CASES == 1_000_000
    monkeypatch.setattr(expand_module, "MOST_CASES", 4)
    body, head = ONE + "{{ r }}\n\n", "replacements: {r: [1, 2]}"
    assert len(cases(lines(A, B), head, body=body)) == 4
    expansion = expand(lines(A, B, {**B, "q": "c"}), head, body=body)
    assert [(problem.line, problem.message, problem.hint) for problem in expansion.problems] == [
        (
            2,
            "the dataset makes more than 4 cases",
            "take fewer rows with 'limit', 'where' or 'sample'",
        )
    ]
    assert expansion.file is None


# --- what changes no id -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (lines(B, A), "q.jsonl"),
        (lines({**A, "z": 1}, {**B, "z": 2}), "q.jsonl"),
        (lines(dict(reversed(A.items())), B), "q.jsonl"),
        (lines(A, B), "other/name.jsonl"),
        (json.dumps([A, B], indent=1), "q.json"),
        ("q,ideal,g\na,x,1\nb,y,2\n", "q.csv"),
        ("\ufeffg;ideal;q\r\n1;x;a\r\n2;y;b\r\n", "{path: q.csv, delimiter: ';'}"),
        (lines({**A, "Q ": "c"}, B), "q.jsonl"),
        (lines({"Question": "a", "ideal": "x"}, {"Question": "b", "ideal": "y"}), "RENAMED"),
    ],
)
def test_the_form_of_the_data_changes_no_id(data: str, path: str) -> None:
    name = "q.csv" if "csv" in path else path
    field = "{path: q.jsonl, rename: {question: q}}" if path == "RENAMED" else path
    name = "q.jsonl" if path == "RENAMED" else name
    text = TEST.format(path=field, head="", body=ONE, checks="")
    expansion = expanded(text, library(data={name: data}))
    assert expansion.file is not None, expansion.problems
    assert ids(tuple(expansion.file.cases)) == ids(cases(lines(A, B)))


def test_what_is_used_changes_the_ids_of_its_row_only() -> None:
    before, after = cases(lines(A, B)), cases(lines({**A, "q": "c"}, B))
    assert ids(after[1:]) == ids(before[1:])
    assert (after[0].tests != before[0].tests, after[0].evaluation) == (True, before[0].evaluation)


def test_what_only_the_evaluation_uses_changes_no_test() -> None:
    before, after = cases(lines(A, B)), cases(lines({**A, "ideal": "z"}, B))
    assert after[0].tests == before[0].tests
    assert after[0].evaluation != before[0].evaluation


def test_equal_rows_are_as_many_cases_with_the_same_ids() -> None:
    first, second = cases(lines(A, A))
    assert (first.row, second.row) == ("", "#2")
    assert ids((first,)) == ids((second,))


def test_data_are_not_filled_again() -> None:
    row = {"q": "{{ ideal }} ---\n# 👤", "ideal": "{{ q }}"}
    expansion = expand(lines(row))
    assert shown(expansion) == [[("user", "{{ ideal }} ---\n# 👤")]]
    assert instructions_of(expansion) == ["Expect {{ q }}."]


def test_rows_are_taken_with_every_replacement() -> None:
    actual = cases(lines(A, B), "replacements: {z: [1, 2]}", body="# 👤\n\n{{ q }}{{ z }}\n\n")
    assert [case.row for case in actual] == ["q=a, z=1", "q=a, z=2", "q=b, z=1", "q=b, z=2"]


# --- conversations ------------------------------------------------------------------------


def test_a_conversation_is_in_a_case_as_often_as_it_is_held() -> None:
    body = f"# ▶ one ×2\n\n{ONE}# ▶ two\n\n# 👤\n\nc\n\n"
    (case,) = cases(lines(A), body=body)
    assert len(case.tests) == 3
    assert case.tests[0] == case.tests[1] != case.tests[2]


def test_names_and_counts_are_not_part_of_what_is_asked() -> None:
    item, two = (f"# ▶ {name}\n\n{ONE}" for name in ("one ×3", "other"))
    (first,), (second,) = cases(lines(A), body=item), cases(lines(A), body=two)
    assert set(first.tests) == set(second.tests)
    assert first.evaluation == second.evaluation


# --- groups -------------------------------------------------------------------------------

EQUAL = "- {allEqual: , scope: group}"


def grouped(*rows: Any, group: str | None = "'{{ g }}'") -> tuple[Case, ...]:
    head = (f"group: {group}",) if group else ()
    return cases(lines(*rows), *head, checks=EQUAL, evaluation="")


def test_a_group_is_a_case_with_the_questions_of_its_rows() -> None:
    item, two = grouped(A, B, {**A, "q": "c"})
    assert (item.row, two.row) == ("all of 1", "all of 2")
    assert (len(item.tests), len(two.tests)) == (2, 1)
    assert item.evaluation == two.evaluation


def test_rows_that_ask_the_same_share_the_answers() -> None:
    (item,) = grouped(A, A)
    assert len(item.tests) == 1


def test_a_group_keeps_its_key_when_rows_come_and_go() -> None:
    (item,), (other,) = grouped(A), grouped(A, {**A, "q": "c"})
    assert item.key == other.key


@pytest.mark.parametrize(
    ("rows", "group", "labels"),
    [
        ((A, B), None, [""]),
        ((A, {**B, "g": "1"}), "'{{ g }}'", [""]),
        ((A, {**B, "g": ""}), "'{{ g }}'", ["all of 1", "all of ''"]),
        ((A, {**B, "g": None}), "'{{ g }}'", ["all of 1", "all of null"]),
        ((A, B), "'{{ g }}{{ q }}'", ["all of 1a", "all of 2b"]),
        ((A, B), "same", [""]),
        (
            ({**A, "g": "1\n" + "long" * 9}, B),
            "'{{ g }}'",
            ["all of 1 longlonglonglo…onglonglonglong", "all of 2"],
        ),
    ],
)
def test_what_groups_are_called(rows: Any, group: str | None, labels: list[str]) -> None:
    assert [case.row for case in grouped(*rows, group=group)] == labels


def test_rows_have_cases_of_their_own_beside_their_group() -> None:
    actual = cases(lines(A, B), checks=EQUAL)
    assert [case.row for case in actual] == ["q=a", "q=b", "all rows"]
    assert [case.judged_by for case in actual] == [("models",), ("models",), ("checks",)]


# --- recorded answers ---------------------------------------------------------------------


def recorded(*rows: Any) -> list[str | None]:
    return [case.recorded for case in cases(lines(*rows), "answer: '{{ item.c | default(none) }}'")]


def test_a_recorded_answer_is_a_version_of_its_own() -> None:
    output, empty, null, missing = recorded({**A, "c": "s"}, {**A, "c": ""}, {**A, "c": None}, A)
    assert output
    assert empty
    assert output != empty
    assert (null, missing) == (None, None)


@pytest.mark.parametrize("answer", ["", " ", "\n"])
def test_an_empty_text_is_an_answer(answer: str) -> None:
    (written,) = cases(lines(A), f"answer: {json.dumps(answer)}")
    assert [written.recorded] == recorded({**A, "c": answer})
    assert written.recorded is not None


def test_a_recorded_answer_is_not_part_of_what_is_asked() -> None:
    bare = cases(lines(A))
    actual = cases(lines({**A, "c": "s"}), "answer: '{{ c }}'")
    assert actual[0].tests == bare[0].tests
    assert actual[0].evaluation == bare[0].evaluation


def of_turns(answer: str, row: Any) -> ExpandedFile:
    body = ONE + "# 🤖 @first\n\n# 👤\n\nAnd?\n"
    return expand(lines(row), f"answer: {answer}", body=body)


def test_the_answers_of_turns_are_a_list_of_texts_or_an_expression_of_one() -> None:
    row = {**A, "c": ["s", ""], "d": "s"}
    written, actual = of_turns("['{{ item.d }}', '']", row), of_turns("'{{ item.c }}'", row)
    assert written.file
    assert actual.file
    assert written.file.cases[0].recorded == actual.file.cases[0].recorded is not None


def test_a_row_without_any_of_the_answers_is_asked() -> None:
    answer = "['{{ item.c | default(none) }}', '{{ item.d | default(none) }}']"
    actual = of_turns(answer, A).file
    assert actual
    assert actual.cases[0].recorded is None


@pytest.mark.parametrize("answer", ["['{{ item.c }}', '{{ item.d }}']", "'{{ item.both }}'"])
def test_a_row_brings_all_its_answers_or_none(answer: str) -> None:
    row = {**A, "c": "s", "d": None, "both": ["s", None]}
    actual = of_turns(answer, row).problems[0].message
    assert "'answer' has none for turn 2, and some for others" in actual


@pytest.mark.parametrize(
    ("group", "scope", "message"),
    [
        ("'{{ g }}'", "answer", "no check has the scope 'group'"),
        ("all of them", "group", "'group' is the same for all rows"),
    ],
)
def test_a_group_without_effect_is_reported(group: str, scope: str, message: str) -> None:
    actual = expand(lines(A, B), f"group: {group}", checks=f"- {{contains: a, scope: {scope}}}")
    assert actual.file is not None
    assert [(problem.severity, message in problem.message) for problem in actual.problems] == [
        ("warning", True)
    ]


# --- problems -----------------------------------------------------------------------------


def problems(*arguments: Any, **more: Any) -> list[tuple[str, int | None, str]]:
    return [
        (problem.file, problem.line, problem.message)
        for problem in expand(*arguments, **more).problems
    ]


def test_problems_of_rows_are_reported_once_with_the_first_row() -> None:
    errors = problems(lines(A, {"q": "b"}, {"q": "c"}))
    message = "no value for 'ideal' (q.jsonl:2 and other rows)"
    assert errors == [("tests/t.md", 13, message)]


def test_unreadable_rows_are_reported_instead_of_names() -> None:
    assert problems("[1]\n") == [("q.jsonl", 1, "a row must be an object, not a list")]


def test_names_are_reported_when_all_rows_can_be_read() -> None:
    assert [problem[2] for problem in problems(lines({"x": 1}))] == [
        "'q' is not defined",
        "'ideal' is not defined",
    ]


def test_all_wrong_checks_are_reported() -> None:
    errors = problems(lines(A), checks='- expr: "1 +"\n- {equals: a, scope: "{{ g }}"}')
    assert [line for _, line, _ in errors] == [16, 17]


def test_recorded_answers_are_for_one_conversation() -> None:
    errors = problems(lines({**A, "c": "s"}), "answer: '{{ c }}'\nrepetitions: 2")
    assert "a recorded answer is for one conversation, and there are 2" in errors[0][2]


@pytest.mark.parametrize(
    "check",
    [
        'contains: "{{ ideal }}"',
        '{contains: "{{ ideal }}", not: true, weight: 2}',
        '{type: containsAny, expected: ["{{ ideal }}", "{{ g }}"], ignoreCase: true}',
        'equals: {expected: "is {{ ideal }}", normalize: [trim]}',
        'regex: "{{ ideal }}+"',
        '{length: {max: "{{ n }}"}}',
        '{contains: "{{ ideal }}", weight: "{{ n }}"}',
        '{contains: "{{ ideal }}", actual: "{{ answer }}"}',
        'expr: "len(answer) > {{ n }}"',
        'levenshtein: {expected: "{{ ideal }}", max: 2}',
    ],
)
def test_a_check_does_not_depend_on_the_rows_before_it(check: str) -> None:
    item, two, three = {**A, "n": 1}, {**B, "n": 2}, {**A, "q": "c", "ideal": "z", "n": 3}
    together = cases(lines(item, two, three), checks=f"- {check}", evaluation="")
    alone = [cases(lines(row), checks=f"- {check}", evaluation="")[0] for row in (item, two, three)]
    assert [case.evaluation for case in together] == [case.evaluation for case in alone]
    assert len({case.evaluation for case in together}) > 1


def test_a_wrong_value_is_reported_whatever_was_right_in_the_rows_before_it() -> None:
    rows = lines(A, {**B, "ideal": ""}, {**B, "q": "c", "ideal": {"no": "text"}})
    errors = problems(rows, checks='- contains: "{{ item.ideal }}"', evaluation="")
    assert [(line, words.split(" (")[0]) for _, line, words in errors] == [
        (15, "the check 'contains' has an empty 'expected'"),
        (15, "'expected' must be a text or a list of texts"),
    ]
