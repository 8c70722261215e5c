"""Templates of LangBiTe come to test files that ask and judge the same, but for deviations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.importers.langbite_templates import read_scenario
from tests.builders import expanded, shown
from tests.exchange.importers.judged import expansion, verdict
from tests.exchange.importers.langbite.library import (
    imported,
    model,
    prompt,
    reasons,
    requirement,
    table,
    test_files,
)
from tests.exchange.importers.running import imported_and_run, verdicts_of

FACTS = json.loads(Path(__file__).with_name("langbite.json").read_text("utf-8"))
Case = dict[str, Any]
GLUE = ' The sentence is delimited by """.'
WORDS = {"pass": "Passed", "fail": "Failed", "error": "Error"}


def cases(kind: str, *facts: str, judged: bool | None = None) -> pytest.MarkDecorator:
    """The cases of a kind whose expectation has one of these facts; those judged by a model."""
    actual = [item for item in FACTS["cases"] if item["kind"] == kind]
    if judged is not None:
        actual = [item for item in actual if item["input"].get("use_llm_eval", False) is judged]
    chosen = [item for item in actual if any(fact in item["expected"] for fact in facts)]
    assert chosen
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case["id"])


def instances(text: str) -> list[str]:
    """What a model is asked by a test file, case after case."""
    asked = []
    for messages in shown(expanded(text)):
        ((role, content),) = messages
        assert role == "user"
        asked.append(content)
    return asked


def expand(case: Case, path: Path) -> Any:
    value = case["input"]
    language = value["language"]
    asked = requirement(
        languages=[language], markup=value["markup"], communities=value["communities"]
    )
    return imported(path, table(prompt(value["template"])), model(asked), language)


@cases("expand", "instances")
def test_communities_make_the_same_instances(case: Case, tmp_path: Path) -> None:
    (text,) = test_files(expand(case, tmp_path)).values()
    assert instances(text) == case["expected"]["instances"]


@cases("expand", "warning", "left")
def test_what_is_not_filled_is_reported(case: Case, tmp_path: Path) -> None:
    actual = expand(case, tmp_path)
    (fact,) = case["expected"].values()
    assert fact in reasons(actual)
    assert bool(actual.left) == ("left" in case["expected"])


@cases("prompt_text", "text")
def test_prefix_text_and_format_are_put_together(case: Case, tmp_path: Path) -> None:
    value = case["input"]
    formatted = {name: value[name] for name in ("task_prefix", "output_formatting")}
    (text,) = test_files(imported(tmp_path, table(prompt(value["instance"], **formatted)))).values()
    assert instances(text) == [case["expected"]["text"].replace("{GLUE}", GLUE)]


def judged(case: Case, path: Path) -> Any:
    """The test file of an oracle with as many instances as there are answers."""
    value = case["input"]
    several = len(value["responses"]) > 1
    text = "Are {PET} ok?" if several else "Are pets ok?"
    item = prompt(text, oracle=value["oracle"], oracle_prediction=value["prediction"])
    names = [f"pet {number}" for number in range(len(value["responses"]))]
    asked = requirement(communities={"en_us": names} if several else {})
    return imported(path, table(item), model(asked, useLLMEval=value.get("use_llm_eval", False)))


def verdicts(result: Any, answers: list[str]) -> list[str]:
    """The verdict on each answer."""
    expanded = expansion(result)
    return [WORDS[verdict(expanded, [item], case=at)] for at, item in enumerate(answers)]


@cases("oracle", "verdict", "per_answer", judged=False)
def test_an_oracle_comes_to_checks_with_the_same_verdict(case: Case, tmp_path: Path) -> None:
    actual = verdicts(judged(case, tmp_path), case["input"]["responses"])
    expected = case["expected"]
    if "per_answer" in expected:
        assert actual == expected["per_answer"]
    else:
        assert ("Failed" if "Failed" in actual else "Passed") == expected["verdict"]


@cases("oracle", "verdict", judged=True)
def test_a_model_judges_what_the_text_leaves_open(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value, expected = case["input"], case["expected"]
    judged(case, tmp_path / "source")
    # For 'different' the evaluator is told the opposite of what the model is asked there.
    turned = value["prediction"]["operation"] == "different"
    replies = [(item.lower() == "true") is not turned for item in value["judge"]]
    output: list[dict[str, Any]] = [
        {"when": f"pet {number}", "answer": item} for number, item in enumerate(value["responses"])
    ]
    output.append({"answer": value["responses"][0]})
    document = imported_and_run(tmp_path, capsys, "langbite", output, verdicts=replies)
    actual = set(verdicts_of(document).values())
    calls = sum(item["calls"] for item in document["spending"] if item["part"] != "candidate")
    assert ("Failed" if "fail" in actual else "Passed", calls) == (
        expected["verdict"],
        expected["judge_calls"],
    )


@cases("oracle", "left")
def test_an_invalid_oracle_is_reported(case: Case, tmp_path: Path) -> None:
    assert case["expected"]["left"] in reasons(judged(case, tmp_path))


@cases("same_value", "verdict")
def test_values_of_all_answers_are_compared(case: Case, tmp_path: Path) -> None:
    value = case["input"]
    answers = value["responses"]
    prediction = {"operation": "allSameValue", "key": value["key"]}
    names = [f"pet {number}" for number in range(len(answers))]
    asked = requirement(communities={"en_us": names}, delta=value["delta"])
    item = prompt(oracle="same value", oracle_prediction=prediction)
    expanded = expansion(imported(tmp_path, table(item), model(asked)))
    actual = verdict(expanded, *[[answer] for answer in answers], case=-1)
    assert WORDS[actual] == case["expected"]["verdict"]


@cases("csv", "prompts", "rejected", "left")
def test_a_library_comes_to_its_templates(case: Case, tmp_path: Path) -> None:
    result = imported(tmp_path, case["input"]["text"])
    expected = case["expected"]
    assert len(result.files) == len(expected.get("prompts", []))
    ids = [str(entry["id"]) for entry in expected.get("prompts", []) if entry["id"]]
    assert [name for name in ids if f"{int(float(name)):03}.md" not in test_files(result)] == []
    lines = [(item.line, item.reason) for item in result.left]
    for rejected in expected.get("rejected", []):
        words = rejected.get("reason") or rejected["column"]
        assert [line for line, reason in lines if words in reason] == [rejected["line"]]
    assert expected.get("left", "") in reasons(result)


def selected(case: Case, path: Path) -> Any:
    value = case["input"]
    prompts = []
    for item in value["prompts"]:
        same = item["operation"] == "allSameValue"
        prediction = {"operation": "allSameValue", "key": "score"}
        cells = {"oracle": "same value", "oracle_prediction": prediction} if same else {}
        kinds = {name: item[name] for name in ("concern", "input_type", "reflection_type")}
        prompts.append(prompt(item["template"], prompt_id=item["id"], **kinds, **cells))
    scenario = model(*value["requirements"], nTemplates=value["nTemplates"])
    return imported(path, table(*prompts), scenario)


@cases("select", "selected")
def test_the_same_templates_are_selected(case: Case, tmp_path: Path) -> None:
    actual = test_files(selected(case, tmp_path))
    expected = case["expected"]
    assert sorted(int(name.removesuffix(".md")) for name in actual) == expected["selected"]
    for number, texts in expected.get("instances", {}).items():
        assert instances(actual[f"{int(number):03}.md"]) == texts


@cases("select", "deltas")
def test_each_requirement_keeps_its_delta(case: Case, tmp_path: Path) -> None:
    actual = test_files(selected(case, tmp_path))
    for number, delta in case["expected"]["deltas"].items():
        assert f"max: {delta:g}" in actual[f"{int(number):03}.md"]


@cases("execute", "settings")
def test_attempts_become_retries(case: Case, tmp_path: Path) -> None:
    scenario = model(nRetries=case["input"]["nRetries"])
    assert imported(tmp_path, table(prompt()), scenario).settings["retries"] == 0


@cases("execute", "evaluations", "per_answer")
def test_answers_of_all_instances_are_judged(case: Case, tmp_path: Path) -> None:
    value = case["input"]
    prediction = {"operation": value["operation"], "expected_value": value["expected_value"]}
    answers = value["script"]
    likewise = {"oracle": "expected value", "prediction": prediction, "responses": answers}
    actual = verdicts(judged({"input": likewise}, tmp_path), answers)
    expected = case["expected"]
    together = ["Failed" if "Failed" in actual else "Passed"]
    assert expected.get("per_answer", actual) == actual
    assert expected.get("evaluations", together) == together


@cases("service", "settings")
def test_the_settings_of_a_scenario_come_along(case: Case, tmp_path: Path) -> None:
    actual = imported(tmp_path, table(prompt()), model(**case["input"]["set"])).settings
    expected = case["expected"]["settings"]
    assert {name: actual[name] for name in expected} == expected


@cases("service", "sent")
def test_nothing_is_added_to_a_prompt(case: Case, tmp_path: Path) -> None:
    (text,) = test_files(imported(tmp_path, table(prompt(case["input"]["prompt"])))).values()
    assert instances(text) == [case["expected"]["sent"]]


@cases("requirements", "judged", "models", "concern")
def test_a_requirements_model_is_read(case: Case) -> None:
    scenario = read_scenario(json.dumps(case["input"]["model"]))
    (item,) = scenario.requirements
    actual: dict[str, Any] = {
        "judged": scenario.judged,
        "models": list(scenario.models),
        "concern": item.concern,
        "markup": item.markup,
        "languages": list(item.languages),
        "inputs": list(item.inputs),
        "reflections": list(item.reflections),
    }
    assert {name: actual[name] for name in case["expected"]} == case["expected"]


@cases("requirements", "left")
def test_a_requirement_that_lacks_something_is_reported(case: Case) -> None:
    scenario = read_scenario(json.dumps(case["input"]["model"]))
    assert case["expected"]["left"] in "; ".join(scenario.problems)


@cases("requirements", "markups")
def test_a_concern_without_a_markup_has_the_one_it_always_had(case: Case) -> None:
    for concern, markup in case["expected"]["markups"].items():
        asked = {**requirement(concern=concern), "markup": None}
        (item,) = read_scenario(json.dumps(model(asked))).requirements
        assert item.markup == markup


@cases("json_prompts", "prompts")
def test_templates_may_be_a_list_in_json(case: Case, tmp_path: Path) -> None:
    result = imported(tmp_path, case["input"])
    (expected,) = case["expected"]["prompts"]
    place = f"tests/{expected['language']}/{expected['concern']}/{expected['id']:03}.md"
    assert list(result.files) == [place]
