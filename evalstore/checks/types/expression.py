"""The check `expr`: an expression in a subset of Python, over the answer and the row.

It has values and names, comparisons, `and`, `or`, `not`, arithmetic, subscripts (`x[0]`),
`a if b else c`, comprehensions, and calls of the functions and methods listed here. Anything else
is refused, so that an expression can only access the values that are passed to it.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from evalstore.checks.base import (
    CheckArguments,
    CheckFinding,
    CheckInput,
    CheckType,
    NotJsonError,
    parse_answer,
    shown,
)
from evalstore.core.display import shorten
from evalstore.core.values import Json
from evalstore.files.fields import is_finite, suggest

MOST_STEPS = 100_000
"""The most steps of one evaluation: each node and each element that is read costs one."""
_SCANNED = 1000
"""Characters that are read in one step."""
_WRITTEN = 100
"""Characters that are written in one step."""
_COPIED = 10
"""Elements that are copied in one step."""
_LONGEST_RESULT = 4_000_000
"""The most characters of a text that is built."""
_MOST_BITS = 10_000
"""The most bits of a whole number that is multiplied."""
_MOST_DIGITS = 300
"""The most digits for `round`."""

_ORDERS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_ARITHMETIC: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
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
        if length > _LONGEST_RESULT:
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

    def order(self, operation: ast.cmpop, left: Any, right: Any) -> bool:
        """Return whether one text, or one number, is less or more than another."""
        sign, holds = _ORDERS[type(operation)]
        self._read(left)
        self._read(right)
        if not _are(str, left, right) and not _are((int, float), left, right):
            raise TypeError(f"{kind_of(left)} {sign} {kind_of(right)} cannot be compared")
        return holds(left, right)

    def arithmetic(self, operation: ast.operator, left: Any, right: Any) -> Any:
        """Return the result of an operator on numbers, or of joining or repeating sequences."""
        sign, compute = _ARITHMETIC[type(operation)]
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
        result = compute(left, right)
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
        has_method = isinstance(value, METHODS[name][3])
        if not has_method:
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


_LONGEST = 2000
"""The most characters of an expression."""
_DEEPEST = 60
"""The most levels of nested nodes."""
_NAMED = 6
"""The most names whose values a feedback shows."""
_MANY = 1_000_000

FUNCTIONS: Mapping[str, tuple[int, int, tuple[str, ...]]] = {
    **dict.fromkeys(("len", "sum", "abs", "any", "all", "str", "int", "float", "bool"), (1, 1, ())),
    "min": (1, _MANY, ("default",)),
    "max": (1, _MANY, ("default",)),
    "sorted": (1, 1, ("reverse",)),
    "round": (1, 2, ()),
}
"""The functions: the least and the most arguments, and the names of keyword arguments."""
METHODS: Mapping[str, tuple[int, int, tuple[str, ...], tuple[type, ...]]] = {
    **dict.fromkeys(("lower", "upper"), (0, 0, (), (str,))),
    **dict.fromkeys(("keys", "values", "items"), (0, 0, (), (dict,))),
    **dict.fromkeys(("startswith", "endswith", "join"), (1, 1, (), (str,))),
    "count": (1, 1, (), (str, list, tuple)),
    "strip": (0, 1, (), (str,)),
    "split": (0, 2, (), (str,)),
    "find": (1, 2, (), (str,)),
    "get": (1, 2, (), (dict,)),
    "replace": (2, 3, (), (str,)),
}
"""The methods, in the same form, and the types that have each."""

_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Constant, ast.Name, ast.Load, ast.Store, ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Is, ast.IsNot, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.Subscript, ast.Slice, ast.IfExp, ast.Call, ast.Attribute, ast.keyword),
    *(ast.ListComp, ast.GeneratorExp, ast.comprehension),
)
_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "'lambda'",
    ast.JoinedStr: "text with values in it (f'…')",
    ast.NamedExpr: "':='",
    ast.Starred: "'*' before a value",
}
"""Names of unsupported syntax in messages; the rest has the name of its class in `ast`."""
_INVALID = "it is not a valid expression"
_TAKES_GENERATOR = ("any", "all", "sum", "min", "max", "sorted", "join")
_OF_ANSWER = ("answer", "json", "tool_calls")


@lru_cache(maxsize=256)
def read_expression(source: str) -> ast.expr:
    """Return the tree of an expression; raises `ExpressionError` for what is not allowed."""
    if len(source) > _LONGEST:
        raise ExpressionError(f"it has {len(source):,} characters; the limit is {_LONGEST:,}")
    try:
        with warnings.catch_warnings():  # Python's advice on style is not for users
            warnings.simplefilter("ignore")
            tree = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{_INVALID}: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError(_INVALID) from None
    waiting: list[tuple[ast.AST, ast.AST | None, int]] = [(tree, None, 1)]
    while waiting:
        node, parent, depth = waiting.pop()
        if depth > _DEEPEST:
            raise ExpressionError(f"it is nested more than {_DEEPEST} levels deep")
        _raise_for(node, parent)
        waiting.extend((child, node, depth + 1) for child in ast.iter_child_nodes(node))
    return tree


@lru_cache(maxsize=256)
def expression_names(source: str) -> tuple[str, ...]:
    """Return the names that an expression uses and does not define itself, once each."""
    nodes = list(ast.walk(read_expression(source)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in names if node.id not in assigned))


@lru_cache(maxsize=256)
def keys_of(source: str, name: str) -> tuple[frozenset[str], bool]:
    """Return the keys of a mapping that an expression uses, and whether it uses all of it."""
    nodes = list(ast.walk(read_expression(source)))
    keys = set()
    single = 0
    for node in nodes:
        match node:
            case (
                ast.Subscript(value=ast.Name(id=mapping), slice=ast.Constant(value=str(key)))
                | ast.Call(
                    func=ast.Attribute(value=ast.Name(id=mapping), attr="get"),
                    args=[ast.Constant(value=str(key)), *_],
                )
            ) if mapping == name:
                keys.add(key)
                single += 1
    mentioned = sum(1 for node in nodes if isinstance(node, ast.Name) and node.id == name)
    return frozenset(keys), mentioned > single


def _raise_for(node: ast.AST, parent: ast.AST | None) -> None:
    if not isinstance(node, _NODES):
        word = _WORDS.get(type(node), type(node).__name__)
        raise ExpressionError(f"expressions cannot have {word}")
    match node:
        case ast.Constant() if type(node.value) not in (str, int, float, bool, type(None)):
            raise ExpressionError(
                f"{shorten(repr(node.value))} is not a text, number or truth value"
            )
        case ast.Name() if node.id.startswith("__"):
            raise ExpressionError(f"expressions cannot use the name '{node.id}'")
        case ast.Attribute() if not (isinstance(parent, ast.Call) and parent.func is node):
            hint = f"write x[{node.attr!r}] for the value of a key"
            raise ExpressionError("only a method call is allowed after a dot", hint)
        case ast.Call():
            _raise_for_call(node)
        case ast.Dict() if None in node.keys:
            raise ExpressionError("expressions cannot have **")
        case ast.comprehension() if node.is_async or not _is_target(node.target):
            raise ExpressionError("a comprehension can only give its elements names")
        case ast.GeneratorExp() if not (
            isinstance(parent, ast.Call) and _called(parent) in _TAKES_GENERATOR
        ):
            raise ExpressionError("write a comprehension in [ ] unless it is in a call")
        case ast.Set() if not (
            isinstance(parent, ast.Compare)
            and node is parent.comparators[-1]
            and isinstance(parent.ops[-1], ast.In | ast.NotIn)
        ):
            raise ExpressionError(
                "{ } with elements is allowed only after 'in'; write [ ] elsewhere"
            )
        case ast.Compare() if any(
            isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops
        ):
            last = node.comparators[-1]
            if len(node.ops) > 1 or not (
                isinstance(last, ast.Constant) and isinstance(last.value, bool | None)
            ):
                raise ExpressionError("'is' can only be used with None, True and False")


def _raise_for_call(node: ast.Call) -> None:
    name = _called(node)
    is_method = isinstance(node.func, ast.Attribute)
    known = METHODS if is_method else FUNCTIONS
    kind = "method" if is_method else "function"
    if not name:
        raise ExpressionError("only functions and methods can be called")
    if name not in known:
        hint = suggest(name, known, f"{kind}s")
        raise ExpressionError(f"expressions have no {kind} {shorten(name)}", hint)
    least, most, named, *_ = known[name]
    if not least <= len(node.args) <= most:
        raise ExpressionError(f"{name}() cannot be given {len(node.args)} values")
    for keyword in node.keywords:
        if keyword.arg not in named:
            raise ExpressionError(f"{name}() has no '{keyword.arg or '**'}'")


def _called(node: ast.Call) -> str:
    """Return the name of the called function or method; empty if it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_target(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_target, node.elts))
    return isinstance(node, ast.Name)


def _read_settings(arguments: CheckArguments) -> dict[str, Json]:
    source = arguments.text("expression")
    if source is None:
        raise arguments.problem("the check needs 'expression'", "as in 'expr: len(answer) < 80'")
    try:
        read_expression(source.strip())
    except ExpressionError as error:
        words = f"the expression {shorten(source)} is wrong: {error.message}"
        if error.message.startswith(_INVALID):
            words = f"{shorten(source)} {error.message.removeprefix('it ')}"
        raise arguments.problem(words, error.hint) from None
    return {"expression": source.strip()}


def _is_so(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Evaluate an expression to true or false, or to a score if `pass` is given."""
    source = check["expression"]
    names = expression_names(source)
    for name in names:
        if name not in _OF_ANSWER and name not in subject.names:
            hint = suggest(name, [*_OF_ANSWER, *subject.names], "names")
            raise ExpressionError(f"the expression uses '{name}', which is not known", hint)
    look_up = cache(lambda name: _look_up(name, subject))
    result = evaluate(read_expression(source), look_up)
    if result is True and not check.get("not"):
        return CheckFinding(1.0)
    if isinstance(result, bool):
        expected, found = ("false", "true") if result else ("true", "false")
        words = f"expected {shorten(source)} to be {expected}, found {found}"
        return CheckFinding(float(result), words + _values(names, look_up))
    if not isinstance(result, int | float):
        raise ExpressionError(f"the expression gives {kind_of(result)}, not true or false")
    if "pass" not in check:
        raise ExpressionError(
            f"the expression gives the number {_brief(result)}; it needs 'pass', "
            "as in 'pass: \">= 0.8\"', or a comparison"
        )
    if not 0 <= result <= 1:
        raise ExpressionError(f"the expression gives {_brief(result)}, which is not from 0 to 1")
    words = f"{shorten(source)} is {_brief(result)}{_values(names, look_up)}"
    return CheckFinding(float(result), words)


def _look_up(name: str, subject: CheckInput) -> Json:
    """Return the value of a name; names of the answer come before those of the row."""
    if name == "answer":
        return subject.text
    if name == "json":
        try:
            return parse_answer(subject)
        except NotJsonError as problem:
            raise ExpressionError(str(problem)) from None
    if name == "tool_calls":
        calls = subject.reply.tool_calls
        return [{"name": call.name, "arguments": call.arguments} for call in calls]
    if name in subject.names:
        return subject.names[name]
    raise ExpressionError(f"the expression uses '{name}', which is not known")


def _values(names: tuple[str, ...], look_up: Callable[[str], Json]) -> str:
    """Return the values of the names as text; an unused name may have none."""
    parts = []
    for name in names[:_NAMED]:
        with suppress(ExpressionError):
            parts.append(f"; {name} is {shown(look_up(name))}")
    return "".join(parts)


def _brief(number: float) -> str:
    return f"{number:.4g}" if not abs(number) > 1e300 else "a large number"


KINDS = {"expr": CheckType(2, _read_settings, _is_so, main="expression")}


_CONSTANTS = 200
"""The most characters of Python's message about an error."""


def evaluate(tree: ast.expr, look_up: Callable[[str], Json]) -> Any:
    """Return the value of an expression; raises `ExpressionError`. Names are looked up lazily."""
    try:
        return _Evaluation(look_up).value(tree, {})
    except ExpressionError:
        raise
    except RecursionError:
        raise ExpressionError("the values of the expression are nested too deeply") from None
    except KeyError as error:
        words = f"unknown key {str(error)[:_CONSTANTS]}"
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
        words = str(error)[:_CONSTANTS] or type(error).__name__
    raise ExpressionError(f"the expression cannot be computed: {words}")


class _Evaluation:
    """One evaluation of an expression."""

    def __init__(self, look_up: Callable[[str], Json]) -> None:
        self._look_up = look_up
        self._do = Operations()

    def value(self, node: ast.expr, local: Mapping[str, Any]) -> Any:
        """Return the value of a node; `local` are the names of the comprehensions around it."""
        self._do.spend()
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return local[node.id] if node.id in local else self._look_up(node.id)
            case ast.Compare():
                return self._comparison(node, local)
            case ast.Call():
                return self._call(node, local)
            case ast.Subscript():
                value = self.value(node.value, local)
                return self._do.part(value, self._place(node.slice, local))
            case ast.BoolOp():
                return self._junction(node, local)
            case ast.BinOp():
                left, right = self.value(node.left, local), self.value(node.right, local)
                return self._do.arithmetic(node.op, left, right)
            case ast.UnaryOp(op=ast.Not()):
                return not self.value(node.operand, local)
            case ast.UnaryOp():
                number = number_of(self.value(node.operand, local), "a sign")
                return -number if isinstance(node.op, ast.USub) else +number
            case ast.IfExp():
                chosen = node.body if self.value(node.test, local) else node.orelse
                return self.value(chosen, local)
            case ast.List() | ast.Set():
                return [self.value(elt, local) for elt in node.elts]
            case ast.Tuple():
                return tuple([self.value(elt, local) for elt in node.elts])
            case ast.Dict():
                return {
                    hashable_key(self.value(key, local)): self.value(value, local)
                    for key, value in zip(node.keys, node.values, strict=True)
                    if key is not None
                }
            case ast.ListComp() | ast.GeneratorExp():
                return list(self._each(node.elt, node.generators, local))
        raise ExpressionError(f"the expression uses {type(node).__name__}, which is not known")

    def _place(self, node: ast.expr, local: Mapping[str, Any]) -> Any:
        if not isinstance(node, ast.Slice):
            return self.value(node, local)
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else self.value(end, local) for end in ends))

    def _junction(self, node: ast.BoolOp, local: Mapping[str, Any]) -> Any:
        """Return the value of an `and` or an `or`, without evaluating unnecessary operands."""
        value: Any = None
        for operand in node.values:
            value = self.value(operand, local)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _comparison(self, node: ast.Compare, local: Mapping[str, Any]) -> bool:
        left = self.value(node.left, local)
        for operation, following in zip(node.ops, node.comparators, strict=True):
            right = self.value(following, local)
            if not self._holds(operation, left, right):
                return False
            left = right
        return True

    def _holds(self, operation: ast.cmpop, left: Any, right: Any) -> bool:
        match operation:
            case ast.Eq() | ast.NotEq():
                return self._do.same(left, right) is isinstance(operation, ast.Eq)
            case ast.In() | ast.NotIn():
                return self._do.contains(right, left) is isinstance(operation, ast.In)
            case ast.Is() | ast.IsNot():
                return (left is right) is isinstance(operation, ast.Is)
        return self._do.order(operation, left, right)

    def _each(
        self, element: ast.expr, loops: list[ast.comprehension], local: Mapping[str, Any]
    ) -> Iterator[Any]:
        """Yield the values of a comprehension, made one at a time."""
        first, *others = loops
        for value in elements_of(self.value(first.iter, local)):
            self._do.spend()
            inner = {**local, **_bound(first.target, value)}
            if all(self.value(condition, inner) for condition in first.ifs):
                if others:
                    yield from self._each(element, others, inner)
                else:
                    yield self.value(element, inner)

    def _call(self, node: ast.Call, local: Mapping[str, Any]) -> Any:
        if isinstance(node.func, ast.Attribute):
            value = self.value(node.func.value, local)
            arguments = [self.value(arg, local) for arg in node.args]
            return self._do.method(value, node.func.attr, arguments)
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in ("any", "all"):
            return self._do.holds_for(name, self._lazily(node.args[0], local))
        arguments = [self.value(arg, local) for arg in node.args]
        named = {str(keyword.arg): self.value(keyword.value, local) for keyword in node.keywords}
        return self._do.function(name, arguments, named)

    def _lazily(self, node: ast.expr, local: Mapping[str, Any]) -> Iterable[Any]:
        if isinstance(node, ast.GeneratorExp):
            return self._each(node.elt, node.generators, local)
        values: Iterable[Any] = elements_of(self.value(node, local))
        return values


def _bound(target: ast.expr, value: Any) -> dict[str, Any]:
    """Return the names that the target of a loop binds, with their values."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    assert isinstance(target, ast.Tuple)
    if not isinstance(value, list | tuple) or len(value) != len(target.elts):
        raise ValueError(f"{kind_of(value)} cannot be taken as {len(target.elts)} values")
    return {
        name: inner
        for inner_target, part in zip(target.elts, value, strict=True)
        for name, inner in _bound(inner_target, part).items()
    }
