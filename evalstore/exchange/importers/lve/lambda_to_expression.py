"""Conversion of lambdas in `test.json` to expressions of checks.

The code is parsed, never run. LVE fills placeholders in the source before it compiles it; here
they become references to parameters, so that no value becomes code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from evalstore.checks.types.expression import ExpressionError, read_expression
from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError, require
from evalstore.exchange.importers.lve.definition import FormatField, LveTest, parse

_MARK = "lve_field_{}_"
_MARKS = re.compile(r"lve_field_(\d+)_")
_TRUTH_CALLS = ("any", "all", "bool", "startswith", "endswith")
Edit = tuple[int, int, str]


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
    function: Function,
    answer: Callable[[ast.Lambda], dict[int, str]] | str,
    names: Mapping[str, str],
    values: Values,
) -> str | None:
    """Return the function as an expression of a check; None if expressions cannot represent it.

    `answer` is the name of the answer, or returns the text for each node that refers to it.
    """
    columns = {name: names[name] for name in function.parameters}
    outer_names = {function.answer, *columns, *columns.values(), "answer", "answers"}
    inner_names = {node.id for node in function._names() if isinstance(node.ctx, ast.Store)}
    if inner_names & outer_names:
        return None
    replaced = {function.answer: answer, **columns} if isinstance(answer, str) else columns
    edits = list(marks(function, lambda name: names[name], values))
    special = {} if isinstance(answer, str) else answer(function.tree)
    body = function.tree.body
    place_of = offsets(function.source)
    for node in ast.walk(body):
        text = special.get(id(node))
        if text is None and isinstance(node, ast.JoinedStr):
            text = _constant(node)
        if text is None and isinstance(node, ast.Name):
            text = replaced.get(node.id)
        if text is not None and isinstance(node, ast.expr):
            edits.append((*place_of(node), text))
    start, end = place_of(body)
    expression = " ".join(apply_edits(function.source, start, end, edits).split("\n"))
    if not _is_truth(body):
        expression = f"bool({expression})"
    try:
        read_expression(expression)
    except ExpressionError:
        return None
    return expression


def marks(
    function: Function,
    write: Callable[[str], str],
    values: Values,
) -> Iterator[Edit]:
    """Yield the replacements of placeholders: text in string literals, numbers in code."""
    place_of, known = offsets(function.source), set[str]()
    for node in ast.walk(function.tree.body):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = _MARKS.split(node.value)
            known.update(parts[1::2])
            if len(parts) > 1:
                yield (*place_of(node), _concatenation(parts, function.fields, write, values))
        elif isinstance(node, ast.Name) and (match := _MARKS.fullmatch(node.id)):
            known.add(match[1])
            field = function.fields[int(match[1])]
            number = _as_number(values, field.name, write(field.name))
            if number is None or field.steps or field.spec:
                raise NotTakenError(
                    f"the value of '{field.name}' would be code, but values are only data",
                )
            yield (*place_of(node), number)
    if not known.issuperset(_MARKS.findall(function.source)):
        raise NotTakenError(
            "a placeholder of the function is at a place where Python allows no value"
        )


def _concatenation(
    parts: list[str],
    fields: Sequence[FormatField],
    write: Callable[[str], str],
    values: Values,
) -> str:
    """Return code that concatenates the parts of a text with values."""
    terms = []
    for number, part in enumerate(parts):
        if number % 2 == 0:
            terms += [repr(part)] if part else []
            continue
        field = fields[int(part)]
        if field.steps or field.spec:
            raise NotTakenError(
                f"the function uses '{field.name}' with a format or a part of it, not as a whole",
            )
        code = write(field.name)
        are_texts = all(isinstance(row.get(field.name), str) for row in values)
        terms.append(code if are_texts else f"str({code})")
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def _constant(node: ast.JoinedStr) -> str | None:
    """Return an f-string without values as a string literal; None if it has values."""
    values = [value.value for value in node.values if isinstance(value, ast.Constant)]
    if len(values) < len(node.values) or _MARKS.search("".join(map(str, values))):
        return None
    return repr("".join(map(str, values)))


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


def offsets(source: str) -> Callable[[ast.expr], tuple[int, int]]:
    """Return a function that returns the start and end of a node in characters of a source.

    The positions of nodes are lines and byte columns.
    """
    lines = source.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def at(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    return lambda node: (
        at(node.lineno, node.col_offset),
        at(node.end_lineno or 0, node.end_col_offset or 0),
    )


def apply_edits(source: str, start: int, end: int, edits: list[Edit]) -> str:
    """Apply edits to a part of a source; of overlapping edits, the outer one is applied."""
    out, at = "", start
    for low, high, text in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if low >= at and high <= end:
            out += source[at:low] + text
            at = high
    return out + source[at:end]
