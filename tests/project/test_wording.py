"""Messages are plain English: 'is not a …', never 'is no …'."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import evalstore

ROOT = Path(evalstore.__file__).parent
NO = re.compile(r"(?<!here )\b(is|are) no (?!longer|room|more\b|one\b|other\b)[a-z]")


def texts_of(path: Path) -> list[str]:
    """The texts of a module, docstrings included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [value for value in constants if isinstance(value, str)]


def test_nothing_is_no_such_thing() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for text in texts_of(path)
        if NO.search(text)
    ]
    assert found == []
    assert NO.search("it is no text")
