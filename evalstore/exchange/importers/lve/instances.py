"""Reading of recorded instances: the arguments, the answer and the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from evalstore.core.display import plural
from evalstore.core.values import Json, Role
from evalstore.exchange.importers.base import NotTakenError, ShownMessage, short_json
from evalstore.exchange.importers.coerce import parse_json
from evalstore.exchange.importers.lve.format_strings import mentioned

_TIMES = ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
_TEMPERATURE = 0
"""LVE's default temperature."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One line of an instances file."""

    line: int
    arguments: dict[str, Json]
    """The recorded parameters of the prompt and of the model."""
    response: str | dict[str, str] | list[str] | list[dict[str, str]]
    passed: bool
    started: int
    """Microseconds since 1970; 0 if unknown."""
    shown: tuple[tuple[ShownMessage, ...], ...] | None = None
    """The messages of each conversation, without the last answer; None if not recorded."""
    pictures_kept: bool = True
    """Whether these messages contain the URLs of pictures."""
    text: str = ""
    """The text of the line."""


def read_instance(line: int, text: str) -> Instance:
    """Parse a line of an instances file; raises `NotTakenError`."""
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
    passed = document.get("passed", document.get("is_safe", True))  # the older name
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
    """Return the recorded messages: `prompt_out` with answers, or the older `prompt` without."""
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
    """Return one conversation; texts of the model become filled turns."""
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
    """Return a timestamp without time zone, taken as UTC, in microseconds since 1970; else 0."""
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
    """Split arguments into those of the prompt and those of the model; nulls are dropped."""
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
    """Return the model arguments of instances that the checker's arguments mention."""
    known = {name for call in arguments for name, value in call.items() if value is not None}
    texts = [text for text in checker.values() if isinstance(text, str)]
    names = dict.fromkeys(name for text in texts for name in mentioned(text))
    return tuple(name for name in names if name in known and name not in parameters)


def model_arguments(default: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """Merge a call's own arguments with the test's and the default temperature."""
    combined = {"temperature": _TEMPERATURE, **default, **own}
    return {name: value for name, value in combined.items() if value is not None}


def answers_of(
    response: str | dict[str, str] | list[str] | list[dict[str, str]],
    names: tuple[tuple[str, ...], ...],
) -> list[tuple[str, ...]]:
    """Return the answers of each conversation; `names` are those of its turns.

    Raises `NotTakenError` if the answers do not match these conversations.
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
