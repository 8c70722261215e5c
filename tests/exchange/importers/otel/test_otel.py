"""Spans of calls of models, as conversations with their answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.importers.base import ImportOptions, reading_from
from evalstore.exchange.importers.otel import read
from tests.builders import tree
from tests.exchange.importers.importing import Made, imported, lines
from tests.exchange.importers.running import imported_and_run, verdicts_of

FILE = "tests/gpt-4o.md"
HI = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
YO = [{"role": "assistant", "parts": [{"type": "text", "content": "Yo"}], "finish_reason": "stop"}]


def value_of(value: Any) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs_of(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [value_of(inner) for inner in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def pairs_of(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them."""
    return [{"key": name, "value": value_of(value)} for name, value in values.items()]


def span(
    id: str = "a1", *, events: list[tuple[str, dict[str, Any]]] | None = None, **attributes: Any
) -> dict[str, Any]:
    """A span; '__' in the names of attributes stands for a dot."""
    named = {f"gen_ai.{name.replace('__', '.')}": value for name, value in attributes.items()}
    return {
        "traceId": "t1",
        "spanId": id,
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001500000000",
        "attributes": pairs_of({"gen_ai.request.model": "gpt-4o", **named}),
        "events": [{"name": name, "attributes": pairs_of(values)} for name, values in events or ()],
    }


def request(*spans: Any) -> dict[str, Any]:
    """The document that an exporter writes."""
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def made_of(path: Path, *spans: Any) -> Made:
    """What is made of spans in one file."""
    return imported(path, "otel", {"t.json": json.dumps(request(*spans))})


def require_answer(made: Made, **more: str) -> None:
    """The conversation of these tests was imported, with more that was recorded of it."""
    assert made.messages(FILE) == [[("system", "Be brief."), ("user", "Hi")]]
    assert made.recorded(FILE) == ["Yo"]
    assert json.loads(made.text("tests/gpt-4o.jsonl"))["recorded"] == {
        "model": "gpt-4o",
        "usage": {"input_tokens": 12, "output_tokens": 3},
        "trace": "t1",
        "started": "2023-11-14T22:13:20+00:00",
        "latency": 1.5,
        **more,
    }


def test_the_messages_of_a_span_become_a_recorded_answer(tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        span(
            operation__name="chat",
            provider__name="openai",
            system_instructions=[{"type": "text", "content": "Be brief."}],
            input__messages=HI,
            output__messages=YO,
            usage__input_tokens=12,
            usage__output_tokens=3,
        ),
    )
    require_answer(made, provider="openai", finish_reason="stop")


def test_a_run_judges_the_answers_and_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [
        span(id, input__messages=HI, output__messages=[{"role": "assistant", "content": text}])
        for id, text in (("a", "Yo"), ("b", "Go away"))
    ]
    tree(tmp_path, {"source/t.json": json.dumps(request(*spans))})
    document = imported_and_run(
        tmp_path, capsys, "otel", [{"error": "it is asked"}], verdicts=[True, False]
    )
    assert verdicts_of(document) == {"gpt-4o.md::id=a": "pass", "gpt-4o.md::id=b": "fail"}
    assert document["asked"] == 0


EVENTS = [
    ("gen_ai.system.message", {"content": "Be brief."}),
    ("gen_ai.user.message", {"content": "Hi"}),
    ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Yo"}}),
]
OLDER: dict[str, dict[str, Any]] = {
    "JSON in a text": {
        "system_instructions": '[{"type": "text", "content": "Be brief."}]',
        "input__messages": json.dumps(HI),
        "output__messages": json.dumps(YO),
    },
    "an event with the attributes": {
        "events": [
            (
                "gen_ai.client.inference.operation.details",
                {
                    "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
                    "gen_ai.input.messages": HI,
                    "gen_ai.output.messages": YO,
                },
            )
        ]
    },
    "an event per message": {"events": EVENTS},
    "an event per message, in JSON": {
        "events": [(name, {"gen_ai.event.content": json.dumps(it)}) for name, it in EVENTS]
    },
    "numbered attributes": {
        "prompt__0__role": "system",
        "prompt__0__content": "Be brief.",
        "prompt__1__role": "user",
        "prompt__1__content": "Hi",
        "completion__0__role": "assistant",
        "completion__0__content": "Yo",
    },
}


@pytest.mark.parametrize("attributes", OLDER.values(), ids=OLDER.keys())
def test_each_form_of_the_messages_is_read(tmp_path: Path, attributes: dict[str, Any]) -> None:
    made = made_of(tmp_path, span(**attributes))
    assert made.messages(FILE) == [[("system", "Be brief."), ("user", "Hi")]]
    assert made.recorded(FILE) == ["Yo"]


@pytest.mark.parametrize(
    "data",
    [b"\n\x8a\x01\n\x1f\n\x1d\n\x0cservice.name\x12\r", b"\x00\x00\x00\x10\n\x0e\n\x00\x12\n\xff"],
    ids=["a message", "messages with lengths"],
)
def test_protocol_buffers_are_named_as_what_is_not_read(tmp_path: Path, data: bytes) -> None:
    made = imported(tmp_path, "otel", {"t.json": data})
    ((name, line, reason),) = made.left
    assert (name, line) == ("t.json", None)
    assert reason.startswith("binary data; write the traces as JSON")


def record(name: str, body: Any, id: str = "a1") -> dict[str, Any]:
    """A log record that belongs to a span."""
    return {"eventName": name, "body": value_of(body), "traceId": "t1", "spanId": id}


@pytest.mark.parametrize("parts", [1, 2], ids=["a file", "two files"])
def test_messages_in_logs_belong_to_the_span_that_they_name(tmp_path: Path, parts: int) -> None:
    records = [
        *(record(name, body) for name, body in EVENTS),
        record("gen_ai.user.message", {"content": "another"}, "b2"),
        {"body": value_of("text"), "spanId": ["x"]},
    ]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    texts = [json.dumps(logs), json.dumps(request(span("a1")))]
    names = ("a.jsonl", "b.jsonl")
    files = dict(zip(names, texts, strict=True)) if parts == 2 else {"a.jsonl": "\n".join(texts)}
    made = imported(tmp_path, "otel", files)
    assert made.messages(FILE) == [[("system", "Be brief."), ("user", "Hi")]]
    assert made.recorded(FILE) == ["Yo"]


def test_events_without_a_content_are_not_an_empty_answer(tmp_path: Path) -> None:
    events = [("gen_ai.user.message", {}), ("gen_ai.choice", {"message": {"role": "assistant"}})]
    made = made_of(tmp_path, span(events=events))
    reason = "the span has no messages: their content was not recorded (span a1)"
    assert made.left == [("t.json", None, reason)]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_may_have_a_request_on_each_line(tmp_path: Path, packed: bool) -> None:
    spans = [span(id, input__messages=HI, output__messages=YO) for id in ("a", "b")]
    text = lines(*map(request, spans)).encode() + b"{broken\n"
    name = "t.jsonl.gz" if packed else "t.jsonl"
    made = imported(tmp_path, "otel", {name: gzip.compress(text) if packed else text})
    assert made.recorded(FILE) == ["Yo", "Yo"]
    (item,) = made.left
    assert item[:2] == (name, 3)


def test_each_model_has_a_test_and_each_choice_a_row(tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        span("a", input__messages=HI, output__messages=YO * 2),
        span("b", input__messages=HI, output__messages=YO, response__model="acme/../m"),
    )
    assert sorted(made.imported.files) == [
        "tests/acme-..-m.jsonl",
        "tests/acme-..-m.md",
        "tests/gpt-4o.jsonl",
        "tests/gpt-4o.md",
    ]
    assert [case.row for case in made.read().files[FILE].cases] == ["id=a-1", "id=a-2"]


def test_tools_are_shown_as_texts_which_is_reported(tmp_path: Path) -> None:
    call = {"type": "tool_call", "id": "1", "name": "add", "arguments": {"x": 1}}
    result = {"type": "tool_call_response", "id": "1", "response": 2}
    conversation = [
        *HI,
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, call]},
        {"role": "tool", "parts": [result]},
    ]
    made = made_of(tmp_path, span(input__messages=conversation, output__messages=YO))
    assert made.messages(FILE) == [
        [("user", "Hi"), ("assistant", '[calls add({"x": 1})]'), ("user", "[result] 2")]
    ]


def test_a_span_that_is_exported_twice_is_taken_once(tmp_path: Path) -> None:
    twice = span(input__messages=HI, output__messages=YO)
    assert made_of(tmp_path, twice, twice).recorded(FILE) == ["Yo"]


def test_a_text_with_signs_of_templates_stays_as_it_is(tmp_path: Path) -> None:
    text = "{{ 1 + 1 }} {% if x %} ---\n# 👤\n\n[1, 2]"
    message = {"role": "user", "content": text}
    answer = {"role": "assistant", "content": text}
    made = made_of(tmp_path, span(input__messages=[message], output__messages=[answer]))
    assert made.messages(FILE) == [[("user", text)]]
    assert made.recorded(FILE) == [text]


CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
PICTURE = {"role": "user", "parts": [{"type": "uri", "uri": "https://a/b.png"}]}


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "the span has no messages: their content was not recorded"),
        ({"input__messages": HI}, "the span has no answer"),
        (
            {"input__messages": HI, "output__messages": '[{"role": "assis'},
            "'gen_ai.output.messages' is not complete JSON: it may be cut off",
        ),
        ({"input__messages": "7"}, "'gen_ai.input.messages' is not a list"),
        (
            {"input__messages": HI, "output__messages": [CALL]},
            "the answer is a tool call without text",
        ),
        (
            {"input__messages": [PICTURE], "output__messages": YO},
            "a message has a part of the type 'uri'",
        ),
        (
            {"input__messages": [{"role": "x", "content": "y"}], "output__messages": YO},
            "a message has the role 'x'",
        ),
        (
            {"input__messages": [*HI, *YO], "output__messages": YO},
            "the conversation ends with an answer, so nothing was asked",
        ),
        (
            {"input__messages": HI, "output__messages": [{"role": "assistant"}]},
            "the answer has no text",
        ),
        ({"output__messages": YO}, "the conversation has no user message"),
        (
            {"operation__name": "invoke_agent", "input__messages": HI, "output__messages": YO},
            "the span is a call of an agent or a tool, not of a model",
        ),
        (
            {"input__messages": '[{"content": "\\ud800"}]', "output__messages": YO},
            "a text holds half of a surrogate pair",
        ),
    ],
)
def test_a_span_that_cannot_be_used_is_counted_with_the_reason(
    tmp_path: Path, attributes: dict[str, Any], reason: str
) -> None:
    made = made_of(tmp_path, *(span(id, **attributes) for id in ("a1", "b2", "c3")))
    assert [(line, item) for _, line, item in made.left] == [
        (None, f"{reason} (span a1 and 2 more)")
    ]
    assert made.imported.files == {}


def test_spans_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    other = {"spanId": "x", "attributes": pairs_of({"http.request.method": "GET"})}
    tool = span("t", operation__name="execute_tool")
    made = made_of(tmp_path, other, tool, span(input__messages=HI, output__messages=YO))
    assert (made.left, made.recorded(FILE)) == ([], ["Yo"])


def test_a_link_leads_to_no_file_outside_of_the_folder(tmp_path: Path) -> None:
    text = json.dumps(request(span(input__messages=HI, output__messages=YO)))
    tree(tmp_path, {"outside.json": text, "source/x.txt": ""})
    (tmp_path / "source/t.json").symlink_to(tmp_path / "outside.json")
    with reading_from([tmp_path / "source"], allow_outside=False):
        result = read([tmp_path / "source"], ImportOptions("from"))
    (item,) = result.left
    assert "which is outside the imported folder; '--allow-outside' allows it" in item.reason
    assert result.files == {}


def test_too_many_models_are_an_error(tmp_path: Path) -> None:
    spans = [
        span(input__messages=HI, output__messages=YO, response__model=f"m{number}")
        for number in range(1001)
    ]
    with pytest.raises(EvalstoreError, match="those of 1,001 models; at most 1,000"):
        made_of(tmp_path, *spans)


def test_a_file_without_spans_of_models_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match="no spans of model calls"):
        made_of(tmp_path)
