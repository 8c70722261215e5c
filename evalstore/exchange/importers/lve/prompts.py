"""Reading of prompts: a list of messages in `test.json`, or a prompt file.

A file contains plain text (one user message), one message as a JSON object, or one message
per line. The model fills assistant messages without content.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from json import JSONDecodeError
from typing import cast

from evalstore.core.values import Json, Role
from evalstore.exchange.importers.base import NotTakenError, short_json
from evalstore.exchange.importers.coerce import parse_json
from evalstore.exchange.importers.lve.format_strings import names_of

_MEANT_AS_JSON = re.compile(r"\s*\[?\s*\{\s*\"(?:content|role|variable|image_url)\"\s*:")
_NOT_FILLED_IN = re.compile(r"\s*<please fill in>\s*")
_FIELDS = ("content", "role", "variable", "image_url")
_ROLES = ("user", "system", "assistant")
LAST = "response"
"""The default name of the last answer."""


@dataclass(frozen=True, slots=True)
class LveTurn:
    """One message of a prompt."""

    role: Role
    content: str | None
    variable: str | None = None
    """The name of the answer, if the model fills it."""
    image: str | None = None
    """The URL of a picture."""

    @property
    def is_filled(self) -> bool:
        """Return whether the model fills it."""
        return self.role == "assistant" and self.content is None


@dataclass(frozen=True, slots=True)
class LvePrompt:
    """The messages of a prompt, and their unknown fields."""

    turns: tuple[LveTurn, ...]
    ignored: tuple[str, ...] = ()


def read_single_message(text: str) -> LvePrompt:
    """Return a prompt of one user message; raises `NotTakenError` if it is empty."""
    if not text:
        raise NotTakenError("the prompt is empty")
    if _NOT_FILLED_IN.fullmatch(text):
        raise NotTakenError("the prompt has not been filled in")
    return LvePrompt((LveTurn("user", text),))


def read_prompt_file(text: str) -> LvePrompt:
    """Return the messages of a prompt file; raises `NotTakenError`, if possible with the line."""
    plain = read_single_message(text)
    try:
        whole = parse_json(text)
    except ValueError as problem:
        lines = text.removesuffix("\n").split("\n")
        if (messages := _read_lines(lines)) is not None:
            return read_prompt_list(messages, on_lines=True)
        if _MEANT_AS_JSON.match(text):
            line = problem.lineno if isinstance(problem, JSONDecodeError) else 1
            reason = problem.msg if isinstance(problem, JSONDecodeError) else str(problem)
            raise NotTakenError(f"is not JSON: {reason}", line=line) from None
        return plain
    if isinstance(whole, list) and "\n" not in text.removesuffix("\n"):
        raise NotTakenError("each line of a prompt file must be one message, not a list", line=1)
    entries = whole if isinstance(whole, list) else [whole]
    return read_prompt_list(entries) if all(isinstance(entry, dict) for entry in entries) else plain


def _read_lines(lines: list[str]) -> list[Json] | None:
    """Return the messages of JSON Lines; None for other texts.

    Raises `NotTakenError` for a blank line, and for a line that is not JSON.
    """
    messages: list[Json] = []
    problems: list[NotTakenError] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            reason = "the line is blank, but each line must be a message"
            problems.append(NotTakenError(reason, line=number))
            continue
        try:
            messages.append(parse_json(line))
        except ValueError as problem:
            description = problem.msg if isinstance(problem, JSONDecodeError) else str(problem)
            problems.append(NotTakenError(f"is not JSON: {description}", line=number))
            if not line.lstrip().startswith("{"):
                return None
    if not all(isinstance(message, dict) for message in messages):
        if not problems and any(isinstance(message, list) for message in messages):
            raise NotTakenError("each line of a prompt file must be one message, not a list")
        return None
    if not any(message.keys() & set(_FIELDS) for message in messages):
        return None if problems else messages
    if problems:
        raise problems[0]
    return messages


def read_prompt_list(value: Json, *, on_lines: bool = False) -> LvePrompt:
    """Return the messages of a list; raises `NotTakenError`, with the line if `on_lines`."""
    if not isinstance(value, list):
        raise NotTakenError("the prompt must be a list of messages")
    if not value:
        raise NotTakenError("the prompt is empty")
    turns = []
    for number, message in enumerate(value, 1):
        try:
            turns.append(_turn(number, message))
        except NotTakenError as problem:
            raise NotTakenError(problem.reason, line=number if on_lines else None) from None
    names = dict.fromkeys(name for message in value for name in message if name not in _FIELDS)
    return LvePrompt(tuple(turns), tuple(names))


def _turn(number: int, message: Json) -> LveTurn:
    if not isinstance(message, dict):
        raise NotTakenError(f"message {number} is {short_json(message)}, not a mapping")
    role = message.get("role") or "user"
    if role not in _ROLES:
        known = ", ".join(_ROLES)
        raise NotTakenError(f"message {number} has the role {short_json(role)}; there are {known}")
    for name in ("content", "variable", "image_url"):
        if not isinstance(message.get(name), str | None):
            raise NotTakenError(f"'{name}' of message {number} must be a text")
    variable = message.get("variable") if role == "assistant" else None
    return LveTurn(cast("Role", role), message.get("content"), variable, message.get("image_url"))


def turn_names(turns: tuple[LveTurn, ...]) -> tuple[str, ...]:
    """Return the names of a conversation's answers; raises `NotTakenError` if it is invalid."""
    for turn in turns:
        if turn.content is None and not turn.is_filled:
            raise NotTakenError(f"a message of the role '{turn.role}' has no content")
    if all(turn.role == "system" for turn in turns):
        raise NotTakenError("there is no user message")
    if turns[0].is_filled:
        raise NotTakenError("the conversation begins with a turn to be filled: nothing was asked")
    names = [turn.variable for turn in turns if turn.is_filled]
    last_turn = turns[-1]
    if last_turn.role == "assistant" and not last_turn.is_filled:
        raise NotTakenError("the conversation ends with a fixed assistant turn")
    if last_turn.role != "assistant":
        names.append(LAST)
    variables = [name if name or len(names) > 1 else LAST for name in names]
    if not all(variables):
        raise NotTakenError(
            "an assistant turn to be filled needs a 'variable' when it is not alone"
        )
    for name in variables:
        if variables.count(name) > 1:
            raise NotTakenError(f"two turns to be filled have the variable '{name}'")
    return tuple(name for name in variables if name)


def take_turns(turns: tuple[LveTurn, ...]) -> bool:
    """Return whether user and assistant alternate, after at most one system message."""
    alternating = turns[1:] if turns[0].role == "system" else turns
    expected = (("user", "assistant")[number % 2] for number in range(len(alternating)))
    return bool(alternating) and all(
        turn.role == role for turn, role in zip(alternating, expected, strict=True)
    )


def name_of_turn(variable: str) -> str:
    """Return the name of a turn's answer in a test file."""
    return variable if variable == LAST else names_of([variable])[variable]
