"""Recorded instances: what a test was filled with, what the model answered, and the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.importers.base import ShownMessage
from evalstore.importers.coerce import parse_json
from evalstore.importers.errors import NotTakenError, short_json
from evalstore.importers.lve.format_strings import mentioned

if TYPE_CHECKING:
    from evalstore.values import Json, Role

_TIMES = ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
_TEMPERATURE = 0.0
"""What answers are asked for with when nothing else is said."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One line of a file of instances."""

    line: int
    arguments: dict[str, Json]
    """Parameters of the prompt and of the model, as they were given."""
    response: str | dict[str, str] | list[str] | list[dict[str, str]]
    passed: bool
    started: int
    """Microseconds since 1970; 0 if unknown."""
    shown: tuple[tuple[ShownMessage, ...], ...] | None = None
    """The messages of each conversation, without its last answer; None: they were not kept."""
    pictures_kept: bool = True
    """Whether these messages say which pictures were shown."""
    text: str = ""
    """The line itself."""


def read_instance(line: int, text: str) -> Instance:
    """An instance from its line; raises `NotTakenError`."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise NotTakenError(f"is not JSON: {error}", line=line) from None
    if not isinstance(document, dict):
        raise NotTakenError(f"an instance must be a mapping, not {short_json(document)}", line=line)
    for name in ("args", "run_info"):
        if not isinstance(document.get(name), dict):
            raise NotTakenError(f"the instance has no '{name}'", line=line)
    if not _is_response(document.get("response")):
        value = short_json(document.get("response"))
        raise NotTakenError(
            f"'response' must be a text, texts by name, or a list, not {value}", line=line
        )
    passed = document.get("passed", document.get("is_safe", True))  # as it was called once
    if not isinstance(passed, bool):
        raise NotTakenError(f"'passed' must be true or false, not {short_json(passed)}", line=line)
    return Instance(
        line=line,
        arguments=document["args"],
        response=document["response"],
        passed=passed,
        started=_microseconds(document["run_info"].get("timestamp")),
        shown=_kept_messages(document, line),
        pictures_kept=bool(document.get("prompt_out")),
        text=text.strip(),
    )


def _kept_messages(
    document: dict[str, Json], line: int
) -> tuple[tuple[ShownMessage, ...], ...] | None:
    """The messages that were kept: `prompt_out` with the answers, once `prompt` without them."""
    messages = document.get("prompt_out") or document.get("prompt")
    if not isinstance(messages, list) or not messages:
        return None
    runs = messages if all(isinstance(run, list) for run in messages) else [messages]
    responses = (
        document["response"] if isinstance(document["response"], list) else [document["response"]]
    )
    model_texts = {
        answer
        for response in responses
        for answer in (response.values() if isinstance(response, dict) else [response])
    }
    try:
        return tuple(_conversation(run, model_texts) for run in runs)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise NotTakenError("the kept prompt is not a list of messages", line=line) from None


_ROLES: dict[Json, Role] = {"user": "user", "system": "system", "assistant": "assistant"}


def _conversation(entries: list[Json], model_texts: Collection[str]) -> tuple[ShownMessage, ...]:
    """One conversation; what the model said in it is a turn that it filled."""
    messages = []
    for entry in entries:
        role = _ROLES[entry.get("role") or "user"]
        text, image = entry.get("content"), entry.get("image_url")
        if not isinstance(text, str | None):
            raise ValueError(role)
        if role == "assistant" and (
            entry.get("variable") or (text in model_texts and "variable" not in entry)
        ):
            text = None
        if text is None and role != "assistant":
            raise ValueError(role)
        messages.append(ShownMessage(role, text, image if isinstance(image, str) else None))
    while messages and messages[-1].role == "assistant":
        messages.pop()
    return tuple(messages)


def _is_response(response: Json) -> bool:
    if isinstance(response, list):
        return bool(response) and all(_is_answer(answer) for answer in response)
    return _is_answer(response)


def _is_answer(answer: Json) -> bool:
    if isinstance(answer, dict):
        return bool(answer) and all(isinstance(text, str) for text in answer.values())
    return isinstance(answer, str)


def _microseconds(timestamp: Json) -> int:
    """A time as `ctime` writes it, without a zone: taken for UTC."""
    for form in _TIMES if isinstance(timestamp, str) else ():
        try:
            time = datetime.strptime(timestamp.strip()[:24], form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return int(time.timestamp()) * 1_000_000
    return 0


def split_arguments(
    arguments: Mapping[str, Json], parameters: Collection[str]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """The parameters of the prompt, and those of the model; null means that there is none."""
    present = {name: value for name, value in arguments.items() if value is not None}
    return (
        {name: value for name, value in present.items() if name in parameters},
        {name: value for name, value in present.items() if name not in parameters},
    )


def checker_columns(
    checker: Mapping[str, Json],
    parameters: Collection[str],
    arguments: Iterable[Mapping[str, Json]],
) -> tuple[str, ...]:
    """The arguments of the model that a checker's arguments mention, as instances have them."""
    known = {name for call in arguments for name, value in call.items() if value is not None}
    texts = [text for text in checker.values() if isinstance(text, str)]
    names = dict.fromkeys(name for text in texts for name in mentioned(text))
    return tuple(name for name in names if name in known and name not in parameters)


def model_arguments(default: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """What a call was made with: its own arguments, else the test's, else temperature 0."""
    combined = {"temperature": _TEMPERATURE, **default, **own}
    return {name: value for name, value in combined.items() if value is not None}


def answers_of(
    response: str | dict[str, str] | list[str] | list[dict[str, str]],
    names: tuple[tuple[str, ...], ...],
) -> list[tuple[str, ...]]:
    """The answers of each conversation; `names` are those of its turns.

    Raises `NotTakenError` when the answers are not those of these conversations.
    """
    responses = response if isinstance(response, list) else [response]
    if len(responses) != len(names):
        raise NotTakenError(
            f"it has answers of {plural(len(responses), 'run')}, the test has {len(names)}"
        )
    return [_answers(answer, turns) for answer, turns in zip(responses, names, strict=True)]


def _answers(response: str | dict[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(response, str):
        if len(names) > 1:
            raise NotTakenError(f"it has one answer, the test has {len(names)}")
        return (response,)
    missing = [name for name in names if name not in response]
    if missing:
        raise NotTakenError(f"it has no answer '{missing[0]}'")
    return tuple(response[name] for name in names)
