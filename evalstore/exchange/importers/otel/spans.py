"""Spans in OTLP JSON, from Phoenix or Langfuse: their attributes and events as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.base import as_list, as_mapping, parse_json

SpanEvent = tuple[str, dict[str, Json]]
SpanEvents = dict[tuple[str, str], list[SpanEvent]]


_NANOSECONDS = 1_000_000_000
_LAST = 253_402_300_799
"""The last second of the year 9999."""


def find_spans(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the spans of a request, or of an export of Phoenix or Langfuse, in their order."""
    yield from find_phoenix_spans(document)
    yield from find_generations(document)
    for resource in as_list(as_mapping(document).get("resourceSpans")):
        for scope in as_list(as_mapping(resource).get("scopeSpans")):
            yield from (
                span for span in as_list(as_mapping(scope).get("spans")) if isinstance(span, dict)
            )


def collect_events(documents: Iterable[Json]) -> SpanEvents:
    """Return the events in log records by the ids of the trace and the span they belong to."""
    events: SpanEvents = {}
    for document in documents:
        for record in _find_records(document):
            attributes, body = read_attributes(record), _read_value(record.get("body"))
            name = record.get("eventName") or attributes.get("event.name")
            if isinstance(name, str) and name.startswith("gen_ai."):
                event = name, {**attributes, **as_mapping(body)}
                events.setdefault(span_key(record), []).append(event)
    return events


def _find_records(document: Json) -> Iterator[dict[str, Any]]:
    for resource in as_list(as_mapping(document).get("resourceLogs")):
        for scope in as_list(as_mapping(resource).get("scopeLogs")):
            yield from map(as_mapping, as_list(as_mapping(scope).get("logRecords")))


def span_key(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ids of the trace and the span of a span or a log record."""
    return str(record.get("traceId")), str(record.get("spanId"))


def read_attributes(owner: Json) -> dict[str, Json]:
    """Return the attributes of a span or an event by name."""
    return _read_pairs(as_mapping(owner).get("attributes"))


def read_times(span: dict[str, Any]) -> dict[str, Json]:
    """Return when a span started, in ISO 8601, and its duration in seconds, if it has them."""
    start, end = _nanoseconds(span, "startTimeUnixNano"), _nanoseconds(span, "endTimeUnixNano")
    if start is None:
        return {}
    started = datetime.fromtimestamp(start // _NANOSECONDS, UTC).isoformat()
    return {
        "started": started,
        "latency": None if end is None or end < start else (end - start) / _NANOSECONDS,
    }


def _nanoseconds(span: dict[str, Any], name: str) -> int | None:
    """Return a time; a 64-bit number is a text in the JSON of protocol buffers."""
    value = span.get(name)
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdigit():
        return None
    number = int(str(value)[:20])
    return number if 0 < number <= _LAST * _NANOSECONDS else None


def _read_pairs(pairs: Json) -> dict[str, Json]:
    """Return attributes by name; Phoenix has them as a mapping already, maybe a nested one."""
    if isinstance(pairs, dict):
        return dict(_flatten(pairs))
    return {
        pair["key"]: _read_value(pair.get("value"))
        for pair in map(as_mapping, as_list(pairs))
        if isinstance(pair.get("key"), str)
    }


def _flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Json]]:
    """Yield nested attributes by names such as `llm.input_messages.0.message.role`."""
    for name, value in values.items():
        inner = value
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            inner = {str(number): each for number, each in enumerate(value)}
        if isinstance(inner, dict):
            yield from _flatten(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", inner


def _read_value(value: Json) -> Json:
    for kind, content in as_mapping(value).items():
        if content is None:
            continue
        if kind in ("arrayValue", "array_value"):
            return [_read_value(inner) for inner in as_list(as_mapping(content).get("values"))]
        if kind in ("kvlistValue", "kvlist_value"):
            return _read_pairs(as_mapping(content).get("values"))
        if kind in ("intValue", "int_value") and isinstance(content, str) and len(content) <= 20:
            return int(content) if content.lstrip("-").isdecimal() else None
        return content
    return None


# --- spans as Phoenix returns them from its API, in the form of OTLP


def find_phoenix_spans(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the spans of a page, of a trace, of a list of either, or of a line."""
    fields = as_mapping(document)
    if "attributes" in fields and ("span_id" in fields or "span_id" in _context(fields)):
        yield _as_otlp(fields)
        return
    for inner in as_list(document) or as_list(fields.get("data")) or as_list(fields.get("spans")):
        if isinstance(inner, dict):
            yield from find_phoenix_spans(inner)


def _context(span: dict[str, Any]) -> dict[str, Any]:
    return as_mapping(span.get("context"))


def _as_otlp(span: dict[str, Any]) -> dict[str, Any]:
    ids = span | _context(span)
    start, end = to_nanoseconds(span.get("start_time")), to_nanoseconds(span.get("end_time"))
    return {
        "traceId": ids.get("trace_id"),
        "spanId": ids.get("span_id"),
        "startTimeUnixNano": span.get("start_time_unix_nano", start),
        "endTimeUnixNano": span.get("end_time_unix_nano", end),
        "attributes": span["attributes"],
        "events": span.get("events"),
    }


# --- generations as Langfuse exports them, in the form of OTLP


def find_generations(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the generations of a trace, of a page or a list of observations, or of a line."""
    fields = as_mapping(document)
    if _is_observation(fields):
        if fields["type"] == "GENERATION":
            yield _as_span(fields)
        return
    listed = as_list(document) or as_list(fields.get("observations")) or as_list(fields.get("data"))
    for inner in listed:
        if isinstance(inner, dict) and _is_observation(inner):
            yield from find_generations(inner)


def _is_observation(fields: dict[str, Any]) -> bool:
    return "type" in fields and ("traceId" in fields or "trace_id" in fields)


def _as_span(generation: dict[str, Any]) -> dict[str, Any]:
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
        "gen_ai.input.messages": json.dumps(
            _logged_messages("user", _parsed(generation.get("input")))
        ),
        "gen_ai.output.messages": json.dumps(_logged_messages("assistant", output)[-1:]),
    }
    return {
        "traceId": field("traceId", "trace_id"),
        "spanId": generation.get("id"),
        "startTimeUnixNano": to_nanoseconds(field("startTime", "start_time")),
        "endTimeUnixNano": to_nanoseconds(field("endTime", "end_time")),
        "attributes": attributes,
    }


def _logged_messages(role: str, value: Json) -> list[Json]:
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


# --- times of ISO 8601 as OTLP has them


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_nanoseconds(time: Json) -> int | None:
    """Return a time in nanoseconds since 1970, in UTC without a zone; None for other values."""
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
