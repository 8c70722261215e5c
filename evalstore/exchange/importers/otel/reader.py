"""Import of the calls of models in traces, as answers that are judged without a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    NotTakenError,
    as_list,
    as_mapping,
    parse_json,
)
from evalstore.exchange.importers.json_lines import find_sources, read_documents
from evalstore.exchange.importers.otel.spans import (
    SpanEvent,
    SpanEvents,
    collect_events,
    find_spans,
    read_attributes,
    read_times,
    span_key,
)
from evalstore.exchange.importers.recorded_conversations import (
    RecordedConversation,
    SkippedConversations,
    token_counts,
    write_conversations,
)
from evalstore.exchange.importers.recorded_messages import (
    TOOLS_AS_TEXT,
    read_answer,
    read_conversation,
    shows_tools,
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
        path: [each.value for each in read_documents(path, imported.left, binary=_PROTOBUF)]
        for path in find_sources(paths, _SUFFIXES)
    }
    events = collect_events(document for documents in files.values() for document in documents)
    for path, documents in files.items():
        spans = (span for document in documents for span in find_spans(document))
        conversations += _read_file(path, spans, events, imported)
    write_conversations(conversations, imported)
    if not imported.files and not imported.left:
        raise EvalstoreError(
            "the sources contain no spans of model calls",
            hint="name a file of OTLP in JSON, whose spans have attributes 'gen_ai.…' or 'llm.…'",
        )
    return imported


def _read_file(
    path: Path, spans: Iterable[dict[str, Any]], events: SpanEvents, imported: Imported
) -> Iterator[RecordedConversation]:
    skipped = SkippedConversations(str(path))
    with_tools = SkippedConversations(str(path))
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
            if messages is None:
                continue
            yield from _read_choices(span, attributes, messages)
        except NotTakenError as problem:
            skipped.add(str(problem), place)
        else:
            if shows_tools(messages.inputs + messages.outputs):
                with_tools.add(TOOLS_AS_TEXT, place)
    imported.left += skipped.items()
    imported.warnings += with_tools.items()


def _messages_of(attributes: dict[str, Json], events: list[SpanEvent]) -> SpanMessages | None:
    """Return the messages of a span; None for one that is not about a model."""
    is_genai = any(name.startswith("gen_ai.") for name in attributes)
    if not is_genai and not follows_openinference(attributes):
        return None
    messages = read_messages(attributes, events)
    if attributes.get("gen_ai.operation.name") not in _CALLS:
        if not messages.outputs:
            return None
        raise NotTakenError("the span is a call of an agent or a tool, not of a model")
    if not messages.inputs and not messages.outputs:
        raise NotTakenError("the span has no messages: their content was not recorded")
    if not messages.outputs:
        raise NotTakenError("the span has no answer")
    return messages


def _read_choices(
    span: dict[str, Any], attributes: dict[str, Json], messages: SpanMessages
) -> Iterator[RecordedConversation]:
    """Yield a conversation for each choice of the model; raises `NotTakenError`."""
    conversation = read_conversation(messages.inputs)
    id = span.get("spanId")
    for number, output in enumerate(messages.outputs, 1):
        suffix = f"-{number}" if len(messages.outputs) > 1 else ""
        yield RecordedConversation(
            f"{id if isinstance(id, str) else 'span'}{suffix}",
            conversation,
            read_answer(output),
            _text(attributes, *_MODEL) or "",
            details={
                "provider": _text(attributes, *_PROVIDER),
                "usage": token_counts(attributes, _TOKENS),
                "finish_reason": _finish_reason(attributes, output, number),
                "conversation": _text(attributes, *_CONVERSATION),
                "trace": _text(span, "traceId"),
                **read_times(span),
            },
        )


def _text(fields: Mapping[str, Any], *names: str) -> str | None:
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)


def _finish_reason(attributes: Mapping[str, Json], output: Json, number: int) -> Json:
    reasons = attributes.get("gen_ai.response.finish_reasons")
    own = _text(as_mapping(output), "finish_reason")
    if own is None and isinstance(reasons, list) and number <= len(reasons):
        own = reasons[number - 1] if isinstance(reasons[number - 1], str) else None
    return own


# --- the messages of spans, by the GenAI conventions, their older versions or OpenInference


DETAILS = "gen_ai.client.inference.operation.details"
"""The event that has the attributes of the messages, if the span has not."""
CHOICE = "gen_ai.choice"
_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,6})\.(role|content)")


class SpanMessages(NamedTuple):
    """The messages of the call of a model."""

    inputs: list[Json]
    outputs: list[Json]
    """One message for each choice."""


def read_messages(
    attributes: Mapping[str, Json], events: Iterable[tuple[str, Mapping[str, Json]]]
) -> SpanMessages:
    """Return the messages of a span; raises `NotTakenError` for other values."""
    inputs = _read_list(attributes, "gen_ai.input.messages")
    outputs = _read_list(attributes, "gen_ai.output.messages")
    if inputs or outputs:
        instructions = _read_list(attributes, "gen_ai.system_instructions")
        first: list[Json] = [{"role": "system", "parts": instructions}] if instructions else []
        return SpanMessages([*first, *inputs], outputs)
    from_events = _read_events(events)
    if any(from_events):
        return from_events
    numbered = _read_numbered(attributes)
    if any(numbered) or not follows_openinference(attributes):
        return numbered
    return SpanMessages(*read_openinference(attributes))


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
    messages = SpanMessages([], [])
    for name, attributes in events:
        fields = {**attributes, **as_mapping(_parsed(attributes.get("gen_ai.event.content")))}
        if name == CHOICE:
            message = as_mapping(_parsed(fields.get("message"))) or fields
            messages.outputs.extend(_messages("assistant", message))
        elif match := _MESSAGE.fullmatch(name):
            messages.inputs.extend(_messages(match[1], fields))
    return messages


def _messages(role: str, fields: Mapping[str, Any]) -> list[Json]:
    """Return the message of an event with this role; none if its content was not recorded."""
    content, calls = fields.get("content"), _parsed(fields.get("tool_calls"))
    if content is None and not calls:
        return []
    return [{"role": role, "content": content, "tool_calls": calls}]


def _parsed(value: Json) -> Json:
    """Return the value of a text in JSON; None for other texts, and other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return None


def _read_numbered(attributes: Mapping[str, Json]) -> SpanMessages:
    """Return the messages of attributes such as `gen_ai.prompt.0.content`."""
    fields: dict[str, dict[int, dict[str, Json]]] = {"prompt": {}, "completion": {}}
    for name, value in attributes.items():
        if match := _NUMBERED.fullmatch(name):
            fields[match[1]].setdefault(int(match[2]), {})[match[3]] = value
    inputs, outputs = (
        [messages[number] for number in sorted(messages)] for messages in fields.values()
    )
    return SpanMessages(list(inputs), list(outputs))


# --- the messages of spans that follow OpenInference, the conventions of Phoenix


KIND = "openinference.span.kind"
_INDEXED_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d{1,6})\.message\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d{1,6})\.tool_call\.function\.(name|arguments)")
_PART = re.compile(r"contents\.(\d{1,6})\.message_content\.(type|text|image)(?:\..+)?")


def follows_openinference(attributes: Mapping[str, Json]) -> bool:
    """Return whether a span says that it is the call of a model."""
    return attributes.get(KIND) == "LLM"


def read_openinference(attributes: Mapping[str, Json]) -> tuple[list[Json], list[Json]]:
    """Return what the model was shown, and its answers.

    A text in `input.value` or `output.value` stands for messages that are missing; JSON there is
    what the instrumented function was called with, in a form of its own.
    """
    messages = {"input": _read_messages(attributes, "input")}
    messages["output"] = _read_messages(attributes, "output")
    for side, role in (("input", "user"), ("output", "assistant")):
        value = attributes.get(f"{side}.value")
        is_json = attributes.get(f"{side}.mime_type") == "application/json"
        if not messages[side] and isinstance(value, str) and not is_json:
            messages[side] = [{"role": role, "content": value}]
    return messages["input"], messages["output"]


def _read_messages(attributes: Mapping[str, Json], side: str) -> list[Json]:
    """Return the messages of attributes such as `llm.input_messages.0.message.content`."""
    found: dict[int, dict[str, Json]] = {}
    for name, value in attributes.items():
        match = _INDEXED_MESSAGE.fullmatch(name)
        if match and match[1] == side:
            found.setdefault(int(match[2]), {})[match[3]] = value
    role = "user" if side == "input" else "assistant"
    return [_read_message({"role": role, **found[number]}) for number in sorted(found)]


def _read_message(fields: Mapping[str, Json]) -> dict[str, Json]:
    calls: dict[int, dict[str, Json]] = {}
    parts: dict[int, dict[str, Json]] = {}
    for name, value in fields.items():
        if match := _CALL.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
        elif match := _PART.fullmatch(name):
            parts.setdefault(int(match[1]), {})[match[2]] = value
    message: dict[str, Json] = {
        name: fields[name] for name in ("role", "name", "content") if name in fields
    }
    if parts:
        message["content"] = [as_mapping(parts[number]) for number in sorted(parts)]
    if calls:
        message["tool_calls"] = [{"function": calls[number]} for number in sorted(calls)]
    return message
