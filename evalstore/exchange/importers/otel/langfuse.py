"""Generations as Langfuse exports them, in the form of OTLP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from evalstore.exchange.importers.coerce import as_list, as_mapping, parse_json
from evalstore.exchange.importers.otel.times import to_nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.core.values import Json


def find_generations(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the generations of a trace, of a page or a list of observations, or of a line."""
    fields = as_mapping(document)
    if _is_observation(fields):
        if fields["type"] == "GENERATION":
            yield _as_otlp(fields)
        return
    listed = as_list(document) or as_list(fields.get("observations")) or as_list(fields.get("data"))
    for inner in listed:
        if isinstance(inner, dict) and _is_observation(inner):
            yield from find_generations(inner)


def _is_observation(fields: dict[str, Any]) -> bool:
    return "type" in fields and ("traceId" in fields or "trace_id" in fields)


def _as_otlp(generation: dict[str, Any]) -> dict[str, Any]:
    def field(*names: str) -> Any:
        return next((generation[name] for name in names if generation.get(name)), None)

    usage = as_mapping(_parsed(field("usageDetails", "usage_details", "usage")))
    output = _parsed(generation.get("output"))
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": field("model", "providedModelName", "provided_model_name"),
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
        "gen_ai.conversation.id": field("sessionId", "session_id"),
        "gen_ai.input.messages": json.dumps(_messages("user", _parsed(generation.get("input")))),
        "gen_ai.output.messages": json.dumps(_messages("assistant", output)[-1:]),
    }
    return {
        "traceId": field("traceId", "trace_id"),
        "spanId": generation.get("id"),
        "startTimeUnixNano": to_nanoseconds(field("startTime", "start_time")),
        "endTimeUnixNano": to_nanoseconds(field("endTime", "end_time")),
        "attributes": attributes,
    }


def _messages(role: str, value: Json) -> list[Json]:
    """Return the messages in an input or an output, which may be anything that was logged."""
    fields = as_mapping(value)
    listed = fields.get("messages", value)
    if isinstance(listed, list) and listed and all("role" in as_mapping(each) for each in listed):
        return listed
    if value is None:
        return []
    if "role" in fields or "tool_calls" in fields:
        return [{"role": role, **fields}]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [{"role": role, "content": text}]


def _parsed(value: Json) -> Json:
    """Return the value of a list or an object in JSON; other texts as they are."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value
