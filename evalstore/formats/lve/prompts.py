"""Prompts: a list of messages in `test.json`, or a file of text or of messages.

A file holds plain text (one message of the user), one message as a JSON object, or one
message on each line. An assistant's message without a content is for the model to fill.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from evalstore.formats.lve.formatting import names_of
from evalstore.formats.lve.taking import NotTakenError, shown
from evalstore.formats.shapes import parse_json
from evalstore.values import Role

if TYPE_CHECKING:
    from evalstore.values import Json

_NOT_FILLED_IN = re.compile(r"\s*<please fill in>\s*")
_FIELDS = ("content", "role", "variable", "image_url")
_ROLES = ("user", "system", "assistant")
LAST = "response"
"""What the last answer is called when nobody names it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a prompt."""

    role: Role
    content: str | None
    variable: str | None = None
    """What the answer is called, when the model fills it."""
    image: str | None = None
    """The address of a picture."""

    @property
    def is_filled(self) -> bool:
        """Whether the model says it."""
        return self.role == "assistant" and self.content is None


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of a prompt, and the fields of them that mean nothing."""

    turns: tuple[Turn, ...]
    ignored: tuple[str, ...] = ()


def read_file(text: str) -> Prompt:
    """The messages of a prompt file; raises `NotTakenError`."""
    if not text:
        raise NotTakenError("the prompt is empty")
    if _NOT_FILLED_IN.fullmatch(text):
        raise NotTakenError("the prompt has not been filled in")
    lines = text.removesuffix("\n").split("\n")
    given: list[Json]
    try:
        given = [parse_json(line) for line in lines]
        if any(isinstance(one, list) for one in given):
            raise NotTakenError("each line of a prompt file must be one message, not a list")
    except ValueError:
        try:
            whole = parse_json(text)
        except ValueError:
            whole = None
        given = whole if isinstance(whole, list) else [whole]
    if not all(isinstance(one, dict) for one in given):
        return Prompt((Turn("user", text),))
    return read_list(given)


def read_list(given: Json) -> Prompt:
    """The messages of a list; raises `NotTakenError`."""
    if not isinstance(given, list):
        raise NotTakenError("the prompt must be a list of messages")
    if not given:
        raise NotTakenError("the prompt is empty")
    turns = tuple(_turn(number, one) for number, one in enumerate(given, 1))
    names = dict.fromkeys(name for one in given for name in one if name not in _FIELDS)
    return Prompt(turns, tuple(names))


def _turn(number: int, given: Json) -> Turn:
    if not isinstance(given, dict):
        raise NotTakenError(f"message {number} is {shown(given)}, not a mapping")
    role = given.get("role") or "user"
    if role not in _ROLES:
        known = ", ".join(_ROLES)
        raise NotTakenError(f"message {number} has the role {shown(role)}; there are {known}")
    for name in ("content", "variable", "image_url"):
        if not isinstance(given.get(name), str | None):
            raise NotTakenError(f"'{name}' of message {number} must be a text")
    variable = given.get("variable") if role == "assistant" else None
    return Turn(cast("Role", role), given.get("content"), variable, given.get("image_url"))


def turn_names(turns: tuple[Turn, ...]) -> tuple[str, ...]:
    """What the answers of a conversation are called; raises `NotTakenError` for what is none."""
    for turn in turns:
        if turn.content is None and not turn.is_filled:
            raise NotTakenError(f"a message of the role '{turn.role}' has no content")
    if all(turn.role == "system" for turn in turns):
        raise NotTakenError("there is no user message")
    names = [turn.variable for turn in turns if turn.is_filled]
    last = turns[-1]
    if last.role == "assistant" and not last.is_filled:
        raise NotTakenError("the conversation ends with a fixed assistant turn")
    if last.role != "assistant":
        names.append(LAST)
    named = [name if name or len(names) > 1 else LAST for name in names]
    if not all(named):
        raise NotTakenError(
            "an assistant turn to be filled needs a 'variable' when it is not alone"
        )
    for name in named:
        if named.count(name) > 1:
            raise NotTakenError(f"two turns to be filled have the variable '{name}'")
    return tuple(name for name in named if name)


def take_turns(turns: tuple[Turn, ...]) -> bool:
    """Whether user and assistant take turns, behind at most one system message."""
    spoken = turns[1:] if turns[0].role == "system" else turns
    expected = (("user", "assistant")[number % 2] for number in range(len(spoken)))
    return bool(spoken) and all(
        turn.role == role for turn, role in zip(spoken, expected, strict=True)
    )


def name_of_turn(variable: str) -> str:
    """What the answer of a turn is called in a test file."""
    return variable if variable == LAST else names_of([variable])[variable]
