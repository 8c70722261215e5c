from __future__ import annotations

import pytest

from evalstore.core.errors import FileProblem
from evalstore.workspace.settings.settings import (
    ELSEWHERE,
    FOLDERS,
    SETTING_NAMES,
    AnalysisQuery,
    Participant,
    QueryModel,
    Settings,
    Threshold,
    read_age,
    read_settings,
)


def problem(text: str) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        read_settings(text)
    return caught.value


def test_a_candidate_can_be_listed_at_several_temperatures() -> None:
    settings = read_settings(
        "candidates: [a, {id: a, temperature: 0.7}, {id: b, temperature: 1}, {id: b}]"
    )
    assert [candidate.name for candidate in settings.candidates] == ["a", "a@0.7", "b", "b@default"]


def test_an_evaluator_can_be_listed_at_several_temperatures() -> None:
    settings = read_settings("evaluators: [j, {id: j, temperature: 1}]")
    assert [(evaluator.id, evaluator.temperature) for evaluator in settings.evaluators] == [
        ("j", None),
        ("j", 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "candidates: [a, {id: a, temperature: null}]",
        "candidatesTemperature: 0\ncandidates: [a, {id: a, temperature: 0}]",
        "candidatesTemperature: 0.7\ncandidates: [{id: a, temperature: 0.7}, a]",
        "candidates: [a@0.7, a, {id: a, temperature: 0.7}]",
        "evaluators: [j, {id: j, temperature: null, prompt: _evaluator_default}]",
    ],
)
def test_the_same_model_at_the_same_temperature_is_listed_twice(text: str) -> None:
    error = problem(text)
    assert "is listed twice in" in error.message
    assert error.hint == "a model can be listed again with another temperature"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("1.5h", 5400),
        ("30d", 2_592_000),
        (" 1 w ", 604_800),
        ("0d", None),
        ("30", None),
        ("d", None),
        ("1.h", None),
        ("-1d", None),
        ("1D", None),
        ("9999999999d", None),
        ("1y", None),
        ("0s", None),
        ("1d12h", None),
        ("", None),
        ("1e3d", None),
        ("٣d", None),
    ],
)
def test_an_age_is_a_number_with_a_unit(text: str, seconds: float | None) -> None:
    assert read_age(text) == seconds


@pytest.mark.parametrize("text", ["maxAge: 30", "maxAge: soon", "maxAge: [30d]", "maxAge: 0d"])
def test_a_wrong_age_is_refused(text: str) -> None:
    assert problem(text).message == "'maxAge' must be an age such as 30d"


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_absent_options_mean_the_defaults(text: str) -> None:
    assert read_settings(text) == Settings()


def test_settings_are_read() -> None:
    text = """
candidates:
  - id: a
    temperature: 0.7
    requiredTags: [x]
  - openai/gpt-4o-mini
candidatesTemperature: 1
evaluators: [{id: j, prompt: strict}, {id: j}]
verdict: '>= 0.5'
maxTestOutputTokens: 100
paths: {tests: data/tests/}
"""
    settings = read_settings(text)
    assert settings.candidates == (
        Participant("a", 0.7, ("x",)),
        Participant("openai/gpt-4o-mini", 1.0),
    )
    assert settings.evaluators == (
        Participant("j", prompt="strict"),
        Participant("j", prompt="_evaluator_default"),
    )
    assert (settings.candidates_temperature, settings.verdict) == (1.0, ">= 0.5")
    assert settings.max_test_output_tokens == 100
    assert settings.paths == {**FOLDERS, "tests": "data/tests"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("providers", "write 'candidates'"),
        ("providrs", "write 'candidates'"),
        ("judge", "write 'evaluators'"),
        ("max_concurrency", "write 'concurrency'"),
        ("prompts", "a system prompt is a file in 'prompts/'"),
        ("defaultTest", "variables and checks are in the test files"),
        ("candidate", "did you mean 'candidates'?"),
        ("colours", "the fields are analysisQueries, "),
    ],
)
def test_a_setting_of_another_tool_has_a_hint(name: str, hint: str) -> None:
    assert str(problem(f"{name}: [a]").hint).startswith(hint)


def test_no_hint_is_on_a_setting_of_ours() -> None:
    assert not {name.lower() for name in SETTING_NAMES} & ELSEWHERE.keys()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- a", 1, "the settings must be a mapping"),
        ("attempts: 1\ncandidate: []", 2, "unknown field 'candidate'"),
        ("candidates:\n  - id: a\n    temprature: 1", 3, "unknown field 'temprature'"),
        ("candidates:\n  - id: a\n  - id: a", 3, "'a' is listed twice in 'candidates'"),
        ("candidates:\n  - {temperature: 1}", 2, "has no 'id'"),
        ("candidates: [{id: a, prompt: b}]", 1, "unknown field 'prompt'"),
        ("candidates: a", 1, "must be a list of models"),
        ("candidatesTemperature: 3", 1, "must be a number from 0 to 2"),
        ("verdict: most", 1, "'verdict' must be"),
        ("verdict: '>= 1.5'", 1, "'verdict' must be"),
        ("timeout: .inf", 1, "'timeout' must be a number"),
        ("paths:\n  test: a", 2, "unknown field 'test'"),
        ("paths:\n  tests: ../a", 2, "outside the workspace"),
        ("paths:\n  tests: /a", 2, "outside the workspace"),
        ("paths:\n  tests: a/../../b", 2, "outside the workspace"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    error = problem(text)
    assert message in error.message
    assert error.line == line


def test_a_wrong_name_has_a_hint() -> None:
    assert problem("atempts: 1").hint == "did you mean 'attempts'?"


def test_thresholds_have_a_share_tags_and_groups() -> None:
    text = "thresholds:\n  - {passRate: 0.9, where: [a, b], by: [model, tag]}\n  - passRate: 1\n"
    first, second = read_settings(text).thresholds
    assert (first.pass_rate, first.where, first.by) == (0.9, ("a", "b"), ("model", "tag"))
    assert second == Threshold(1)
    assert read_settings("thresholds: []") == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thresholds: 0.9", "'thresholds' must be a list of mappings"),
        ("thresholds: [{where: [a]}]", "a threshold has no 'passRate'"),
        ("thresholds: [{passRate: 90}]", "'passRate' must be a number from 0 to 1"),
        ("thresholds: [{passRate: 1, by: [prompt]}]", "a threshold cannot be by 'prompt'"),
        ("thresholds: [{passRate: 1, tag: a}]", "unknown field 'tag'"),
    ],
)
def test_wrong_thresholds_are_reported(text: str, message: str) -> None:
    assert message in problem(text).message


QUERIES = """\
analysisQueries:
  - description: in euros
    currency: EUR
    requiredTags1: [a, b]
    requiredTags2: [c]
    prohibitedTags: [d]
    systemPrompts: [brief]
    candidates: [x, y]
    evaluators: [{id: judge, temperature: 0.5}]
    candidatesTemperature: 0
    evaluatorsTemperature: 1
  - {description: everything}
"""


def test_queries_are_read() -> None:
    assert read_settings(QUERIES).analysis_queries == (
        AnalysisQuery(
            "in euros",
            currency="EUR",
            required_tags1=("a", "b"),
            required_tags2=("c",),
            prohibited_tags=("d",),
            system_prompts=("brief",),
            candidates=(QueryModel("x"), QueryModel("y")),
            evaluators=(QueryModel("judge", 0.5),),
            candidates_temperature=0.0,
            evaluators_temperature=1.0,
        ),
        AnalysisQuery("everything"),
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("description: in euros", "curency: EUR", 2, "unknown field 'curency'"),
        ("[a, b]", "a", 4, "'requiredTags1' must be a list of texts"),
        ("[x, y]", "[1]", 8, "'candidates' must be a list of mappings"),
        ("{id: judge,", "{", 9, "an entry of 'evaluators' has no 'id'"),
        ("{id: judge,", "{id: judge, weight: 1,", 9, "unknown field 'weight'"),
        ("Temperature: 0\n", "Temperature: 3\n", 10, "must be a number from 0 to 2"),
        ("{description: everything}", "{}", 12, "a query has no 'description'"),
        ("{description: everything}", "{description: ''}", 12, "must be a text, not empty"),
    ],
)
def test_what_is_wrong_in_a_query_is_reported_with_its_line(
    old: str, new: str, line: int, message: str
) -> None:
    error = problem(QUERIES.replace(old, new))
    assert message in error.message
    assert error.line == line


def test_a_wrong_name_in_a_query_has_a_hint() -> None:
    error = problem(QUERIES.replace("currency", "curency"))
    assert error.hint == "did you mean 'currency'?"


@pytest.mark.parametrize(
    "text", ["evaluationsPerEvaluator: 1000000000", "concurrency: 5000", "retries: 1000000"]
)
def test_numbers_that_can_only_be_a_slip_are_refused(text: str) -> None:
    with pytest.raises(FileProblem, match="a whole number from"):
        read_settings(text)
