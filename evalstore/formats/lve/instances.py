"""Recorded instances: what a test was filled with, what the model answered, and the verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evalstore.formats.lve.taking import NotTakenError, shown
from evalstore.formats.shapes import parse_json

if TYPE_CHECKING:
    from evalstore.values import Json

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
    """Microseconds since 1970; 0 when nobody knows."""
    shown: list[Json] | None = None
    """The messages with the answers, if they were kept."""
    text: str = ""
    """The line itself."""


def read_instance(line: int, text: str) -> Instance:
    """An instance from its line; raises `NotTakenError`."""
    try:
        given = parse_json(text)
    except ValueError as error:
        raise NotTakenError(f"is not JSON: {error}", line=line) from None
    if not isinstance(given, dict):
        raise NotTakenError(f"an instance must be a mapping, not {shown(given)}", line=line)
    for name in ("args", "run_info"):
        if not isinstance(given.get(name), dict):
            raise NotTakenError(f"the instance has no '{name}'", line=line)
    if not _is_response(given.get("response")):
        what = shown(given.get("response"))
        raise NotTakenError(
            f"'response' must be a text, texts by name, or a list, not {what}", line=line
        )
    passed = given.get("passed", given.get("is_safe", True))  # as it was called once
    if not isinstance(passed, bool):
        raise NotTakenError(f"'passed' must be true or false, not {shown(passed)}", line=line)
    kept = given.get("prompt_out")
    return Instance(
        line=line,
        arguments=given["args"],
        response=given["response"],
        passed=passed,
        started=_started(given["run_info"].get("timestamp")),
        shown=kept if isinstance(kept, list) else None,
        text=text.strip(),
    )


def _is_response(given: Json) -> bool:
    if isinstance(given, list):
        return bool(given) and all(_is_one(one) for one in given)
    return _is_one(given)


def _is_one(given: Json) -> bool:
    if isinstance(given, dict):
        return bool(given) and all(isinstance(one, str) for one in given.values())
    return isinstance(given, str)


def _started(given: Json) -> int:
    """A time as `ctime` writes it, without a zone: taken for UTC."""
    for form in _TIMES if isinstance(given, str) else ():
        try:
            time = datetime.strptime(given.strip()[:24], form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return int(time.timestamp()) * 1_000_000
    return 0


def split_arguments(
    arguments: Mapping[str, Json], parameters: Collection[str]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """The parameters of the prompt, and those of the model; null means that there is none."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return (
        {name: value for name, value in given.items() if name in parameters},
        {name: value for name, value in given.items() if name not in parameters},
    )


def model_arguments(default: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """What a call was made with: its own arguments, else the test's, else temperature 0."""
    given = {"temperature": _TEMPERATURE, **default, **own}
    return {name: value for name, value in given.items() if value is not None}


def answers_of(
    response: str | dict[str, str] | list[str] | list[dict[str, str]],
    names: tuple[tuple[str, ...], ...],
) -> list[tuple[str, ...]]:
    """The answers of each conversation; `names` are those of its turns.

    Raises `NotTakenError` when the answers are not those of these conversations.
    """
    given = response if isinstance(response, list) else [response]
    if len(given) != len(names):
        raise NotTakenError(f"it has answers of {len(given)} runs, the test has {len(names)}")
    return [_answers(one, turns) for one, turns in zip(given, names, strict=True)]


def _answers(given: str | dict[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(given, str):
        if len(names) > 1:
            raise NotTakenError(f"it has one answer, the test has {len(names)}")
        return (given,)
    missing = [name for name in names if name not in given]
    if missing:
        raise NotTakenError(f"it has no answer '{missing[0]}'")
    return tuple(given[name] for name in names)
