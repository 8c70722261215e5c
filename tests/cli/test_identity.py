"""A test file with an `id` is the same wherever it lies, edited or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.operations.views.test_history import versions_of
from evalstore.planning.options import Location
from tests.cli.conftest import WEATHER, Evalstore
from tests.cli.test_run import edit

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


def test_status_tells_the_rename_and_the_edit(moved: Path, documents: Any) -> None:
    found = documents("status")
    assert [tuple(one.values()) for one in found["changes"]] == [
        (".M", "tests/climate.md", 0, 2, f"was tests/weather.md; {EDIT}")
    ]
    assert {one["reason"] for one in found["items"]} == {EDIT}


def test_an_edit_of_what_is_asked_has_its_reason_under_the_new_path(
    moved: Path, documents: Any
) -> None:
    edit(moved / "tests/climate.md", "How is", "What of")
    reasons = {one["reason"] for one in documents("status")["items"] if one["kind"] == "ask"}
    assert reasons == {
        "test changed: message 1 line 1: How is Oslo? -> What of Oslo?",
        "test changed: message 1 line 1: How is Rome? -> What of Rome?",
    }


@pytest.mark.parametrize("sides", [(), ("@~1", "@")], ids=["workspace", "runs"])
def test_diff_pairs_the_file(moved: Path, documents: Any, sides: tuple[str, ...]) -> None:
    if sides:
        documents("run")
    found = documents("diff", *sides)
    assert (found["new"], found["gone"]) == ([], [])
    assert [one["file"] for one in found["edits"]] == ["tests/climate.md"]
    assert len(found["changed"]) + len(found["fixed"]) + found["unchanged"] == 2


def test_log_follows_the_file(moved: Path, documents: Any, evalstore: Evalstore) -> None:
    (first,) = documents("log", "tests/climate.md")["runs"]
    documents("run")
    newest, oldest = documents("log", "tests/climate.md")["runs"]
    assert oldest == first
    assert [(one["what"], one["was"], one["now"]) for one in newest["edits"]] == [
        ("renamed", "tests/weather.md", "tests/climate.md"),
        ("instructions changed: line 1", "The answer must be warm.", "The answer must be short."),
    ]
    assert (
        "    edit: renamed: tests/weather.md -> tests/climate.md\n"
        in evalstore("log", "tests/climate.md").stdout
    )


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
        ("instructions",),
        ("new",),
    ]


def test_what_has_failed_is_found_under_its_old_path(moved: Path, documents: Any) -> None:
    found = documents("status", "--lf")["items"]
    assert {one["row"] for one in found} == {"city=Oslo"}


def test_only_what_was_edited_has_changed(moved: Path, documents: Any) -> None:
    edit(moved / "tests/climate.md", "must be short", "must be warm")
    edit(moved / "tests/climate.md", "[Oslo, Rome]", "[Oslo, Rome, Bonn]")
    found = documents("status", "--changed")["items"]
    assert {one["row"] for one in found} == {"city=Bonn"}


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
    found = documents("diff")
    assert (found["new"], found["gone"]) == ([], [])
    assert [one["was"]["verdict"] for one in found["changed"]] == ["fail", "pass"]


def test_a_file_that_takes_the_path_of_another_is_another(workspace: Path, documents: Any) -> None:
    (workspace / "tests/weather.md").write_text(IDENTIFIED)
    other = IDENTIFIED.replace("weather-test", "other-test").replace("How is", "And")
    (workspace / "tests/other.md").write_text(other)
    documents("run", "--yes")
    (workspace / "tests/other.md").rename(workspace / "tests/weather.md")
    found = documents("diff")
    assert {one["file"] for one in found["gone"]} == {"tests/weather.md"}
    assert (len(found["gone"]), found["new"], found["unchanged"]) == (2, [], 2)
    assert [one["code"] for one in documents("status")["changes"]] == ["D ", "R "]
