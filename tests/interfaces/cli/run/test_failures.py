"""`log --failures`, and `show` of a failure and of its question: whole outputs."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.conftest import Evalstore, Ran
from tests.interfaces.cli.run.test_run import edit

ONE = """\
id: scripted/one
provider: scripted
responses:
  - {when: Oslo, error: {status: 401, message: bad key}}
  - {answer: Warm., usage: {inputTokens: 10, outputTokens: 2}}
"""
VERDICT = "answer: {pass: false, feedback: It is cold there.}"
KEY_HINT = (
    "check the key in the variable that 'apiKeyEnvVar' of the provider file names; "
    "without that field, no key is sent to a 'baseURL'"
)


@pytest.fixture
def failing(workspace: Path) -> Path:
    """The workspace whose row Oslo has no answer."""
    (workspace / "models/one.yaml").write_text(ONE)
    edit(workspace / "evalstore.yaml", "[scripted/one]", "[scripted/one]\nretries: 0")
    return workspace


def times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)


def test_no_failures(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    assert evalstore("log", "--failures") == Ran(0, "", "No call has failed.\n")


def test_a_failure_is_listed_with_its_place_and_a_hint(failing: Path, evalstore: Evalstore) -> None:
    evalstore("run")
    head = "<short>  <when>  scripted/one  tests/weather.md [city=Oslo]  status 401, 1 try"
    message = "the server answered 401: bad key"
    hint = f"hint: status 401: {KEY_HINT}\n"
    assert evalstore("log", "--failures") == Ran(0, f"{head}\n    {message}\n", hint)
    assert evalstore("log", "--failures", "--oneline") == Ran(0, f"{head}  {message}\n", hint)
    for place in ("tests/weather.md", "tests/weather.md::city=Oslo", "weather.md::Oslo"):
        assert evalstore("log", "--failures", place).stdout == f"{head}\n    {message}\n"
    assert evalstore("log", "--failures", "tests/weather.md::city=Rome").stdout == ""
    unknown = evalstore("log", "--failures", "tests/weather.md::Bergen")
    assert "error: no row is called 'tests/weather.md::Bergen'" in unknown.stderr


def test_failures_are_newest_first_and_a_limit_says_what_it_cut(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    edit(failing / "models/one.yaml", "bad key", "still bad")
    evalstore("run")
    document = documents("log", "--failures")
    assert [failure["message"] for failure in document["failures"]] == [
        "the server answered 401: still bad",
        "the server answered 401: bad key",
    ]
    assert document["total"] == 2
    ran = evalstore("log", "--failures", "-n", "1")
    assert ran.stdout.count("<short>") == 1
    assert "still bad" in ran.stdout
    assert "(1 older; -v lists all)\n" in ran.stderr
    cut = documents("log", "--failures", "-n", "1")
    assert (len(cut["failures"]), cut["total"]) == (1, 2)


def test_without_a_limit_people_see_the_newest_and_v_shows_all(
    failing: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.interfaces.cli.commands.history._FAILURES", 1)
    evalstore("run")
    evalstore("run")
    ran = evalstore("log", "--failures")
    assert ran.stdout.count("bad key") == 1
    assert "(1 older; -v lists all)" in ran.stderr
    assert evalstore("log", "-v", "--failures").stdout.count("bad key") == 2
    assert len(documents("log", "--failures")["failures"]) == 2


def test_failures_of_another_file_are_not_listed(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    (failing / "tests/other.md").write_text("# 👤\n\nHi\n\n---\n\nE\n")
    evalstore("run")
    assert evalstore("log", "--failures", "other.md") == Ran(0, "", "No call has failed.\n")
    assert documents("log", "--failures", "weather.md")["file"] == "tests/weather.md"
    assert evalstore("log", "--failures", "tests/nope.md") == Ran(
        2,
        "",
        "error: no run has a test file 'tests/nope.md'\n"
        "hint: the test files are tests/other.md, tests/weather.md\n",
    )


def test_a_judge_that_failed_is_an_evaluator_at_the_place_of_the_answer(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    (workspace / "models/judge.yaml").write_text(
        "id: scripted/judge\nprovider: scripted\nresponses:\n  - error: {status: 404}\n"
    )
    evalstore("run")
    actual = documents("log", "--failures")["failures"]
    first = next(item for item in actual if item["row"] == "city=Rome")
    assert (first["model"], first["file"]) == ("scripted/judge", "tests/weather.md")
    question = documents("show", first["session"])["related"]["question"]
    assert first["question"] == question
    assert "scripted/judge (as judge)  tests/weather.md" in evalstore("log", "--failures").stdout
    shown = documents("show", question)["related"]
    assert [failure["failure"] for failure in shown["failures"]] == [first["failure"]]
    assert shown["sessions"] == [first["session"]]
    told = f"\nfailed calls: <short>  <time>  scripted/judge  status 404  {first['message']}\n"
    assert told in times(evalstore("show", question).stdout)


def test_show_a_failure(failing: Path, evalstore: Evalstore, documents: Any) -> None:
    evalstore("run")
    [item] = documents("log", "--failures")["failures"]
    assert times(evalstore("show", item["failure"]).stdout) == (
        "failure <short>  scripted/one\n"
        "tests/weather.md [city=Oslo]\n"
        "at: <time> (<when>)\n"
        "class: status 401\n"
        "tries: 1\n"
        "message: the server answered 401: bad key\n"
        f"hint: {KEY_HINT}\n"
        "ids: question <short>\n"
    )
    assert documents("show", item["failure"])["related"] == {
        "file": "tests/weather.md",
        "row": "city=Oslo",
        "prompt": None,
        "question": item["question"],
        "hint": KEY_HINT,
    }


def test_show_a_question_that_only_failed(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    [item] = documents("log", "--failures")["failures"]
    shown = evalstore("show", item["question"]).stdout
    assert "\ntests/weather.md [city=Oslo]\nanswers: none\n" in shown
    told = "  scripted/one  status 401  the server answered 401: bad key\n"
    assert f"\nfailed calls: <short>  <time>{told}" in times(shown)


def test_a_failure_is_placed_by_the_workspace_when_no_run_was_recorded(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    with sqlite3.connect(failing / ".evalstore/store.db") as store:
        store.execute("DELETE FROM runs")
    assert documents("log", "--failures")["failures"][0]["row"] == "city=Oslo"
    edit(failing / "tests/weather.md", "How is", "What of")
    assert "  scripted/one  question <short>  status 401" in evalstore("log", "--failures").stdout
    question = documents("log", "--failures")["failures"][0]["question"]
    assert "\nanswers: none\n" in evalstore("show", question).stdout


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("{status: 404}", "check the name"),
        ("{status: 429}", "too many calls at once"),
        ("{status: 503}", "the server failed"),
        ("{kind: timeout}", "raise --timeout"),
        ("{kind: context}", "shorten the test"),
        ("{kind: connection}", "check that the server runs"),
    ],
)
def test_common_failures_have_hints(
    failing: Path, evalstore: Evalstore, error: str, hint: str
) -> None:
    edit(failing / "models/one.yaml", "{status: 401, message: bad key}", error)
    evalstore("run")
    assert hint in evalstore("log", "--failures").stderr


def test_the_hint_for_an_incomplete_script_names_the_line_to_add(
    workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "models/one.yaml").write_text(
        "id: scripted/one\nprovider: scripted\nresponses:\n  - {when: Rome, answer: Warm.}\n"
    )
    (workspace / "models/judge.yaml").write_text(
        "id: scripted/judge\nprovider: scripted\nresponses:\n  - {when: never, answer: x}\n"
    )
    evalstore("run")
    line = "\"- {when: 'words of the message', answer: %s}\" to 'responses' in models/%s.yaml\n"
    assert evalstore("log", "--failures", "--oneline") == Ran(
        0,
        "<short>  <when>  scripted/judge (as judge)  tests/weather.md [city=Rome]  "
        "not in the script, 1 try  no response in the script matches the judged response 'Warm.'\n"
        "<short>  <when>  scripted/one  tests/weather.md [city=Oslo]  not in the script, 1 try  "
        "no response in the script matches 'How is Oslo?'\n",
        "hint: add a line such as "
        + line % ("{pass: true, feedback: ''}", "judge")
        + "hint: add a line such as "
        + line % ("'the answer'", "one"),
    )
    reasons = [
        row["feedback"]
        for row in json.loads(evalstore("ls", "results", "--json").stdout)["results"]
    ]
    assert reasons == [
        "scripted/one: no response in the script matches 'How is Oslo?'",
        "scripted/judge: no response in the script matches the judged response 'Warm.'",
    ]
    shown = evalstore("show", "tests/weather.md::city=Oslo").stdout
    assert "'the answer'}\" to 'responses' in the file of scripted/one" in shown


def test_a_failure_that_a_later_call_has_mended_says_so(
    failing: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run")
    edit(failing / "models/one.yaml", "error: {status: 401, message: bad key}", "answer: Cold.")
    judge = (failing / "models/judge.yaml").read_text()
    edit(failing / "models/judge.yaml", VERDICT, "error: {status: 401, message: no}")
    evalstore("run")
    messages = [times(line) for line in evalstore("log", "--failures").stdout.splitlines()]
    assert [line.endswith("since)") for line in messages[::2]] == [False, True]
    (failing / "models/judge.yaml").write_text(judge)
    evalstore("run")
    ran = evalstore("log", "--failures")
    lines = ran.stdout.splitlines()[::2]
    assert lines == [
        "<short>  <when>  scripted/judge (as judge)  tests/weather.md [city=Oslo]"
        "  status 401, 1 try  (judged since)",
        "<short>  <when>  scripted/one  tests/weather.md [city=Oslo]"
        "  status 401, 1 try  (answered since)",
    ]
    assert ran.stderr == (
        '(failed calls stay in this list; "since" marks those that succeeded later)\n'
    )
    assert [entry["resolved"] for entry in documents("log", "--failures")["failures"]] == [True] * 2


def test_a_failure_of_what_is_no_longer_asked_is_not_open(
    failing: Path, evalstore: Evalstore
) -> None:
    judge = (failing / "models/judge.yaml").read_text()
    (failing / "models/judge.yaml").write_text(
        "id: scripted/judge\nprovider: scripted\nresponses:\n  - error: {status: 404}\n"
    )
    evalstore("run")
    assert "no longer asked" not in evalstore("log", "--failures").stdout
    (failing / "models/judge.yaml").write_text(judge + "providerModelCode: other\n")
    edit(failing / "tests/weather.md", "How is", "What of")
    ran = evalstore("log", "--failures")
    ends = ["1 try  (no longer asked)"] * 2
    assert [line[-len(ends[0]) :] for line in ran.stdout.splitlines()[::2]] == ends
    assert ran.stderr == ""


def test_show_says_why_a_case_is_pending_whose_checks_passed(
    workspace: Path, evalstore: Evalstore
) -> None:
    (workspace / "models/judge.yaml").write_text(
        "id: scripted/judge\nprovider: scripted\n"
        "responses:\n  - {error: {status: 401, message: bad key}}\n"
    )
    edit(
        workspace / "tests/weather.md",
        "must be warm.",
        "must be warm.\n\n~~~checks\n- contains: Warm\n~~~",
    )
    evalstore("run")
    shown = evalstore("show", "tests/weather.md::city=Rome").stdout
    assert (
        "pending  tests/weather.md [city=Rome]  scripted/one\n"
        "An answer or a verdict is missing.\n"
        "  The call failed: scripted/judge: the server answered 401: bad key\n"
        "  hint: check the key"
    ) in shown
    assert "pass  by checks" in shown


def test_no_line_of_failures_is_wider_than_the_terminal(
    failing: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    monkeypatch.setenv("COLUMNS", "60")
    cut = evalstore("log", "--failures", "--oneline").stdout.splitlines()
    assert cut
    wrapped = evalstore("log", "--failures").stdout.splitlines()
    for line in (*cut, *wrapped):
        assert len(line) <= 60
    assert all(line.endswith("…") for line in cut)
