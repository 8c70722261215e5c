"""Reads the plain values of options: texts, numbers, paths and words of a list.

Typer converts each value with pydantic, also a text into a text, and pydantic takes a sixth of the
time of a short command to load. What is read here is what typer would return; whatever is wrong, or
of another kind, is left to typer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

_NUMBERS: dict[type, tuple[re.Pattern[str], Callable[[str], int | float]]] = {
    int: (re.compile(r"-?[0-9]{1,9}"), int),
    float: (re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?"), float),
}
_NOT_PLAIN: Any = object()


def read_plain_values(parameters: Iterable[Any]) -> None:
    """Let parameters read plain values without typer's conversion."""
    for parameter in parameters:
        # Typer makes its conversion when it is first asked for.
        if getattr(parameter, "_runtime_param", parameter) is None:
            parameter._runtime_param = _PlainValue()


class _PlainValue:
    """Stands for typer's conversion until a value needs it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value that the command gets; raises what typer raises."""
        is_many = param.multiple or param.nargs == -1
        if value is None:
            return () if is_many else None
        plain = (_read_texts if is_many else _read)(value, param.type_descriptor)
        if plain is not _NOT_PLAIN:
            return plain
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _read_texts(values: Any, descriptor: Any) -> Any:
    are_texts = type(values) in (list, tuple) and all(type(value) is str for value in values)
    return list(values) if are_texts and descriptor.annotation == list[str] else _NOT_PLAIN


def _read(value: Any, descriptor: Any) -> Any:
    kind, rules = descriptor.annotation, descriptor.parameter_info
    if kind in _NUMBERS:
        return _read_number(value, kind, rules)
    if kind in (str, bool) and type(value) is kind:
        return value
    if type(value) is not str:
        return _NOT_PLAIN
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    return _read_path(value, rules) if kind is Path else _NOT_PLAIN


def _read_number(value: Any, kind: type, rules: Any) -> Any:
    pattern, read = _NUMBERS[kind]
    if type(value) is str and pattern.fullmatch(value):
        value = read(value)
    if type(value) is not kind or rules.clamp:
        return _NOT_PLAIN
    is_above = rules.min is None or value >= rules.min
    return value if is_above and (rules.max is None or value <= rules.max) else _NOT_PLAIN


def _read_path(value: str, rules: Any) -> Any:
    is_any = rules.file_okay and rules.dir_okay and not (rules.resolve_path or rules.path_type)
    if not is_any or rules.exists or rules.writable or rules.allow_dash or "\0" in value:
        return _NOT_PLAIN
    return Path(value) if not os.path.lexists(value) or os.access(value, os.R_OK) else _NOT_PLAIN
