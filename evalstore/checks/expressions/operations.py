"""The operations on values of JSON in an expression; each costs steps by its size."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evalstore.core.values import Json
from evalstore.files.fields import is_finite

MOST_STEPS = 100_000
"""The most steps of one evaluation: each node and each element that is read costs one."""
_SCANNED = 1000
"""Characters that are read in one step."""
_WRITTEN = 100
"""Characters that are written in one step."""
_COPIED = 10
"""Elements that are copied in one step."""
_LONGEST = 4_000_000
"""The most characters of a text that is built."""
_MOST_BITS = 10_000
"""The most bits of a whole number that is multiplied."""
_MOST_DIGITS = 300
"""The most digits for `round`."""

ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_METHODS: Mapping[type, tuple[str, ...]] = {
    str: (
        *("lower", "upper", "strip", "split", "startswith", "endswith", "count", "replace"),
        *("find", "join"),
    ),
    list: ("count",),
    tuple: ("count",),
    dict: ("get", "keys", "values", "items"),
}


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated, with the reason and a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class Operations:
    """The operations of one evaluation, which share its steps."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def spend(self, steps: int = 1) -> None:
        """Count steps; raises `ExpressionError` when none are left."""
        self._left -= steps
        if self._left < 0:
            raise ExpressionError(f"the expression takes more than {MOST_STEPS:,} steps")

    def _read(self, value: Any) -> None:
        """Count the steps of reading a text, or the top level of another value."""
        self.spend(1 + (len(value) // _SCANNED if isinstance(value, str) else 0))

    def _write(self, length: int) -> None:
        """Count the steps of a text of this length before it is built."""
        if length > _LONGEST:
            raise ExpressionError(f"the expression makes a text of {length:,} characters")
        self.spend(length // _WRITTEN)

    def _copied(self, values: Iterable[Any]) -> list[Any]:
        """Return a new list of these values."""
        copy = list(values)
        self.spend(len(copy) // _COPIED)
        return copy

    def same(self, left: Any, right: Any) -> bool:
        """Return whether two values are equal, as in Python."""
        self._read(left)
        if isinstance(left, list | tuple):
            return (
                type(left) is type(right)
                and len(left) == len(right)
                and all(map(self.same, left, right))
            )
        if isinstance(left, dict):
            return (
                isinstance(right, dict)
                and len(left) == len(right)
                and all(
                    key in right and self.same(element, right[key]) for key, element in left.items()
                )
            )
        return not isinstance(right, list | tuple | dict) and bool(left == right)

    def contains(self, container: Any, value: Any) -> bool:
        """Return whether a text contains a text, a list an element, or a mapping a key."""
        self._read(container)
        if isinstance(container, str):
            if not isinstance(value, str):
                raise TypeError(f"{kind_of(value)} cannot be part of a text")
            return value in container
        if isinstance(container, dict):
            return hashable_key(value) in container
        return any(self.same(value, element) for element in elements_of(container))

    def order(self, sign: str, left: Any, right: Any) -> bool:
        """Return whether one text, or one number, is less or more than another."""
        self._read(left)
        self._read(right)
        if not _are(str, left, right) and not _are((int, float), left, right):
            raise TypeError(f"{kind_of(left)} {sign} {kind_of(right)} cannot be compared")
        return ORDERS[sign](left, right)

    def arithmetic(self, sign: str, left: Any, right: Any) -> Any:
        """Return the result of an operator on numbers, or of joining or repeating sequences."""
        if sign == "+" and _are(str, left, right):
            self._write(len(left) + len(right))
            return left + right
        if sign == "+" and _are(list, left, right):
            self.spend((len(left) + len(right)) // _COPIED)
            return left + right
        if sign == "*" and isinstance(left, int) and isinstance(right, str):
            left, right = right, left
        if sign == "*" and isinstance(left, str) and isinstance(right, int):
            self._write(len(left) * max(right, 0))
            return left * right
        if not _are((int, float), left, right):
            raise TypeError(f"{kind_of(left)} {sign} {kind_of(right)} cannot be computed")
        if sign in ("*", "**") and _are(int, left, right):
            size = left.bit_length()
            bits = size + right.bit_length() if sign == "*" else size * max(right, 0)
            if bits > _MOST_BITS:
                raise ExpressionError("the expression makes a number that is too large")
        result = ARITHMETIC[sign](left, right)
        if isinstance(result, complex):
            raise TypeError("the result is a complex number")
        return result

    def part(self, value: Any, at: Any) -> Any:
        """Return an element by its number, a value by its key, or a part by a slice."""
        if isinstance(value, dict):
            return value[hashable_key(at)]
        element = elements_of(value)[at]
        if isinstance(at, slice):
            self.spend(len(element) // (_WRITTEN if isinstance(element, str) else _COPIED))
        return element

    def holds_for(self, name: str, values: Iterable[Any]) -> bool:
        """Return the result of `any` or `all`; values are computed only as needed."""
        is_any = name == "any"
        for value in values:
            self.spend()
            if bool(value) is is_any:
                return is_any
        return not is_any

    def function(self, name: str, arguments: list[Any], named: Mapping[str, Any]) -> Any:
        """Return the result of a function."""
        value = arguments[0]
        match name:
            case "len":
                return len(elements_of(value))
            case "min" | "max":
                values = self._comparable(elements_of(value) if len(arguments) == 1 else arguments)
                if not values and "default" in named:
                    return named["default"]
                return min(values) if name == "min" else max(values)
            case "sorted":
                values = self._comparable(elements_of(value))
                return sorted(values, reverse=bool(named.get("reverse")))
            case "sum":
                values = self._copied(elements_of(value))
                self.spend(len(values))
                return sum(number_of(number, "sum") for number in values)
            case "abs":
                return abs(number_of(value, "abs"))
            case "round":
                digits = arguments[1] if len(arguments) > 1 else None
                if digits is not None and abs(number_of(digits, "round")) > _MOST_DIGITS:
                    raise ValueError(f"round gives at most {_MOST_DIGITS} digits")
                return round(number_of(value, "round"), digits)
            case "bool":
                return bool(value)
        self._read(value)
        if isinstance(value, list | tuple | dict):
            raise TypeError(f"{name} takes a text or a number, not {kind_of(value)}")
        result = {"str": str, "int": int, "float": float}[name](value)
        if name == "float" and not is_finite(result):
            raise ValueError(f"float takes a finite number, not {value}")
        return result

    def _comparable(self, values: Iterable[Any]) -> list[Any]:
        """Return a list of only numbers or only texts; costs as many steps as sorting it."""
        copy = self._copied(values)
        rounds = len(copy).bit_length()
        for element in copy:
            self.spend(rounds * (1 + (len(element) // _SCANNED if isinstance(element, str) else 0)))
        if not _are(str, *copy) and not _are((int, float), *copy):
            raise TypeError("only texts or only numbers can be compared")
        return copy

    def method(self, value: Any, name: str, arguments: list[Any]) -> Any:
        """Return the result of a method of a text, a list or a mapping."""
        kind = next((kind for kind in _METHODS if isinstance(value, kind)), None)
        if kind is None or name not in _METHODS[kind]:
            raise TypeError(f"{kind_of(value)} has no '{name}'")
        self._read(value)
        if isinstance(value, dict):
            if name == "get":
                return value.get(hashable_key(arguments[0]), *arguments[1:])
            return self._copied(getattr(value, name)())
        if isinstance(value, list | tuple):
            return sum(self.same(arguments[0], element) for element in value)
        return self._text_method(value, name, arguments)

    def _text_method(self, text: str, name: str, arguments: list[Any]) -> Any:
        match name, arguments:
            case "join", [values]:
                texts = self._copied(elements_of(values))
                self._write(sum(map(len, texts)) + len(text) * len(texts))
                return text.join(texts)
            case "replace", [str(old), str(new), *_]:
                count = text.count(old) if len(new) > len(old) else 0
                self._write(len(text) + count * (len(new) - len(old)))
            case "strip", [str(characters)]:
                self.spend(len(text) * len(characters) // _SCANNED)
            case "split", _:
                return self._copied(text.split(*arguments))
            case (("lower" | "upper"), _):
                self._write(len(text))
        return getattr(text, name)(*arguments)


def elements_of(value: Any) -> Any:
    """Return a value that has elements; raises `TypeError` for any other."""
    if not isinstance(value, str | list | tuple | dict):
        raise TypeError(f"{kind_of(value)} has no elements")
    return value


def number_of(value: Any, function: str) -> Any:
    """Return a value that is a number (true is 1, as in Python); raises `TypeError`."""
    if not isinstance(value, int | float):
        raise TypeError(f"{function} takes a number, not {kind_of(value)}")
    return value


def hashable_key(value: Any) -> Any:
    """Return a value that can be a key."""
    if isinstance(value, list | tuple | dict):
        raise TypeError(f"{kind_of(value)} cannot be a key")
    return value


def kind_of(value: Json) -> str:
    """Return the type of a value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else "a number"


def _are(kind: type | tuple[type, ...], *values: Any) -> bool:
    return all(isinstance(value, kind) for value in values)
