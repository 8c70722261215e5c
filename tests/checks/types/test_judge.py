"""The check `judge`: its settings, and what it does to a case."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Case, Json
from evalstore.workspace.testfiles.context import Definitions
from tests.builders import expanded, library, test_file
from tests.checks.test_answer_binding import block, problems

AB: dict[str, Json] = {"choices": ["A", "B"], "scores": {"A": 1, "B": 0.5}, "pass": ">= 0.8"}
SCALE: dict[str, Json] = {
    "prompt": "p",
    "parser": {"regex": "SCORE: (\\S+)", "min": 1, "max": 5},
    "pass": ">= 4",
}


def settings(judge: Json) -> dict[str, Json]:
    actual = read_check({"judge": judge}, 7)
    assert (actual.pop("type"), actual.pop("revision")) == ("judge", 1)
    return actual


def problem(judge: Json) -> str:
    with pytest.raises(FileProblem) as raised:
        read_check({"judge": judge}, 7)
    assert raised.value.line == 7
    return raised.value.message


# --- settings


@pytest.mark.parametrize(
    ("judge", "canonical"),
    [
        ("strict", {"prompt": "strict"}),
        (AB, AB),
        ({**AB, "scores": [1, 0.5], "answer": "cot_classify"}, AB),
        ({**AB, "scores": {"B": 0.5, "A": 1.0}, "invalid": "undecided", "pass": 0.8}, AB),
        (
            {"choices": [1, 2, 3], "scores": "numbers", "pass": "> 1"},
            {"choices": ["1", "2", "3"], "scores": {"1": 1, "2": 2, "3": 3}, "pass": "> 1"},
        ),
        (
            {"choices": ["Yes", "No"], "scores": {"Yes": 1, "No": 0}},
            {"choices": ["Yes", "No"], "scores": {"Yes": 1, "No": 0}},
        ),
        ({"choices": ["Yes", "No"], "pass": "Yes"}, {"choices": ["Yes", "No"], "pass": ["Yes"]}),
        (
            {
                **SCALE,
                "parser": {"regex": "(.)", "min": 0, "max": 1.0},
                "pass": 1,
            },
            {"prompt": "p", "parser": {"regex": "(.)"}, "pass": ">= 1"},
        ),
    ],
)
def test_settings_in_canonical_form_lack_what_has_its_default(judge: Json, canonical: Json) -> None:
    assert settings(judge) == canonical


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (None, "the check 'judge' needs 'prompt', 'choices' or 'parser'"),
        (
            {"prompt": "p", "answer": "classify"},
            "'answer' has an effect only with 'choices' or 'parser'",
        ),
        ({**AB, "parser": {"json": "a"}}, "'choices' and 'parser' cannot be combined"),
        ({**AB, "choices": ["A"]}, "'choices' must be a list of two or more"),
        ({**AB, "choices": ["A", " "]}, "'' cannot be a choice"),
        ({**AB, "choices": ["C", "C "]}, "the choice 'C' is listed twice"),
        ({**AB, "scores": {"A": 1}}, "the choice 'B' has no score"),
        ({**AB, "scores": {"A": 1, "B": 0, "C": 0}}, "'scores' has 'C', which is not a choice"),
        ({**AB, "scores": [1]}, "'scores' has 1 values for 2 choices"),
        ({**AB, "scores": [1, 1]}, "all scores are the same"),
        ({**AB, "scores": [1, "x"]}, "the score of 'B' must be a number, not 'x'"),
        (
            {**AB, "scores": "numbers"},
            "the choice 'A' is not a number, so it needs a score",
        ),
        ({**AB, "pass": None}, "the check 'judge' gives a score, so it needs 'pass'"),
        ({**AB, "pass": ">= 2"}, "no score can be >= 2: they go from 0.5 to 1"),
        ({**AB, "pass": ["C"]}, "'pass' has 'C', which is not a choice"),
        ({**AB, "pass": []}, "no choice passes"),
        ({**AB, "scores": None, "pass": None}, "nothing says which of the choices pass"),
        ({**AB, "answer": "cot"}, "'answer' cannot be 'cot'"),
        ({**AB, "match": "word"}, "the check 'judge' has no setting 'match'"),
        ({**AB, "invalid": "pass"}, "'invalid' cannot be 'pass'"),
        ({**AB, "not": True}, "the check 'judge' has no setting 'not'"),
        ({**SCALE, "prompt": None}, "a judge whose reply a 'parser' reads needs 'prompt'"),
        ({**SCALE, "parser": {}}, "'parser' must have either 'regex' or 'json'"),
        ({**SCALE, "parser": {"json": "a["}}, "this is not a JMESPath: 'a['"),
        (
            {**SCALE, "parser": {"regex": "(a)", "method": "last"}},
            "the check 'judge' has no setting 'method'",
        ),
        ({**SCALE, "parser": {"json": "a", "min": 2}}, "'min' must be below 'max'"),
        ({**SCALE, "pass": ">= 6"}, "no score can be >= 6: they go from 1 to 5"),
        (
            {**SCALE, "scores": {"good": 1, "bad": 0}},
            "'min' and 'max' have an effect only without 'scores'",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(judge: Json, message: str) -> None:
    assert problem(judge) == message


# --- in a test file


def judged_case(*lines: str, instructions: str = "", silent: bool = False) -> tuple[Case, Json]:
    """The case of a file with this block, and the content of its evaluation."""
    prompts = {"fact": ("f" * 32,)}
    expansion = expanded(
        test_file(evaluation=f"{instructions}\n\n{block(*lines)}"),
        replace(
            library(),
            evaluator_prompts=prompts,
            silent=frozenset(prompts["fact"] if silent else ()),
        ),
    )
    assert expansion.file, expansion.problems
    case = expansion.file.cases[0]
    return case, json.loads(expansion.contents[case.evaluation or ""][1])


CHOICE = "- judge: {prompt: fact, choices: [A, B], pass: A}"


def test_the_versions_of_the_prompt_are_a_part_of_the_evaluation_and_of_the_case() -> None:
    case, content = judged_case(CHOICE, silent=True)
    assert case.judge_prompts == ("f" * 32,)
    assert content["checks"][0]["prompts"] == ["f" * 32]


@pytest.mark.parametrize(
    ("lines", "judged_by"),
    [
        ((CHOICE,), ("models",)),
        ((CHOICE, "- contains: a"), ("checks", "models")),
        (
            ("{evaluator: always, checks: [{contains: a}, {judge: fact}]}",),
            ("checks", "models", "always"),
        ),
    ],
)
def test_models_judge_without_prose_and_beside_other_checks(
    lines: tuple[str, ...], judged_by: tuple[str, ...]
) -> None:
    assert judged_case(*lines)[0].judged_by == judged_by


def test_another_prompt_of_the_same_name_is_another_evaluation() -> None:
    text = test_file(evaluation=block(CHOICE))
    actual = []
    for version in ("1" * 32, "2" * 32):
        prompts = Definitions(
            {}, {"fact": (version,)}, {}, {}, library().read_file, library().open_data
        )
        file = expanded(text, prompts).file
        assert file
        actual.append(file.cases[0])
    assert actual[0].tests == actual[1].tests
    assert actual[0].evaluation != actual[1].evaluation


def test_prose_that_the_prompt_does_not_show_is_an_error() -> None:
    with pytest.raises(AssertionError, match="never uses"):
        judged_case(CHOICE, instructions="Be kind.", silent=True)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("- judge: nobody",), (8, "unknown judge prompt 'nobody'")),
        ((CHOICE, "- judge: fact"), (9, "a second check 'judge'")),
        (("- judge: {choices: [A, B], pass: A}",), (8, "nothing says what models should judge by")),
        (
            ("pass: any", "checks:", "- contains: x", "- judge: fact"),
            (11, "'pass: any' cannot be combined with the check 'judge'"),
        ),
        (
            ("- judge: {prompt: p, choices: [A, '{{answer}}'], pass: A}",),
            (8, "the check 'judge' mentions the answer ('answer')"),
        ),
        (
            ("- jsonPath: a", "  check: {judge: fact}"),
            (8, "'judge' cannot be used inside 'jsonPath'"),
        ),
    ],
)
def test_a_judge_in_the_wrong_place_is_an_error_with_its_line(
    lines: tuple[str, ...], problem: tuple[int, str]
) -> None:
    assert problems(test_file(evaluation=block(*lines)))[0] == problem


def test_the_values_of_a_row_are_filled_into_the_choices() -> None:
    text = test_file(
        "replacements: {one: [Oslo, Rome]}",
        evaluation="Which?\n\n" + block("- judge: {choices: ['{{one}}', None], pass: None}"),
    )
    expansion = expanded(text)
    assert expansion.file, expansion.problems
    contents = [
        json.loads(expansion.contents[case.evaluation or ""][1]) for case in expansion.file.cases
    ]
    assert [content["checks"][0]["choices"] for content in contents] == [
        ["Oslo", "None"],
        ["Rome", "None"],
    ]
