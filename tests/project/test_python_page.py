"""The examples of docs/python.md run, and print what the page says.

`python tests/project/test_python_page.py` writes their output into it again.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/python.md"
EXAMPLE = re.compile(
    r"(<!-- run -->\n```python\n(.*?)^```\n\n```text\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE
)


def replay(text: str, folder: Path) -> str:
    """The page with the output of every example as it is now."""
    names: dict[str, object] = {}

    def renew(match: re.Match[str]) -> str:
        messages = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(messages):
            exec(compile(match[2], str(PAGE), "exec"), names)
        return match[1] + messages.getvalue()

    return EXAMPLE.sub(renew, text)


def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert len(EXAMPLE.findall(page)) == page.count("<!-- run -->") > 5
    assert all(output for _, _, output in EXAMPLE.findall(page))
    assert replay(page, tmp_path) == page


def test_every_block_of_python_is_run() -> None:
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^(.*)\n```python$", page, re.MULTILINE)
    assert [line for line in blocks if not line.startswith("<!-- run")] == []


def test_the_examples_read_what_they_need_from_the_values_themselves() -> None:
    page = PAGE.read_text(encoding="utf-8")
    trees = [ast.parse(code) for _, code, _ in EXAMPLE.findall(page)]
    chains = [
        ast.unparse(node)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    ]
    assert chains == []


def write_again() -> None:
    """Bring the page up to date."""
    with tempfile.TemporaryDirectory() as folder:
        text = replay(PAGE.read_text(encoding="utf-8"), Path(folder))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_again()
