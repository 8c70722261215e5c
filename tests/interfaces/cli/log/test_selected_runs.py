"""What a run was about is told wherever its figures are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.runs import Run, RunCases, RunCommit
from evalstore.files.json_output import fields_to_json
from evalstore.interfaces.cli.main import commands
from evalstore.planning.options import Location, SelectionOptions, describe_selection, is_partial
from evalstore.results.table.cases import list_runs
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.run.test_run import edit

ONE = "tests/weather.md::city=Oslo"
ARGUMENTS: dict[str, tuple[Any, str]] = {
    "paths": ((ONE, "tests/a b.md"), f"{ONE} 'tests/a b.md'"),
    "tags": (("a", "b"), "-t a -t b"),
    "exclude_tags": (("a",), "--exclude-tag a"),
    "name": ("a and b", "-k 'a and b'"),
    "models": (("m", "n"), "-m m -m n"),
    "evaluators": (("j",), "-J j"),
    "attempts": (3, "-r 3"),
    "changed": (True, "--changed"),
    "last_failed": (True, "--lf"),
    "sample": (5, "--sample 5"),
    "seed": (1, "--seed 1"),
    "shard": ("1/4", "--shard 1/4"),
    "limit": (7, "--limit 7"),
    "refresh": (True, ""),
    "max_age": ("30d", ""),
    "retry_errors": (True, "--retry-errors"),
    "offline": (True, "--offline"),
    "keep_going": (True, "--keep-going"),
}
"""What a run keeps of its command line: a value, and how it is told."""


@pytest.fixture
def selected(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace whose newest run was about one row."""
    evalstore("run")
    evalstore("run", ONE)
    return workspace


def test_log_shows_the_arguments(selected: Path, evalstore: Evalstore, documents: Any) -> None:
    assert f"<when>\n    arguments: {ONE} (1 of 2 cases)\n    complete: " in evalstore("log").stdout
    assert evalstore("log").stdout.count("arguments:") == 1
    assert f"  partial: {ONE} (1 of 2 cases)\n" in evalstore("log", "--oneline").stdout
    assert f"    arguments: {ONE} (1 of 2 cases)\n" in evalstore("show").stdout
    assert [run["selection"] for run in documents("log")["runs"]] == [ONE, None]
    assert [run["selection"] for run in documents("ls", "runs")["runs"]] == [ONE, None]


def test_a_file_that_the_first_runs_left_out_is_new_in_the_run_that_judges_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/other.md": "# 👤\n\nHi.\n\n---\n\nBe kind.\n"})
    evalstore("run", ONE)
    evalstore("run", ONE, "--refresh")
    assert "edit:" not in evalstore("log").stdout
    edit(workspace / "tests/other.md", "kind", "brief")
    evalstore("run")
    for arguments in (("-n", "1"), ()):
        assert "    edit: tests/other.md new\n" in evalstore("log", *arguments).stdout
    assert evalstore("log").stdout.count("edit:") == 1


def test_a_run_keeps_its_paths_as_seen_from_the_workspace_however_they_were_given(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = workspace.parent / "linked"
    linked.symlink_to(workspace)
    evalstore("run", f"{workspace}/{ONE}", f"{linked}/tests/../tests/weather.md", "weather.md")
    monkeypatch.chdir(linked / "tests")
    evalstore("run", "weather.md::city=Oslo", f"{linked}", "../tests/")
    assert evalstore("log", "--oneline").stdout.splitlines() == [
        f"<short>  <when>  1 pass, 1 fail  {ONE} . tests (all cases)",
        f"<short>  <when>  1 pass, 1 fail  {ONE} tests/weather.md tests/weather.md (all cases)",
    ]
    assert evalstore("log", f"{linked}/tests/weather.md").exit_code == 0


def test_log_and_ls_say_who_ran_how_many_cases_on_which_commit(
    workspace: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.runs.run.read_user_name", lambda _folder: "Ada")
    monkeypatch.setattr("evalstore.runs.run.git_state", lambda _folder: RunCommit("a" * 40, True))
    evalstore("run", ONE)
    assert "<when>  git <short> + changes  by Ada\n" in evalstore("log").stdout
    assert evalstore("log", "--oneline").stdout == (
        f"<short>  <when>  1 fail  partial: {ONE} (1 of 2 cases)  by Ada  git <short>+\n"
    )
    header, row = evalstore("ls", "runs").stdout.splitlines()
    assert header.split()[-3:] == ["AUTHOR", "COMMIT", "MESSAGE"]
    assert re.match(r"<short>  \d{4}-\d\d-\d\d \d\d:\d\d  partial ", row)
    assert "1 of 2" in row
    assert row.endswith(f"{ONE}  Ada     <short>")
    for document in (documents("log"), documents("ls", "runs")):
        (run,) = document["runs"]
        assert (run["author"], run["gitCommit"]) == ("Ada", "a" * 40)
        assert run["cases"] == {"selected": 1, "total": 2}


def test_a_run_of_some_candidates_is_partial_in_their_list(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-m", "one")
    assert "  partial  2 of 2  -m scripted/one" in evalstore("ls", "runs").stdout
    evalstore("run")
    assert "  complete  2 of 2\n" in evalstore("ls", "runs").stdout


def test_statistics_say_what_they_are_about(
    selected: Path, evalstore: Evalstore, documents: Any
) -> None:
    assert evalstore("stats", "@").stdout.startswith(f"run <short>, <when>, partial: {ONE}\n")
    assert evalstore("stats", "@~1").stdout.startswith("run <short>, <when>\n")
    assert [documents("stats", run)["selection"] for run in ("@", "@~1")] == [ONE, None]


def test_a_comparison_says_what_its_sides_are_about(selected: Path, documents: Any) -> None:
    (note,) = documents("diff")["notes"]
    assert f"is partial: {ONE} (1 result); the other one comes from the last earlier run" in note
    (note,) = documents("diff", "@~1", "@")["notes"]
    assert f"is partial: {ONE} (1 result); only those are compared" in note
    assert documents("diff", "@~1", "@~1")["notes"] == []


def test_two_runs_of_the_same_cases_have_one_note(selected: Path, documents: Any) -> None:
    runs = [documents("log")["runs"][0]["run"][:8], documents("run", ONE)["run"][:8]]
    about = f"are partial: {ONE} (1 result); only those are compared"
    assert documents("diff", "@~1", "@")["notes"] == [f"runs {runs[0]} and {runs[1]} {about}"]


def test_every_argument_that_a_run_keeps_is_known() -> None:
    assert {field.name for field in fields(SelectionOptions)} == ARGUMENTS.keys()


@pytest.mark.parametrize("field", ARGUMENTS)
def test_every_argument_that_a_run_keeps_is_shown_as_written(field: str) -> None:
    value, expected = ARGUMENTS[field]
    selection = SelectionOptions(**{field: value})
    output = describe_selection(fields_to_json(selection, defaults=False))
    assert output == expected
    known = {option for param in commands().commands["run"].params for option in param.opts}  # type: ignore[attr-defined]
    assert not output.startswith("-") or output.split()[0] in known


@pytest.mark.parametrize(
    ("selection", "selected", "is_part"),
    [
        ({}, 2, False),
        ({"paths": ["tests/a.md"]}, 1, True),
        ({"paths": ["tests"], "tags": ["a"]}, 2, False),
        ({"paths": ["tests"]}, None, True),
        ({"models": ["m"]}, 2, True),
        ({"lastFailed": True}, 2, True),
        ({"attempts": 3, "evaluators": ["j"], "refresh": True}, 2, False),
    ],
)
def test_a_run_that_leaves_out_no_case_and_no_candidate_is_not_partial(
    selection: dict[str, Any], selected: int | None, is_part: bool
) -> None:
    cases = None if selected is None else RunCases(selected, 2)
    run = Run("", 1, 2, "complete", "a", "b", 0, 0, 0, {}, selection=selection, cases=cases)
    assert is_partial(run) == is_part


def test_a_run_with_more_attempts_at_all_cases_is_not_partial(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-r", "2")
    assert "    arguments: -r 2 (all cases)\n" in evalstore("log").stdout
    assert "  -r 2 (all cases)\n" in evalstore("log", "--oneline").stdout
    assert [run.is_partial for run in list_runs(Location(workspace))] == [False]
