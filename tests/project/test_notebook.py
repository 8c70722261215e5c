"""The cells of docs/notebook.ipynb run, and show what the notebook shows.

`python -m tests.project.test_notebook` writes their outputs into it again. Cells are executed in
this process: a kernel takes seconds to start.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs/notebook.ipynb"
ID = re.compile(r"\b[0-9a-f]{8}(?:[0-9a-f]{24})?\b")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
Cell = dict[str, Any]


def read() -> dict[str, Any]:
    """The notebook as JSON."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return notebook


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(source: str, names: dict[str, object]) -> tuple[str, object]:
    """What a cell prints, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
    return printed.getvalue(), value


def outputs_of(number: int, source: str, names: dict[str, object]) -> list[dict[str, Any]]:
    """The outputs of a cell, in the form of the notebook format 4."""
    printed, value = execute(source, names)
    outputs: list[dict[str, Any]] = []
    if printed:
        text = printed.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        shown = getattr(value, "_repr_html_", None)
        data = {"text/html": shown()} if shown else {"text/plain": repr(value)}
        outputs.append(
            {
                "data": {kind: text.splitlines(keepends=True) for kind, text in data.items()},
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def with_outputs(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The notebook with the outputs of all its cells as they are now."""
    names: dict[str, object] = {}
    with contextlib.chdir(folder):
        for number, cell in enumerate(code_cells(notebook), 1):
            cell["execution_count"] = number
            cell["outputs"] = outputs_of(number, "".join(cell["source"]), names)
    return notebook


def comparable(notebook: dict[str, Any]) -> list[object]:
    """The outputs with ids and times replaced: they are others in each run."""
    text = json.dumps([cell["outputs"] for cell in code_cells(notebook)], ensure_ascii=False)
    outputs: list[object] = json.loads(TIME.sub("TIME", ID.sub("ID", text)))
    return outputs


def test_the_cells_show_what_the_notebook_shows(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    assert len(code_cells(read())) > 5
    assert comparable(with_outputs(read(), tmp_path)) == comparable(read())


def test_the_notebook_has_the_form_that_other_programs_read() -> None:
    notebook = read()
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", id) for id in ids)
    assert {cell["cell_type"] for cell in notebook["cells"]} == {"code", "markdown"}
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert text == dump(notebook)
    assert "/home/" not in text


def dump(notebook: dict[str, Any]) -> str:
    """The text of a notebook as Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        NOTEBOOK.write_text(dump(with_outputs(read(), Path(folder))), encoding="utf-8")
