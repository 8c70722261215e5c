"""The messages of spans that follow OpenInference, the conventions of Phoenix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalstore.exchange.importers.coerce import as_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalstore.core.values import Json

KIND = "openinference.span.kind"
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d{1,6})\.message\.(.+)")
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
        match = _MESSAGE.fullmatch(name)
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
