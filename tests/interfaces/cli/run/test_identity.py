"""A test file with an `id` is the same wherever it lies, edited or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.log.log import versions_of
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Echo, Evalstore
from tests.interfaces.cli.run.test_run import edit

IDENTIFIED = WEATHER.replace("tags:", "id: weather-test\ntags:")


@pytest.fixture
def moved(workspace: Path, documents: Any) -> Path:
    """A workspace whose file was renamed and edited after a run; its `id` stayed."""
    (workspace / "tests/weather.md").write_text(IDENTIFIED)
    documents("run")
    (workspace / "tests/weather.md").unlink()
    text = IDENTIFIED.replace("must be warm", "must be short")
    (workspace / "tests/climate.md").write_text(text)
    return workspace


EDIT = "instructions changed: line 1: The answer must be warm. -> The answer must be short."


def test_status_reports_the_rename_and_the_edit(moved: Path, documents: Any) -> None:
    document = documents("status")
    assert [tuple(change.values()) for change in document["changes"]] == [
        (".M", "tests/climate.md", 0, 2, f"was tests/weather.md; {EDIT}")
    ]
    assert {item["reason"] for item in document["items"]} == {EDIT}


def test_the_letters_of_a_renamed_file_go_with_both_paths(
    moved: Path, evalstore: Evalstore
) -> None:
    both = "tests/weather.md -> tests/climate.md"
    assert evalstore("status", "--short").stdout == f"RM {both}\n"
    assert "\n    RM  tests/climate.md  2 cases judged again: was" in evalstore("status").stdout
    edit(moved / "tests/climate.md", "How is", "What of")
    assert evalstore("status", "--short").stdout == f"M. {both}\n"
    (moved / "tests/climate.md").write_text(IDENTIFIED)
    assert evalstore("status", "--short").stdout == f"R  {both}\n"


def test_an_edit_of_what_is_asked_has_its_reason_under_the_new_path(
    moved: Path, documents: Any
) -> None:
    edit(moved / "tests/climate.md", "How is", "What of")
    reasons = {item["reason"] for item in documents("status")["items"] if item["kind"] == "ask"}
    assert reasons == {
        "test changed: message 1, line 1: How is Oslo? -> What of Oslo?",
        "test changed: message 1, line 1: How is Rome? -> What of Rome?",
    }


@pytest.mark.parametrize("sides", [(), ("@~1", "@")], ids=["workspace", "runs"])
def test_diff_pairs_the_file(moved: Path, documents: Any, sides: tuple[str, ...]) -> None:
    if sides:
        documents("run")
    document = documents("diff", *sides)
    assert (document["new"], document["gone"]) == ([], [])
    assert [item["file"] for item in document["edits"]] == ["tests/climate.md"]
    assert len(document["changed"]) + len(document["fixed"]) + document["unchanged"] == 2


@pytest.mark.parametrize("name", ["weather", "climate"])
def test_diff_lists_the_new_path_beside_an_edited_prompt_and_finds_the_old_one(
    workspace: Path, evalstore: Evalstore, name: str
) -> None:
    (workspace / "prompts").mkdir()
    (workspace / "prompts/short.md").write_text("Be short.\n")
    prompted = IDENTIFIED.replace("tags:", "systemPrompts: [short]\ntags:")
    (workspace / "tests/weather.md").write_text(prompted)
    evalstore("run")
    (workspace / "tests/weather.md").rename(workspace / "tests/climate.md")
    edit(workspace / "prompts/short.md", "short", "brief")
    for step in ([], ["run"]):
        evalstore(*step)
        sides = ("@~1", "@") if step else ()
        shown = evalstore("diff", *sides, "--", f"tests/{name}.md").stdout
        assert "\n    tests/climate.md\n        renamed: tests/weather.md -> tests/clim" in shown
        assert "\n    system prompt short\n" in shown


def test_log_follows_the_file(moved: Path, documents: Any, evalstore: Evalstore) -> None:
    (first,) = documents("log", "tests/climate.md")["runs"]
    documents("run")
    newest, oldest = documents("log", "tests/climate.md")["runs"]
    assert oldest == first
    assert [(item["what"], item["was"], item["now"]) for item in newest["edits"]] == [
        ("renamed", "tests/weather.md", "tests/climate.md"),
        ("instructions changed: line 1", "The answer must be warm.", "The answer must be short."),
    ]
    assert (
        "    edit: renamed: tests/weather.md -> tests/climate.md\n"
        in evalstore("log", "tests/climate.md").stdout
    )


def test_a_path_that_another_file_had_begins_a_history(workspace: Path, documents: Any) -> None:
    path = workspace / "tests/weather.md"
    first = documents("run")["run"]
    path.rename(workspace / "tests/climate.md")
    documents("run")
    path.write_text("# 👤\n\nSay hello.\n\n---\n\nIt greets.\n")
    newest = documents("run")["run"]
    assert [entry["run"] for entry in documents("log", "tests/weather.md")["runs"]] == [newest]
    climate = documents("log", "tests/climate.md")["runs"]
    assert [entry["run"] for entry in climate][-1] == first
    assert len(versions_of(Location(workspace), "tests/weather.md", "")) == 1
    history = documents("show", "tests/weather.md")["history"]
    assert (history["since"]["run"], history["before"]) == (newest, None)


def test_a_path_that_another_file_had_has_none_of_its_results(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    path = workspace / "tests/weather.md"
    documents("run")
    path.rename(workspace / "tests/climate.md")
    documents("run")
    path.write_text("# 👤\n\nSay hello.\n\n---\n\n~~~checks\n- contains: zzz\n~~~\n")
    assert documents("show", "@work:tests/weather.md::")["history"] is None
    documents("run", "tests/climate.md")
    shown = evalstore("show", "tests/weather.md")
    assert (shown.exit_code, shown.stdout) == (2, "")
    newest = documents("run")["run"]
    history = documents("show", "tests/weather.md")["history"]
    assert (history["since"]["run"], history["before"]) == (newest, None)


def test_the_file_may_come_back(moved: Path, documents: Any) -> None:
    documents("run")
    (moved / "tests/climate.md").rename(moved / "tests/weather.md")
    documents("run")
    edits = [
        [edit["what"] for edit in run["edits"]] for run in documents("log", "weather.md")["runs"]
    ]
    assert edits == [["renamed"], ["renamed", "instructions changed: line 1"], ["new"]]


@pytest.mark.parametrize("file", ["tests/weather.md", "tests/climate.md"])
def test_the_versions_follow_the_file(moved: Path, documents: Any, file: str) -> None:
    where = Location(moved)
    assert [version.edits for version in versions_of(where, file, "city=Oslo")] == [
        ("instructions", "renamed"),
        ("new",),
    ]


def test_what_has_failed_is_found_under_its_old_path(moved: Path, documents: Any) -> None:
    actual = documents("status", "--lf")["items"]
    assert {item["row"] for item in actual} == {"city=Oslo"}


def test_only_what_was_edited_has_changed(moved: Path, documents: Any) -> None:
    edit(moved / "tests/climate.md", "must be short", "must be warm")
    edit(moved / "tests/climate.md", "[Oslo, Rome]", "[Oslo, Rome, Bonn]")
    actual = documents("status", "--changed")["items"]
    assert {item["row"] for item in actual} == {"city=Bonn"}


def test_a_regression_is_found_under_the_old_path(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    text = IDENTIFIED.replace("must be warm", "must be short")
    (workspace / "tests/weather.md").write_text(text)
    evalstore("run")
    (workspace / "tests/weather.md").unlink()
    (workspace / "tests/climate.md").write_text(IDENTIFIED)
    assert evalstore("run", "--fail-on", "regression").exit_code == 1


def test_a_run_of_a_selection_is_filled_in_from_the_old_path(
    moved: Path, documents: Any, evalstore: Evalstore
) -> None:
    (moved / "tests/other.md").write_text("# 👤\n\nHi\n\n---\n\nE\n")
    evalstore("run", "tests/other.md")
    document = documents("diff")
    assert (document["new"], document["gone"]) == ([], [])
    assert [item["was"]["verdict"] for item in document["changed"]] == ["fail", "pass"]


def test_a_file_that_takes_the_path_of_another_is_another(workspace: Path, documents: Any) -> None:
    (workspace / "tests/weather.md").write_text(IDENTIFIED)
    other = IDENTIFIED.replace("weather-test", "other-test").replace("How is", "And")
    (workspace / "tests/other.md").write_text(other)
    documents("run", "--yes")
    (workspace / "tests/other.md").rename(workspace / "tests/weather.md")
    document = documents("diff")
    assert {item["file"] for item in document["gone"]} == {"tests/weather.md"}
    assert (len(document["gone"]), document["new"], document["unchanged"]) == (2, [], 2)
    assert [change["code"] for change in documents("status")["changes"]] == ["D ", "R "]


# --- rows with an id

QUIZ = """\
---
{}
---

# 👤

{{{{ question }}}}

---

~~~checks
- contains: fine
~~~
"""
SOURCES = {
    "dataset": (
        "dataset: data/q.csv",
        "tests/data/q.csv",
        "nr,question\n1,Waht is fine?\n2,Who is fine?\n",
    ),
    "replacements": (
        "replacements:\n  - {{{}question: Waht is fine?}}\n  - {{{}question: Who is fine?}}",
        "",
        "",
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_row_with_an_id_keeps_its_history_when_its_text_is_edited(
    echo: Echo, evalstore: Evalstore, documents: Any, source: str
) -> None:
    """Also when the rows get their ids after the first run."""
    front, data, rows = SOURCES[source]
    plain, with_ids = front.format("", ""), front.format("nr: 1, ", "nr: 2, ") + "\nrowId: nr"
    tree(Path.cwd(), {"tests/q.md": QUIZ.format(plain), **({data: rows} if data else {})})
    documents("run")
    Path("tests/q.md").write_text(QUIZ.format(with_ids))
    assert documents("status")["ask"] == 0
    documents("run")
    edit(Path(data or "tests/q.md"), "Waht", "What")
    status = documents("status")
    assert [change["code"] for change in status["changes"]] == ["M."]
    assert [item["reason"] for item in status["items"] if item["kind"] == "ask"] == [
        "test changed: message 1, line 1: Waht is fine? -> What is fine?"
    ]
    documents("run")
    compared = documents("diff", "@~1", "@")
    assert (compared["new"], compared["gone"], compared["unchanged"]) == ([], [], 1)
    assert [pair["row"] for pair in compared["changed"]] == ["nr=1"]
    assert evalstore("run", "tests/q.md::nr=2").exit_code == 0


def test_an_edited_row_without_an_id_is_a_new_one_and_that_is_said(
    echo: Echo, evalstore: Evalstore
) -> None:
    """The hint names the field; a row that was only added or removed gets none."""
    tree(Path.cwd(), {"tests/q.md": QUIZ.format(SOURCES["replacements"][0].format("", ""))})
    hint = "(an edited row counts as a new one, unless the field 'rowId' of its file names it)\n"
    evalstore("run")
    edit(Path("tests/q.md"), "Waht", "What")
    status = evalstore("status")
    assert "M.  tests/q.md  1 case new, 1 case removed" in status.stdout
    assert status.stderr == hint
    evalstore("run")
    assert hint in evalstore("diff", "@~1", "@").stderr
    assert hint not in evalstore("diff", "@~1", "@", "--stat").stderr
    last_runs = '(use "evalstore diff @~1 @" to compare the last two runs)\n'
    assert evalstore("diff").stderr == last_runs
    assert evalstore("diff", "@").stderr == ""
    edit(Path("tests/q.md"), "{question: What", "{question: Why is fine?}\n  - {question: Whta")
    status = evalstore("status")
    assert "M.  tests/q.md  2 cases new, 1 case removed" in status.stdout
    assert status.stderr == hint
    edit(Path("tests/q.md"), "  - {question: Who is fine?}\n", "")
    edit(Path("tests/q.md"), "{question: Why is fine?}\n  - {question: Whta", "{question: What")
    assert evalstore("status").stderr == ""


def test_a_file_with_ids_of_rows_gets_no_hint_to_give_them(
    echo: Echo, evalstore: Evalstore
) -> None:
    rows = SOURCES["replacements"][0].format("nr: 1, ", "nr: 2, ")
    tree(Path.cwd(), {"tests/q.md": QUIZ.format(f"{rows}\nrowId: nr")})
    evalstore("run")
    edit(Path("tests/q.md"), "{nr: 1, question: Waht", "{nr: 3, question: What")
    status = evalstore("status")
    assert "1 case new, 1 case removed" in status.stdout
    assert status.stderr == ""
    assert "rowId" not in evalstore("run").stderr
    assert "rowId" not in evalstore("diff", "@~1", "@").stderr
