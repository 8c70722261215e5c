"""`export`: the results of a run for other programs."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalstore.exchange.exports import parquet as export_parquet
from evalstore.exchange.exports.formats import COLUMNS, FORMATS, NAMES, csv_cell
from evalstore.interfaces.cli.main import main
from evalstore.store.sqlite.connection import harden
from tests.builders import tree

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

ASKED = "# 👤\n\nQuestion?\n\n---\n\n~~~checks\n- contains: needle\n~~~\n"
TEXT = ("jsonl", "json", "csv", "md", "junit", "otlp")
_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "list of texts": (list,),
}


def rows_of(path: str = "r.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_a_row_has_the_values_that_other_commands_show(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    report = documents("run")
    ran = evalstore("export", "-o", "r.jsonl")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "wrote r.jsonl\n")
    rows = rows_of()
    shared = ("file", "row", "model", "verdict", "score", "feedback", "sessions")
    assert [{name: row[name] for name in shared} for row in rows] == [
        {name: case[name] for name in shared} for case in report["cases"]
    ]
    oslo = next(row for row in rows if row["row"] == "city=Oslo")
    assert (oslo["answer"], oslo["tags"], oslo["attempts"]) == ("Cold.", ["weather"], 1)
    assert oslo["question"] == "How is Oslo?"
    assert (oslo["run"], oslo["prompt"], oslo["schemaVersion"]) == (report["run"], None, 1)
    total = sum(row["cost"] + row["judgingCost"] for row in rows)
    stats = documents("stats")["groups"][0]
    assert total == pytest.approx(stats["cost"]["all"]["total"])
    assert rows[0]["latency"] == pytest.approx(stats["latency"], abs=0.01)


def test_answers_and_judgements_are_read_once(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    statements: list[str] = []

    def watch(opened: sqlite3.Connection) -> None:
        harden(opened)
        opened.set_trace_callback(statements.append)

    monkeypatch.setattr("evalstore.store.sqlite.driver.harden", watch)
    evalstore("export", "-o", "r.jsonl")
    by_id = [statement for statement in statements if " WHERE id IN" in statement]
    tables = [statement.split(" FROM ")[1].split()[0] for statement in by_id]
    assert [tables.count(name) for name in ("sessions", "evaluations")] == [1, 1]


def test_the_columns_are_those_that_are_declared(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    evalstore("export", "-o", "r.jsonl")
    for row in rows_of():
        assert tuple(row) == NAMES
        for column in COLUMNS:
            value = row[column.name]
            assert value is None or isinstance(value, _TYPES[column.type]), column


def test_each_format_has_the_same_rows(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    for name in ("r.jsonl", "r.json", "r.csv", "r.md"):
        assert evalstore("export", "-o", name).exit_code == 0
    rows = rows_of()
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert document["results"] == rows
    assert (document["format"], document["schemaVersion"]) == (1, 1)
    with Path("r.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    assert [record["row"] for record in records] == [row["row"] for row in rows]
    assert list(records[0]) == list(NAMES)
    assert Path("r.md").read_text(encoding="utf-8").splitlines()[2:] == [
        "| tests/weather.md | `city=Oslo` |  | scripted/one | fail |  | 0.03 | It is cold there. |",
        "| tests/weather.md | `city=Rome` |  | scripted/one | pass |  | 0.03 |  |",
    ]


@pytest.mark.parametrize("format", TEXT)
def test_what_is_printed_is_what_is_written(
    workspace: Path, capfdbinary: pytest.CaptureFixture[bytes], format: str
) -> None:
    main(["run"])
    capfdbinary.readouterr()
    assert main(["export", "--format", format]) == 0
    printed = capfdbinary.readouterr().out
    assert main(["export", "--format", format, "-o", "-"]) == 0
    assert capfdbinary.readouterr() == (printed, b"")
    assert main(["export", "--format", format, "-o", "file"]) == 0
    assert printed == Path("file").read_bytes() != b""


def test_a_prompt_that_was_edited_since_the_run_has_its_name(
    workspace: Path, evalstore: Evalstore
) -> None:
    prompts = {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind to all of them."}
    test = "---\nsystemPrompts: [brief, kind, null]\n---\n\n" + ASKED
    tree(workspace, {**prompts, "tests/weather.md": test})
    evalstore("run", "-q")
    tree(workspace, {"prompts/brief.md": "Be brief, please."})
    evalstore("export", "-o", "r.jsonl")
    assert [row["prompt"] for row in rows_of()] == ["brief", "kind", None]
    names = [f"scripted/one{prompt}" for prompt in (" (brief)", " (kind)", "")]
    junit = evalstore("export", "--format", "junit").stdout
    assert [part.split('"')[0] for part in junit.split('<testcase name="')[1:]] == names
    inspected = evalstore("export", "--format", "otlp").stdout
    assert '"stringValue":"brief"' in inspected


def test_the_workspace_can_be_exported(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    text = (workspace / "tests/weather.md").read_text(encoding="utf-8")
    (workspace / "tests/weather.md").write_text(text.replace("Rome", "Bonn"), encoding="utf-8")
    evalstore("export", "@work", "-o", "r.jsonl")
    assert [(row["run"], row["row"], row["verdict"]) for row in rows_of()] == [
        ("workspace", "city=Oslo", "fail"),
        ("workspace", "city=Bonn", "pending"),
    ]


def test_parquet_has_the_declared_types(workspace: Path, evalstore: Evalstore) -> None:
    import pyarrow.parquet

    evalstore("run")
    evalstore("export", "-o", "r.jsonl")
    assert evalstore("export", "-o", "r.parquet").exit_code == 0
    table = pyarrow.parquet.read_table("r.parquet")
    assert table.to_pylist() == rows_of()
    assert table.schema.metadata[b"evalstore.schemaVersion"] == b"1"
    assert str(table.schema.field("cost").type) == "double"


@pytest.mark.parametrize(
    ("limits", "groups"),
    [
        ({"_IN_A_GROUP": 2}, [2, 1]),
        ({"_MOST_BYTES": 0}, [1, 1, 1]),
        ({}, [3]),
    ],
)
@pytest.mark.usefixtures("echo")
def test_parquet_has_the_rows_in_groups_of_limited_size(
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, int],
    groups: list[int],
) -> None:
    import pyarrow.parquet

    test = ASKED.replace("Question", "{{question}}")
    rows = "---\nreplacements: [{question: A}, {question: B}, {question: C}]\n---\n\n"
    tree(Path(), {"tests/a.md": rows + test})
    evalstore("run")
    evalstore("export", "-o", "r.jsonl")
    for name, value in limits.items():
        monkeypatch.setattr(export_parquet, name, value)
    assert evalstore("export", "-o", "r.parquet").exit_code == 0
    file = pyarrow.parquet.ParquetFile("r.parquet")
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert sizes == groups
    assert file.read().to_pylist() == rows_of()


def test_parquet_without_pyarrow_is_refused_before_anything_is_asked(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    ran = evalstore("run", "-o", "r.parquet")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: Parquet needs pyarrow, which is not installed\n"
        "hint: install the extra: pip install 'evalstore[parquet]'\n"
    )
    assert evalstore("log").stdout == ""
    assert evalstore("export", "--format", "parquet").stderr == (
        "error: Parquet cannot be printed\nhint: name a file with -o\n"
    )


def test_every_format_is_in_the_help_and_in_the_docs(evalstore: Evalstore) -> None:
    page = (Path(__file__).parents[4] / "docs/export.md").read_text(encoding="utf-8")
    shown = "".join(evalstore("export", "--help").stdout.split())
    for format in FORMATS:
        assert f"| `{format}` |" in page
        assert format in shown.split("--formatFORMAT")[1]
        assert "is not one of" not in evalstore("export", "--format", format).stderr


# --- what is written where


def test_a_run_writes_its_results_to_several_files(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run", "-o", "a.junit.xml", "-o", "b.jsonl")
    assert ran.exit_code == 1
    assert len(rows_of("b.jsonl")) == 2
    assert Path("a.junit.xml").read_text(encoding="utf-8").startswith("<?xml")


def test_a_dry_run_has_nothing_to_write(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run", "-n", "-o", "r.jsonl")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: '--output' cannot be combined with '--dry-run'")
    assert not Path("r.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("r.txt", "the suffix of 'r.txt' names no format"),
        ("tests", "the suffix of 'tests' names no format"),
        ("folder.csv", "'folder.csv' cannot be written: it is a folder"),
        ("gone/r.csv", "'gone/r.csv' cannot be written: folder 'gone' not found"),
        ("pipe.csv", "'pipe.csv' cannot be written: it is not a regular file"),
    ],
)
@pytest.mark.parametrize("command", [("export",), ("run",)])
def test_a_file_that_cannot_be_written_is_refused_first(
    workspace: Path, evalstore: Evalstore, command: tuple[str, ...], name: str, problem: str
) -> None:
    (workspace / "folder.csv").mkdir()
    os.mkfifo(workspace / "pipe.csv")
    ran = evalstore(*command, "-o", name)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {problem}\nhint: ")
    assert stat.S_ISFIFO((workspace / "pipe.csv").stat().st_mode)
    assert not list(workspace.glob(".evalstore/*.db"))


def test_an_existing_file_is_replaced_and_a_link_is_followed(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    (workspace / "old.jsonl").write_text("old", encoding="utf-8")
    (workspace / "link.jsonl").symlink_to("old.jsonl")
    evalstore("export", "-o", "link.jsonl")
    assert (workspace / "link.jsonl").is_symlink()
    assert len(rows_of("old.jsonl")) == 2


@pytest.mark.parametrize("format", TEXT)
def test_an_export_that_fails_leaves_the_old_file(
    workspace: Path, evalstore: Evalstore, format: str
) -> None:
    evalstore("run")
    store = next(workspace.glob(".evalstore/*.db"))
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE sessions SET content = replace(content, 'Warm', 'Worm')")
    connection.close()
    (workspace / "file").write_text("old", encoding="utf-8")
    before = set(workspace.iterdir())
    ran = evalstore("export", "--format", format, "-o", "file")
    assert ran.exit_code == 6
    assert "the store is damaged" in ran.stderr
    assert (workspace / "file").read_text(encoding="utf-8") == "old"
    assert set(workspace.iterdir()) == before


def test_an_unknown_run_writes_nothing(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("export", "@~3", "-o", "r.csv")
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (2, "error: unknown run '@~3'")
    assert not (workspace / "r.csv").exists()


# --- bad input

csv.field_size_limit(2_000_000)

HOSTILE = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)> needle",
    "formula": '=HYPERLINK("http://evil.example","needle")',
    "tab": "\t=1+1 needle",
    "return": "\r=1+1 needle",
    "escape": "needle \x1b[31mred\x07 \x9b1m \x00",
    "direction": "needle \u202egnp.exe",
    "long": "needle " + "x" * 1_000_000,
    "quotes": 'needle "a", "b"\n"c"',
    "markdown": "needle @everyone ![x](http://e.example/x.png) [l](http://e.example) `` ` ``` #1",
    "xml": "needle ]]> <!-- & &amp; \ufffe \U0001f600",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_come_back_as_they_are_from_json(
    echo: Echo, evalstore: Evalstore, kind: str
) -> None:
    echo.reply = lambda _text: HOSTILE[kind]
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run")
    evalstore("export", "-o", "r.jsonl")
    (row,) = rows_of()
    assert row["answer"] == HOSTILE[kind].strip()  # as every answer is stored
    data = Path("r.jsonl").read_bytes()
    assert data.count(b"\n") == 1
    assert not set(data) & set(range(0x20)) - {0x0A}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_come_back_as_they_are_from_parquet(
    echo: Echo, evalstore: Evalstore, kind: str
) -> None:
    import pyarrow.parquet

    echo.reply = lambda _text: HOSTILE[kind]
    tree(Path.cwd(), {"tests/one.md": ASKED})
    evalstore("run")
    evalstore("export", "-o", "r.parquet")
    (row,) = pyarrow.parquet.read_table("r.parquet").to_pylist()
    assert row["answer"] == HOSTILE[kind].strip()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_answers_are_inert_in_csv(echo: Echo, evalstore: Evalstore, kind: str) -> None:
    echo.reply = lambda _text: HOSTILE[kind]
    tree(Path.cwd(), {"tests/=cmd|' '!A0.md": ASKED})
    evalstore("run")
    evalstore("export", "-o", "r.csv")
    with Path("r.csv").open(encoding="utf-8", newline="") as file:
        (record,) = csv.DictReader(file)
    assert not [cell for cell in record.values() if cell.startswith(("=", "+", "-", "@", "\t"))]
    text = Path("r.csv").read_text(encoding="utf-8")
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "needle" in record["answer"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_starts_a_formula_gets_a_quotation_mark(start: str) -> None:
    assert csv_cell(f"{start}1") == f"'{start}1"
    assert csv_cell([f"{start}1", "b"]) == f"'{start}1, b"
    assert (csv_cell(-1), csv_cell(-0.5), csv_cell(None), csv_cell(True)) == (
        "-1",
        "-0.5",
        "",
        "true",
    )


def test_the_verdicts_say_what_is_missing_and_why(echo: Echo, evalstore: Evalstore) -> None:
    echo.failing = "Question"
    files = {"tests/one.md": ASKED, "tests/two.md": ASKED.replace("Question", "Other")}
    tree(Path.cwd(), {**files, "tests/three.md": "# 👤\n\nHello\n\n---\n\nBe kind.\n"})
    evalstore("run")
    evalstore("export", "-o", "r.jsonl")
    assert [(row["file"], row["verdict"], row["answer"], row["cost"]) for row in rows_of()] == [
        ("tests/one.md", "no reply", None, 0.0),
        ("tests/three.md", "pending", "Hello", 0.0),
        ("tests/two.md", "fail", "Other?", 0.0),
    ]


@pytest.mark.parametrize("format", TEXT)
def test_a_run_that_was_stopped_is_exported(
    workspace: Path, evalstore: Evalstore, format: str
) -> None:
    assert evalstore("run", "--max-cost", "0.03", "-j", "1", "-y").exit_code == 4
    assert evalstore("export", "--format", format, "-o", "file").exit_code == 0
    assert Path("file").exists()
    evalstore("export", "-o", "r.jsonl")
    assert "pending" in [row["verdict"] for row in rows_of()]
    assert " results pending" in evalstore("report", "--markdown").stdout


def test_people_who_disagree_leave_it_undecided(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    for person, verdict in (("Ada", "pass"), ("Bea", "fail")):
        evalstore("label", "tests/weather.md::city=Oslo", verdict, "--as", person)
    evalstore("run", "-o", "r.jsonl", "-o", "r.junit.xml")
    assert [row["verdict"] for row in rows_of()] == ["undecided", "pass"]
    assert '<error type="undecided" message="' in Path("r.junit.xml").read_text(encoding="utf-8")
    shown = evalstore("report", "--markdown").stdout
    assert "\n1 of 2 results undecided, 1 of them newly.\n" in shown


@pytest.mark.parametrize("command", ["export", "report"])
def test_a_file_in_the_place_of_a_revision_gets_the_option_as_a_hint(
    workspace: Path, evalstore: Evalstore, command: str
) -> None:
    ran = evalstore(command, "my r2.csv")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: 'my r2.csv' is not a revision\n"
        f"hint: 'evalstore {command} -o 'my r2.csv'' writes a file\n",
    )
    assert "writes a file" not in evalstore(command, "@~9").stderr
