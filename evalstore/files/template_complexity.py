"""Decides which templates are plain: their cost is bounded by their size and their values.

A plain template has only texts, values, conditions, loops over the values, and a few filters and
methods whose results are about as long as their input. It has no variables of its own, no macros,
no ranges and nothing that repeats or widens a text. The operands of `*` and `%` are known only
when the template is rendered; with numbers it is plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jinja2 import nodes

from evalstore.core.values import Json

_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr),
    *(nodes.Getitem, nodes.If, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or),
    *(nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub, nodes.Div, nodes.FloorDiv),
    *(nodes.Concat, nodes.Filter, nodes.Test, nodes.Call, nodes.For, nodes.List, nodes.Tuple),
    *(nodes.Dict, nodes.Pair, nodes.Slice, nodes.Mod, nodes.Mul),
)
_FILTERS = frozenset(
    (
        *("default", "d", "upper", "lower", "trim", "title", "capitalize", "length", "count"),
        *("first", "last", "list", "sort", "items", "abs", "int", "float"),
        *("string", "tojson", "join"),
    )
)
_GROWING = ("tojson", "join", "string")
"""Filters whose result can be several times as long; nested ones are not plain."""
_METHODS = frozenset(
    (
        *("items", "keys", "values", "get", "split", "splitlines", "startswith", "endswith"),
        *("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
        *("upper", "lower", "title", "capitalize"),
    )
)
FIELDS = re.compile(r"(?:[^%]|%%|%[-+ #0]*\d{0,2}(?:\.\d{0,2})?[a-zA-Z])*")
"""Matches a format whose widths and precisions are small constants."""
_LONGEST_CONSTANT = 100
"""The most characters of a text argument."""
_DEEPEST_LOOP = 2
_DEEPEST = 30
"""The most levels of a source, as deeper ones are slow to compile."""
_MOST_PRODUCTS = 10
_LONGEST_SEPARATOR = 20
_MOST_STEPS = 5_000_000
"""The most characters that a plain template may process."""
_MOST_VALUES = 10_000
"""The most values whose sizes are added up."""


class TemplateCost(NamedTuple):
    """The bounds of the cost of a plain template."""

    parts: int
    """How many parts the source has."""
    depth: int
    """How deep its loops are nested."""


def cost_of(tree: nodes.Template) -> TemplateCost | None:
    """Estimate the bounds of the cost of a template; None when it is not plain."""
    parts = products = 0
    waiting: list[tuple[nodes.Node, int, bool, int]] = [(tree, 0, False, 0)]
    deepest = 0
    while waiting:
        node, depth, grows, level = waiting.pop()
        parts += 1
        if level > _DEEPEST or not isinstance(node, _ALLOWED) or not _is_plain(node, grows):
            return None
        products += isinstance(node, nodes.Mul)
        if isinstance(node, nodes.For):
            depth += 1
            deepest = max(deepest, depth)
        grows = grows or (isinstance(node, nodes.Filter) and node.name in _GROWING)
        waiting += [(child, depth, grows, level + 1) for child in node.iter_child_nodes()]
    return (
        TemplateCost(parts, deepest)
        if deepest <= _DEEPEST_LOOP and products <= _MOST_PRODUCTS
        else None
    )


def _is_plain(node: nodes.Node, grows: bool) -> bool:
    """Return whether a node of an allowed kind is plain, apart from its children."""
    match node:
        case nodes.Mod():
            return not isinstance(node.left, nodes.Const) or _is_format(node.left)
        case nodes.Filter():
            if node.name == "format":
                return node.node is not None and _is_format(node.node)
            if node.name == "round":
                return all(map(_is_small, node.args)) and not node.kwargs
            if node.name not in _FILTERS or node.kwargs or (grows and node.name in _GROWING):
                return False
            if node.name in ("default", "d"):
                return True
            if node.name == "join":
                return all(map(_is_short, node.args))
            return not node.args
        case nodes.For():
            return not node.recursive and _is_value(node.iter)
        case nodes.Call():
            return (
                isinstance(node.node, nodes.Getattr)
                and node.node.attr in _METHODS
                and not (node.kwargs or node.dyn_args or node.dyn_kwargs)
                and all(_is_constant(argument) for argument in node.args)
            )
        case nodes.Const():
            return _is_constant(node)
    return True


def _is_value(node: nodes.Node) -> bool:
    """Return whether a node is an input value or its pairs, and not computed."""
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        return not node.args and _is_value(node.node.node)
    if isinstance(node, nodes.Getattr | nodes.Getitem):
        return _is_value(node.node)
    return isinstance(node, nodes.Name)


def _is_format(node: nodes.Node) -> bool:
    """Return whether a node is a constant format with small widths."""
    return (
        isinstance(node, nodes.Const)
        and isinstance(node.value, str)
        and FIELDS.fullmatch(node.value) is not None
    )


def _is_small(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, int) and 0 <= node.value < 100


def _is_short(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and len(str(node.value)) <= _LONGEST_SEPARATOR


def _is_constant(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and len(repr(node.value)) <= _LONGEST_CONSTANT


def is_cheap_template(cost: TemplateCost, scope: Mapping[str, Json]) -> bool:
    """Return whether a plain template with these values takes few steps."""
    size = 1
    for number, length in enumerate(_lengths(dict(scope))):
        size += length
        if number == _MOST_VALUES or cost.parts * size ** (cost.depth + 1) > _MOST_STEPS:
            return False
    return True


def _lengths(value: Json) -> Iterator[int]:
    """Yield the lengths of all texts and numbers in a value, each at least one."""
    waiting = [value]
    while waiting:
        element = waiting.pop()
        if isinstance(element, dict):
            waiting += element.values()
            yield sum(map(len, element)) + 1
        elif isinstance(element, list | tuple):
            waiting += element
            yield 1
        else:
            yield len(element) if isinstance(element, str) else 8
