"""Jobs of NeMo Evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Reply, ToolCall
from tests.exchange.importers.importing import Made, imported, lines

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Context: {{item.prompt}}"},
]
CONTAINS = {
    "type": "string-check",
    "params": {"check": ["{{sample.output_text}}", "contains", "{{item.ideal_response}}"]},
}
ROW = {"Prompt": "Oslo is cold.", "ideal response": "Oslo"}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
}


def job(metrics: Any, template: Any = None, **task: Any) -> dict[str, Any]:
    shown = {"messages": MESSAGES} if template is None else template
    entry = {
        "type": "completion",
        "params": {"template": shown},
        "metrics": metrics,
        "dataset": {"files_url": "hf://datasets/me/qa"},
        **task,
    }
    return {"config": {"type": "custom", "tasks": {"qa": entry}}}


def imported_job(path: Path, document: Any, *rows: Any) -> Made:
    return imported(
        path, "nemo", {"job.json": json.dumps(document, indent=1), "qa.jsonl": lines(*rows)}
    )


def test_a_task_becomes_one_readable_test(tmp_path: Path) -> None:
    made = imported_job(tmp_path, job({"accuracy": CONTAINS}), ROW)
    assert made.text("tests/qa.md") == (
        "---\ndataset: qa.jsonl\n---\n\nBe brief.\n\n# 👤\n\nContext: {{item.prompt}}\n\n---\n\n"
        "~~~checks\n- contains: '{{item.ideal_response}}'\n~~~\n"
    )


def test_columns_have_their_documented_names(tmp_path: Path) -> None:
    made = imported_job(tmp_path, job({"accuracy": CONTAINS}), ROW)
    assert made.messages("tests/qa.md") == [
        [("system", "Be brief."), ("user", "Context: Oslo is cold.")]
    ]
    assert made.verdict("tests/qa.md", "It is Oslo.") == "pass"


def test_data_that_are_not_here_keep_their_address(tmp_path: Path) -> None:
    files = {"job.json": json.dumps(job({"accuracy": CONTAINS}))}
    made = imported(tmp_path, "nemo", files)
    assert "dataset: hf://datasets/me/qa\n" in made.text("tests/qa.md")
    assert made.warnings == [
        "the data were not found: say in 'datasetRoots' where 'hf://datasets/me/qa' is"
    ]


def test_rows_bring_their_messages(tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "a {{b}}"}], "ideal_response": "x"}
    document = job({"a": CONTAINS}, {"messages": "{{ item.messages | tojson }}"})
    made = imported_job(tmp_path, document, row)
    assert made.messages("tests/qa.md") == [[("user", "a {{b}}")]]


def test_options_of_the_template_belong_to_the_test(tmp_path: Path) -> None:
    document = job({"a": CONTAINS}, {"messages": MESSAGES, "temperature": 0.2, "max_tokens": 9})
    made = imported_job(tmp_path, document, ROW)
    assert "options: {temperature: 0.2, maxOutputTokens: 9}" in made.text("tests/qa.md")


def test_tables_are_copied_and_their_bad_rows_reported(tmp_path: Path) -> None:
    table = "Prompt,ideal response\na,b\nc\n"
    files = {"job.json": json.dumps(job({"a": CONTAINS})), "qa.csv": table}
    made = imported(tmp_path, "nemo", files)
    assert made.text("tests/qa.csv") == table
    assert [item[:2] for item in made.left] == [("qa.csv", 3)]
    assert "dataset: {path: qa.csv, onError: skip}" in made.text("tests/qa.md")


def test_data_alone_are_recorded_answers(tmp_path: Path) -> None:
    check = ["{{item.output}}", "equals", "{{item.reference}}"]
    metric = {"type": "string-check", "params": {"check": check}}
    document = job({"a": metric}, params={}, type="data")
    made = imported_job(tmp_path, document, {"input": "x", "output": "y", "reference": "y"})
    assert made.recorded("tests/qa.md") == ["y"]
    assert made.verdict("tests/qa.md", "y") == "pass"


def test_scores_without_a_bound_get_one_and_that_is_reported(tmp_path: Path) -> None:
    metric = {"type": "f1", "params": {"ground_truth": "{{item.ideal_response}}"}}
    made = imported_job(tmp_path, job({"f": metric}), ROW)
    assert made.verdict("tests/qa.md", "cold Oslo") == "pass"
    assert made.warnings == [
        "the metric 'f' has no threshold: in evalstore a score passes from 0.5 up"
    ]


def test_an_unknown_metric_is_left_with_its_line(tmp_path: Path) -> None:
    made = imported_job(tmp_path, job({"a": CONTAINS, "b": {"type": "remote"}}), ROW)
    (item,) = made.left
    assert item[0] == "job.json"
    assert item[2] == "the metric 'b': no check matches the type 'remote'"
    line = json.dumps(job({"a": CONTAINS, "b": {"type": "remote"}}), indent=1).split("\n")
    assert '"b": {' in line[(item[1] or 0) - 2] + line[(item[1] or 0) - 1]


def test_tool_calls_are_expected_and_tools_become_files(tmp_path: Path) -> None:
    metric = {
        "type": "tool-calling",
        "params": {"tool_calls_ground_truth": "{{ item.calls | tojson }}"},
    }
    template = {"messages": MESSAGES, "tools": "{{ item.tools | tojson }}"}
    call = {"function": {"name": "f", "arguments": '{"x": 1}'}}
    row = {**ROW, "calls": [call], "tools": [TOOL]}
    made = imported_job(tmp_path, job({"t": metric}, template), row)
    assert "availableTools: [from/f]" in made.text("tests/qa.md")
    right = Reply(None, tool_calls=(ToolCall("f", {"x": 1}),))
    wrong = Reply(None, tool_calls=(ToolCall("f", {"x": 2}),))
    assert [made.verdict("tests/qa.md", reply) for reply in (right, wrong)] == ["pass", "fail"]


def test_rows_that_offer_the_same_tools_share_a_test(tmp_path: Path) -> None:
    template = {"messages": MESSAGES, "tools": "{{ item.tools | tojson }}"}
    other = {**TOOL, "function": {**TOOL["function"], "description": "another"}}
    rows = [{**ROW, "tools": tools} for tools in ([TOOL], [], [TOOL], [other], json.dumps([TOOL]))]
    made = imported_job(tmp_path, job({"a": CONTAINS}, template), *rows)
    assert (made.left, [len(made.messages(f"tests/qa-{number}.md")) for number in (1, 2, 3)]) == (
        [],
        [3, 1, 1],
    )
    assert "availableTools: [from/f]" in made.text("tests/qa-1.md")
    assert "availableTools" not in made.text("tests/qa-2.md")
    assert "availableTools: [from/f-2]" in made.text("tests/qa-3.md")


def test_a_limit_counts_rows_before_they_are_distinguished_by_tools(tmp_path: Path) -> None:
    template = {"messages": MESSAGES, "tools": "{{ item.tools }}"}
    document = job({"a": CONTAINS}, template, dataset={"files_url": "hf://d/qa", "limit": 2})
    rows = [{**ROW, "tools": tools} for tools in ([TOOL], [], [TOOL])]
    made = imported_job(tmp_path, document, *rows)
    assert [len(made.messages(f"tests/qa-{number}.md")) for number in (1, 2)] == [1, 1]


def judge(text: str, **score: Any) -> dict[str, Any]:
    parser = {"type": "regex", "pattern": "SCORE: (\\d)"}
    template = {"messages": [{"role": "user", "content": text}]}
    endpoint = {"url": "https://judge.example/v1/chat/completions", "model_id": "big/judge"}
    return {
        "type": "llm-judge",
        "params": {
            "model": {"api_endpoint": {**endpoint, "api_key": "nvapi-secret"}},
            "template": template,
            "scores": {"rating": {"type": "int", "parser": parser, **score}},
        },
    }


def test_a_judges_prompt_is_put_together_as_it_was(tmp_path: Path) -> None:
    text = "Rate 1 to 5.\nQ: {{item.prompt}}\nA: {{ sample.output_text }}\nSay SCORE: n"
    made = imported_job(tmp_path, job({"j": judge(text)}), ROW)
    assert made.text("prompts/qa.j.md").endswith(
        "# 👤\n\nRate 1 to 5.\nQ: {{_evaluationInstructions}}\nA: {{_actualResponse}}\n"
        "Say SCORE: n\n"
    )
    assert "\n{{item.prompt}}\n" in made.text("tests/qa.md")


def test_a_judge_that_needs_the_row_on_both_sides_reads_another_order(tmp_path: Path) -> None:
    text = "Q: {{item.prompt}} A: {{sample.output_text}} R: {{item.ideal_response}}"
    made = imported_job(tmp_path, job({"j": judge(text, minimum=1, maximum=5)}), ROW)
    assert "the prompt of the judge 'j' has its parts in another order" in made.warnings


def test_the_scale_of_a_judge_is_that_of_its_prompt(tmp_path: Path) -> None:
    made = imported_job(
        tmp_path, job({"j": judge("Rate from 1 to 5: {{sample.output_text}}")}), ROW
    )
    assert "    parser: {regex: 'SCORE: (\\d)', min: 1, max: 5}\n    pass: '>= 3'\n" in made.text(
        "tests/qa.md"
    )
    assert made.warnings[0].endswith(
        "in evalstore it passes if it is >= 3; its scale is taken to be 1 to 5"
    )


def test_every_judge_has_a_test_so_that_answers_are_shared(tmp_path: Path) -> None:
    first = judge("{{sample.output_text}}")
    first["params"]["scores"]["style"] = {"parser": {"type": "json", "json_path": "s"}}
    made = imported_job(tmp_path, job({"j": first, "a": CONTAINS}), ROW)
    assert sorted(path for path in made.imported.files if path.startswith("tests/")) == [
        "tests/qa.j.style.md",
        "tests/qa.jsonl",
        "tests/qa.md",
    ]


def test_keys_are_never_written(tmp_path: Path) -> None:
    made = imported_job(tmp_path, job({"j": judge("{{sample.output_text}}")}), ROW)
    assert all(b"nvapi-secret" not in content for content in made.imported.files.values())
    assert "apiKeyEnvVar: BIG_JUDGE_API_KEY" in made.text("providers/big-judge.yaml")
    assert made.imported.settings == {"evaluators": ["big/judge"]}


def test_json_that_cannot_be_read_is_reported_with_its_place(tmp_path: Path) -> None:
    made = imported(tmp_path, "nemo", {"job.json": '{"tasks": {\n  "a": }'})
    assert [item[:2] for item in made.left] == [("job.json", 2)]
    assert made.imported.left[0].column == 8


def test_a_folder_without_jobs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match="no NeMo Evaluator job"):
        imported(tmp_path, "nemo", {"a.json": "[]"})


def number_check(right: str = "{{item.ref}}", operation: str = "equals", **more: Any) -> Any:
    check = ["{{sample.output_text}}", operation, right]
    return job({"m": {"type": "number-check", "params": {"check": check, **more}}}, "Q")


@pytest.mark.parametrize(
    ("reference", "good", "bad"),
    [
        ("2 + 40 is\n#### 42", "It is 42.", "It is 2."),
        ("- 5", "5", "-5"),
        ("a is 1.50", "1.5", "1"),
        (7, "so 7", "8"),
    ],
)
def test_a_number_is_compared_with_the_last_one_of_the_reference(
    tmp_path: Path, reference: Any, good: str, bad: str
) -> None:
    rows = [{"ref": reference}, {"ref": "x 1"}]
    made = imported_job(tmp_path, number_check(), *rows)
    assert [made.verdict("tests/qa.md", answer) for answer in (good, bad)] == ["pass", "fail"]
    assert made.verdict("tests/qa.md", "1", row=1) == "pass"


def test_references_that_are_numbers_stay_where_they_are(tmp_path: Path) -> None:
    made = imported_job(tmp_path, number_check(), {"ref": 7}, {"ref": " 1.5 "})
    assert "- number: {expected: '{{item.ref}}'}" in made.text("tests/qa.md")
    assert "expected_number" not in made.text("tests/qa.jsonl")


def test_a_reference_may_have_text_round_the_column_or_be_a_text_alone(tmp_path: Path) -> None:
    made = imported_job(tmp_path, number_check("#### {{ref}}"), {"ref": 42})
    assert made.verdict("tests/qa.md", "42") == "pass"
    made = imported_job(tmp_path / "alone", number_check("so #### 42"), {"ref": 1})
    assert "- number: {expected: 42}" in made.text("tests/qa.md")


def test_a_row_whose_reference_has_no_number_is_left(tmp_path: Path) -> None:
    rows = [{"ref": "none"}, {"ref": "a 1"}, {"other": 1}, {"ref": "a 2"}, {"ref": "a 3"}]
    document = number_check()
    document["config"]["tasks"]["qa"]["params"]["limit_samples"] = 4
    made = imported_job(tmp_path, document, *rows)
    reason = "the reference of this row has no number"
    assert made.left == [("qa.jsonl", 1, reason), ("qa.jsonl", 3, reason)]
    assert [made.verdict("tests/qa.md", answer, row) for row, answer in enumerate("12")] == [
        "pass"
    ] * 2
    assert len(made.read().files["tests/qa.md"].cases) == 2


@pytest.mark.parametrize("right", ["{{item.ref}}", "no number"])
def test_a_metric_without_any_number_to_compare_with_is_left(tmp_path: Path, right: str) -> None:
    made = imported_job(tmp_path, number_check(right), {"ref": "none"})
    assert "has no number" in made.left[0][2]
    assert made.imported.files == {}


@pytest.mark.parametrize("operation", ["equals", "==", ">="])
def test_an_epsilon_that_means_nothing_is_refused(tmp_path: Path, operation: str) -> None:
    made = imported_job(tmp_path, number_check("1", operation, epsilon=0.5), {"ref": 1})
    reason = f"the metric 'm': 'epsilon' has no effect with the operation '{operation}'"
    assert made.left[0][2] == reason


@pytest.mark.parametrize("epsilon", [-1, True, "1"])
def test_an_invalid_epsilon_is_refused(tmp_path: Path, epsilon: Any) -> None:
    made = imported_job(tmp_path, number_check("1", "absolute difference", epsilon=epsilon), ROW)
    assert "needs 'epsilon'" in made.left[0][2]


@pytest.mark.parametrize(
    ("right", "good", "bad"),
    [
        (" {{ item.ref }}\n", "Oslo", " Oslo\n"),
        ("{{item.ref}}!\n", "Oslo!", "Oslo!\n"),
        ("{{item.ref}}! ", "Oslo! ", "Oslo!"),
    ],
)
def test_white_space_round_a_lone_expression_means_nothing(
    tmp_path: Path, right: str, good: str, bad: str
) -> None:
    check = {"type": "string-check", "params": {"check": [" {{sample.output_text}} ", "==", right]}}
    made = imported_job(tmp_path, job({"m": check}, "Q"), {"ref": "Oslo"})
    assert [made.verdict("tests/qa.md", answer) for answer in (good, bad)] == ["pass", "fail"]


def test_rouge_compares_stems(tmp_path: Path) -> None:
    metric = {"type": "rouge", "params": {"ground_truth": "{{item.ref}}"}}
    made = imported_job(tmp_path, job({"m": metric}, "Q"), {"ref": "the dogs were running"})
    assert "stem: true" in made.text("tests/qa.md")
    pytest.importorskip("rouge_score")
    score = made.checked("tests/qa.md", Reply("a dog runs")).score
    assert score == pytest.approx(0.571428, abs=1e-6)
