"""The browser's own modules: no circles among packages, and screens apart from each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import evalstore.interfaces.tui

_ROOT = Path(next(iter(evalstore.interfaces.tui.__path__)))
_FILES = {
    ".".join(("evalstore.interfaces.tui", *path.relative_to(_ROOT).with_suffix("").parts)): path
    for path in sorted(_ROOT.rglob("*.py"))
    if path.name != "__init__.py"
}


def imports(module: str) -> Iterator[str]:
    """The modules of the browser that a module imports anywhere, also for types alone."""
    for node in ast.walk(ast.parse(_FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (node.module, *(f"{node.module}.{name.name}" for name in node.names))
        elif isinstance(node, ast.Import):
            names = tuple(name.name for name in node.names)
        else:
            continue
        yield from (name for name in names if name in _FILES)


def test_no_package_imports_what_imports_it() -> None:
    def cut(module: str) -> str:
        return ".".join(module.split(".")[:4])

    graph: dict[str, set[str]] = {}
    for module in _FILES:
        below = {cut(name) for name in imports(module)} - {cut(module)}
        graph.setdefault(cut(module), set()).update(below)
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(graph) > 5


def test_only_the_app_knows_screens() -> None:
    screens = {
        module for module in _FILES if module.startswith("evalstore.interfaces.tui.screens.")
    }
    pages = {
        f"evalstore.interfaces.tui.screens.{name}" for name in ("cases", "runs", "answer", "stats")
    }
    assert pages < screens
    importers = {module for module in _FILES if pages & set(imports(module))}
    assert importers == {"evalstore.interfaces.tui.app"}
