"""Spans of OpenInference, as OTLP and as Phoenix returns them, and generations of Langfuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.importers.base import guess_format
from tests.exchange.importers.importing import imported, lines
from tests.exchange.importers.otel.test_otel import (
    FILE,
    made_of,
    pairs_of,
    request,
    require_answer,
    span,
)

OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-4o",
    "llm.provider": "openai",
    "session.id": "s1",
    "llm.token_count.prompt": 12,
    "llm.token_count.completion": 3,
    "input.value": '{"messages": []}',
    "input.mime_type": "application/json",
    "llm.input_messages.10.message.content": "Hi",
    "llm.input_messages.10.message.role": "user",
    "llm.input_messages.2.message.role": "system",
    "llm.input_messages.2.message.contents.0.message_content.type": "text",
    "llm.input_messages.2.message.contents.0.message_content.text": "Be brief.",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Yo",
}
PHOENIX = {
    "name": "ChatCompletion",
    "context": {"trace_id": "t1", "span_id": "a1"},
    "start_time": "2023-11-14T22:13:20+00:00",
    "end_time": "2023-11-14T22:13:21.5Z",
    "attributes": OPENINFERENCE,
}


def nested(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as mappings and lists in each other, as Phoenix shows them."""
    message = {"role": "user", "content": "Hi"}
    system = {
        "role": "system",
        "contents": [{"message_content": {"type": "text", "text": "Be brief."}}],
    }
    answer = {"role": "assistant", "content": "Yo"}
    return {
        **{name: value for name, value in attributes.items() if "_messages" not in name},
        "llm": {
            "input_messages": [{"message": system}, {"message": message}],
            "output_messages": [{"message": answer}],
        },
    }


def snake(span: dict[str, Any]) -> dict[str, Any]:
    """A span as Phoenix returns it from 'spans/otlpv1'."""
    return {
        "trace_id": "t1",
        "span_id": "a1",
        "start_time_unix_nano": 1700000000000000000,
        "end_time_unix_nano": 1700000001500000000,
        "attributes": [
            {"key": name, "value": {"int_value": None, "string_value": value}}
            if isinstance(value, str)
            else {"key": name, "value": {"int_value": value}}
            for name, value in span["attributes"].items()
        ],
    }


def otlp(attributes: dict[str, Any]) -> dict[str, Any]:
    return request({**span(), "attributes": pairs_of(attributes)})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(otlp(OPENINFERENCE)),
        json.dumps({"data": [PHOENIX], "next_cursor": None}),
        json.dumps({"data": [snake(PHOENIX)]}),
        json.dumps([{"traceId": "t1", "spans": [PHOENIX]}]),
        lines(PHOENIX, PHOENIX),
        json.dumps(PHOENIX | {"attributes": nested(OPENINFERENCE)}),
    ],
    ids=["OTLP", "page", "page of OTLP", "traces", "lines", "nested"],
)
def test_openinference_is_read_from_otlp_and_from_phoenix(tmp_path: Path, text: str) -> None:
    made = imported(tmp_path, "otel", {"t.json": text})
    require_answer(made, provider="openai", conversation="s1")
    assert guess_format(tmp_path / "source/t.json") == "otel"


GENERATION = {
    "id": "a1",
    "traceId": "t1",
    "type": "GENERATION",
    "name": "answer",
    "startTime": "2023-11-14T22:13:20.000Z",
    "endTime": "2023-11-14T22:13:21.500Z",
    "model": "gpt-4o",
    "sessionId": "s1",
    "usageDetails": {"input": 12, "output": 3, "total": 15},
    "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    "output": {"role": "assistant", "content": "Yo"},
}
SPAN = {**GENERATION, "id": "b2", "type": "SPAN", "input": {"question": "Hi"}}
BLOB = {
    "id": "a1",
    "trace_id": "t1",
    "type": "GENERATION",
    "start_time": "2023-11-14 22:13:20.000000",
    "end_time": "2023-11-14 22:13:21.500000",
    "provided_model_name": "gpt-4o",
    "session_id": "s1",
    "usage_details": {"input": 12, "output": 3},
    "input": json.dumps({"messages": GENERATION["input"], "tools": []}),
    "output": "Yo",
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([SPAN, GENERATION]),
        json.dumps({"trace": {"id": "t1"}, "observations": [SPAN, GENERATION], "scores": []}),
        json.dumps({"data": [SPAN, GENERATION], "meta": {}}),
        lines(SPAN, BLOB),
    ],
    ids=["table", "trace", "page", "blob storage"],
)
def test_generations_are_read_from_exports_of_langfuse(tmp_path: Path, text: str) -> None:
    made = imported(tmp_path, "otel", {"t.json": text})
    require_answer(made, conversation="s1")
    assert made.left == []
    assert guess_format(tmp_path / "source/t.json") == "otel"


def test_what_a_generation_has_in_place_of_messages_is_shown_as_it_is(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"input": "Hi"},
        {"input": {"question": "Hi"}, "output": {"name": "Yo"}},
        {"output": None},
    ]
    listed = [{**GENERATION, "id": f"g{n}", **change} for n, change in enumerate(changes)]
    made = imported(tmp_path, "otel", {"t.json": json.dumps(listed)})
    assert made.messages(FILE) == [[("user", "Hi")], [("user", '{"question": "Hi"}')]]
    assert made.recorded(FILE) == ["Yo", '{"name": "Yo"}']
    assert made.left == [("t.json", None, "the span has no answer (span g2)")]


def test_openinference_has_calls_of_tools_and_pictures_and_spans_that_are_passed_over(
    tmp_path: Path,
) -> None:
    function = "llm.input_messages.11.message.tool_calls.0.tool_call.function"
    called = {
        **OPENINFERENCE,
        "llm.input_messages.11.message.role": "assistant",
        f"{function}.name": "add",
        f"{function}.arguments": '{"x": 1}',
        "llm.input_messages.12.message.role": "tool",
        "llm.input_messages.12.message.content": "2",
    }
    contents = "llm.input_messages.0.message.contents"
    picture = {
        **{name: value for name, value in OPENINFERENCE.items() if "_messages.2" not in name},
        f"{contents}.0.message_content.type": "text",
        f"{contents}.0.message_content.text": "This?",
        f"{contents}.1.message_content.type": "image",
        f"{contents}.1.message_content.image.image.url": "https://a.example/b.png",
    }
    chain = {"openinference.span.kind": "CHAIN", "input.value": "Hi", "output.value": "Yo"}
    completion = chain | {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    calls: list[dict[str, Any]] = [called, chain, completion, picture]
    spans = [
        {**span(id), "attributes": pairs_of(attributes)}
        for id, attributes in zip("abcd", calls, strict=True)
    ]
    made = made_of(tmp_path, *spans)
    assert [texts[2:] for texts in made.messages(FILE)] == [
        [("assistant", '[calls add({"x": 1})]'), ("user", "[result] 2")],
        [],
    ]
    assert made.messages(FILE)[1] == [("user", "Hi")]
    assert made.shown("tests/gpt-4o-pictures.md") == [
        [("This?", "https://a.example/b.png"), ("Hi", None)]
    ]
    assert made.left == []
