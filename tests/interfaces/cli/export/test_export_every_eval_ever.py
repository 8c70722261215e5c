"""`export --format every-eval-ever`: documents of that collection's schemas."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, HOSTILE
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore


def read() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The document of the only candidate, and its samples."""
    (document,) = Path("out").rglob("*.json")
    (samples,) = Path("out").rglob("*.jsonl")
    lines = samples.read_bytes().splitlines()
    return json.loads(document.read_bytes()), [json.loads(line) for line in lines]


def test_a_document_has_the_pass_rates_and_names_its_samples(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "evalstore.yaml", "candidates:", "candidatesTemperature: 0\ncandidates:")
    evalstore("run")
    evalstore("export", "--format", "every-eval-ever", "-o", "out")
    document, samples = read()
    (rate,) = document["evaluation_results"]
    assert (rate["evaluation_name"], rate["score_details"]["score"]) == ("tests/weather.md", 0.5)
    interval = rate["score_details"]["uncertainty"]["confidence_interval"]
    assert (round(interval["lower"], 3), round(interval["upper"], 3)) == (0.095, 0.905)
    details = document["detailed_evaluation_results"]
    path = Path("out") / details["file_path"]
    assert path.parts[:5] == ("out", "data", "w", "scripted", "one")
    assert details["checksum"] == sha256(path.read_bytes()).hexdigest()
    assert details["total_rows"] == len(samples) == 2
    assert document["model_info"]["additional_details"]["deployment_type"] == "unknown"
    assert rate["generation_config"] == {"generation_args": {"temperature": 0.0}}
    assert document["model_info"]["id"] == samples[0]["model_id"] == "scripted/one"
    assert {sample["evaluation_id"] for sample in samples} == {document["evaluation_id"]}
    assert {sample["evaluation_result_id"] for sample in samples} == {rate["evaluation_result_id"]}


def test_a_sample_has_the_question_the_answer_and_the_verdict(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("export", "--format", "every-eval-ever", "-o", "out")
    _, (oslo, rome) = read()
    assert (oslo["interaction_type"], oslo["input"], oslo["output"]) == (
        "single_turn",
        {"raw": "How is Oslo?", "reference": []},
        {"raw": ["Cold."]},
    )
    assert [each["evaluation"]["is_correct"] for each in (oslo, rome)] == [False, True]
    assert [each["evaluation"]["score"] for each in (oslo, rome)] == [0.0, 1.0]
    assert oslo["sample_id"] == "tests/weather.md [city=Oslo]"
    assert oslo["sample_hash"] == sha256(b"How is Oslo?").hexdigest()
    assert oslo["token_usage"]["total_tokens"] == 12
    assert oslo["metadata"]["feedback"] == "It is cold there."


def test_the_same_model_of_two_providers_keeps_its_name(
    workspace: Path, evalstore: Evalstore
) -> None:
    ids = ("first/one", "second/one", "first/ONE", "one")
    scripted = "provider: scripted\nresponses: [{answer: Warm.}]\n"
    models = {f"models/{n}.yaml": f"id: {id}\n{scripted}" for n, id in enumerate(ids)}
    settings = f"candidates: [{', '.join(ids)}]\nevaluators: [scripted/judge]\n"
    tree(workspace, {**models, "evalstore.yaml": settings})
    evalstore("run")
    evalstore("export", "--format", "every-eval-ever", "-o", "out")
    folders = {str(path.parent.relative_to("out/data/w")) for path in Path("out").rglob("*.json")}
    assert len(folders) == 4
    assert {"first/one", "second/one", "unknown/one"} < folders


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_come_back_as_they_are(echo: Echo, evalstore: Evalstore, kind: str) -> None:
    echo.reply = lambda _text: HOSTILE[kind]
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run")
    evalstore("export", "--format", "every-eval-ever", "-o", "out")
    _, (sample,) = read()
    assert sample["output"]["raw"] == [HOSTILE[kind].strip()]


def test_the_schemas_of_the_collection_accept_it(echo: Echo, evalstore: Evalstore) -> None:
    schema = pytest.importorskip(
        "every_eval_ever.schema", reason="every-eval-ever is not installed"
    )
    turns = ASKED.replace("Question?", "First\n\n# 🤖 @first\n\n# 👤\n\nSecond")
    tree(Path.cwd(), {"tests/one.md": ASKED, "tests/two.md": turns})
    evalstore("run")
    evalstore("export", "--format", "every-eval-ever", "-o", "out")
    document, samples = read()
    jsonschema.validate(document, schema.schema_json())
    assert {sample["interaction_type"] for sample in samples} == {"single_turn", "multi_turn"}
    for sample in samples:
        jsonschema.validate(sample, schema.schema_json("instance_level_eval.schema.json"))
