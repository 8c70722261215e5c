"""Import of the calls of models in traces, as answers that are judged without a call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    CountedReasons,
    Imported,
    ImportOptions,
    NotTakenError,
    as_list,
    as_mapping,
    parse_json,
    parsed,
    require,
)
from evalstore.exchange.importers.json_lines import find_sources, read_documents
from evalstore.exchange.importers.recorded_messages import (
    RecordedConversation,
    read_answer,
    read_conversation,
    token_counts,
    write_conversations,
)

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz")
_CALLS = ("chat", "generate_content", "text_completion", None)
"""Operations that are calls of a model; older spans do not name theirs."""
_TOKENS = {
    "input_tokens": (
        *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "llm.token_count.prompt",
    ),
    "output_tokens": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        "llm.token_count.completion",
    ),
}
_PROTOBUF = (
    "binary data; write the traces as JSON, as the Collector's file exporter does by default"
)
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_CONVERSATION = ("gen_ai.conversation.id", "session.id")


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import the spans of files in OTLP JSON, one test per model."""
    imported = Imported()
    conversations: list[RecordedConversation] = []
    files = {
        path: [value for _, value in read_documents(path, imported.left, binary=_PROTOBUF)]
        for path in find_sources(paths, _SUFFIXES)
    }
    events = collect_events(document for documents in files.values() for document in documents)
    for path, documents in files.items():
        spans = (span for document in documents for span in find_spans(document))
        conversations += _read_file(path, spans, events, imported)
    write_conversations(conversations, imported)
    imported.require_any(
        "the sources contain no spans of model calls",
        "name a file of OTLP in JSON, whose spans have attributes 'gen_ai.…' or 'llm.…'",
    )
    return imported


def _read_file(
    path: Path, spans: Iterable[dict[str, Any]], events: SpanEvents, imported: Imported
) -> Iterator[RecordedConversation]:
    skipped = CountedReasons(str(path))
    for span in spans:
        id = span.get("spanId")
        is_named = isinstance(id, str) and id.isalnum()
        place = f"span {str(id)[:16]}" if is_named else "a span without an id"
        own_events = [
            (str(as_mapping(event).get("name")), read_attributes(event))
            for event in as_list(span.get("events"))
        ] + events.get(span_key(span), [])
        attributes = read_attributes(span)
        for name, event_attributes in own_events:
            if name == DETAILS:
                attributes |= event_attributes
        try:
            messages = _messages_of(attributes, own_events)
            if messages is not None:
                yield from _read_choices(span, attributes, messages)
        except NotTakenError as problem:
            skipped.add(str(problem), place)
    imported.left += skipped.items()


def _messages_of(attributes: dict[str, Json], events: list[SpanEvent]) -> SpanMessages | None:
    """Return the messages of a span; None for one that is not about a model."""
    is_genai = any(name.startswith("gen_ai.") for name in attributes)
    if not is_genai and not follows_openinference(attributes):
        return None
    inputs, outputs = read_messages(attributes, events)
    if attributes.get("gen_ai.operation.name") not in _CALLS:
        require(not outputs, "the span is a call of an agent or a tool, not of a model")
        return None
    require(inputs or outputs, "the span has no messages: their content was not recorded")
    require(outputs, "the span has no answer")
    return inputs, outputs


def _read_choices(
    span: dict[str, Any], attributes: dict[str, Json], messages: SpanMessages
) -> Iterator[RecordedConversation]:
    """Yield a conversation for each choice of the model; raises `NotTakenError`."""
    inputs, outputs = messages
    conversation = read_conversation(inputs)
    id = span.get("spanId")
    reasons = dict(enumerate(as_list(attributes.get("gen_ai.response.finish_reasons")), 1))
    for number, output in enumerate(outputs, 1):
        ended = {"own": as_mapping(output).get("finish_reason"), "of span": reasons.get(number)}
        suffix = f"-{number}" if len(outputs) > 1 else ""
        yield RecordedConversation(
            f"{id if isinstance(id, str) else 'span'}{suffix}",
            conversation,
            read_answer(output),
            _text(attributes, *_MODEL) or "",
            details={
                "provider": _text(attributes, *_PROVIDER),
                "usage": token_counts(attributes, _TOKENS),
                "finish_reason": _text(ended, "own", "of span"),
                "conversation": _text(attributes, *_CONVERSATION),
                "trace": _text(span, "traceId"),
                **read_times(span),
            },
        )


def _text(fields: Mapping[str, Any], *names: str) -> str | None:
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)


# --- the messages of spans, by the GenAI conventions, their older versions or OpenInference


DETAILS = "gen_ai.client.inference.operation.details"
"""The event that has the attributes of the messages, if the span has not."""
CHOICE = "gen_ai.choice"
_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,6})\.(role|content)")


SpanMessages = tuple[list[Json], list[Json]]
"""What the model was shown, and one message for each choice."""


def read_messages(
    attributes: Mapping[str, Json], events: Iterable[tuple[str, Mapping[str, Json]]]
) -> SpanMessages:
    """Return the messages of a span; raises `NotTakenError` for other values."""
    inputs = _read_list(attributes, "gen_ai.input.messages")
    outputs = _read_list(attributes, "gen_ai.output.messages")
    if inputs or outputs:
        instructions = _read_list(attributes, "gen_ai.system_instructions")
        first: list[Json] = [{"role": "system", "parts": instructions}] if instructions else []
        return [*first, *inputs], outputs
    from_events = _read_events(events)
    if any(from_events):
        return from_events
    found = _collect(attributes, _NUMBERED)
    if found or not follows_openinference(attributes):
        return [*found.get("prompt", ())], [*found.get("completion", ())]
    return read_openinference(attributes)


def _read_list(attributes: Mapping[str, Json], name: str) -> list[Json]:
    """Return the value of an attribute; a text has it in JSON."""
    value = attributes.get(name)
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            raise NotTakenError(f"'{name}' is not complete JSON: it may be cut off") from None
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotTakenError(f"'{name}' is not a list")
    return value


def _read_events(events: Iterable[tuple[str, Mapping[str, Json]]]) -> SpanMessages:
    messages: SpanMessages = [], []
    for name, attributes in events:
        fields = {**attributes, **as_mapping(parsed(attributes.get("gen_ai.event.content")))}
        if name == CHOICE:
            message = as_mapping(parsed(fields.get("message"))) or fields
            messages[1].extend(_messages("assistant", message))
        elif match := _MESSAGE.fullmatch(name):
            messages[0].extend(_messages(match[1], fields))
    return messages


def _messages(role: str, fields: Mapping[str, Any]) -> list[Json]:
    """Return the message of an event with this role; none if its content was not recorded."""
    content, calls = fields.get("content"), parsed(fields.get("tool_calls"))
    if content is None and not calls:
        return []
    return [{"role": role, "content": content, "tool_calls": calls}]


def _collect(
    fields: Mapping[str, Json], pattern: re.Pattern[str]
) -> dict[str, list[dict[str, Json]]]:
    """Return what fields with numbers in their names describe, in the order of the numbers.

    The groups of the pattern are the kind, which is the key, the number and the rest of the name.
    """
    found: dict[str, dict[int, dict[str, Json]]] = {}
    for name, value in fields.items():
        if match := pattern.fullmatch(name):
            described = found.setdefault(match[1], {}).setdefault(int(match[2]), {})
            described[match[3]] = value
    return {kind: [of[number] for number in sorted(of)] for kind, of in found.items()}


# --- the messages of spans that follow OpenInference, the conventions of Phoenix


KIND = "openinference.span.kind"
_INDEXED_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d{1,6})\.message\.(.+)")
_CALL = re.compile(r"(tool_calls)\.(\d{1,6})\.tool_call\.function\.(name|arguments)")
_PART = re.compile(r"(contents)\.(\d{1,6})\.message_content\.(type|text|image)(?:\..+)?")


def follows_openinference(attributes: Mapping[str, Json]) -> bool:
    """Return whether a span says that it is the call of a model."""
    return attributes.get(KIND) == "LLM"


def read_openinference(attributes: Mapping[str, Json]) -> tuple[list[Json], list[Json]]:
    """Return what the model was shown, and its answers.

    A text in `input.value` or `output.value` stands for messages that are missing; JSON there is
    what the instrumented function was called with, in a form of its own.
    """
    found, messages = _collect(attributes, _INDEXED_MESSAGE), dict[str, list[Json]]()
    for side, role in (("input", "user"), ("output", "assistant")):
        messages[side] = [_read_message({"role": role, **each}) for each in found.get(side, ())]
        value = attributes.get(f"{side}.value")
        is_json = attributes.get(f"{side}.mime_type") == "application/json"
        if not messages[side] and isinstance(value, str) and not is_json:
            messages[side] = [{"role": role, "content": value}]
    return messages["input"], messages["output"]


def _read_message(fields: Mapping[str, Json]) -> dict[str, Json]:
    parts, calls = _collect(fields, _PART), _collect(fields, _CALL)
    message: dict[str, Json] = {
        name: fields[name] for name in ("role", "name", "content") if name in fields
    }
    if parts:
        message["content"] = parts["contents"]
    if calls:
        message["tool_calls"] = [{"function": call} for call in calls["tool_calls"]]
    return message


SpanEvent = tuple[str, dict[str, Json]]
SpanEvents = dict[tuple[str, str], list[SpanEvent]]


_NANOSECONDS = 1_000_000_000
_LAST = 253_402_300_799
"""The last second of the year 9999."""


def find_spans(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the spans of a request, or of an export of Phoenix or Langfuse, in their order."""
    yield from _find_exported(document)
    spans = _find_records(document, "resourceSpans", "scopeSpans", "spans")
    yield from (span for span in spans if isinstance(span, dict))


def _find_exported(document: Json) -> Iterator[dict[str, Any]]:
    """Yield the spans and the generations of a page, of a trace, of a list, or of a line."""
    fields = as_mapping(document)
    if "attributes" in fields and "span_id" in fields | as_mapping(fields.get("context")):
        yield _as_otlp(fields)
    elif "type" in fields and ("traceId" in fields or "trace_id" in fields):
        if fields["type"] == "GENERATION":
            yield _as_span(fields)
    else:
        lists = (document, *(fields.get(name) for name in ("observations", "data", "spans")))
        for inner in next(filter(None, map(as_list, lists)), ()):
            if isinstance(inner, dict):
                yield from _find_exported(inner)


def collect_events(documents: Iterable[Json]) -> SpanEvents:
    """Return the events in log records by the ids of the trace and the span they belong to."""
    events: SpanEvents = {}
    for document in documents:
        records = _find_records(document, "resourceLogs", "scopeLogs", "logRecords")
        for record in map(as_mapping, records):
            attributes, body = read_attributes(record), _read_value(record.get("body"))
            name = record.get("eventName") or attributes.get("event.name")
            if isinstance(name, str) and name.startswith("gen_ai."):
                event = name, {**attributes, **as_mapping(body)}
                events.setdefault(span_key(record), []).append(event)
    return events


def _find_records(document: Json, resources: str, scopes: str, records: str) -> Iterator[Any]:
    for resource in as_list(as_mapping(document).get(resources)):
        for scope in as_list(as_mapping(resource).get(scopes)):
            yield from as_list(as_mapping(scope).get(records))


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


def _as_otlp(span: dict[str, Any]) -> dict[str, Any]:
    ids = span | as_mapping(span.get("context"))
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


def _as_span(generation: dict[str, Any]) -> dict[str, Any]:
    def field(*names: str) -> Any:
        return next((generation[name] for name in names if generation.get(name)), None)

    usage = as_mapping(_parsed_value(field("usageDetails", "usage_details", "usage")))
    output = _parsed_value(generation.get("output"))
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": field("model", "providedModelName", "provided_model_name"),
        "gen_ai.usage.input_tokens": usage.get("input"),
        "gen_ai.usage.output_tokens": usage.get("output"),
        "gen_ai.conversation.id": field("sessionId", "session_id"),
        "gen_ai.input.messages": json.dumps(
            _logged_messages("user", _parsed_value(generation.get("input")))
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


def _parsed_value(value: Json) -> Json:
    """Return the value of a list or an object in JSON; other texts as they are."""
    is_document = isinstance(value, str) and value.lstrip().startswith(("[", "{"))
    return parsed(value, value) if is_document else value


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
