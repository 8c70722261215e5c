"""Jobs of NeMo Evaluator in the shapes in which people keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.importers.importing import Made, imported, lines

MESSAGES = [{"role": "user", "content": "{{item.q}}"}]
ROW = {"q": "What is cold?", "right": "Oslo"}
ENDPOINT = {"url": "https://judge.example/v1", "name": "judge"}


def made_of(path: Path, job: Any, name: str = "job.json") -> Made:
    return imported(path, "nemo", {name: json.dumps(job, indent=1), "d.jsonl": lines(ROW)})


def task(metrics: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "custom", "tasks": {"qa": {"metrics": metrics, **fields}}}


def check(left: str, right: str = "{{right}}") -> dict[str, Any]:
    return {"type": "string-check", "params": {"check": [left, "contains", right]}}


def judge(text: str, **more: Any) -> dict[str, Any]:
    scores = {"s": {"type": "int", "parser": {"type": "regex", "pattern": "S: (\\d)"}}}
    template = {"messages": [{"role": "user", "content": text}]}
    return {
        "type": "llm-judge",
        "params": {"model": ENDPOINT, "template": template, "scores": scores, **more},
    }


# --- data that are the target -------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        {"type": "rows", "rows": [{**ROW, "mine": "in Oslo"}]},
        {"type": "dataset", "dataset": {"rows": [{**ROW, "mine": "in Oslo"}]}},
    ],
)
def test_the_target_may_be_rows_with_answers(tmp_path: Path, target: Any) -> None:
    config = task({"a": check("{{mine}}")}, type="data")
    made = made_of(tmp_path, {"config": config, "target": target})
    assert (made.left, made.recorded("tests/qa.md")) == ([], ["in Oslo"])
    assert made.verdict("tests/qa.md", "in Oslo") == "pass"


@pytest.mark.parametrize(
    ("left", "columns", "answer"),
    [
        ("{{item.mine}}", ("answer", "mine"), "mine"),
        ("{{ mine | trim }}", ("mine", "reference"), "mine"),
        ("{{prediction}}", ("output", "prediction"), "prediction"),
        ("{{ideal_response}}", ("ideal_response", "response"), "response"),
        ("{{ reference }}", ("answer", "reference"), "answer"),
    ],
)
def test_the_column_that_is_judged_holds_the_answers(
    tmp_path: Path, left: str, columns: tuple[str, ...], answer: str
) -> None:
    rows = [{**ROW, **{name: name for name in columns}}]
    config = task({"a": check(left)}, type="data", dataset={"rows": rows})
    assert made_of(tmp_path, config).recorded("tests/qa.md") == [answer]


def test_a_judge_is_shown_the_recorded_answer(tmp_path: Path) -> None:
    metrics = {"a": check("{{prediction}}"), "j": judge("A: {{prediction}} R: {{right}} S: n")}
    rows = [{**ROW, "prediction": "x"}]
    made = made_of(tmp_path, task(metrics, type="data", dataset={"rows": rows}))
    assert "A: {{_actualResponse}} R: {{_evaluationInstructions}} S: n" in made.text(
        "prompts/qa.j.md"
    )


def test_data_of_the_configuration_are_those_of_its_tasks(tmp_path: Path) -> None:
    config = task(
        {"a": check("{{sample.output_text}}")}, params={"template": {"messages": MESSAGES}}
    )
    made = made_of(tmp_path, {**config, "dataset": {"files_url": "hf://datasets/me/d.jsonl"}})
    assert made.messages("tests/qa.md") == [[("user", "What is cold?")]]


def test_a_limit_of_samples_is_one_of_rows(tmp_path: Path) -> None:
    config = task(
        {"a": check("{{sample.output_text}}")},
        dataset={"rows": [ROW, ROW, ROW]},
        params={"template": {"messages": MESSAGES}, "limit_samples": 2},
    )
    assert len(made_of(tmp_path, config).messages("tests/qa.md")) == 2


def test_answers_in_a_file_of_their_own_are_reported(tmp_path: Path) -> None:
    config = task(
        {"a": check("{{sample.output_text}}")},
        dataset={"rows": [ROW]},
        params={"template": {"messages": MESSAGES}},
    )
    target = {"type": "cached_outputs", "cached_outputs": {"files_url": "hf://x/out.jsonl"}}
    made = made_of(tmp_path, {"config": config, "target": target})
    assert [item[2] for item in made.left] == [
        "the recorded answers of 'cached_outputs' are not imported: models are asked"
    ]


# --- judges -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        "{{sample.response.choices[0].message.tool_calls}}",
        "{{ sample.response.choices[0].message.content | tojson }}",
        "{{ sample.tool_calls }}",
    ],
)
def test_judges_see_calls_of_tools_as_the_answer(tmp_path: Path, shown: str) -> None:
    config = task(
        {"j": judge(f"Rate {shown}")},
        dataset={"rows": [ROW]},
        params={"template": {"messages": MESSAGES}},
    )
    assert "Rate {{_actualResponse}}" in made_of(tmp_path, config).text("prompts/qa.j.md")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Rate {{item.q}}", "its template never shows the answer"),
        ("{% if sample.output_json.x %}x{% endif %}", "its template uses 'sample.output_json.x'"),
    ],
)
def test_judges_that_cannot_be_shown_the_answer_are_left(
    tmp_path: Path, text: str, reason: str
) -> None:
    config = task(
        {"j": judge(text), "a": check("{{sample.output_text}}")},
        dataset={"rows": [ROW]},
        params={"template": {"messages": MESSAGES}},
    )
    made = made_of(tmp_path, config)
    assert [reason in item[2] for item in made.left] == [True]
    assert made.verdict("tests/qa.md", "Oslo") == "pass"


def test_a_judge_that_is_only_named_is_reported(tmp_path: Path) -> None:
    config = task(
        {"j": judge("{{sample.output_text}}", model="me/judge")},
        dataset={"rows": [ROW]},
        params={"template": {"messages": MESSAGES}},
    )
    assert (
        "no address is given for the model 'me/judge': write a model file for it"
        in made_of(tmp_path, config).warnings
    )


# --- newer jobs, other forms --------------------------------------------------------------


def newer(metric: Any, **fields: Any) -> dict[str, Any]:
    template = {"messages": MESSAGES}
    return {"dataset": {"rows": [ROW]}, "prompt_template": template, "metric": metric, **fields}


EXACT = {"type": "exact-match", "name": "is-right", "reference": "{{item.right}}"}


@pytest.mark.parametrize("inside", [False, True])
def test_a_job_with_a_metric_is_one_task(tmp_path: Path, inside: bool) -> None:
    document = newer(EXACT, model=ENDPOINT, params={"inference": {"temperature": 0.5}})
    made = made_of(tmp_path, {"spec": document} if inside else document)
    path = "tests/is-right.md"
    assert made.verdict(path, "Oslo") == "pass"
    assert "options: {temperature: 0.5}" in made.text(path)
    assert made.imported.settings == {"candidates": ["judge"]}


def test_the_scores_of_newer_judges_are_json_by_their_names(tmp_path: Path) -> None:
    metric = {
        "type": "llm-judge",
        "model": ENDPOINT,
        "prompt_template": {"messages": [{"role": "user", "content": "{{sample.output_text}}"}]},
        "scores": [
            {
                "name": "style",
                "rubric": [{"label": "bad", "value": 0}, {"label": "good", "value": 1}],
            }
        ],
    }
    text = made_of(tmp_path, newer(metric)).text("tests/llm-judge.md")
    assert "parser: {json: style}\n    scores: {bad: 0, good: 1}\n" in text


def test_newer_jobs_name_the_expected_calls_a_reference(tmp_path: Path) -> None:
    row = {**ROW, "calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}
    metric = {"type": "tool-calling", "reference": "{{item.calls}}"}
    made = made_of(tmp_path, newer(metric, dataset={"rows": [row]}))
    assert "toolCalls: '{{ item.expected_calls }}'" in made.text("tests/tool-calling.md")


def test_a_metric_that_the_service_keeps_is_reported_with_its_line(tmp_path: Path) -> None:
    made = made_of(tmp_path, newer("system/exact-match"))
    line, reason = made.left[0][1:]
    assert (line, reason) == (
        18,
        "the metric 'system/exact-match': only its name is given: the service has its definition",
    )


def test_a_configuration_may_be_yaml(tmp_path: Path) -> None:
    text = (
        "type: custom\ntasks:\n  qa:\n    dataset: {files_url: d.jsonl}\n"
        "    params: {template: {prompt: '{{item.q}}'}}\n    metrics:\n"
        "      em: {type: em, params: {ground_truth: '{{item.right}}'}}\n      odd: {type: odd}\n"
    )
    made = imported(tmp_path, "nemo", {"config.yaml": text, "d.jsonl": lines(ROW)})
    assert made.messages("tests/qa.md") == [[("user", "What is cold?")]]
    assert made.left == [("config.yaml", 8, "the metric 'odd': no check matches the type 'odd'")]


def test_tasks_in_a_list_are_reported(tmp_path: Path) -> None:
    made = made_of(tmp_path, {"type": "similarity_metrics", "tasks": [{"type": "default"}]})
    assert made.left == [
        ("job.json", 3, "its 'tasks' are a list, as in early versions: give each a name")
    ]
