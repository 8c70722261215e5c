"""`export --format otlp`: judgements as OpenTelemetry events, read as OTLP's JSON form."""

from __future__ import annotations

import base64
import importlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.export.test_export import ASKED, HOSTILE

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore


def records(path: str = "r.otlp.json") -> list[dict[str, Any]]:
    """The log records of the only scope; their attributes are values by name."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    (resource,) = request["resourceLogs"]
    (scope,) = resource["scopeLogs"]
    return [
        {**record, "attributes": values(record["attributes"])} for record in scope["logRecords"]
    ]


def values(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in attributes}


def test_each_judgement_is_an_event(workspace: Path, evalstore: Evalstore, documents: Any) -> None:
    cases = documents("run")["cases"]
    assert evalstore("export", "-o", "r.otlp.json").stderr == "wrote r.otlp.json\n"
    oslo, rome = records()
    assert {oslo["eventName"], rome["eventName"]} == {"gen_ai.evaluation.result"}
    assert (oslo["traceId"], oslo["spanId"]) == (
        cases[0]["sessions"][0],
        cases[0]["sessions"][0][:16],
    )
    attributes = oslo["attributes"]
    assert attributes["gen_ai.evaluation.name"] == "scripted/judge"
    assert attributes["gen_ai.evaluation.score.label"] == "fail"
    assert attributes["gen_ai.evaluation.explanation"] == "It is cold there."
    assert attributes["gen_ai.request.model"] == "scripted/one"
    assert attributes["evalstore.row"] == "city=Oslo"
    assert "gen_ai.evaluation.explanation" not in rome["attributes"]


def test_times_are_nanoseconds_as_texts(workspace: Path, evalstore: Evalstore) -> None:
    before = time.time_ns() // 1000 * 1000
    evalstore("run")
    evalstore("export", "-o", "r.otlp.json")
    for record in records():
        assert before <= int(record["timeUnixNano"]) <= time.time_ns()
        assert isinstance(record["observedTimeUnixNano"], str)


def test_a_score_is_a_number_and_an_error_has_its_type(echo: Echo, evalstore: Evalstore) -> None:
    broken = ASKED.replace("contains: needle", "expr: '1 / 0 == 1'")
    scored = ASKED.replace("contains: needle", "{similar: Question, pass: '>= 0.5'}")
    tree(Path.cwd(), {"tests/one.md": broken, "tests/two.md": scored})
    evalstore("run")
    evalstore("export", "--format", "otlp", "-o", "r.otlp.json")
    error, score = (record["attributes"] for record in records())
    assert (error["gen_ai.evaluation.score.label"], error["error.type"]) == ("error", "_OTHER")
    assert isinstance(score["gen_ai.evaluation.score.value"], float)
    assert "error.type" not in score


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_come_back_as_they_are(echo: Echo, evalstore: Evalstore, kind: str) -> None:
    echo.reply = lambda _text: HOSTILE[kind]
    tree(Path.cwd(), {"tests/=one.md": ASKED.replace("needle", "missing")})
    evalstore("run")
    evalstore("export", "-o", "r.otlp.json")
    (record,) = records()
    assert record["attributes"]["evalstore.file"] == "tests/=one.md"
    assert "missing" in record["attributes"]["gen_ai.evaluation.explanation"]
    assert not set(Path("r.otlp.json").read_bytes()) & set(range(0x20)) - {0x0A}


def test_the_definition_of_the_protocol_reads_it(workspace: Path, evalstore: Evalstore) -> None:
    name = "opentelemetry.proto.collector.logs.v1.logs_service_pb2"
    service = importlib.import_module(name)
    formats = importlib.import_module("google.protobuf.json_format")
    evalstore("run")
    evalstore("export", "-o", "r.otlp.json")
    request = json.loads(Path("r.otlp.json").read_text(encoding="utf-8"))
    for record in request["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
        for name in ("traceId", "spanId"):  # OTLP writes hexadecimal digits, protobuf base64
            record[name] = base64.b64encode(bytes.fromhex(record[name])).decode()
    read = formats.ParseDict(request, service.ExportLogsServiceRequest())
    assert len(read.resource_logs[0].scope_logs[0].log_records) == 2
