"""An edited row of a long dataset costs the store what an edited file does."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

pytestmark = pytest.mark.extended

ROWS = 3_000
MOST = 92 * 1024
"""The ids of all rows alone are more."""
FILES = {
    "evalstore.yaml": "candidates: [one]\n",
    "models/one.yaml": "id: one\nprovider: scripted\nresponses: [{answer: Oslo}]\n",
    "tests/rows.md": "---\ndataset: data.jsonl\n---\n\n# 👤\n\n"
    "What is the capital of {{item.country}}?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n",
}


def data(numbers: list[int]) -> str:
    return "".join(json.dumps({"country": f"country {number}"}) + "\n" for number in numbers)


def size(folder: Path) -> int:
    path = folder / ".evalstore/store.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def test_an_edited_row_of_many_adds_little(
    tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = list(range(ROWS))
    tree(tmp_path, {**FILES, "tests/data.jsonl": data(numbers)})
    assert evalstore("run", "--yes").exit_code == 0
    edits = slice(ROWS // 2, ROWS // 2 + 1), slice(77, 77)  # one is another, one is new
    for number, edit in enumerate(edits, ROWS):
        before = size(tmp_path)
        numbers[edit] = [number]
        tree(tmp_path, {"tests/data.jsonl": data(numbers)})
        ran = evalstore("run", "--yes").stdout
        assert "complete: 1 new answer, " in ran
        assert " reused, 1 new verdict" in ran
        assert size(tmp_path) - before < MOST
