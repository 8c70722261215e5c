"""`diff`, `log`, `show`: whole outputs."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from evalstore import Workspace
from evalstore.planning.options import Location
from evalstore.results.log.log import versions_of
from tests.builders import tree
from tests.interfaces.cli.conftest import ONE, SETTINGS, Echo, Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit


def test_log_without_a_run(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("log") == Ran(0, "", "No runs yet: 'evalstore run' makes one.\n")


def test_log_lists_runs_newest_first(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "--message", "the first")
    evalstore("run")
    assert evalstore("log").stdout == (
        "run <id>  <when>\n"
        "    complete: 0 new answers, 2 reused, 0 new verdicts, $0\n"
        "    1 pass, 1 fail\n"
        "\n"
        "run <id>  <when>\n"
        "    the first\n"
        "    complete: 2 new answers, 2 new verdicts, $0.0600 simulated\n"
        "    1 pass, 1 fail\n"
    )
    assert evalstore("log", "-n", "1", "--oneline") == Ran(
        0, "<short>  <when>  1 pass, 1 fail\n", "(1 older)\n"
    )


def test_log_names_new_and_changed_candidates_and_evaluators_with_and_without_a_file(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    two = ONE.replace("scripted/one", "scripted/two")
    settings = SETTINGS.replace("scripted/one", "scripted/one, scripted/two")
    tree(workspace, {"models/two.yaml": two, "evalstore.yaml": settings})
    evalstore("run", "-m", "scripted/two", "--message", "the second alone")
    tree(workspace, {"evalstore.yaml": f"{settings.replace('[scripted/one, ', '[')}verdict: all\n"})
    evalstore("run")
    added = "    edit: new candidate scripted/two\n"
    other = "    edit: candidate scripted/one removed\n    edit: verdict: majority -> all"
    for arguments in ((), ("tests/weather.md",)):
        newest, second, first = evalstore("log", *arguments).stdout.split("\n\n")
        assert other in newest
        assert f"{second}\n".endswith(added)
        assert "candidate" not in first
    second = evalstore("log", "--oneline").stdout.splitlines()[1]
    assert second.endswith("new candidate scripted/two  the second alone")
    assert "candidate scripted/one removed" in evalstore("log", "-n", "1").stdout
    evalstore("run", "-m", "scripted/one")  # it is in no settings
    evalstore("run")
    for command in (("log",), ("log", "tests/weather.md"), ("log", "-n", "1")):
        assert "removed" not in evalstore(*command).stdout.split("\n\n")[0]
    versions = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert [version.edits for version in versions] == [
        ("new candidate scripted/one",),
        ("candidate scripted/one removed", "verdict: majority -> all"),
        ("new candidate scripted/two",),
        ("new",),
    ]
    cause = "2 gone (candidate scripted/one not asked)"
    assert cause in evalstore("diff", "@~1", "@").stdout
    cause = "2 new (new candidate scripted/one; 1 failed)"
    assert cause in evalstore("diff", "@", "@~1").stdout


def test_log_of_a_file_shows_the_edits(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "Tell me how is")
    evalstore("run")
    evalstore("run")
    assert evalstore("log", "tests/weather.md").stdout == (
        "run <id>  <when>\n"
        "    1 pass, 1 fail\n"
        "    edit: message 1, line 1 in [city=Oslo] and 1 other row: "
        "How is Oslo? -> Tell me how is Oslo?\n"
        "\n"
        "run <id>  <when>\n"
        "    1 pass, 1 fail\n"
        "    edit: new\n"
    )


def test_diff_and_log_show_the_edited_end_of_a_long_line_and_wrap_between_words(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = "and answer in full sentences, as the customers of this shop expect it"
    edit(workspace / "tests/weather.md", "How is", f"Tell me, {end}, how is")
    evalstore("run")
    edit(workspace / "tests/weather.md", "?", "?\n\n- Please.")
    edit(workspace / "tests/weather.md", "}}?", "}} today?")
    monkeypatch.setenv("COLUMNS", "60")
    for command in (("diff",), ("status",), ("run",), ("log", "tests/weather.md")):
        lines = [line for line in evalstore(*command).stdout.splitlines() if line[:4] == "    "]
        assert max(map(len, lines)) <= 60
        values = [line.strip() for line in lines if line.strip()[:2] in ("- ", "+ ")]
        if command != ("run",):
            old, new, *others = values
            assert (old[:3], old[-23:]) == ("- …", "expect it, how is Oslo?")
            assert (new[:3], new[-29:]) == ("+ …", "expect it, how is Oslo today?")
            assert others == ([] if command == ("status",) else ["+ - Please."])
    whole = " ".join(evalstore("diff", "@~1", "@", "-v").stdout.split())
    assert f"+ Tell me, {end}, how is Oslo today?" in whole


def test_log_of_a_file_shows_an_edit_with_the_run_that_judged_it(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"tests/other.md": "# 👤\n\nHi\n\n---\n\nE\n"})
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    evalstore("run", "tests/other.md")
    assert evalstore("log", "tests/weather.md").stdout.startswith(
        "run <id>  <when>\n"
        "    arguments: tests/other.md (1 of 3 cases)\n"
        "    the run did not cover this file\n"
        "    edit: instructions changed"
    )
    judged = documents("run")["run"]
    evalstore("run")
    newest, first = documents("log", "tests/weather.md")["runs"]
    assert (newest["run"], newest["verdicts"]["pass"]) == (judged, 2)
    assert newest["edits"][0]["what"] == "instructions changed: line 1"
    assert first["edits"][0]["what"] == "new"


def test_log_of_a_file_lists_a_run_in_which_only_its_verdicts_changed(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("label", "tests/weather.md::city=Oslo", "pass", "--as", "Ada")
    evalstore("run")
    evalstore("run")
    assert evalstore("log", "tests/weather.md").stdout == (
        "run <id>  <when>\n"
        "    2 pass (1 fixed: by a label of Ada)\n"
        "    labelled by Ada\n"
        "\n"
        "run <id>  <when>\n"
        "    1 pass, 1 fail\n"
        "    edit: new\n"
    )
    evalstore("label", "tests/weather.md::city=Oslo", "--remove", "--as", "Ada")
    evalstore("label", "tests/weather.md::city=Rome", "fail", "--as", "Bob")
    edit(workspace / "evalstore.yaml", "candidates:", "verdict: all\ncandidates:")
    evalstore("run")
    newest = (
        "run <id>  <when>\n    {}\n    label of Ada removed\n{}    edit: verdict: majority -> all\n"
    )
    of_file = evalstore("log", "tests/weather.md").stdout
    assert of_file.startswith(
        newest.format(
            "2 fail (2 broke: 1 by a label of Bob, 1 by a removed label)", "    labelled by Bob\n"
        )
    )
    of_row = evalstore("log", "tests/weather.md::city=Oslo").stdout
    assert of_row.startswith(newest.format("1 fail (1 broke: by a removed label)", ""))


def test_log_of_a_renamed_file_names_the_label_that_changed_its_verdict(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    evalstore("label", "tests/weather.md::city=Oslo", "pass", "--as", "Ada")
    (workspace / "tests/weather.md").rename(workspace / "tests/cold.md")
    evalstore("run")
    renamed = "    edit: renamed: tests/weather.md -> tests/cold.md\n"
    counts = "2 pass (1 fixed: by a label of Ada)"
    start = f"run <id>  <when>\n    {counts}\n{renamed}    labelled by Ada\n\n"
    assert evalstore("log", "tests/cold.md").stdout.startswith(start)
    row = start.replace("2 pass", "1 pass")
    assert evalstore("log", "tests/cold.md::city=Oslo").stdout.startswith(row)
    other = evalstore("log", "tests/cold.md::city=Rome").stdout
    assert other.startswith(f"run <id>  <when>\n    1 pass\n{renamed}\n")


def test_log_tells_results_that_waited_from_those_that_changed(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "tests/weather.md")
    edit(workspace / "tests/weather.md", "How is", "What of")
    edit(workspace / "models/one.yaml", "responses:\n", "responses:\n  - {error: 400}\n")
    evalstore("run")
    edit(workspace / "models/one.yaml", "  - {error: 400}\n", "")
    evalstore("run")
    assert evalstore("log", "tests/weather.md").stdout.startswith(
        "run <id>  <when>\n"
        "    1 pass, 1 fail\n"
        "    no edit: pending results, now judged\n"
        "\n"
        "run <id>  <when>\n"
        "    2 pending\n"
        "    edit: message 1, line 1"
    )


def test_log_of_first_results_of_other_rows_says_of_none_that_it_waited(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "models/one.yaml", "responses:\n", "responses:\n  - {error: 400}\n")
    evalstore("run", "tests/weather.md::city=Rome")
    edit(workspace / "models/one.yaml", "  - {error: 400}\n", "")
    evalstore("run", "tests/weather.md::city=Oslo")
    assert "    no edit: other results\n" in evalstore("log", "tests/weather.md").stdout


def test_log_of_a_run_names_the_command_that_shows_it(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    run = documents("run")["run"]
    for name in ("@", run[:6]):
        assert evalstore("log", name) == Ran(
            2,
            "",
            f"error: no run has a test file '{name}'\nhint: 'evalstore show {name}' shows a run\n",
        )
    assert "hint: the test files are tests/weather.md" in evalstore("log", "abcd").stderr


def test_log_is_wrapped_between_words_in_a_narrow_terminal(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "--message", "the first of all these runs, with a very long note")
    whole = evalstore("log").stdout
    monkeypatch.setenv("COLUMNS", "52")
    narrow = evalstore("log").stdout
    assert narrow.split() == whole.split()
    assert narrow.startswith("run <id>")
    assert "    the first of all these runs, with a very long\n    note\n" in narrow


def test_log_of_a_row_lists_the_runs_that_changed_it(workspace: Path, evalstore: Evalstore) -> None:
    test = workspace / "tests/weather.md"
    evalstore("run")
    edit(test, "[Oslo, Rome]", "[Rome, Bonn]")
    evalstore("run")
    edit(test, "[Rome, Bonn]", "[Bonn, Oslo, Rome]")
    edit(test, "How is", "What of")
    evalstore("run", f"{test}::city=Bonn")  # the run keeps the path in the workspace
    assert evalstore("log", "tests/weather.md::Oslo").stdout == (
        "run <id>  <when>\n"
        "    arguments: tests/weather.md::city=Bonn (1 of 3 cases)\n"
        "    the run did not cover this row\n"
        "    edit: row city=Oslo is new\n"
        "\n"
        "run <id>  <when>\n"
        "    edit: row city=Oslo is gone\n"
        "\n"
        "run <id>  <when>\n"
        "    1 fail\n"
        "    edit: new\n"
    )
    evalstore("run")
    evalstore("label", "tests/weather.md::Rome", "fail", "--as", "Ada")
    edit(test, "Bonn, Oslo, ", "")
    evalstore("run")
    rome = evalstore("log", "tests/weather.md [city=Rome]", "--oneline").stdout  # has no label now
    assert [line.split("  ", 2)[2] for line in rome.splitlines()] == [
        "1 fail (1 broke: by a label of Ada)  labelled by Ada",
        "1 pass  message 1, line 1: How is Rome? -> What of Rome?",
        "1 pass  new",
    ]
    assert evalstore("log", "tests/weather.md::city=Oslo").stdout.count("run <id>") == 4
    whole = evalstore("log", "tests/weather.md::city=Oslo").stdout
    assert evalstore("log", "tests/weather.md::Oslo").stdout == whole  # a part of a removed label
    assert evalstore("log", "tests/weather.md::city=Roma").stderr == (
        "error: no row is called 'tests/weather.md::city=Roma'\n"
        "hint: 'tests/weather.md' has one row: leave out '::city=Roma'\n"
    )


def test_what_changed_nothing_of_a_test_is_no_edit_of_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    settings, test = workspace / "evalstore.yaml", workspace / "tests/weather.md"
    tree(workspace, {"models/two.yaml": ONE.replace("/one", "/two")})
    edit(settings, "/one]", "/one, scripted/two]\ncandidatesTemperature: 0.9")
    edit(test, "---\n", "---\noptions: {temperature: 0.5}\n")
    evalstore("run", "-m", "scripted/one")
    evalstore("run")  # the other candidate was there before
    edit(settings, "0.9", "0.2")
    evalstore("run")
    logged = evalstore("log", "tests/weather.md").stdout
    edits = [line.strip() for line in logged.splitlines() if "edit:" in line]
    assert edits == ["no edit: first results of scripted/two", "edit: new"]


def test_changes_of_the_candidates_are_edits_and_explain_what_is_new_or_gone(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    settings, test = workspace / "evalstore.yaml", workspace / "tests/weather.md"
    tree(workspace, {"models/two.yaml": ONE.replace("/one", "/two").replace("Cold.", "Hot.")})
    evalstore("run")
    edit(settings, "/one]", "/one, scripted/two]")
    edit(test, "must be warm", "must be short")
    evalstore("run")
    evalstore("run", "-m", "scripted/one")  # removes no candidate
    edit(settings, "/one, scripted/two]", "/two]\ncandidatesTemperature: 0.5")
    tree(workspace, {"tests/a.md": "# 👤\n\nHi\n\n---\n\nE\n"})
    evalstore("run")
    assert evalstore("log", "tests/weather.md").stdout == (
        "run <id>  <when>\n"
        "    2 pass\n"
        "    edit: temperature of scripted/two: none -> 0.5\n"
        "    edit: candidate scripted/one removed\n"
        "\n"
        "run <id>  <when>\n"
        "    4 pass (1 fixed)\n"
        "    edit: instructions changed: line 1: "
        "The answer must be warm. -> The answer must be short.\n"
        "    edit: new candidate scripted/two\n"
        "\n"
        "run <id>  <when>\n"
        "    1 pass, 1 fail\n"
        "    edit: new\n"
    )
    edit(test, "[Oslo, Rome]", "[Rome]")
    evalstore("run")
    causes = "1 new (new file tests/a.md), 3 gone (candidate scripted/one not asked, 1 row removed)"
    assert f"{causes}, 1 with the same answer" in evalstore("diff", "@~3", "@", "--stat").stdout
    causes = "3 new (new candidate scripted/one, 1 new row), 1 gone (file tests/a.md removed)"
    assert causes in evalstore("diff", "@", "@~3", "--stat").stdout
    assert documents("diff", "@~1", "@")["causes"] == {"new": [], "gone": ["1 row removed"]}
    page = Workspace(workspace).diff("@~1", "@")._repr_html_()
    assert "0 new, 1 gone (1 row removed), " in page


def test_diff_needs_a_run(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("diff") == Ran(
        2,
        "",
        "error: unknown run '@'\nhint: no runs yet: 'evalstore run' makes one\n",
    )


def test_diff_shows_flips_with_the_feedback_of_both_sides(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be short", "must be warm")
    evalstore("run")
    expected = (
        "run <short> (<when>) -> run <short> (<when>)\n"
        "1 broke, 1 unchanged\n"
        "pass rate 100.0% -> 50.0% (2 results in 1 file, judged on both sides)\n"
        "-50.0 points (no interval: too wide with 2 rows); the pass rate of one row changed: "
        "too few rows to test significance\n"
        "\nEdited:\n"
        "    tests/weather.md\n"
        "        instructions changed: line 1: "
        "The answer must be short. -> The answer must be warm.\n"
        "Broke (1):\n"
        "    tests/weather.md [city=Oslo]  scripted/one  pass -> fail"
        "  (instructions changed)"
        "  <short>\n"
        "        now: It is cold there.\n"
    )
    hint = '(use "evalstore show ID" to read an answer)\n'
    assert evalstore("diff", "@~1", "@") == Ran(0, expected, hint)
    assert evalstore("diff", "@~1..@").stdout == expected
    assert evalstore("diff", "@~1", "@", "--exit-code").exit_code == 1
    assert evalstore("diff", "@~1", "@", "--name-only").stdout == "tests/weather.md\n"
    assert evalstore("diff", "@", "@", "--exit-code").exit_code == 0


def test_diff_of_the_workspace_shows_what_is_missing(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "What of")
    assert evalstore("diff").stdout == (
        "run <short> (<when>) -> the workspace\n"
        "2 changed (all now pending), 0 unchanged\n"
        "no result is judged on both sides\n"
        "\nEdited:\n"
        "    tests/weather.md\n"
        "        message 1, line 1 in [city=Oslo] and 1 other row: How is Oslo? -> What of Oslo?\n"
        "Changed (2):\n"
        "    tests/weather.md [city=Oslo]  scripted/one  fail -> pending  (test changed)  <short>\n"
        "    tests/weather.md [city=Rome]  scripted/one  pass -> pending  (test changed)  <short>\n"
    )


def test_diff_lists_few_of_many_cases_that_are_now_pending(
    workspace: Path, evalstore: Evalstore
) -> None:
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Bonn, Kyiv, Riga, Bern]")
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    edit(workspace / "tests/weather.md", "[Oslo, Rome, Bonn, ", "[Nice, Oslo, Rome, ")
    shown = evalstore("diff").stdout
    assert "Changed (5):\n" in shown
    assert shown.count("-> pending") == 3
    assert "    … 2 more (-v lists all)\nNew (1):\n" in shown
    assert "was: It is cold there." not in shown
    whole = evalstore("diff", "-v").stdout
    assert whole.count("-> pending") == 5
    edit(workspace / "tests/weather.md", ", Bern]", "]")  # a line says no more than the fourth
    assert evalstore("diff").stdout.count("-> pending") == 4
    assert "was: It is cold there." in whole


def test_diff_with_answers(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Rome]")
    edit(workspace / "tests/weather.md", "How is", "Really, how is")
    edit(workspace / "models/one.yaml", "{answer: Warm.", "{answer: Hot.")
    evalstore("run")
    assert "        -Warm.\n        +Hot.\n" in evalstore("diff", "@~1", "@", "--answers").stdout


def test_a_run_of_one_row_makes_no_other_row_gone(workspace: Path, documents: Any) -> None:
    documents("run")
    documents("run", "tests/weather.md::city=Oslo")
    document = documents("diff", "@~1", "@")
    assert (document["gone"], document["new"], document["unchanged"]) == ([], [], 1)


def test_a_diff_with_a_partial_run_says_so(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    evalstore("run", "tests/weather.md::city=Oslo")
    about = "note: run <short> is partial: tests/weather.md::city=Oslo (1 result); "
    assert evalstore("diff") == Ran(
        0,
        "run <short> (<when>) -> the workspace\n"
        f"{about}the other one comes from the last earlier run that judged it\n"
        "2 unchanged\n"
        "pass rate 50.0% -> 50.0% (2 results in 1 file, judged on both sides)\n",
        '(use "evalstore diff @~1 @" to compare the last two runs)\n',
    )
    compared, sides = (
        evalstore("diff", "@~1", "@"),
        "run <short> (<when>) -> run <short> (<when>)\n",
    )
    assert compared.stdout.startswith(f"{sides}{about}only those are compared\n1 ")
    assert compared.stderr == '(use "evalstore diff <short>" to compare all cases)\n'
    assert evalstore("diff", "@~1").stdout.startswith(
        "run <short> (<when>) -> the workspace\n2 unchanged\n"
    )


def test_diff_compares_a_case_that_the_last_run_left_pending_with_the_run_that_judged_it(
    echo: Echo, evalstore: Evalstore
) -> None:
    tree(Path.cwd(), {"tests/a.md": "# 👤\n\nHi\n\n---\n\n```checks\n- equals: Hi\n```\n"})
    evalstore("run")
    edit(Path("tests/a.md"), "\nHi\n\n", "\nHello\n\n")
    echo.failing = "Hello"
    evalstore("run")
    echo.failing = None
    evalstore("run")
    assert evalstore("diff", "@~1", "@").stdout.startswith(
        "run <short> (<when>) -> run <short> (<when>)\n"
        "note: run <short> did not judge all cases; "
        "the other one comes from the last earlier run that judged it\n"
    )
    assert "\n1 broke, 0 unchanged\n" in evalstore("diff", "@~1", "@").stdout
    assert "note" not in evalstore("diff", "@~2", "@").stdout


def test_a_renamed_file_is_paired(workspace: Path, documents: Any) -> None:
    documents("run")
    (workspace / "tests/weather.md").rename(workspace / "tests/climate.md")
    assert documents("status")["changes"] == [
        {
            "code": "R ",
            "file": "tests/climate.md",
            "asked": 0,
            "judged": 0,
            "reason": "was tests/weather.md",
        }
    ]
    assert documents("status")["ask"] == 0
    document = documents("diff")
    assert (document["gone"], document["new"], document["unchanged"]) == ([], [], 2)


def test_paths_after_two_dashes(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    (workspace / "tests/other.md").write_text("# 👤\n\nHi\n\n---\n\nE\n")
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "How was")
    edit(workspace / "tests/other.md", "Hi", "Ho")
    assert {item["file"] for item in documents("diff", "--", "tests/other.md")["changed"]} == {
        "tests/other.md"
    }
    assert (
        evalstore("diff", "@", "--name-only", "--", "tests/other.md").stdout == "tests/other.md\n"
    )


def test_show_anything_by_its_id(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    run = documents("run")
    case = documents("ls", "cases")["cases"][0]
    session = run["cases"][0]["session"]
    assert documents("show", run["run"][:8])["kind"] == "run"
    assert documents("show", case["tests"][0])["messages"] == [
        {"role": "user", "content": "How is Oslo?"}
    ]
    assert documents("show", case["evaluation"])["instructions"] == "The answer must be warm."
    shown = documents("show", session)
    assert shown["turns"][0]["text"] == "Cold."
    assert shown["related"]["evaluations"][0]["feedback"] == "It is cold there."
    assert documents("show", shown["related"]["evaluations"][0]["id"])["verdict"] == "fail"
    assert shown["related"]["file"] == "tests/weather.md"
    assert shown["related"]["row"] == "city=Oslo"
    assert documents("show", "@:tests/weather.md")["related"]["file"] == "tests/weather.md"


def test_show_a_session(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    session = documents("run")["cases"][0]["session"]
    head = "answer <short>  scripted/one  <when>\n{}  tests/weather.md [city=Oslo]  scripted/one\n"
    judged = "fail  by scripted/judge  <when>  <short>\n  It is cold there.\n"
    talk = "\nuser: How is Oslo?\nanswer: Cold.\n"
    messages = "instructions: The answer must be warm.\n"
    since = "history:\n    failing since run <short> (<when>), the first run that judged it\n"
    foot = (
        "\n$0.0300 simulated, 10 in + 2 out tokens, finish reason stop, "
        "scripted/one, <when>\n"
        "answer <short>, question <short>, test <short>, model <short>, judging version <short>\n"
    )
    page = head.format("fail") + judged + since + talk + messages + foot
    assert evalstore("show", session) == Ran(0, page, "")
    edit(workspace / "tests/weather.md", "must be warm.", "must be short.\\nAnd {{city}}.")
    evalstore("run")
    shown = evalstore("show", session).stdout
    why_not = "other instructions or checks"
    earlier = (
        f"    fail  by scripted/judge  ({why_not})  <when>  <short>\n      It is cold there.\n"
    )
    assert shown.startswith(
        head.format("pass") + "pass  by scripted/judge  <when>  <short>\nhistory:\n"
    )
    assert f"\nverdicts with other instructions, checks or judges:\n{earlier}\n$0.0300" in shown
    messages = "instructions of another version (<short>): The answer must be warm.\n"
    assert messages not in shown
    assert messages in evalstore("-v", "show", session).stdout


def test_show_a_session_that_no_run_knows(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    session = documents("run")["cases"][0]["session"]
    with sqlite3.connect(workspace / ".evalstore/store.db") as store:
        store.execute("DELETE FROM evaluations")
        store.execute("DELETE FROM runs")
    assert evalstore("show", session).stdout.startswith(
        "answer <short>  scripted/one  <when>\n"
        "\nuser: How is Oslo?\nanswer: Cold.\n\n$0.0300 simulated, 10 in"
    )


def test_show_a_run_and_a_judgement(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    session = documents("run")["cases"][0]["session"]
    assert evalstore("show") == Ran(
        0,
        "run <id>  <when>\n"
        "    complete: 2 new answers, 2 new verdicts, $0.0600 simulated\n"
        "    1 pass, 1 fail\n"
        "\n"
        "fail  tests/weather.md [city=Oslo]  scripted/one  <short>\n"
        "pass  tests/weather.md [city=Rome]  scripted/one  <short>\n",
        "",
    )
    judgement = documents("show", session)["related"]["evaluations"][0]["id"]
    assert evalstore("show", judgement).stdout.startswith(
        "verdict <short>  <when>\n"
        "fail  by scripted/judge  <when>  <short>\n"
        "  It is cold there.\n"
        "answer: <short>\n"
        "instructions: The answer must be warm.\n"
    )


def test_show_versions(workspace: Path, documents: Any, evalstore: Evalstore) -> None:
    (workspace / "tests/note.txt").write_text("one\x1b[2J\ntwo\n")
    (workspace / "tests/dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    edit(
        workspace / "tests/weather.md",
        "How is {{city}}?",
        "{{city}}\x07 `{{_file:note.txt}}`\n\n`{{_file:dot.png}}`",
    )
    shown = documents("show", documents("run")["cases"][0]["session"])
    conversation = (
        "user:\n    Oslo\\x07 [file note.txt, text/plain]\n\n    [file dot.png, image/png]\n"
    )
    assert evalstore("show", shown["test"]).stdout == f"test <id>\n{conversation}"
    page = evalstore("show", "@:tests/weather.md").stdout
    assert page.startswith("cases <id>\ntests/weather.md in run <short>\n\n")
    assert "    instructions: The answer must be warm.\n" in page
    note, dot = (
        part["file"]
        for part in shown["related"]["test"]["messages"][0]["content"]
        if "file" in part
    )
    assert evalstore("show", note).stdout == ("file <id>  text/plain  12 bytes\none\\x1b[2J\ntwo\n")
    assert evalstore("show", dot).stdout == "file <id>  image/png  8 bytes\n"
    cases = documents("show", "@:tests/weather.md")["id"]
    results = page[page.index("tests/weather.md in run") : page.index("\nrow city=Oslo\n")]
    assert evalstore("show", cases).stdout == page.replace(results, "")
    assert evalstore("show", shown["model"]).stdout == (
        "model <id>\ncode: scripted/one\nprovider: scripted\n"
    )


def test_a_test_file_is_shown_with_its_results(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    run = documents("run")["run"]
    tree(workspace, {"tests/other.md": "# 👤\n\nHi\n\n---\n\nE\n"})
    evalstore("run", "tests/other.md")
    shown = evalstore("show", "tests/weather.md")
    assert shown.stdout.startswith(
        "cases <id>\n"
        "tests/weather.md in run <short>\n\n"
        "fail  tests/weather.md [city=Oslo]  scripted/one  <short>\n"
        "pass  tests/weather.md [city=Rome]  scripted/one  <short>\n\n"
        "row city=Oslo\n"
    )
    assert shown.stderr == (
        '(use "evalstore show <short>:tests/weather.md::city=Oslo -m scripted/one" to see why)\n'
    )
    assert evalstore("show", f"{run}:tests/weather.md") == shown
    assert (
        "fail  tests/weather.md [city=Oslo]" not in evalstore("show", "@:tests/weather.md").stdout
    )
    verdicts = [
        [result["verdict"] for result in documents("show", name)["related"]["results"]]
        for name in ("tests/weather.md", f"{run}:tests/weather.md", "@work:tests/weather.md")
    ]
    assert verdicts == [["fail", "pass"]] * 3


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ("@~7", "error: unknown run '@~7'\nhint: there is only one run, @\n"),
        ("abc", "error: 'abc' is too short\nhint: write at least 4 digits\n"),
        (
            "hello",
            "error: 'hello' is not a revision\n"
            "hint: write @, @~1, @{monday}, @work, a name set with 'evalstore tag', or the first "
            "digits of an id as 'evalstore log' shows them\n",
        ),
        ("weather", "error: 'weather' is not a revision\nhint: did you mean 'tests/weather.md'?\n"),
        (
            "city=Oslo",
            "error: 'city=Oslo' is not a revision\n"
            "hint: did you mean 'tests/weather.md::city=Oslo'?\n",
        ),
        (
            "_evaluator_default",
            "error: '_evaluator_default' is the name of a prompt, and 'show' takes ids\n"
            "hint: 'evalstore show <short>' shows it once it is stored; "
            "'evalstore ls prompts' lists the ids\n",
        ),
    ],
)
def test_show_what_is_not_there(
    workspace: Path, evalstore: Evalstore, revision: str, message: str
) -> None:
    evalstore("run")
    assert evalstore("show", revision) == Ran(2, "", message)


def test_what_a_run_left_out_is_compared_with_the_run_before_it(
    workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "must be short")
    tree(workspace, {"tests/other.md": "# 👤\n\nHi\n\n---\n\nE\n"})
    evalstore("run")
    evalstore("run", "tests/other.md")
    edit(workspace / "tests/weather.md", "must be short", "must be warm")
    output = evalstore("diff")
    assert output.stderr == '(use "evalstore show ID" to read an answer)\n'
    assert output.stdout.startswith(
        "run <short> (<when>) -> the workspace\n"
        "note: run <short> is partial: tests/other.md (1 result); "
        "the other 2 come from the last earlier run that judged them\n"
        "2 changed (all now pending), "
    )
    assert (
        "\n\nEdited:\n"
        "    tests/weather.md\n"
        "        instructions changed: line 1: "
        "The answer must be short. -> The answer must be warm.\n"
        "Changed (2):\n"
        "    tests/weather.md [city=Oslo]  scripted/one  pass (run <short>) -> pending"
        "  (instructions changed)"
        "  <short>\n"
    ) in output.stdout
    evalstore("run")
    compared = documents("diff", "@~1", "@")
    assert [item["row"] for item in compared["broke"]] == ["city=Oslo"]
    assert compared["unchanged"] == 2
    assert [item["file"] for item in compared["edits"]] == ["tests/weather.md"]


def test_a_file_of_a_workspace_without_candidates_is_shown(
    workspace: Path, evalstore: Evalstore
) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text(re.sub("candidates: .*", "candidates: []", settings.read_text()))
    shown = evalstore("show", "@work:tests/weather.md")
    assert shown.exit_code == 0
    assert "row city=Oslo" in shown.stdout


def test_a_pending_result_is_not_called_failed(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    edit(workspace / "tests/weather.md", "must be warm", "must be icy")
    shown = evalstore("show", "@work:tests/weather.md")
    assert "pending" in shown.stdout
    assert "failed" not in shown.stderr


def test_the_log_of_a_file_says_how_many_runs_it_leaves_out(
    workspace: Path, evalstore: Evalstore
) -> None:
    for _ in range(3):
        evalstore("run", "-q")
    log = evalstore("log", "tests/weather.md")
    assert log.stdout.count("run <id>") == 1
    assert log.stderr == "(2 other runs lack the file, or changed neither it nor its verdicts)\n"
    edit(workspace / "tests/weather.md", "[Oslo, ", "[Bonn, Oslo, ")
    evalstore("run", "-q")
    assert evalstore("log", "tests/weather.md").stdout.count("run <id>") == 2
    row = evalstore("log", "tests/weather.md::city=Oslo")
    assert row.stdout.count("run <id>") == 1
    assert row.stderr == "(3 other runs lack the row, or changed neither it nor its verdicts)\n"
