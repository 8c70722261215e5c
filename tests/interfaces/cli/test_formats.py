"""`-o`: the rows of a list as JSON Lines, CSV or Markdown."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.interfaces.cli.render.layout import columns_of
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

LISTS: list[tuple[str, ...]] = [
    ("ls", kind) for kind in ("tests", "cases", "models", "tags", "runs", "checks")
]
LISTS += [("log",), ("stats", "@"), ("grep", "warm"), ("diff",), ("remote",), ("status",)]
LISTS += [("check",), ("doctor", "--no-ping"), ("show",), ("show", "@work"), ("remote", "show")]


@pytest.mark.parametrize("command", LISTS)
def test_every_format_has_the_same_rows(
    workspace: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    (workspace / "shared").mkdir()
    evalstore("remote", "add", "origin", "shared")
    evalstore("run")
    evalstore("push")
    (workspace / "tests/new.md").write_text("# 👤\n\nHi.\n\n---\n\nBe kind.\n", encoding="utf-8")
    if command == ("check",):
        edit(workspace / "tests/new.md", "Be kind.", "~~~checks\n- contians: a\n~~~")
    if command == ("diff",):
        evalstore("run")
        command = ("diff", "@~1", "@")
    document = evalstore(*command, "-o", "json").stdout
    assert document == evalstore(*command, "--json").stdout
    content = json.loads(document)
    lists: Any = [value for value in content.values() if isinstance(value, list)]
    if command[0] == "show":
        lists = [content["related"]["results"]]
    if command[0] == "status":
        lists = [content["changes"]]
    rows = [row for listed in lists for row in listed if isinstance(row, dict)]
    lines = evalstore(*command, "-o", "jsonl").stdout.splitlines()
    shown = [json.loads(line) for line in lines]
    for row in shown if command[0] in ("diff", "doctor") else []:
        assert row.pop("list") in ("new", "findings", "models")
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


def test_failed_calls_have_formats(echo: Echo, evalstore: Evalstore) -> None:
    echo.failing = "Question"
    tree(Path.cwd(), {"tests/one.md": "# 👤\n\nQuestion?\n\n---\n\n~~~checks\n- equals: a\n~~~\n"})
    evalstore("run")
    (failure,) = csv.DictReader(evalstore("log", "--failures", "-o", "csv").stdout.splitlines())
    assert (failure["class"], failure["file"]) == ("unsupported", "tests/one.md")


def test_results_have_the_columns_of_a_list_without_a_row(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    assert evalstore("show", "-o", "csv").stdout.splitlines()[0] == ",".join(columns_of("show", ()))


EMPTY = {
    ("ls", "labels"): "labels",
    ("ls", "runs"): "runs",
    ("ls", "tools"): "tools",
    ("ls", "results", "-k", "nothing"): "results",
    ("log",): "runs",
    ("log", "--failures"): "failures",
    ("grep", "nothing"): "hits",
    ("remote",): "remotes",
    ("check",): "problems",
    ("status", "--explain"): "items",
    ("tag",): "tags",
}


@pytest.mark.parametrize("command", EMPTY)
def test_an_empty_list_has_a_header(
    workspace: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    if command[0] == "status":
        evalstore("run")
    kind = " ".join(command).removesuffix(" nothing").removesuffix(" -k")
    names = columns_of(kind, [EMPTY[command]])
    assert evalstore(*command, "-o", "csv").stdout == f"{','.join(names)}\n"
    head, line = evalstore(*command, "-o", "md").stdout.splitlines()
    assert (head, line) == (f"| {' | '.join(names)} |", "|" + "---|" * len(names))
    assert evalstore(*command, "-o", "jsonl").stdout == ""


def test_lists_of_a_comparison_without_a_pair_have_a_header(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("run")
    header = evalstore("diff", "@~1", "@", "-o", "csv").stdout
    assert header == f"list,{','.join(columns_of('diff', ['changed']))}\n"


def test_what_is_not_a_list_is_refused_as_one(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    place = "tests/weather.md::city=Oslo"
    ran = evalstore("show", place, "-o", "csv")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == ("error: no list to print as csv\nhint: '-o json' prints all of it\n")
    assert evalstore("show", place, "-o", "json") == evalstore("show", place, "--json")
    added = evalstore("remote", "add", "origin", "shared", "-o", "md")
    assert (added.exit_code, "origin" in Path("evalstore.yaml").read_text()) == (2, False)
    both = evalstore("check", "--format", "sarif", "-o", "csv")
    assert both.stderr.startswith(
        "error: '--format' cannot be combined with '--json' or '--output'"
    )
