"""Computes the value of an expression, node by node, within a number of steps.

The module `check` allows only certain kinds of nodes, so an expression can use nothing but
values of JSON and the operations on them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from evalstore.checks.expressions.operations import (
    ExpressionError,
    Operations,
    elements_of,
    hashable_key,
    kind_of,
    number_of,
)
from evalstore.core.values import Json

_WORDS = 200
"""The most characters of Python's message about an error."""

_ORDERS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_SIGNS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}


def evaluate(tree: ast.expr, look_up: Callable[[str], Json]) -> Any:
    """Return the value of an expression; raises `ExpressionError`. Names are looked up lazily."""
    try:
        return _Evaluation(look_up).value(tree, {})
    except ExpressionError:
        raise
    except RecursionError:
        raise ExpressionError("the values of the expression are nested too deeply") from None
    except KeyError as error:
        words = f"unknown key {str(error)[:_WORDS]}"
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
        words = str(error)[:_WORDS] or type(error).__name__
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
                return self._do.arithmetic(_SIGNS[type(node.op)], left, right)
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
        return self._do.order(_ORDERS[type(operation)], left, right)

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
