"""`-o`: the rows of a list as JSON Lines, CSV or Markdown."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import tree

if TYPE_CHECKING:
    from tests.cli.conftest import Echo, Evalstore

LISTS: list[tuple[str, ...]] = [
    ("ls", kind) for kind in ("tests", "cases", "models", "tags", "runs", "checks")
]
LISTS += [("log",), ("stats",), ("grep", "warm"), ("diff",)]


@pytest.mark.parametrize("command", LISTS)
def test_every_format_has_the_same_rows(
    workspace: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    evalstore("run")
    (workspace / "tests/new.md").write_text("# 👤\n\nHi.\n\n---\n\nBe kind.\n", encoding="utf-8")
    if command == ("diff",):
        evalstore("run")
        command = ("diff", "@~1", "@")
    document = evalstore(*command, "-o", "json").stdout
    assert document == evalstore(*command, "--json").stdout
    lists: Any = [value for value in json.loads(document).values() if isinstance(value, list)]
    rows = [row for listed in lists for row in listed if isinstance(row, dict)]
    lines = evalstore(*command, "-o", "jsonl").stdout.splitlines()
    shown = [json.loads(line) for line in lines]
    for row in shown if command[0] == "diff" else []:
        assert row.pop("list") == "new"
    assert shown == rows
    table = list(csv.DictReader(evalstore(*command, "-o", "csv").stdout.splitlines()))
    assert len(table) == len(rows) > 0
    markdown = evalstore(*command, "-o", "md").stdout.splitlines()
    assert len(markdown) == len(rows) + 2
    assert len({line.replace("\\|", "").count("|") for line in markdown}) == 1


def test_the_members_of_objects_have_columns_of_their_own(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    (group,) = csv.DictReader(evalstore("stats", "-o", "csv").stdout.splitlines())
    assert (group["model"], group["cost.all.total"], group["passed"]) == (
        "scripted/one",
        "0.06",
        "1",
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_csv_has_no_formulas(echo: Echo, evalstore: Evalstore, text: str) -> None:
    echo.reply = lambda _text: f"{text} needle"
    asked = "# 👤\n\nQuestion?\n\n---\n\n~~~checks\n- contains: needle\n~~~\n"
    tree(Path.cwd(), {"tests/one.md": asked})
    evalstore("run")
    (hit,) = csv.DictReader(evalstore("grep", "needle", "-o", "csv").stdout.splitlines())
    assert hit["context"] == f"'{text} needle"


def test_markdown_has_texts_in_code_and_escapes_pipes(echo: Echo, evalstore: Evalstore) -> None:
    echo.reply = lambda _text: "a | needle <b>"
    asked = "# 👤\n\nQuestion?\n\n---\n\n~~~checks\n- contains: needle\n~~~\n"
    tree(Path.cwd(), {"tests/one.md": asked})
    evalstore("run")
    assert "| `a \\| needle <b>` |" in evalstore("grep", "needle", "-o", "md").stdout


def test_failures_have_formats_and_an_empty_list_prints_nothing(
    echo: Echo, evalstore: Evalstore
) -> None:
    echo.failing = "Question"
    assert evalstore("ls", "runs", "-o", "csv").stdout == ""
    tree(Path.cwd(), {"tests/one.md": "# 👤\n\nQuestion?\n\n---\n\n~~~checks\n- equals: a\n~~~\n"})
    evalstore("run")
    (failure,) = csv.DictReader(evalstore("log", "--failures", "-o", "csv").stdout.splitlines())
    assert (failure["class"], failure["file"]) == ("unsupported", "tests/one.md")
