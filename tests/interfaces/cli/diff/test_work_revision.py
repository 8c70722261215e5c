"""`@work`, the revision for the workspace: all cases with the verdicts that they have now."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning import planner
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, WEATHER, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit

OSLO = "tests/weather.md::city=Oslo"


@pytest.fixture
def partial(workspace: Path, evalstore: Evalstore) -> Evalstore:
    """The last run was about the row that fails; then the instructions were edited."""
    evalstore("run", "-q")
    evalstore("run", "-q", OSLO)
    return evalstore


def test_stats_of_the_workspace_count_all_cases(partial: Evalstore, documents: Any) -> None:
    last = partial("stats", "@")
    assert last.stdout.startswith(f"run <short>, <when>, partial: {OSLO}\n")
    assert last.stderr.startswith(
        '(use "evalstore stats @work" for all cases with the candidates in the settings)\n'
    )
    cells = last.stdout.splitlines()
    assert "INTERVAL" not in cells[1], "a rate of some cases would be taken for that of all"
    assert "%" not in "".join(cells[2:])
    assert " 0 of 1 " in cells[2]
    ran = partial("stats", "@work")
    assert "@work" not in ran.stderr
    assert ran.stdout.splitlines()[0] == "workspace, all cases as they are now"
    assert ran.stdout.splitlines()[1:] == partial("stats", "@~1").stdout.splitlines()[1:]
    document = documents("stats", "@work", "--by", "file")
    assert (document["run"], document["selection"]) == ("workspace", None)
    assert document["groups"] == documents("stats", "@~1", "--by", "file")["groups"]


def test_stats_of_the_workspace_follow_edits(partial: Evalstore, workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "may be cold")
    assert "0/2" in partial("stats", "@work").stdout
    partial("run")
    assert "2/2" in partial("stats", "@work").stdout


def test_a_removed_case_that_a_run_did_not_choose_by_name_is_not_gone(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "Rome]", "Lima]")
    evalstore("run", "-q", "-k", "oslo")
    assert evalstore("diff", "@~1", "@", "--stat").stdout.splitlines()[2] == "1 unchanged"
    evalstore("run", "-q", "-k", "oslo or rome")
    shown = evalstore("diff", "@~2", "@", "--stat").stdout.splitlines()
    assert shown[2] == "1 gone (1 row removed), 1 unchanged"


@pytest.mark.parametrize(
    ("selected", "gone"),
    [
        (("tests/weather.md::Oslo",), "1 unchanged"),
        (("tests/weather.md",), "1 new (1 new row), 1 gone (1 row removed), 1 unchanged"),
        (("-t", "hot"), "1 unchanged"),
        (("-t", "weather"), "1 new (1 new row), 1 gone (1 row removed), 1 unchanged"),
        (
            ("--exclude-tag", "hot"),
            "1 new (1 new row), 2 gone (file tests/old.md removed, 1 row removed), 1 unchanged",
        ),
        (("tests/late.md",), "1 unchanged"),
    ],
)
def test_a_removed_case_that_a_run_did_not_choose_by_path_or_tag_is_not_gone(
    workspace: Path, evalstore: Evalstore, selected: tuple[str, ...], gone: str
) -> None:
    late = WEATHER.replace("[weather]", "[hot]").replace("city: [Oslo, Rome]", "city: [Bern]")
    tree(workspace, {"tests/late.md": late, "tests/old.md": late.replace("[hot]", "[cold]")})
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "Rome]", "Lima]")
    (workspace / "tests/old.md").unlink()
    evalstore("run", "-q", *selected)
    assert evalstore("diff", "@~1", "@", "--stat").stdout.splitlines()[2] == gone


def test_diff_counts_new_cases_that_a_partial_run_left_out(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "Rome]", "Rome, Bari, Lima]")
    evalstore("run", "-q", "tests/weather.md::city=Bari")
    ran = evalstore("diff").stdout.splitlines()
    assert "1 new, 3 unchanged" in ran
    assert ran[-1] == "    tests/weather.md [city=Lima]  scripted/one  pending"
    assert evalstore("stats", "@work").stdout.count("3/4") == 1
    evalstore("run", "-q")
    assert "4 unchanged" in evalstore("diff").stdout.splitlines()


def test_show_lists_the_cases_of_the_workspace(partial: Evalstore, documents: Any) -> None:
    assert partial("show", "@work") == Ran(
        0,
        "workspace all cases as they are now\n"
        "    1 pass, 1 fail\n"
        "\n"
        "fail  tests/weather.md [city=Oslo]  scripted/one  <short>\n"
        "pass  tests/weather.md [city=Rome]  scripted/one  <short>\n",
        "",
    )
    shown, run = documents("show", "@work"), documents("show", "@~1")
    assert (shown["kind"], shown["id"]) == ("workspace", run["snapshot"])
    assert shown["related"] == run["related"]


def test_show_has_a_test_file_of_the_workspace(partial: Evalstore, workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "must be kind")
    printed = partial("show", "@work:weather.md").stdout
    assert "tests/weather.md in the workspace\n" in printed
    assert "instructions: The answer must be kind.\n" in printed
    assert "instructions: The answer must be warm.\n" in partial("show", "@:weather.md").stdout


def test_diff_takes_the_workspace_on_either_side(partial: Evalstore, workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "may be cold")
    partial("run")
    assert partial("diff", "@~2", "@work").stdout == partial("diff", "@~2").stdout
    sides = "run <short> (<when>) -> the workspace\n"
    assert partial("diff", "@~2", "@work").stdout.startswith(f"{sides}1 fixed, ")
    sides_back = "the workspace -> run <short> (<when>)\n"
    assert partial("diff", "@work", "@~2").stdout.startswith(f"{sides_back}1 broke, ")
    assert partial("diff", "@~2..@work").stdout.startswith(f"{sides}1 fixed, ")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            ["diff", "@work", "@work"],
            "error: both sides are the workspace\nhint: name a run: 'evalstore diff @ @work'\n",
        ),
        (
            ["diff", "@work"],
            "error: both sides are the workspace\nhint: name a run: 'evalstore diff @ @work'\n",
        ),
        (
            ["show", "@work:nothing.md"],
            "error: the workspace has no test file 'nothing.md'\n"
            "hint: the test files are tests/weather.md\n",
        ),
        (
            ["diff", "--vs", "b", "-m", "a", "@work"],
            "error: 'a' is not a candidate of the workspace\n"
            "hint: the candidates are scripted/one; "
            "'evalstore run -m a -m b' makes a run with both\n",
        ),
        (
            ["diff", "--vs", "b", "-m", "scripted/onne", "@work"],
            "error: 'scripted/onne' is not a candidate of the workspace\n"
            "hint: did you mean 'scripted/one'?\n",
        ),
    ],
)
def test_what_the_workspace_is_not_is_an_error(
    partial: Evalstore, command: list[str], expected: str
) -> None:
    assert partial(*command) == Ran(2, "", expected)


def test_all_cases_of_other_candidates_need_no_hint(workspace: Path, evalstore: Evalstore) -> None:
    two = (workspace / "models/one.yaml").read_text().replace("scripted/one", "scripted/two")
    (workspace / "models/two.yaml").write_text(two)
    both = ("-m", "scripted/one", "-m", "scripted/two")
    evalstore("run", "-q", *both)
    ran = evalstore("stats", "@")
    assert "scripted/two" in ran.stdout
    assert "@work" not in ran.stderr
    evalstore("run", "-q", *both, OSLO)
    words = '(use "evalstore stats @work" for all cases with the candidates in the settings)'
    assert words in evalstore("stats", "@").stderr
    assert "scripted/two" not in evalstore("stats", "@work").stdout


def test_a_run_with_both_candidates_is_named(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, {"models/two.yaml": ONE.replace("scripted/one", "scripted/two")})
    evalstore("run", "-q", "-m", "scripted/one", "-m", "scripted/two")
    evalstore("run", "-q")
    refused = evalstore("diff", "--model", "scripted/one", "--vs", "scripted/two")
    assert refused.exit_code == 2
    assert refused.stderr.endswith(
        "hint: 'evalstore diff <short> --model scripted/one --vs scripted/two' compares them in a "
        "run with both\n"
    )


def test_what_was_removed_after_a_partial_run_is_gone(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/other.md": WEATHER, "tests/third.md": "# 👤\n\nHello.\n\n---\n\nA."})
    documents("run", "--fail-on", "none")
    documents("run", "-k", "third", "--fail-on", "none")
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Rome]")
    (workspace / "tests/other.md").unlink()
    removed = [("other", "Oslo"), ("other", "Rome"), ("weather", "Oslo")]
    names = [(f"tests/{file}.md", f"city={city}") for file, city in removed]

    def gone(*arguments: str) -> list[tuple[str, str]]:
        return [(it["file"], it["row"]) for it in documents("diff", *arguments)["gone"]]

    assert gone() == names
    assert gone("--", "tests/other.md") == names[:2]
    assert gone("--", "weather.md::city=Oslo", "other.md") == names
    documents("run", "--fail-on", "none")
    assert gone("@~1", "@") == gone("@~1", "@work") == gone("@~2", "@") == names
    assert gone("@~1", "@", "--", "tests/other.md") == names[:2]
    back = documents("diff", "@", "@~1")
    assert [(it["file"], it["row"]) for it in back["new"]] == names
    assert (back["gone"], back["unchanged"]) == ([], 2)
    shown = evalstore("diff", "@~1", "@").stdout
    assert "3 gone (file tests/other.md removed, 1 row removed), 2 unchanged\n" in shown
    unknown = evalstore("diff", "--", "tests/other.md")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "error: test file 'tests/other.md' not found" in unknown.stderr


def test_what_a_run_of_all_cases_lacked_is_not_gone_again(workspace: Path, documents: Any) -> None:
    rows = ["city=Oslo", "city=Rome"]
    for has_results in (True, False):
        tree(workspace, {"tests/other.md": WEATHER})
        documents("run", *(() if has_results else ("tests/weather.md",)), "--fail-on", "none")
        documents("run", "tests/weather.md::city=Oslo", "--fail-on", "none")
        (workspace / "tests/other.md").unlink()
        gone = [it["row"] for it in documents("diff")["gone"]]
        assert gone == (rows if has_results else [])
        documents("run", "--fail-on", "none")


def test_a_removed_file_is_compared_without_the_rest_of_the_workspace(
    workspace: Path, documents: Any, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(workspace, {"tests/other.md": WEATHER, "tests/third.md": "# 👤\n\nHello.\n\n---\n\nA."})
    documents("run", "--fail-on", "none")
    (workspace / "tests/other.md").unlink()
    edit(workspace / "tests/third.md", "Hello.", "{{ unknown }}")
    planned: list[tuple[str, ...]] = []

    def note(project: Any, selection: Any, **options: Any) -> Any:
        planned.append(selection.paths)
        return resolve_scope(project, selection, **options)

    resolve_scope = planner.resolve_scope
    monkeypatch.setattr(planner, "resolve_scope", note)
    gone = [("tests/other.md", f"city={city}") for city in ("Oslo", "Rome")]
    found = documents("diff", "--", "tests/other.md")
    assert [(it["file"], it["row"]) for it in found["gone"]] == gone
    assert planned == []
    one = "[scripted/one]"
    tree(workspace, {"models/two.yaml": ONE.replace("scripted/one", "scripted/two")})
    edit(workspace / "evalstore.yaml", one, "[scripted/one, scripted/two]")
    found = documents("diff", "-m", "scripted/two", "--", "tests/other.md")
    assert (found["gone"], found["new"], found["unchanged"]) == ([], [], 0)
    unknown = evalstore("diff", "-m", "scripted/three", "--", "tests/other.md")
    assert "error: 'scripted/three' is not a candidate of run " in unknown.stderr
    assert "scripted/two" in unknown.stderr.partition("\nhint: ")[2]
    edit(workspace / "evalstore.yaml", "[scripted/one, scripted/two]", one)
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Rome]")
    found = documents("diff", "--", "other.md", "weather.md::city=Oslo")
    assert [(it["file"], it["row"]) for it in found["gone"]] == [
        *gone,
        ("tests/weather.md", "city=Oslo"),
    ]
    assert planned == [("weather.md",)]
    refused = evalstore("diff", "--", "other.md", "third.md")
    assert refused.exit_code == 2
    assert "unknown" in refused.stderr


def test_what_a_partial_run_left_out_is_explained_by_edits_before_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/other.md": WEATHER.replace("How is", "How warm is")})
    evalstore("run", "-q")
    at = "[{{id: scripted/one, temperature: {}}}]"
    edit(workspace / "evalstore.yaml", "[scripted/one]", at.format(0.1))
    evalstore("run", "-q", "tests/other.md")
    edited = "temperature of scripted/one: "
    shown = evalstore("diff").stdout
    assert f"\nEdited:\n    {edited}none -> 0.1\n" in shown
    assert shown.count("  (temperature none -> 0.1)  ") == 2
    assert "not answered" not in shown
    edit(workspace / "evalstore.yaml", at.format(0.1), at.format(0.2))
    shown = evalstore("diff", "-v").stdout
    assert f"\nEdited:\n    {edited}0.1 -> 0.2\n    {edited}none -> 0.2\n" in shown
    cases = dict(re.findall(r"tests/(\w+)\.md \[city=Oslo\].* \((temperature .*)\)", shown))
    assert cases == {"other": "temperature 0.1 -> 0.2", "weather": "temperature none -> 0.2"}
    back = evalstore("diff", "@work", "@").stdout
    assert "  (temperature 0.2 -> none)" in back
    assert "  (temperature 0.2 -> 0.1)" in back


def test_a_removed_file_whose_path_another_file_has_is_gone_after_a_run_of_the_path(
    workspace: Path, evalstore: Evalstore
) -> None:
    late = workspace / "tests/late.md"
    tree(workspace, {"tests/late.md": WEATHER.replace("[Oslo, Rome]", "[Bern]")})
    evalstore("run", "-q")
    late.unlink()
    evalstore("run", "-q")
    (workspace / "tests/weather.md").rename(late)
    evalstore("run", "-q", "tests/late.md")
    shown = evalstore("diff", "@~2", "@", "--stat").stdout
    assert "\n1 gone (file tests/late.md removed), 2 unchanged\n" in shown
