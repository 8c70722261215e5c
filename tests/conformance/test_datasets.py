"""Data files of other evaluation tools, read: the same facts, apart from noted deviations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstore.files.datasets import stable_names
from evalstore.files.jinja_sandbox import run
from tests.files.datasets.files import dataset, json_lines, problem, rows

FACTS = json.loads(Path(__file__).with_name("datasets.json").read_text("utf-8"))
FIELDS = ("limit", "onError")


def cases(part: str, *fields: str) -> pytest.MarkDecorator:
    """The cases of a part of the file that have some field."""
    actual = [item for item in FACTS[part] if any(field in item for field in fields)]
    return pytest.mark.parametrize("case", actual, ids=lambda case: case["id"])


@cases("reading", "text")
def test_a_file_comes_to_its_rows_or_its_problem(case: dict[str, Any]) -> None:
    fields = {name: case[name] for name in FIELDS if name in case}
    expect = case["expect"]
    if "problem" in expect:
        error = problem(case["text"], case["path"], **fields)
        lines = [item.line for item in error.all_at("t.md") if item.line]
        assert (error.message, lines) == (expect["problem"], expect.get("lines", []))
        return
    read = dataset(case["text"], case["path"], **fields)
    assert [dict(row.item) for row in read] == expect["rows"]
    assert [item.line for item in read.problems] == expect.get("lines", [])


@cases("names", "columns")
def test_columns_get_their_names(case: dict[str, Any]) -> None:
    assert stable_names(case["columns"]) == case["names"]


@cases("names", "templates")
def test_templates_find_the_columns(case: dict[str, Any]) -> None:
    items = rows(json_lines(*case["rows"]))
    pairs = zip(case["templates"], items, strict=True)
    filled = [run(template, 1, {"item": item}) for template, item in pairs]
    assert filled == case["filled"]
