"""Conversion of Nunjucks templates, which differ from Jinja in filters and missing values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evalstore.core.errors import FileProblem
from evalstore.exchange.importers.base import NotTakenError
from evalstore.exchange.importers.template_writer import find_parts, quoted
from evalstore.files.datasets.columns import stable_names
from evalstore.files.jinja_environment import is_global
from evalstore.files.jinja_sandbox import binds, undeclared

_DUMP = re.compile(r"\|\s*dump\b(?:\(\s*\d*\s*\))?")
_NAME = re.compile(r"(?<![\w.'\"])([^\W\d]\w*)((?:\.[^\W\d]\w*(?![\w(]))*)")
"""Matches a name with the path behind it, such as `user.name`, but not the method of a call."""
_STRINGS = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)", re.DOTALL)
"""String literals in an expression; an unclosed one extends to its end."""
_ASKED = r"\s*(?:\|\s*(?:default|d)\b|is\s+(?:not\s+)?(?:un)?defined\b)"
"""Matches behind a name when a template asks whether it has a value."""
_ASKED_NAME = re.compile(rf"(?<![\w.])([^\W\d]\w*){_ASKED}")
_IS_ASKED = re.compile(_ASKED)
_TAKEN = frozenset({"item", "sample", "answer", "answers", "response"})
"""Names with another meaning in evalstore."""


def template_names(template: str) -> frozenset[str]:
    """Return the variables of a template; raises `NotTakenError`."""
    try:
        undeclared_names = undeclared(_for_jinja(template), 1)
    except FileProblem as problem:
        raise NotTakenError(f"its template cannot be read: {problem.message}") from problem
    names = frozenset(name for name in undeclared_names if not is_global(name))
    if "env" in names:
        raise NotTakenError("it uses environment variables ('env')")
    return names


def asked_names(template: str) -> frozenset[str]:
    """Return the variables that a template gives a default, or asks for, and never sets."""
    source = _for_jinja(template)
    names = {
        match[1]
        for part in find_parts(source)
        for match in _ASKED_NAME.finditer(_STRINGS.sub("''", part.text))
    }
    return frozenset(name for name in names if not binds(source, name))


def shown_paths(template: str) -> frozenset[str]:
    """Return the paths in the expressions of a template, such as `user.name`."""
    parts = [_STRINGS.sub("''", part.text) for part in find_parts(template)]
    matches = (match for part in parts for match in _NAME.finditer(part))
    return frozenset(match[0] for match in matches if match[2] and match[1] != "loop")


def _for_jinja(template: str) -> str:
    return "".join(_parts(template, frozenset(), frozenset()))


def as_template(template: str, columns: Iterable[str], absent: Iterable[str] = ()) -> str:
    """Convert a template to Jinja; `columns` are promptfoo's names of the columns.

    `absent` are variables that some rows do not have: they are empty unless the template asks.
    It also has paths in variables, such as `user.name`.
    """
    return "".join(_parts(template, frozenset(columns), frozenset(absent)))


def _parts(template: str, columns: frozenset[str], absent: frozenset[str]) -> Iterable[str]:
    at = 0
    for text, start, end in find_parts(template):
        yield template[at:start]
        at = end
        if text.startswith("{#"):
            continue
        if text == "<!--":
            yield quoted(text)
            continue
        yield _rename_columns(_DUMP.sub("| tojson", text), columns, absent)
    yield template[at:]


def _rename_columns(part: str, columns: frozenset[str], absent: frozenset[str]) -> str:
    """Rename the columns in an expression, except in string literals."""

    def name(match: re.Match[str]) -> str:
        variable, *steps = match[0].split(".")
        is_plain = stable_names([variable]) == [variable] and variable not in _TAKEN
        is_asked = _IS_ASKED.match(match.string, match.end()) is not None
        value = variable if variable not in columns or is_plain else f"item.{variable}"
        if variable in absent:
            value = f"item.{variable}" if is_asked else f"(item.{variable} | default(''))"
        for number, step in enumerate(steps, 1):
            value = f"{value}.{step}"
            is_inner = number < len(steps)
            if match[0] in absent and (is_inner or not is_asked):
                value = f"({value} | default(" + ("{}" if is_inner else "''") + "))"
        return value

    pieces, at = [], 0
    for text in _STRINGS.finditer(part):
        pieces += [_NAME.sub(name, part[at : text.start()]), text[0]]
        at = text.end()
    return "".join([*pieces, _NAME.sub(name, part[at:])])


def is_template(value: object) -> bool:
    """Return whether a value is a text with template syntax."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)
