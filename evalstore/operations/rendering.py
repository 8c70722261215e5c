"""Formats stored messages, answers, checks and JSON as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from evalstore.judging.transcript import remarks_on
from evalstore.values import AnswerRef, Json, Message, Part, SampleRef, Text

if TYPE_CHECKING:
    from evalstore.values import Reply

_LARGEST = 200_000
"""The most characters of JSON that are indented."""
_DEEPEST = 40
_HIDDEN = ("type", "revision", "given", "templates", "data", "turns")
"""Fields of a check that are not shown: its author has not written them."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+|[{}\[\],:]')


def text_of(parts: Iterable[Part]) -> str:
    """Return the text of a message or of instructions, with names in place of files and answers."""
    return "".join(map(_part, parts))


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, AnswerRef | SampleRef):
        return str(part)
    return f"[file {part.path}, {part.media_type}]"


def joined(prompt: tuple[Message, ...], test: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the conversation as sent; the system text of the test follows the system prompt."""
    if not (prompt and test and test[0].role == "system"):
        return prompt + test
    parts = (*prompt[-1].parts, Text("\n\n"), *test[0].parts)
    return (*prompt[:-1], Message("system", parts), *test[1:])


def answer_text(reply: Reply) -> str:
    """Return an answer as text, with indented JSON and remarks on why it ends."""
    text = [pretty_json(reply.text)] if reply.text and reply.text.strip() else []
    calls = [f"call {call.name} {_arguments(call.arguments)}" for call in reply.tool_calls]
    return "\n\n".join([*text, *calls, *remarks_on(reply)])


def _arguments(value: Json) -> str:
    return value if isinstance(value, str) else pretty_json(json.dumps(value, ensure_ascii=False))


def settings_of(check: Json) -> dict[str, Json]:
    """Return the settings of a check that its author has written, without the type."""
    whole = {**check, **check.get("given", {})}
    settings = {name: value for name, value in whole.items() if name not in _HIDDEN}
    if "prompts" in settings:  # ids of versions, to be shown with 'show'
        settings["prompts"] = [id[:8] for id in settings["prompts"]]
    return settings


def check_text(check: Json) -> str:
    """Return a check in one line, as its author wrote it."""
    settings = settings_of(check)
    shown = json.dumps(settings, ensure_ascii=False) if settings else ""
    return f"{check.get('type', '')} {shown}".rstrip()


def pretty_json(text: str) -> str:
    """Return a JSON object or list with a line for each value; any other text as it is.

    Only white space is changed. Texts that are too large or too deep are returned unchanged.
    """
    if len(text) > _LARGEST or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _indented(_TOKEN.findall(text)) or text


def _indented(tokens: list[str]) -> str:
    """Return the tokens of valid JSON with line breaks; empty when they nest too deep."""
    parts: list[str] = []
    depth = 0
    before = ""
    for token in tokens:
        closes = token in ("}", "]")
        depth -= closes
        if before == "," or closes != (before in ("{", "[")):
            parts.append("\n" + "  " * depth)
        parts.append(": " if token == ":" else token)
        if token in ("{", "["):
            depth += 1
            if depth > _DEEPEST:
                return ""
        before = token
    return "".join(parts)
