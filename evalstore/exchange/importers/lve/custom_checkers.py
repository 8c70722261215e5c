"""Import of custom checker classes; their file is copied and never run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from evalstore.exchange.importers.errors import NotTakenError
from evalstore.exchange.importers.lve.checker_context import ARGUMENTS, CheckerTest, LveJudging

if TYPE_CHECKING:
    from evalstore.core.values import Json


def classes_in(source: bytes) -> dict[str, ast.ClassDef]:
    """Return the top-level classes of a Python file, without running it; empty if it is invalid."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def translate_class(test: CheckerTest) -> LveJudging:
    """Return a Python check for a custom class, which evalstore runs once its file is trusted."""
    name = test.definition.checker
    place = (ARGUMENTS, "checker_name")
    path, source = next(
        (path, source) for path, source in test.custom.items() if name in classes_in(source)
    )
    methods = {
        node.name for node in classes_in(source)[name].body if isinstance(node, ast.FunctionDef)
    }
    if "postprocess_response" in methods:
        message = (
            f"'{name}' changes answers before they are stored ('postprocess_response'), "
            "but here they are stored as they are"
        )
        raise NotTakenError(message, *place)
    beside = {
        other.rpartition("/")[2].removesuffix(".py") for other in test.custom if other != path
    }
    if imported := sorted(beside & _imports(source)):
        message = (
            f"'{path}' imports '{imported[0]}', a file beside it, but a Python check is one file"
        )
        raise NotTakenError(message, *place)
    arguments = {
        key: test.text(key, empty=True) if isinstance(value, str) else value
        for key, value in test.definition.arguments.items()
    }
    check: dict[str, Json] = {"file": path, "class": name}
    if arguments:
        check["args"] = arguments
    argument_text = "".join(
        argument for argument in arguments.values() if isinstance(argument, str)
    )
    hidden = [
        column
        for key, column in test.names.items()
        if key not in test.shown and "{{" + column + "}}" not in argument_text
    ]
    # A check gets only the columns that the test mentions, so its name mentions the others.
    label_text = f"{name} of {', '.join('{{' + column + '}}' for column in hidden)}"
    scope = {"scope": "case"} if test.definition.joint else {}
    label = {"name": label_text} if hidden else {}
    return LveJudging([{"python": check, **label, **scope}], files={path: source})


def _imports(source: bytes) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").split(".")[0])
            modules |= {alias.name for alias in node.names} if node.level else set()
    return modules
