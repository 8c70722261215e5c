"""Conversion of lambdas in `test.json` to expressions of checks.

The code is parsed, never run. LVE fills placeholders in the source before it compiles it; here
they become references to parameters, so that no value becomes code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from evalstore.checks.types.expression import ExpressionError, read_expression
from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError, require
from evalstore.exchange.importers.lve.definition import FormatField, LveTest, parse

_MARK = "lve_field_{}_"
_MARKS = re.compile(r"lve_field_(\d+)_")
_TRUTH_CALLS = ("any", "all", "bool", "startswith", "endswith")
Replace = Callable[[ast.AST], str | None]
"""Returns the code in the place of a node, if there is other code."""


@dataclass(frozen=True, slots=True)
class Function:
    """A parsed lambda with its parameters."""

    source: str
    """The source, with marks in place of placeholders."""
    fields: tuple[FormatField, ...]
    tree: ast.Lambda
    answer: str
    """The parameter for the answer."""
    parameters: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """Return the names of the values it uses: its parameters and those of its placeholders."""
        return tuple(dict.fromkeys([*self.parameters, *(field.name for field in self.fields)]))

    @property
    def uses_answer(self) -> bool:
        """Return whether it uses the answer."""
        return any(node.id == self.answer for node in self._names())

    def _names(self) -> Iterator[ast.Name]:
        return (node for node in ast.walk(self.tree.body) if isinstance(node, ast.Name))


Values = Sequence[Mapping[str, Json]]
"""The values of the parameters in each row."""


def _as_number(rows: Values, name: str, code: str) -> str | None:
    """Return code for the value of a parameter as a number; None unless all are numbers."""
    numbers = [row.get(name) for row in rows]
    if all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        return code
    for kind in (int, float):
        try:
            if all(isinstance(text, str) and kind(text) is not None for text in numbers):
                return f"{kind.__name__}({code})"
        except ValueError:
            continue
    return None


def read_function(text: str, definition: LveTest) -> Function:
    """Parse a lambda that takes an answer and all parameters; raises `NotTakenError`."""
    pieces = parse(text, definition.columns)
    fields = tuple(piece for piece in pieces if isinstance(piece, FormatField))
    marks = iter(range(len(fields)))
    source = "".join(
        piece if isinstance(piece, str) else _MARK.format(next(marks)) for piece in pieces
    ).strip()
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise NotTakenError(f"the function is not valid Python: {reason}") from None
    if not isinstance(tree, ast.Lambda):
        raise NotTakenError("the function must be a lambda")
    return Function(source, fields, tree, *_parameters(tree, definition.parameters))


def _parameters(tree: ast.Lambda, expected: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the parameter for the answer and the others; raises `NotTakenError`."""
    arguments = tree.args
    names = [posonlyarg.arg for posonlyarg in (*arguments.posonlyargs, *arguments.args)]
    if not names or arguments.vararg or arguments.kwarg:
        raise NotTakenError("the function must take an answer and the parameters by name")
    answer, *parameters = names
    parameters += [kwonlyarg.arg for kwonlyarg in arguments.kwonlyargs]
    for name in expected:
        require(name in parameters, f"the function does not take the parameter '{name}'")
    if arguments.defaults or any(kw_default is not None for kw_default in arguments.kw_defaults):
        raise NotTakenError("the function has parameters with defaults")
    for name in parameters:
        if name not in expected:
            raise NotTakenError(
                f"the function takes '{name}', which is not among the prompt_parameters"
            )
    return answer, tuple(parameters)


def as_expression(
    function: Function, answer: Replace | str, names: Mapping[str, str], values: Values
) -> str | None:
    """Return the function as an expression of a check; None if expressions cannot represent it.

    `answer` is the name of the answer, or returns the code for a node that refers to it.
    """
    columns = {name: names[name] for name in function.parameters}
    outer_names = {function.answer, *columns, *columns.values(), "answer", "answers"}
    inner_names = {node.id for node in function._names() if isinstance(node.ctx, ast.Store)}
    if inner_names & outer_names:
        return None
    replaced = {function.answer: answer, **columns} if isinstance(answer, str) else columns

    def replace(node: ast.AST) -> str | None:
        code = None if isinstance(answer, str) else answer(node)
        return replaced.get(node.id) if code is None and isinstance(node, ast.Name) else code

    body = fill_body(function, names.__getitem__, values, replace)
    expression = ast.unparse(body)
    for node in ast.walk(body):
        if isinstance(node, ast.GeneratorExp):  # an argument has two pairs of brackets
            code = ast.unparse(node)
            expression = expression.replace(f"({code})", code)
    if not _is_truth(function.tree.body):
        expression = f"bool({expression})"
    try:
        read_expression(expression)
    except ExpressionError:
        return None
    return expression


def fill_body(
    function: Function,
    write: Callable[[str], str],
    values: Values,
    replace: Replace = lambda _node: None,
) -> Any:
    """Return what the function computes, with values in the place of its placeholders.

    They are text in string literals and numbers in code. `write` returns the code for a parameter,
    and `replace` other code for a node. Raises `NotTakenError`.
    """
    filler = _Filler(function.fields, write, values, replace)
    body: Any = filler.visit(deepcopy(function.tree.body))
    if _MARKS.search(ast.unparse(body)):
        raise NotTakenError(
            "a placeholder of the function is at a place where Python allows no value"
        )
    return body


@dataclass
class _Filler(ast.NodeTransformer):
    fields: Sequence[FormatField]
    write: Callable[[str], str]
    values: Values
    replace: Replace

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or that of the code in its place."""
        code = self.replace(node)
        if isinstance(node, ast.JoinedStr):
            texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            if len(texts) < len(node.values):
                for part in node.values:
                    self.generic_visit(part)
                return node
            code = self._text("".join(map(str, texts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            code = self._text(node.value)
        elif isinstance(node, ast.Name) and (match := _MARKS.fullmatch(node.id)):
            code = self._number(self.fields[int(match[1])])
        return self.generic_visit(node) if code is None else ast.parse(code, mode="eval").body

    def _number(self, field: FormatField) -> str:
        number = _as_number(self.values, field.name, self.write(field.name))
        if number is None or field.steps or field.spec:
            raise NotTakenError(
                f"the value of '{field.name}' would be code, but values are only data",
            )
        return number

    def _text(self, text: str) -> str:
        """Return code that concatenates the parts of a text with values."""
        terms = []
        for number, part in enumerate(_MARKS.split(text)):
            if number % 2 == 0:
                terms += [repr(part)] if part else []
                continue
            field = self.fields[int(part)]
            if field.steps or field.spec:
                raise NotTakenError(
                    f"the function uses '{field.name}' with a format or a part of it, "
                    "not as a whole",
                )
            code = self.write(field.name)
            are_texts = all(isinstance(row.get(field.name), str) for row in self.values)
            terms.append(code if are_texts else f"str({code})")
        return " + ".join(terms) or "''"


def _is_truth(node: ast.expr) -> bool:
    """Return whether an expression always evaluates to a boolean."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=bool()):
            return True
        case ast.BoolOp():
            return all(map(_is_truth, node.values))
        case ast.IfExp():
            return _is_truth(node.body) and _is_truth(node.orelse)
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _TRUTH_CALLS
    return False
