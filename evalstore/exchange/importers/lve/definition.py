"""Reading of `test.json`, the definition of a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.exchange.importers.base import NotTakenError, short_json
from evalstore.exchange.importers.coerce import parse_json
from evalstore.exchange.importers.lve import prompts

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.exchange.importers.lve.prompts import LvePrompt

_PROMPTS = ("prompt", "prompt_file", "multi_run_prompt")
_FIELDS = (
    *("description", "model", "checker_args", "author", *_PROMPTS, "prompt_parameters"),
    *("prompt_parameters_validator", "tags", "default_model_args", "visible"),
)
_DERIVED = ("name", "category", "path", "instance_files")
_TAG_VALUES = {"severity": ("low", "medium", "high"), "jailbreak": ("yes", "no"), "paper": None}
_UNFILLED = "<please fill in>"
_MOST_REPETITIONS = 10_000

ReadFile = Callable[[str], str]
"""Maps the path of a prompt file to its text; raises `NotTakenError`."""


@dataclass(frozen=True, slots=True)
class LveRun:
    """One of the conversations that are judged together."""

    prompt: LvePrompt
    name: str | None = None
    repetitions: int = 1


@dataclass(frozen=True, slots=True)
class LveTest:
    """One test."""

    description: str
    model: str
    checker: str
    """The name of the checker class."""
    arguments: dict[str, Json]
    """The arguments of the checker class."""
    parameters: tuple[str, ...]
    runs: tuple[LveRun, ...]
    joint: bool
    """Whether the answers of all runs are judged together."""
    tags: tuple[tuple[str, str], ...] = ()
    author: str = ""
    model_arguments: dict[str, Json] = field(default_factory=dict)
    model_columns: tuple[str, ...] = ()
    """Model arguments that `checker_args` mention; they are also columns of the rows."""
    ignored: tuple[str, ...] = ()
    """Fields without an effect."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the values in a row."""
        return (*self.parameters, *self.model_columns)


def read_definition(text: str, read_file: ReadFile) -> LveTest:
    """Parse a `test.json`; raises `NotTakenError`."""
    document = _parse(text)
    for name in _DERIVED:
        if name in document:
            raise NotTakenError(f"'{name}' follows from the path and must not be given", name)
    for name in ("description", "model"):
        if not isinstance(document.get(name), str):
            raise NotTakenError(f"'{name}' must be a text", name)
    arguments = document.get("checker_args")
    if not isinstance(arguments, dict):
        raise NotTakenError("'checker_args' must be a mapping", "checker_args")
    checker = arguments.get("checker_name")
    if not isinstance(checker, str) or checker == _UNFILLED:
        place = ("checker_args", "checker_name")
        raise NotTakenError("'checker_args' names no checker ('checker_name')", *place)
    runs = _runs(document, read_file)
    return LveTest(
        description=" ".join(document["description"].split()),
        model=document["model"],
        checker=checker,
        arguments={name: value for name, value in arguments.items() if name != "checker_name"},
        parameters=_parameters(document.get("prompt_parameters")),
        runs=runs,
        joint=document.get("multi_run_prompt") is not None,
        tags=_tags(document.get("tags") or []),
        author=document["author"] if isinstance(document.get("author"), str) else "",
        model_arguments=_mapping(document, "default_model_args"),
        ignored=(
            *(f"'{name}'" for name in document if name not in _FIELDS),
            *(f"'{name}' of a message" for run in runs for name in run.prompt.ignored),
        ),
    )


def _parse(text: str) -> dict[str, Json]:
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        raise NotTakenError(f"is not JSON: {error.msg}", line=error.lineno) from None
    except ValueError as error:
        raise NotTakenError(f"cannot be read: {error}", line=1) from None
    if not isinstance(document, dict):
        raise NotTakenError("a test must be a mapping", line=1)
    return document


def _mapping(document: dict[str, Json], name: str) -> dict[str, Json]:
    value = document.get(name) or {}
    if not isinstance(value, dict):
        raise NotTakenError(f"'{name}' must be a mapping", name)
    return {key: item for key, item in value.items() if item is not None}


def _parameters(value: Json) -> tuple[str, ...]:
    field_name = "prompt_parameters"
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise NotTakenError(f"'{field_name}' must be a list of names", field_name)
    if _UNFILLED in value:
        raise NotTakenError(f"'{field_name}' has not been filled in", field_name)
    return tuple(dict.fromkeys(value))


def _tags(entries: Json) -> tuple[tuple[str, str], ...]:
    if not isinstance(entries, list):
        raise NotTakenError("'tags' must be a list", "tags")
    tags = []
    for tag in entries:
        name, value = (tag.get("name"), tag.get("value")) if isinstance(tag, dict) else (None, None)
        if not isinstance(name, str) or name not in _TAG_VALUES or not isinstance(value, str):
            raise NotTakenError(f"there is no tag {short_json(tag)}", "tags")
        allowed = _TAG_VALUES[name]
        if allowed and value not in allowed:
            raise NotTakenError(
                f"the {name} cannot be '{value}', only {', '.join(allowed)}", "tags"
            )
        tags.append((name, value))
    return tuple(tags)


def _runs(document: dict[str, Json], read_file: ReadFile) -> tuple[LveRun, ...]:
    many = document.get("multi_run_prompt")
    _require_single_field(document, _PROMPTS, "the test")
    if many is None:
        return (LveRun(_prompt(document, read_file)),)
    place = "multi_run_prompt"
    if isinstance(many, dict):
        many = [many]
    if not isinstance(many, list) or not many or not all(isinstance(run, dict) for run in many):
        raise NotTakenError("'multi_run_prompt' must be a list of mappings", place)
    runs = []
    for number, entry in enumerate(many, 1):
        _require_single_field(entry, _PROMPTS[:2], f"run {number}", place)
        name = entry.get("name")
        if name is not None and not isinstance(name, str):
            raise NotTakenError(f"the name of run {number} must be a text", place, "name")
        # LVE's documentation uses the plural, its program the singular.
        count = entry.get("repetitions", entry.get("repetition", 1))
        if type(count) is not int or not 1 <= count <= _MOST_REPETITIONS:
            raise NotTakenError(
                f"the repetitions of run {number} must be a whole number from 1 to "
                f"{_MOST_REPETITIONS:,}, not {short_json(count)}",
                place,
            )
        runs.append(LveRun(_prompt(entry, read_file, place), name, count))
    return tuple(runs)


def _require_single_field(
    entry: dict[str, Json], names: tuple[str, ...], subject: str, *place: str
) -> None:
    present = [name for name in names if entry.get(name) is not None]
    if len(present) != 1:
        known = ", ".join(f"'{name}'" for name in names)
        number = "more than one" if present else "none"
        raise NotTakenError(
            f"{subject} must have one of {known}, and has {number}", *place, *present[1:]
        )


def _prompt(entry: dict[str, Json], read_file: ReadFile, *place: str) -> LvePrompt:
    name = "prompt" if entry.get("prompt") is not None else "prompt_file"
    try:
        if name == "prompt":
            prompt = entry["prompt"]
            is_text = isinstance(prompt, str)
            return (
                prompts.read_single_message(prompt) if is_text else prompts.read_prompt_list(prompt)
            )
        path = entry["prompt_file"]
        if not isinstance(path, str) or not path.endswith(".prompt"):
            raise NotTakenError("the name of a prompt file must end in '.prompt'")
        text = read_file(path)
    except NotTakenError as problem:
        raise NotTakenError(problem.reason, *place, name) from None
    try:
        return prompts.read_prompt_file(text)
    except NotTakenError as problem:
        raise NotTakenError(problem.reason, line=problem.line, file=path) from None
