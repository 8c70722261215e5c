"""Imported tests judge as the class or the metric does that they were imported from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.values import Reply, ToolCall
from tests.exchange.importers.importing import imported, lines

FACTS = json.loads(Path(__file__).with_name("imports.json").read_text("utf-8"))
PACKAGES = {"bleu": "sacrebleu", "rouge": "rouge_score"}


def cases(part: str) -> pytest.MarkDecorator:
    """The cases of a part of the file."""
    return pytest.mark.parametrize("case", FACTS[part], ids=lambda case: case["id"])


def registry(kind: str, rows_: str, **args: Any) -> dict[str, str]:
    """A registry with one eval."""
    arguments = json.dumps({"samples_jsonl": "s.jsonl", **args})
    return {
        "evals/e.yaml": f"e.dev.v0:\n  class: evals:{kind}\n  args: {arguments}\n",
        "data/s.jsonl": rows_,
    }


@cases("openai-evals")
def test_a_class_of_openai_evals(case: dict[str, Any], tmp_path: Path) -> None:
    row = {"input": "x", **({"ideal": case["ideal"]} if "ideal" in case else {})}
    made = imported(tmp_path, "openai-evals", registry(case["class"], lines(row)))
    if case["expect"] in ("pass", "fail"):
        assert made.verdict("tests/e.dev.v0.md", case["answer"]) == case["expect"]
    else:
        assert ("s.jsonl", 1, case["expect"]) in made.left


@cases("few-shot")
def test_examples_stand_before_the_last_message(case: dict[str, Any], tmp_path: Path) -> None:
    example = [{"role": "user", "content": "ping"}, {"role": "assistant", "content": "pong"}]
    files = {
        **registry(
            "Match",
            lines({"input": case["input"], "ideal": "x"}),
            num_few_shot=case["num_few_shot"],
            few_shot_jsonl="f.jsonl",
        ),
        "data/f.jsonl": lines({"sample": example}, {"sample": example}),
    }
    made = imported(tmp_path, "openai-evals", files)
    if isinstance(case["expect"], str):
        assert ("s.jsonl", 1, case["expect"]) in made.left
    else:
        (shown,) = made.messages("tests/e.dev.v0.md")
        assert [content for _, content in shown] == case["expect"]


@cases("evalsone")
def test_a_row_of_evalsone(case: dict[str, Any], tmp_path: Path) -> None:
    made = imported(tmp_path, "evalsone", {"s.jsonl": lines(case["row"])})
    if "left" in case["expect"]:
        assert ("s.jsonl", 1, case["expect"]["left"]) in made.left
        return
    assert made.recorded("tests/s.md") == [case["expect"]["recorded"]]
    (messages,) = made.instructions("tests/s.md")
    assert all(item in messages for item in case["expect"]["context"])


@cases("nemo")
def test_a_metric_of_nemo(case: dict[str, Any], tmp_path: Path) -> None:
    task = {
        "type": "chat-completion",
        "params": {"template": {"messages": [{"role": "user", "content": "x"}]}},
        "dataset": {"files_url": "d.jsonl"},
        "metrics": {"m": {"type": case["metric"], "params": case["params"]}},
    }
    files = {
        "job.json": json.dumps({"config": {"tasks": {"t": task}}}),
        "d.jsonl": lines(case["item"]),
    }
    made = imported(tmp_path, "nemo", files)
    calls = tuple(ToolCall(item["name"], item["arguments"]) for item in case.get("calls", []))
    reply = Reply(case.get("answer"), tool_calls=calls)
    if "left" in case:
        assert made.left[0][2] == f"the metric 'm': {case['left']}"
    elif "score" in case:
        if case["metric"] in PACKAGES:
            pytest.importorskip(PACKAGES[case["metric"]])
        assert made.checked("tests/t.md", reply).score == pytest.approx(case["score"], abs=1e-6)
    else:
        assert made.verdict("tests/t.md", reply) == case["expect"]
