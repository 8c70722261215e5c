"""Classes of the execution can be read alone: they are small, and `__init__` names their state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import evalstore.runs.execution

_PACKAGE = Path(evalstore.runs.execution.__file__).parent
_MODULES = sorted(_PACKAGE.glob("*.py"))
_MOST_LINES_OF_A_CLASS = 300
_MOST_LINES_OF_A_FUNCTION = 50


def find_late_attributes(class_: ast.ClassDef) -> set[str]:
    """The attributes that a method other than `__init__` is the first to set."""
    named = {
        statement.target.id
        for statement in class_.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    late: set[str] = set()
    for method in class_.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            attributes = {
                node.attr
                for node in ast.walk(method)
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            }
            (named if method.name == "__init__" else late).update(attributes)
    return late - named


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def lines(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


@pytest.mark.parametrize(
    ("source", "late"),
    [
        ("class A:\n def __init__(self): self.a = 1\n def f(self): self.a = 2", set()),
        ("class A:\n a: int = 0\n def f(self): self.a = 2", set()),
        (
            "class A:\n def __init__(self): self.f()\n def f(self): self.a, self.b = 1, 2",
            {"a", "b"},
        ),
        ("class A:\n async def f(self): self.a: int = 1", {"a"}),
    ],
)
def test_attributes_that_init_does_not_name_are_found(source: str, late: set[str]) -> None:
    (class_,) = ast.parse(source).body
    assert isinstance(class_, ast.ClassDef)
    assert find_late_attributes(class_) == late


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.stem)
def test_every_attribute_is_set_in_init(path: Path) -> None:
    late = {
        node.name: attributes
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and (attributes := find_late_attributes(node))
    }
    assert late == {}


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.stem)
def test_classes_and_functions_are_short(path: Path) -> None:
    too_long = [
        node.name
        for node in nodes(path)
        if (isinstance(node, ast.ClassDef) and lines(node) > _MOST_LINES_OF_A_CLASS)
        or (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and lines(node) > _MOST_LINES_OF_A_FUNCTION
        )
    ]
    assert too_long == []
