"""Conversion of texts with `{parameter}`, as in Python's `str.format`, to templates.

A literal brace is doubled in such a text, but not in a template.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from string import Formatter

from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError, short_json
from evalstore.exchange.importers.template_writer import append_placeholder, escape, keep_ticks
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


def parse(text: str, known: Iterable[str], *place: str) -> list[Piece]:
    """Split a text into literals and fields; raises `NotTakenError` if it is invalid."""
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
    """Return the names of the fields in a text; empty if it cannot be parsed."""
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
    if (
        match is None
        or conversion not in (None, "s")
        or (spec and not _NUMBER_SPEC.fullmatch(spec))
    ):
        raise NotTakenError(f"'{field_text}' cannot be written as a template", *place)
    steps = [int(step) if step.isdigit() else step for step in _INDEX.findall(match[2])]
    return FormatField(parameter, tuple(steps), spec)


def template(pieces: list[Piece], names: Mapping[str, str], as_text: Collection[str] = ()) -> str:
    """Join the pieces to a template; `names` maps parameters to their names in it.

    `as_text` are parameters with other values than texts, which are formatted as Python does.
    """
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += escape(piece)
        else:
            text = append_placeholder(text, placeholder(piece, names, as_text))
    return keep_ticks(text)


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
