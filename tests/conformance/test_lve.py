"""Tests of LVE come to test files that ask and judge the same, apart from noted deviations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.importers.base import NotTakenError
from evalstore.exchange.importers.lve.definition import (
    LveTurn,
    fill,
    names_of,
    parse,
    read_prompt_file,
    read_prompt_list,
    template,
    turn_names,
)
from evalstore.exchange.importers.lve.reader import (
    read_instance,
    split_arguments,
)
from evalstore.exchange.importers.lve.test_writer import model_arguments
from tests.exchange.importers import judged
from tests.exchange.importers.judged import content, expansion, only, verdict
from tests.exchange.importers.lve.repository import (
    definition,
    filled,
    imported,
    instance,
    reasons,
    texts,
)
from tests.exchange.importers.running import imported_and_run, needs_python, verdicts_of

FACTS = json.loads(Path(__file__).with_name("lve.json").read_text("utf-8"))
Case = dict[str, Any]
VERDICTS = {True: "pass", False: "fail"}


def cases(kind: str, *, left: bool = False) -> pytest.MarkDecorator:
    """The cases of a kind that are taken over, or those that are left."""
    actual = [
        case
        for case in FACTS["cases"]
        if case["kind"] == kind and ("left" in case["expected"]) == left
    ]
    assert actual
    return pytest.mark.parametrize("case", actual, ids=lambda case: case["id"])


def as_message(turn: LveTurn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.variable:
        message["variable"] = turn.variable
    return message | ({"image_url": turn.image} if turn.image else {})


@cases("prompt_file")
def test_a_prompt_file_comes_to_its_messages(case: Case) -> None:
    turns = read_prompt_file(case["input"]["text"])
    assert [as_message(turn) for turn in turns] == case["expected"]["messages"]


@cases("prompt_file", left=True)
def test_an_invalid_prompt_file_is_reported(case: Case) -> None:
    with pytest.raises(NotTakenError, match=case["expected"]["left"]):
        read_prompt_file(case["input"]["text"])


@cases("fill_prompt")
def test_a_filled_template_is_the_filled_prompt(case: Case) -> None:
    params, turns = case["input"]["params"], read_prompt_list(case["input"]["messages"])
    names = names_of(params)
    values = {names[name]: value for name, value in params.items()}
    pieces = [parse(turn.content or "", params) for turn in turns]
    expected = [message["content"] for message in case["expected"]["messages"]]
    assert [filled(template(piece, names), values) for piece in pieces] == expected
    assert [fill(piece, params) for piece in pieces] == expected
    images = [turn.image and fill(parse(turn.image, params), params) for turn in turns]
    assert images == [message.get("image_url") for message in case["expected"]["messages"]]


@cases("fill_prompt", left=True)
def test_what_cannot_be_filled_is_reported(case: Case, tmp_path: Path) -> None:
    params = case["input"]["params"]
    test = definition(prompt=case["input"]["messages"], prompt_parameters=list(params))
    assert case["expected"]["left"] in reasons(imported(tmp_path, test, instance(params)))


@cases("split_args")
def test_arguments_are_of_the_prompt_or_of_the_model(case: Case) -> None:
    value = case["input"]
    actual = split_arguments(value["args"], value["prompt_parameters"])
    assert actual == (case["expected"]["params"], case["expected"]["model_args"])


@cases("model_args")
def test_arguments_of_a_call_win_over_those_of_the_test(case: Case) -> None:
    default = case["input"]["default_model_args"] or {}
    sent = [model_arguments(default, run) for run in case["input"]["runs"]]
    assert sent == case["expected"]["sent"]


@cases("conversation")
def test_the_calls_of_a_conversation_are_the_same(case: Case, tmp_path: Path) -> None:
    messages, answers = case["input"]["messages"], list(case["input"]["answers"])
    expanded = expansion(imported(tmp_path, definition(prompt=messages)))
    (test,) = judged.cases(expanded)[0].tests
    calls: list[list[dict[str, Any]]] = []
    output: list[dict[str, Any]] = []
    for message in [*content(expanded, test)["messages"], {"role": "assistant", "filled": True}]:
        if message.get("filled"):
            calls.append(list(output))
            message = {"role": "assistant", "content": answers.pop(0)}
        output.append({"role": message["role"], "content": sent(message["content"])})
    assert calls == case["expected"]["calls"]


def sent(content: str | list[dict[str, str]]) -> Any:
    """A text; or texts and pictures, as they are sent."""
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": item["text"]}
        if "text" in item
        else {"type": "image_url", "image_url": item["path"]}
        for item in content
    ]


@cases("conversation")
def test_the_answers_of_a_conversation_have_their_names(case: Case) -> None:
    names = turn_names(read_prompt_list(case["input"]["messages"]))
    answers = dict(zip(names, case["input"]["answers"], strict=True))
    response = case["expected"]["response"]
    assert answers == (response if isinstance(response, dict) else {names[0]: response})


@cases("conversation", left=True)
def test_an_invalid_conversation_is_reported(case: Case, tmp_path: Path) -> None:
    result = imported(tmp_path, definition(prompt=case["input"]["messages"]))
    assert case["expected"]["left"] in reasons(result)


def checker_test(case: Case, tmp_path: Path) -> Any:
    value = case["input"]
    params = value["params"]
    prompt = value.get("messages_out", [{"role": "user", "content": "q"}])
    prompt = [{**item, "content": None} if item["role"] == "assistant" else item for item in prompt]
    test = definition(
        prompt=prompt, prompt_parameters=list(params), checker_args=value["checker_args"]
    )
    answers = [
        item["content"] for item in value.get("messages_out", []) if item["role"] == "assistant"
    ]
    output = {f"a{number}": item for number, item in enumerate(answers, 1)}
    return imported(tmp_path, test, instance(params, output or value["response"])), answers


@cases("checker")
def test_a_checker_comes_to_checks_with_the_same_verdict(case: Case, tmp_path: Path) -> None:
    actual, answers = checker_test(case, tmp_path)
    if b"python:" in actual.files[only(actual)]:
        return  # below
    expected = VERDICTS[case["expected"]["passed"]]
    assert verdict(expansion(actual), answers or [case["input"]["response"]]) == expected


@needs_python
@cases("checker")
def test_a_checker_that_runs_python_has_the_same_verdict(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actual, _ = checker_test(case, tmp_path / "source")
    if b"python:" not in actual.files[only(actual)]:
        return  # above
    output = [{"answer": case["input"]["response"]}]
    document = imported_and_run(tmp_path, capsys, "lve", output)
    assert list(verdicts_of(document).values()) == [VERDICTS[case["expected"]["passed"]]]


@needs_python
def test_the_same_numbers_are_taken_of_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actual = [item for item in FACTS["cases"] if item["kind"] == "extract"]  # cases("extract")
    output = []
    for case in actual:
        inputs, value = case["input"], case["expected"]["value"]
        func = f"lambda r: r == {value!r} and type(r) is type({value!r})"
        test = definition(
            prompt=[{"content": f"This is {case['id']}."}],
            checker_args={"checker_name": "LambdaChecker", "func": func, "extract": inputs["mode"]},
        )
        imported(tmp_path / "source", test, place=f"trust/{case['id']}/m")
        output.append({"when": case["id"], "answer": inputs["value"]})
    verdicts = verdicts_of(imported_and_run(tmp_path, capsys, "lve", output))
    assert verdicts == {f"trust/{case['id']}/m.md::": "pass" for case in actual}


@cases("checker", left=True)
def test_a_checker_that_cannot_judge_is_reported(case: Case, tmp_path: Path) -> None:
    actual, _ = checker_test(case, tmp_path)
    assert case["expected"]["left"] in reasons(actual)


@cases("multi_run")
def test_several_runs_are_judged_together(case: Case, tmp_path: Path) -> None:
    value, expected = case["input"], case["expected"]
    if "func" not in value:
        runs = value["multi_run_prompt"]
        test = definition(multi_run_prompt=runs)
        (item,) = judged.cases(expansion(imported(tmp_path, test, files={"a.prompt": "Hello"})))
        assert len(item.tests) == expected.get("sessions", 1)
        return
    answers = value["answers"]
    names = list(answers[0]) if isinstance(answers[0], dict) else []
    turns = [[{"content": "q"}, {"role": "assistant", "variable": name}] for name in names]
    prompt = [message for pair in turns for message in pair] or [{"content": "q"}]
    test = definition(
        multi_run_prompt=[{"prompt": prompt} for _ in answers],
        prompt_parameters=list(value["params"]),
        checker_args={"checker_name": "MultiRunLambdaChecker", "func": value["func"]},
    )
    result = imported(tmp_path, test, instance(value["params"], answers))
    sessions = [list(run.values()) if names else [run] for run in answers]
    assert verdict(expansion(result), *sessions) == VERDICTS[expected["passed"]]


@cases("test_json")
def test_a_definition_comes_to_its_messages(case: Case, tmp_path: Path) -> None:
    result = imported(tmp_path, case["input"]["test"], files=case["input"].get("files"))
    expanded = expansion(result)
    (test,) = judged.cases(expanded)[0].tests
    messages = [
        {"role": message["role"], "content": message["content"]}
        for message in content(expanded, test)["messages"]
    ]
    assert messages == case["expected"]["messages"]


@cases("test_json", left=True)
def test_a_wrong_definition_is_reported(case: Case, tmp_path: Path) -> None:
    result = imported(tmp_path, case["input"]["test"], files=case["input"].get("files"))
    assert case["expected"]["left"] in reasons(result)


@cases("lve_path")
def test_a_test_is_called_after_its_path(case: Case, tmp_path: Path) -> None:
    place = case["input"]["path"].removeprefix("repository/")
    ((name, text),) = texts(imported(tmp_path, definition(), place=place)).items()
    assert name == f"tests/{place}.md"
    assert name.split("/")[-2] == case["expected"]["name"]
    assert f"tags: [{case['expected']['category']}," in text


@cases("instance")
def test_an_instance_comes_to_its_answers_and_its_verdict(case: Case) -> None:
    actual = read_instance(Path(), 1, json.dumps(case["input"]["record"]))
    expected, response = case["expected"], case["expected"]["response"]
    assert actual.passed == expected["passed"]
    assert actual.responses == (response if isinstance(response, list) else [response])


@cases("instance", left=True)
def test_an_invalid_instance_is_reported(case: Case) -> None:
    with pytest.raises(NotTakenError, match=case["expected"]["left"]):
        read_instance(Path(), 1, json.dumps(case["input"]["record"]))


@cases("custom_checker")
def test_each_checker_keeps_its_own_file(case: Case, tmp_path: Path) -> None:
    for number, lve in enumerate(case["input"]["lves"]):
        test = definition(checker_args={"checker_name": lve["checker_name"]})
        files = {"checker/checker.py": lve["checker.py"]}
        actual = texts(imported(tmp_path / str(number), test, files=files))
        check = f"python: {{file: acme--m1/checker.py, class: {lve['checker_name']}}}"
        assert check in actual["tests/trust/colours/acme--m1.md"]
        assert actual["tests/trust/colours/acme--m1/checker.py"] == lve["checker.py"]


@needs_python
@cases("custom_checker")
def test_each_checker_judges_by_its_own_file(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = []
    for number, item in enumerate(case["input"]["lves"]):
        test = definition(
            prompt=[{"content": f"This is {number}."}],
            checker_args={"checker_name": item["checker_name"]},
        )
        files = {"checker/checker.py": item["checker.py"]}
        imported(tmp_path / "source", test, files=files, place=f"trust/t{number}/m")
        output.append({"when": f"is {number}", "answer": item["response"]})
    actual = list(verdicts_of(imported_and_run(tmp_path, capsys, "lve", output)).values())
    assert actual == [VERDICTS[result["passed"]] for result in case["expected"]["results"]]


@cases("custom_checker", left=True)
def test_a_class_that_is_called_like_one_of_lve_is_reported(case: Case, tmp_path: Path) -> None:
    (item,) = case["input"]["lves"]
    test = definition(checker_args={"checker_name": item["checker_name"]})
    result = imported(tmp_path, test, files={"checker/checker.py": item["checker.py"]})
    assert case["expected"]["left"] in reasons(result)


@cases("run")
def test_a_run_comes_to_the_same_verdict(case: Case, tmp_path: Path) -> None:
    value, expected = case["input"], case["expected"]
    result = imported(tmp_path, value["test"], instance(value["args"], expected["response"]))
    assert result.left == []
    assert verdict(expansion(result), [expected["response"]]) == VERDICTS[expected["passed"]]


@cases("run", left=True)
def test_a_test_that_could_not_run_is_reported(case: Case, tmp_path: Path) -> None:
    value = case["input"]
    files = {f"checker/{name}": text for name, text in value.get("checker", {}).items()}
    result = imported(tmp_path, value["test"], instance(value["args"]), files=files)
    assert case["expected"]["left"] in reasons(result)
