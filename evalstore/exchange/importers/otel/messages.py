"""The messages of spans, by the GenAI conventions, their older versions or OpenInference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.exchange.importers.coerce import as_mapping, parse_json
from evalstore.exchange.importers.errors import UnusableError
from evalstore.exchange.importers.otel.openinference import (
    follows_openinference,
    read_openinference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalstore.core.values import Json

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
    """Return the messages of a span; raises `UnusableError` for other values."""
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
            raise UnusableError(f"'{name}' is not JSON, as if it were cut off") from None
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnusableError(f"'{name}' is not a list")
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
