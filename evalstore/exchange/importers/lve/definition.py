"""Reading of `test.json`, the definition of a test, and of the texts with `{parameter}` in it.

These are as in `str.format` of Python: a literal brace is doubled in such a text, but not in a
template.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from json import JSONDecodeError
from string import Formatter
from typing import cast

from evalstore.core.values import Json, Role
from evalstore.exchange.importers.base import (
    NotTakenError,
    escape,
    keep_ticks,
    parse_json,
    require,
    short_json,
)
from evalstore.files.datasets import stable_names

_FIELD = re.compile(r"([^.\[\]]*)((?:\[[^\]]+\])*)")
_INDEX = re.compile(r"\[([^\]]+)\]")
_NUMBER_SPEC = re.compile(r"0?[0-9]*(?:\.[0-9]+)?[dfeEgGxXo]")
_RESERVED = frozenset(
    (
        *("item", "sample", "answer", "answers", "response", "json", "tool_calls"),
        *("true", "false", "none", "range", "dict", "namespace", "cycler", "joiner"),
        *("len", "sum", "abs", "any", "all", "str", "int", "float", "bool"),
        *("min", "max", "sorted", "round"),
    )
)
"""Names with a meaning in templates or in expressions."""


@dataclass(frozen=True, slots=True)
class FormatField:
    """A replacement field for a parameter."""

    name: str
    steps: tuple[str | int, ...] = ()
    """The indexes and keys that select a part of the value."""
    spec: str = ""
    """The format specification of a number."""

    def text(self, values: Mapping[str, Json]) -> str:
        """Return the formatted value; raises `LookupError`, `TypeError` or `ValueError`."""
        value = values[self.name]
        for step in self.steps:
            value = value[step]
        return format(value, self.spec)


Piece = str | FormatField


def parse(text: str, known: Iterable[str]) -> list[Piece]:
    """Split a text into literals and fields; raises `NotTakenError` if it is invalid."""
    try:
        parsed = list(Formatter().parse(text))
    except ValueError:
        raise NotTakenError(f"{short_json(text)}: a literal brace must be doubled") from None
    pieces: list[Piece] = []
    for literal, name, spec, conversion in parsed:
        if literal and pieces and isinstance(pieces[-1], str):
            pieces[-1] += literal
        elif literal:
            pieces.append(literal)
        if name is not None:
            pieces.append(_field(name, spec or "", conversion, set(known)))
    return pieces


def mentioned(text: str) -> list[str]:
    """Return the names of the fields in a text; empty if it cannot be parsed."""
    with suppress(ValueError):
        return [re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(text) if name]
    return []


def _field(name: str, spec: str, conversion: str | None, known: set[str]) -> FormatField:
    format_text = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
    field_text = f"{{{name}{format_text}}}"
    if not name or name[0].isdigit():
        raise NotTakenError(f"'{field_text}' has no name; double the braces if they are text")
    match = _FIELD.fullmatch(name)
    parameter = match[1] if match else re.split(r"[.\[]", name)[0]
    if parameter not in known:
        hint = "it is not among the prompt_parameters; double the braces if they are text"
        raise NotTakenError(f"'{field_text}' names no parameter: {hint}")
    if (
        match is None
        or conversion not in (None, "s")
        or (spec and not _NUMBER_SPEC.fullmatch(spec))
    ):
        raise NotTakenError(f"'{field_text}' cannot be written as a template")
    steps = [int(step) if step.isdigit() else step for step in _INDEX.findall(match[2])]
    return FormatField(parameter, tuple(steps), spec)


def template(pieces: list[Piece], names: Mapping[str, str], as_text: Collection[str] = ()) -> str:
    """Join the pieces to a template; `names` maps parameters to their names in it.

    `as_text` are parameters with other values than texts, which are formatted as Python does.
    """
    parts = (
        escape(piece) if isinstance(piece, str) else placeholder(piece, names, as_text)
        for piece in pieces
    )
    return keep_ticks("".join(parts))


def placeholder(field: FormatField, names: Mapping[str, str], as_text: Collection[str] = ()) -> str:
    """Return the template placeholder for a field."""
    name = names[field.name]
    is_other = field.name in as_text and not field.spec
    if not field.steps and not field.spec and not is_other:
        return "{{" + name + "}}"
    value = name + "".join(f"[{step!r}]" for step in field.steps)
    value = f"{value} ~ ''" if is_other else value
    return "{{ " + (f'"%{field.spec}" % {value}' if field.spec else value) + " }}"


def fill(pieces: list[Piece], values: Mapping[str, Json]) -> str:
    """Fill the values into a text; raises the errors of `FormatField.text`."""
    return "".join(piece if isinstance(piece, str) else piece.text(values) for piece in pieces)


def names_of(parameters: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Map parameters to unique names that are valid in templates and expressions."""
    parameters, taken = list(parameters), set(taken)
    names: dict[str, str] = {}
    for parameter, stable in zip(parameters, stable_names(parameters), strict=True):
        name = stable.lstrip("_") or "value"
        if not name.isidentifier():
            name = f"n{name}"
        while keyword.iskeyword(name) or name in _RESERVED or name in taken:
            name += "_"
        names[parameter] = name
        taken.add(name)
    return names


# --- the messages of a prompt


_MEANT_AS_JSON = re.compile(r"\s*\[?\s*\{\s*\"(?:content|role|variable|image_url)\"\s*:")
_NOT_FILLED_IN = re.compile(r"\s*<please fill in>\s*")
_MESSAGE_FIELDS = frozenset({"content", "role", "variable", "image_url"})
_MESSAGE_ROLES = ("user", "system", "assistant")
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


LvePrompt = tuple[LveTurn, ...]


def read_single_message(text: str) -> LvePrompt:
    """Return a prompt of one user message; raises `NotTakenError` if it is empty."""
    require(text, "the prompt is empty")
    require(not _NOT_FILLED_IN.fullmatch(text), "the prompt has not been filled in")
    return (LveTurn("user", text),)


def read_prompt_file(text: str) -> LvePrompt:
    """Return the messages of a prompt file; raises `NotTakenError`, if possible with the line."""
    plain = read_single_message(text)
    try:
        whole = parse_json(text)
    except ValueError as problem:
        return _read_lines(text, problem) or plain
    if isinstance(whole, list) and "\n" not in text.removesuffix("\n"):
        raise NotTakenError("each line of a prompt file must be one message, not a list", line=1)
    entries = whole if isinstance(whole, list) else [whole]
    return read_prompt_list(entries) if all(isinstance(entry, dict) for entry in entries) else plain


def _read_lines(text: str, problem: ValueError) -> LvePrompt | None:
    """Return the messages of JSON Lines; None for a text that is not meant as JSON.

    `problem` is that of the whole text as JSON.
    """
    messages: list[Json] = []
    problems: list[NotTakenError] = []
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            messages.append(parse_json(line))
        except ValueError as error:
            problems.append(_not_json(error, number))
    has_fields = any(isinstance(it, dict) and it.keys() & _MESSAGE_FIELDS for it in messages)
    if problems and has_fields and all(line.lstrip()[:1] in ("", "{") for line in lines):
        raise problems[0]
    if problems and _MEANT_AS_JSON.match(text):
        raise _not_json(problem, getattr(problem, "lineno", 1))
    if problems or not all(isinstance(message, dict | list) for message in messages):
        return None
    return read_prompt_list(messages, on_lines=True)


def _not_json(error: ValueError, line: int) -> NotTakenError:
    reason = error.msg if isinstance(error, JSONDecodeError) else str(error)
    return NotTakenError(f"is not JSON: {reason}", line=line)


def read_prompt_list(value: Json, *, on_lines: bool = False) -> LvePrompt:
    """Return the messages of a list; raises `NotTakenError`, with the line if `on_lines`."""
    require(isinstance(value, list), "the prompt must be a list of messages")
    require(value, "the prompt is empty")
    turns = []
    for number, message in enumerate(value, 1):
        try:
            turns.append(_turn(number, message))
        except NotTakenError as problem:
            problem.line = number if on_lines else None
            raise
    return tuple(turns)


def _turn(number: int, message: Json) -> LveTurn:
    require(isinstance(message, dict), f"message {number} is {short_json(message)}, not a mapping")
    role = message.get("role") or "user"
    if role not in _MESSAGE_ROLES:
        known = ", ".join(_MESSAGE_ROLES)
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
    require(not all(turn.role == "system" for turn in turns), "it has no user message")
    if turns[0].is_filled:
        raise NotTakenError("the conversation begins with a turn to be filled: nothing was asked")
    names = [turn.variable for turn in turns if turn.is_filled]
    last_turn = turns[-1]
    if last_turn.role == "assistant" and not last_turn.is_filled:
        raise NotTakenError("the conversation ends with a fixed assistant turn")
    if last_turn.role != "assistant":
        names.append(LAST)
    variables = [name if name or len(names) > 1 else LAST for name in names]
    require(
        all(variables), "an assistant turn to be filled needs a 'variable' when it is not alone"
    )
    for name in variables:
        require(variables.count(name) <= 1, f"two turns to be filled have the variable '{name}'")
    return tuple(name for name in variables if name)


def name_of_turn(variable: str) -> str:
    """Return the name of a turn's answer in a test file."""
    return variable if variable == LAST else names_of([variable])[variable]


# --- the definition


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

    turns: LvePrompt
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
    try:
        document = parse_json(text)
    except ValueError as error:
        raise _not_json(error, getattr(error, "lineno", 1)) from None
    require(isinstance(document, dict), "a test must be a mapping", line=1)
    for name in _DERIVED:
        require(name not in document, f"'{name}' follows from the path and must not be given")
    for name in ("description", "model"):
        require(isinstance(document.get(name), str), f"'{name}' must be a text")
    arguments = document.get("checker_args")
    if not isinstance(arguments, dict):
        raise NotTakenError("'checker_args' must be a mapping")
    checker = arguments.get("checker_name")
    if not isinstance(checker, str) or checker == _UNFILLED:
        raise NotTakenError("'checker_args' names no checker ('checker_name')")
    default = document.get("default_model_args") or {}
    require(isinstance(default, dict), "'default_model_args' must be a mapping")
    return LveTest(
        description=" ".join(document["description"].split()),
        model=document["model"],
        checker=checker,
        arguments={name: value for name, value in arguments.items() if name != "checker_name"},
        parameters=_parameters(document.get("prompt_parameters")),
        runs=_runs(document, read_file),
        joint=document.get("multi_run_prompt") is not None,
        tags=_tags(document.get("tags") or []),
        author=document["author"] if isinstance(document.get("author"), str) else "",
        model_arguments={name: value for name, value in default.items() if value is not None},
        ignored=tuple(f"'{name}'" for name in document if name not in _FIELDS),
    )


def _parameters(value: Json) -> tuple[str, ...]:
    field_name = "prompt_parameters"
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise NotTakenError(f"'{field_name}' must be a list of names")
    require(_UNFILLED not in value, f"'{field_name}' has not been filled in")
    return tuple(dict.fromkeys(value))


def _tags(entries: Json) -> tuple[tuple[str, str], ...]:
    require(isinstance(entries, list), "'tags' must be a list")
    tags = []
    for tag in entries:
        name, value = (tag.get("name"), tag.get("value")) if isinstance(tag, dict) else (None, None)
        if not isinstance(name, str) or name not in _TAG_VALUES or not isinstance(value, str):
            raise NotTakenError(f"unknown tag {short_json(tag)}")
        allowed = _TAG_VALUES[name]
        if allowed and value not in allowed:
            raise NotTakenError(f"the {name} cannot be '{value}', only {', '.join(allowed)}")
        tags.append((name, value))
    return tuple(tags)


def _runs(document: dict[str, Json], read_file: ReadFile) -> tuple[LveRun, ...]:
    many = document.get("multi_run_prompt")
    _require_single_field(document, _PROMPTS, "the test")
    if many is None:
        return (LveRun(_prompt(document, read_file)),)
    if isinstance(many, dict):
        many = [many]
    if not isinstance(many, list) or not many or not all(isinstance(run, dict) for run in many):
        raise NotTakenError("'multi_run_prompt' must be a list of mappings")
    runs = []
    for number, entry in enumerate(many, 1):
        _require_single_field(entry, _PROMPTS[:2], f"run {number}")
        name = entry.get("name")
        if name is not None and not isinstance(name, str):
            raise NotTakenError(f"the name of run {number} must be a text")
        # LVE's documentation uses the plural, its program the singular.
        count = entry.get("repetitions", entry.get("repetition", 1))
        if type(count) is not int or not 1 <= count <= _MOST_REPETITIONS:
            raise NotTakenError(
                f"the repetitions of run {number} must be a whole number from 1 to "
                f"{_MOST_REPETITIONS:,}, not {short_json(count)}",
            )
        runs.append(LveRun(_prompt(entry, read_file), name, count))
    return tuple(runs)


def _require_single_field(entry: dict[str, Json], names: tuple[str, ...], subject: str) -> None:
    present = [name for name in names if entry.get(name) is not None]
    if len(present) != 1:
        known = ", ".join(f"'{name}'" for name in names)
        number = "more than one" if present else "none"
        raise NotTakenError(f"{subject} must have one of {known}, and has {number}")


def _prompt(entry: dict[str, Json], read_file: ReadFile) -> LvePrompt:
    if (prompt := entry.get("prompt")) is not None:
        is_text = isinstance(prompt, str)
        return read_single_message(prompt) if is_text else read_prompt_list(prompt)
    path = entry["prompt_file"]
    if not isinstance(path, str) or not path.endswith(".prompt"):
        raise NotTakenError("the name of the 'prompt_file' must end in '.prompt'")
    text = read_file(path)
    try:
        return read_prompt_file(text)
    except NotTakenError as problem:
        problem.file = path
        raise
