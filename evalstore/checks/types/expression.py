"""The check `expr`: an expression in a subset of Python, over the answer and the row.

It has values and names, comparisons, `and`, `or`, `not`, arithmetic, subscripts (`x[0]`),
`a if b else c`, comprehensions, and calls of the functions and methods listed here. Anything else
is refused, so that an expression can only access the values that are passed to it. Then Python
evaluates it: names, arithmetic and methods become calls of the functions of this module.
"""

from __future__ import annotations

import ast
import builtins
import copy
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from types import CodeType
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

_MOST_STEPS = 100_000_000
"""The most characters that an expression may read or write where it has no limits of time."""
_LONGEST_RESULT = 4_000_000
"""The most characters of a text that is repeated."""
_MOST_BITS = 10_000
"""The most bits of a whole number that is multiplied."""
_MOST_DIGITS = 300
"""The most digits for `round`."""

_ARITHMETIC: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "Add": ("+", operator.add),
    "Sub": ("-", operator.sub),
    "Mult": ("*", operator.mul),
    "Div": ("/", operator.truediv),
    "FloorDiv": ("//", operator.floordiv),
    "Mod": ("%", operator.mod),
    "Pow": ("**", operator.pow),
}


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated, with the reason and a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


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
    source = arguments.required_text("expression")
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
    result = evaluate(source, look_up)
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


# --- evaluation

_LONGEST_MESSAGE = 200
"""The most characters of Python's message about an error."""


def evaluate(source: str, look_up: Callable[[str], Json]) -> Any:
    """Return the value of an expression; raises `ExpressionError`. Names are looked up lazily."""
    try:
        return eval(_compiled(source), {**_SCOPE, "#value": look_up})
    except ExpressionError:
        raise
    except RecursionError:
        raise ExpressionError("the values of the expression are nested too deeply") from None
    except KeyError as error:
        words = f"unknown key {str(error)[:_LONGEST_MESSAGE]}"
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError, SyntaxError) as error:
        words = str(error)[:_LONGEST_MESSAGE] or type(error).__name__
    raise ExpressionError(f"the expression cannot be computed: {words}")


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    tree = ast.Expression(_Translation().visit(copy.deepcopy(read_expression(source))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(ast.fix_missing_locations(tree), "<expression>", "eval")


class _Translation(ast.NodeTransformer):
    """Makes names, arithmetic and calls to calls of `_SCOPE`."""

    def __init__(self) -> None:
        self._local: Mapping[str, str] = {}
        """The names that comprehensions give to their elements, each with one for its loop."""
        self._loops = 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._local:
            return ast.Name(self._local[node.id], node.ctx)
        return _call("value", [ast.Constant(node.id)])

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return ast.List([self.visit(element) for element in node.elts], ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        sides = [self.visit(node.left), self.visit(node.right)]
        return _call("arithmetic", [ast.Constant(type(node.op).__name__), *sides])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.visit(argument) for argument in node.args]
        if isinstance(node.func, ast.Attribute):
            value = self.visit(node.func.value)
            return _call("method", [ast.Constant(node.func.attr), value, *arguments])
        if len(arguments) > 1:  # `min` and `max` compare the values as lists
            arguments = [
                ast.ListComp(each.elt, each.generators)
                if isinstance(each, ast.GeneratorExp)
                else each
                for each in arguments
            ]
        named = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        return _call(_called(node), arguments, named)

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        around = self._local
        for loop in node.generators:
            loop.iter = self.visit(loop.iter)
            names = [each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
            self._loops += 1
            self._local = {**self._local, **{name: f"#{self._loops} {name}" for name in names}}
            loop.target = self.visit(loop.target)
            loop.ifs = [self.visit(condition) for condition in loop.ifs]
        node.elt = self.visit(node.elt)
        self._local = around
        return node

    visit_GeneratorExp = visit_ListComp  # noqa: N815 - the interface of `ast`


def _call(name: str, arguments: list[ast.expr], named: Iterable[ast.keyword] = ()) -> ast.Call:
    return ast.Call(ast.Name(f"#{name}", ast.Load()), arguments, [*named])


def _compute(name: str, left: Any, right: Any) -> Any:
    """Return the result of an operator on numbers, or of joining or repeating sequences."""
    sign, compute = _ARITHMETIC[name]
    if sign == "*" and isinstance(left, int) and isinstance(right, str):
        left, right = right, left
    if sign == "*" and isinstance(left, str) and isinstance(right, int):
        if len(left) * right > _LONGEST_RESULT:
            raise ExpressionError(
                f"the expression makes a text of {len(left) * right:,} characters"
            )
        return left * right
    kinds = ((int, float), str, list) if sign == "+" else ((int, float),)
    if not any(isinstance(left, kind) and isinstance(right, kind) for kind in kinds):
        raise TypeError(f"{kind_of(left)} {sign} {kind_of(right)} cannot be computed")
    if sign in ("*", "**") and isinstance(left, int) and isinstance(right, int):
        size = left.bit_length()
        if (size + right.bit_length() if sign == "*" else size * max(right, 0)) > _MOST_BITS:
            raise ExpressionError("the expression makes a number that is too large")
    result = compute(left, right)
    if isinstance(result, complex):
        raise TypeError("the result is a complex number")
    return result


def _call_method(name: str, value: Any, *arguments: Any) -> Any:
    """Return the result of a method of a text, a list or a mapping."""
    if not isinstance(value, METHODS[name][3]):
        raise TypeError(f"{kind_of(value)} has no '{name}'")
    result = getattr(value, name)(*arguments)
    return [*result] if name in ("keys", "values", "items") else result


def _as_float(value: Any) -> float:
    number = float(value)
    if not is_finite(number):
        raise ValueError(f"float takes a finite number, not {value}")
    return number


def _as_str(value: Any) -> str:
    if isinstance(value, list | tuple | dict):
        raise TypeError(f"str takes a text or a number, not {kind_of(value)}")
    return str(value)


def _rounded(number: Any, digits: Any = None) -> Any:
    if digits is not None and abs(digits) > _MOST_DIGITS:
        raise ValueError(f"round gives at most {_MOST_DIGITS} digits")
    return round(number, digits)


_SCOPE: Mapping[str, Any] = {
    "__builtins__": {},
    **dict(zip(map("#{}".format, FUNCTIONS), map(vars(builtins).get, FUNCTIONS), strict=True)),
    "#float": _as_float,
    "#str": _as_str,
    "#sorted": lambda values, reverse=False: sorted(values, reverse=bool(reverse)),
    "#round": _rounded,
    "#arithmetic": _compute,
    "#method": _call_method,
}
"""What an evaluation can call; the name of each begins with a sign that no expression can have."""


# --- cost


def is_cheap_expression(source: str, size: int) -> bool:
    """Return whether an expression reads and writes little, with values of so many characters.

    Each comprehension may do all that is in it for each element, and `join`, `replace` and `strip`
    may repeat one value for each character of another.
    """
    nodes, power, added, repeated = _growth(source)
    longest = (size + len(source)) * added + repeated
    return bool(nodes * longest**power <= _MOST_STEPS)


@lru_cache(maxsize=256)
def _growth(source: str) -> tuple[int, int, int, int]:
    """Return the number of nodes, and by which power of the longest value the work grows.

    The others are how many times as long as all values a text can be that `+` makes, and the most
    characters of all texts that `*` makes.
    """
    nodes = [*ast.walk(read_expression(source))]
    loops = sum(isinstance(node, ast.comprehension) for node in nodes)
    methods = [
        node.func.attr
        for node in nodes
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute)
    ]
    products = sum(name in ("join", "replace", "strip") for name in methods)
    added, repeats = 1, 0
    for node in nodes:
        if isinstance(node, ast.BinOp):
            numbers = _is_number(node.left) + _is_number(node.right)
            added += isinstance(node.op, ast.Add) and not numbers
            repeats += isinstance(node.op, ast.Mult) and numbers < 2
    return len(nodes), 1 + products + loops, added, repeats * _LONGEST_RESULT


def _is_number(node: ast.expr) -> bool:
    """Return whether a node can only be a number."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str)
    return isinstance(node, ast.Call) and _called(node) in ("len", "count", "round", "int", "float")


KINDS = {
    "expr": CheckType(2, _read_settings, _is_so, main="expression", example="len(answer) < 80")
}
