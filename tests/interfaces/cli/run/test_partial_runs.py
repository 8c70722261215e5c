"""Runs of some candidates or system prompts: what is said of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.results.log import log
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, WEATHER_WORKSPACE, Evalstore

SETTINGS = "candidates: [scripted/one, scripted/two]\nevaluators: [scripted/judge]\n"


@pytest.fixture
def edited(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace whose edit only one of two candidates was asked about."""
    two = WEATHER_WORKSPACE["models/one.yaml"].replace("scripted/one", "scripted/two")
    tree(workspace, {"evalstore.yaml": SETTINGS, "models/two.yaml": two})
    evalstore("run", "-q", "--fail-on", "none")
    tree(workspace, {"tests/weather.md": WEATHER.replace("How is", "How warm is")})
    evalstore("run", "-q", "--fail-on", "none", "-m", "scripted/one")
    return workspace


def test_the_reason_is_the_edit_and_not_a_new_candidate(edited: Path, evalstore: Evalstore) -> None:
    explained = evalstore("status", "--explain").stdout
    assert "new candidate" not in explained
    assert (
        explained.count("test changed: message 1, line 1: How is Oslo? -> How warm is Oslo?") == 1
    )


def test_a_candidate_that_never_took_part_is_new(edited: Path, evalstore: Evalstore) -> None:
    three = WEATHER_WORKSPACE["models/one.yaml"].replace("scripted/one", "scripted/three")
    settings = SETTINGS.replace("scripted/two", "scripted/two, scripted/three")
    tree(edited, {"evalstore.yaml": settings, "models/three.yaml": three})
    assert "new candidate scripted/three" in evalstore("status", "--explain").stdout


def test_the_log_of_a_file_names_the_candidate_that_was_late(
    edited: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q", "--fail-on", "none")
    log = evalstore("log", "tests/weather.md").stdout
    assert "no edit: " not in log
    assert "    edit: first results of scripted/two since the edit in run <short>\n" in log
    edit = "message 1, line 1 in [city=Oslo] and 1 other row: How is Oslo? -> How warm is Oslo?"
    assert (
        f"Edited:\n    tests/weather.md\n        {edit}\n" in evalstore("diff", "@~1", "@").stdout
    )


PROMPTS = {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."}


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("[brief]", "[brief, kind]", "2 new (1 failed"),
        ("[brief]", "[kind, brief]", "2 new (1 failed"),
        ("[brief, kind]", "[brief]", "2 gone"),
        ("[brief, kind]", "[kind]", "2 gone"),
    ],
)
def test_results_of_a_system_prompt_that_is_new_or_gone_are_in_the_comparison(
    workspace: Path, evalstore: Evalstore, before: str, after: str, counts: str
) -> None:
    for prompts in (before, after):
        test = WEATHER.replace("tags: [weather]", f"systemPrompts: {prompts}")
        tree(workspace, {**PROMPTS, "tests/weather.md": test})
        evalstore("run", "-q", "--fail-on", "none")
    diff = evalstore("diff", "@~1", "@", "--stat").stdout
    assert counts in diff
    assert "2 unchanged" in diff


# --- show


@pytest.fixture
def two_candidates(workspace: Path, evalstore: Evalstore) -> Path:
    """A workspace whose newest run has only one of two candidates."""
    two = WEATHER_WORKSPACE["models/one.yaml"].replace("scripted/one", "scripted/two")
    tree(workspace, {"evalstore.yaml": SETTINGS, "models/two.yaml": two})
    evalstore("run", "-q", "-m", "scripted/one", "-m", "scripted/two", "--fail-on", "none")
    evalstore("run", "-q", "-m", "scripted/two", "--fail-on", "none")
    return workspace


def test_show_finds_a_candidate_that_the_newest_run_left_out(
    two_candidates: Path, evalstore: Evalstore
) -> None:
    shown = evalstore("show", "tests/weather.md::Oslo", "-m", "scripted/one")
    assert shown.exit_code == 0
    assert "fail  tests/weather.md [city=Oslo]  scripted/one\n" in shown.stdout
    assert "other results of this case:\n    fail  scripted/two" in shown.stdout


def test_show_finds_a_named_candidate_that_a_run_of_all_lacked(
    two_candidates: Path, evalstore: Evalstore
) -> None:
    tree(two_candidates, {"evalstore.yaml": SETTINGS.replace(", scripted/two", "")})
    evalstore("run", "-q", "--fail-on", "none")
    shown = evalstore("show", "tests/weather.md::Oslo", "-m", "scripted/two")
    assert "fail  tests/weather.md [city=Oslo]  scripted/two" in shown.stdout
    assert "scripted/two" not in evalstore("show", "tests/weather.md").stdout


def test_show_lists_the_rows_that_the_newest_run_left_out(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    first = documents("log")["runs"][0]["run"]
    evalstore("run", "-q", "tests/weather.md::Rome")
    shown = evalstore("show", "tests/weather.md")
    assert "fail  tests/weather.md [city=Oslo]  scripted/one  <short>  (run <short>)\n" in (
        shown.stdout
    )
    assert "pass  tests/weather.md [city=Rome]  scripted/one  <short>\n" in shown.stdout
    assert "show <short>:tests/weather.md::city=Oslo -m scripted/one" in shown.stderr
    results = documents("show", "tests/weather.md")["related"]["results"]
    assert {result["row"]: result.get("run") for result in results} == {
        "city=Oslo": first,
        "city=Rome": None,
    }
    at_the_run = evalstore("show", "@:tests/weather.md").stdout
    assert "[city=Rome]" in at_the_run
    assert "[city=Oslo]" not in at_the_run


def test_an_older_result_says_that_its_row_was_edited_since(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": WEATHER.replace("How is", "How warm is")})
    evalstore("run", "-q", "tests/weather.md::Rome")
    shown = evalstore("show", "tests/weather.md").stdout
    assert "[city=Oslo]  scripted/one  <short>  (run <short>, edited since)\n" in shown


def test_a_row_that_is_gone_is_not_listed(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": WEATHER.replace("[Oslo, Rome]", "[Rome, Bari]")})
    evalstore("run", "-q", "tests/weather.md::Bari")
    shown = evalstore("show", "tests/weather.md").stdout
    assert "[city=Rome]  scripted/one  <short>  (run <short>)\n" in shown
    assert "Oslo" not in shown


def test_a_run_of_all_cases_ends_the_search(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    test = WEATHER.replace("---\n", "---\nsystemPrompts: [brief]\n", 1)
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "tests/weather.md": test})
    evalstore("run", "-q")
    shown = evalstore("show", "tests/weather.md").stdout
    assert shown.count("scripted/one") == 2
    assert "(run " not in shown


# --- diff


def test_a_candidate_of_the_settings_that_a_run_was_the_first_to_name_is_new(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    two = WEATHER_WORKSPACE["models/one.yaml"].replace("scripted/one", "scripted/two")
    tree(workspace, {"evalstore.yaml": SETTINGS, "models/two.yaml": two})
    evalstore("run", "-q", "-m", "scripted/two", "tests/weather.md::Oslo")
    assert "new candidate scripted/two" in evalstore("log", "--oneline").stdout
    new = "1 new (new candidate scripted/two; 1 failed)"
    assert new in evalstore("diff", "@~1", "@").stdout
    assert "new candidate" in evalstore("report", "--markdown", "--compare", "@~1").stdout
    evalstore("run", "-q", "--fail-on", "none")
    tree(workspace, {"evalstore.yaml": WEATHER_WORKSPACE["evalstore.yaml"]})
    evalstore("run", "-q")
    assert new in evalstore("diff", "@~3", "@~2").stdout


# --- log


def test_the_log_says_in_which_runs_something_broke(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "-q")
    harsh = "responses:\n  - {when: short, answer: {pass: false, feedback: No.}}\n"
    judge = WEATHER_WORKSPACE["models/judge.yaml"].replace("responses:\n", harsh)
    edited = WEATHER.replace("must be warm", "must be short")
    tree(workspace, {"models/judge.yaml": judge, "tests/weather.md": edited})
    evalstore("run", "-q", "tests/weather.md::Oslo")
    evalstore("run", "-q", "tests/weather.md::Rome")
    tree(workspace, {"tests/weather.md": WEATHER})
    evalstore("run", "-q")
    verdicts = [line.split("  ")[2] for line in evalstore("log", "--oneline").stdout.splitlines()]
    broke = "1 fail (1 broke: by earlier edits)"
    assert verdicts == ["1 pass, 1 fail (1 fixed)", broke, "1 fail", "1 pass, 1 fail"]
    counts = [(run.get("broke"), run.get("fixed")) for run in documents("log")["runs"]]
    assert counts == [(0, 1), (1, 0), (0, 0), (None, None)]


def test_the_log_compares_as_many_results_as_come_at_once(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"tests/weather.md": WEATHER.replace("must be warm", "must be any")})
    evalstore("run", "-q")
    listed = evalstore("log")
    assert " fixed)" in listed.stdout
    assert listed.stderr == ""
    monkeypatch.setattr(log, "MOST_COMPARED", 1)
    listed = evalstore("log")
    assert " fixed)" not in listed.stdout
    assert 'are not counted; "evalstore diff" lists them)' in listed.stderr


def test_the_log_says_for_which_runs_it_counts_what_broke(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ("warm", "any", "warm"):
        tree(workspace, {"tests/weather.md": WEATHER.replace("must be warm", f"must be {words}")})
        evalstore("run", "-q")
    assert evalstore("log", "--oneline").stderr == ""
    monkeypatch.setattr(log, "_MOST_RUNS", 1)
    listed = evalstore("log", "--oneline")
    assert " broke)" in listed.stdout.splitlines()[0]
    assert " fixed)" not in listed.stdout
    oldest = [line.split("  ")[2] for line in listed.stdout.splitlines()[1:]]
    assert oldest == ["2 pass (not compared)", "1 pass, 1 fail (not compared)"]
    assert listed.stderr == (
        "(broken and fixed results are counted for the newest run; "
        '"evalstore show ID" shows them for others)\n'
    )
    assert evalstore("log", "-n", "1").stderr == "(2 older)\n"


def test_the_log_says_of_more_than_ten_runs_what_each_broke(
    workspace: Path, evalstore: Evalstore
) -> None:
    for number in range(12):
        words = ("any", "warm")[number % 2]
        tree(workspace, {"tests/weather.md": WEATHER.replace("must be warm", f"must be {words}")})
        evalstore("run", "-q")
    *others, _first = evalstore("log", "--oneline").stdout.splitlines()
    assert [line.split("  ")[2] for line in others] == [
        ("1 pass, 1 fail (1 broke)", "2 pass (1 fixed)")[number % 2] for number in range(11)
    ]


def test_the_log_looks_at_few_runs_for_earlier_verdicts_of_new_cases(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_MOST_SEARCHED", 3)
    for number in range(6):
        tree(workspace, {f"tests/new{number}.md": WEATHER.replace("Oslo", f"Oslo {number}")})
        evalstore("run", "-q")
    # The newest looks at the five before it, and the next one would look at four.
    assert "counted for the newest run" in evalstore("log", "--oneline").stderr


def test_show_marks_what_broke_and_was_fixed_in_a_run(
    workspace: Path, evalstore: Evalstore
) -> None:
    for words in ("warm", "any", "warm"):
        tree(workspace, {"tests/weather.md": WEATHER.replace("must be warm", f"must be {words}")})
        evalstore("run", "-q")
    fixed = evalstore("show", "@~1").stdout
    assert "    2 pass (1 fixed)\n" in fixed
    [marked] = [line for line in fixed.splitlines() if line.endswith("  (fixed)")]
    assert marked.startswith("pass  tests/weather.md [city=Oslo]")
    assert evalstore("show", "@~1", "-v").stdout == fixed
    assert "  (broke)\n" in evalstore("show", "@").stdout
    assert "(broke)" not in evalstore("show", "@~2").stdout


def test_no_line_of_a_log_or_of_a_marked_failure_is_wider_than_the_terminal(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in ("any", "warm"):
        tree(workspace, {"tests/weather.md": WEATHER.replace("must be warm", f"must be {words}")})
        ran = evalstore("run", "-m", "scripted/one", "--message", "words " * 20).stdout
    listed = evalstore("log", "--oneline").stdout.splitlines()
    assert [line[-1] for line in listed] == ["…", "…"]
    marked = ran.splitlines().index("           (broke)")
    assert all(len(line) <= 60 for line in (*listed, *ran.splitlines()[: marked + 1]))
