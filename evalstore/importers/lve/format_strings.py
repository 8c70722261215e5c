"""Texts with `{parameter}` in them, as Python's `str.format` reads them, become templates.

A literal brace is written twice there, and once here.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter

from evalstore.files.datasets import stable_names
from evalstore.importers.errors import NotTakenError, short_json
from evalstore.importers.escaping import append, escape
from evalstore.importers.template_writer import keep_ticks
from evalstore.values import Json

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
"""Names that mean something in templates or in expressions."""


@dataclass(frozen=True, slots=True)
class FormatField:
    """A place for a parameter."""

    name: str
    steps: tuple[str | int, ...] = ()
    """What is taken of the value: elements by number, or by key."""
    spec: str = ""
    """How a number is written."""

    def text(self, values: Mapping[str, Json]) -> str:
        """What stands there in the end; raises `LookupError`, `TypeError` or `ValueError`."""
        value = values[self.name]
        for step in self.steps:
            value = value[step]
        return format(value, self.spec)


Piece = str | FormatField


def parse(text: str, known: Iterable[str], *place: str) -> list[Piece]:
    """The pieces of a text; raises `NotTakenError` for what could not be filled there either."""
    try:
        parsed = list(Formatter().parse(text))
    except ValueError:
        raise NotTakenError(
            f"{short_json(text)}: a literal brace must be doubled", *place
        ) from None
    pieces: list[Piece] = []
    for literal, name, spec, conversion in parsed:
        if literal and pieces and isinstance(pieces[-1], str):
            pieces[-1] += literal
        elif literal:
            pieces.append(literal)
        if name is not None:
            pieces.append(_field(name, spec or "", conversion, set(known), place))
    return pieces


def mentioned(text: str) -> list[str]:
    """The names that stand in a text with braces; none when it cannot be read."""
    try:
        parsed = list(Formatter().parse(text))
    except ValueError:
        return []
    return [re.split(r"[.\[]", name)[0] for _, name, _, _ in parsed if name]


def _field(
    name: str, spec: str, conversion: str | None, known: set[str], place: tuple[str, ...]
) -> FormatField:
    field_text = (
        "{" + name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
    )
    field_text += "}"
    if not name or name[0].isdigit():
        raise NotTakenError(
            f"'{field_text}' has no name; double the braces if they are text", *place
        )
    match = _FIELD.fullmatch(name)
    parameter = match[1] if match else re.split(r"[.\[]", name)[0]
    if parameter not in known:
        hint = "it is not among the prompt_parameters; double the braces if they are text"
        raise NotTakenError(f"'{field_text}' names no parameter: {hint}", *place)
    if match is None or conversion not in (None, "s") or (spec and not _is_plain(spec)):
        raise NotTakenError(f"'{field_text}' cannot be written as a template", *place)
    steps = [int(step) if step.isdigit() else step for step in _INDEX.findall(match[2])]
    return FormatField(parameter, tuple(steps), spec)


def _is_plain(spec: str) -> bool:
    return _NUMBER_SPEC.fullmatch(spec) is not None


def template(pieces: list[Piece], names: Mapping[str, str]) -> str:
    """The pieces as a template; `names` are those that the parameters have in it."""
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += escape(piece)
        else:
            text = append(text, placeholder(piece, names))
    return keep_ticks(text)


def placeholder(field: FormatField, names: Mapping[str, str]) -> str:
    """A field as a template has it."""
    name = names[field.name]
    if not field.steps and not field.spec:
        return "{{" + name + "}}"
    value = name + "".join(f"[{step!r}]" for step in field.steps)
    return "{{ " + (f'"%{field.spec}" % {value}' if field.spec else value) + " }}"


def fill(pieces: list[Piece], values: Mapping[str, Json]) -> str:
    """The text with its values; raises as `FormatField.text` does."""
    return "".join(piece if isinstance(piece, str) else piece.text(values) for piece in pieces)


def names_of(parameters: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """What parameters are called in templates and expressions: names of their own there."""
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
