"""Dates and names are revisions, and `log` lists runs of a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.core import clock
from evalstore.interfaces.cli.main import main
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Evalstore
from tests.interfaces.cli.run.test_run import edit

DAY = 86_400_000_000


@pytest.fixture
def days(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    store_url: str | None,
) -> Any:
    """A run two days ago, in either database."""
    del store_url
    evalstore("run", "-q")
    later = clock.now() + 2 * DAY
    monkeypatch.setattr(clock, "now", lambda: later)


def test_a_date_is_the_newest_run_before_it(days: Any, documents: Any) -> None:
    [run] = documents("log")["runs"]
    for date in ("@{yesterday}", "@{1.day}", "@{now}"):
        assert documents("show", date)["id"] == run["run"]
    assert documents("diff", "--since", "yesterday")["from"] == run["run"]
    assert documents("diff", "@{yesterday}..@")["to"] == run["run"]
    assert documents("show", "@{23:59}:tests/weather.md")["kind"] == "cases"
    assert documents("show", "@{23:59}:tests/weather.md::Oslo")["kind"] == "case"
    assert documents("stats", "@{now}")["run"] == run["run"]


def test_what_is_no_date_and_a_date_before_all_runs_are_named(
    days: Any, evalstore: Evalstore
) -> None:
    wrong = evalstore("show", "@{frob}")
    bare = evalstore("diff", "2026-11-23").stderr
    assert bare.endswith("\nhint: write @{2026-11-23} for the newest run before that date\n")
    for command in (("log",), ("diff",), ("ls", "results", "--broke")):
        refused = evalstore(*command, "--since", "last week").stderr
        assert refused.startswith("error: 'last week' is not a date\nhint: write monday, "), command
    assert wrong.stderr.startswith("error: 'frob' is not a date\nhint: write monday, ")
    early = evalstore("diff", "--since", "3.weeks")
    assert early.stderr.startswith(
        "error: no run before '3.weeks'\nhint: the first run is <short> of 2"
    )
    assert early.stderr.endswith(": write '<short>'\n")
    assert evalstore("log", "--until", "frob").exit_code == 2


def test_log_lists_the_runs_of_a_time(days: Any, documents: Any, evalstore: Evalstore) -> None:
    assert len(documents("log", "--since", "3.days")["runs"]) == 1
    assert len(documents("log", "--since", "3.days", "--until", "2.weeks")["runs"]) == 0
    assert documents("log", "--since", "1.day")["total"] == 0
    assert len(documents("log", "tests/weather.md", "--until", "1.day")["runs"]) == 1
    assert documents("log", "tests/weather.md", "--since", "1.day")["runs"] == []
    day = clock.local_minute(clock.now())[:10]
    none = evalstore("log", "--since", "today")
    assert (none.stdout, none.stderr) == ("", f"No runs since {day} 00:00.\n")
    none = evalstore("log", "--since", "today", "--until", f"{day} 14:00")
    assert none.stderr == f"No runs since {day} 00:00 and before {day} 14:00.\n"


def test_times_are_dates_where_one_asks_for_them(
    workspace: Path, evalstore: Evalstore, capsys: pytest.CaptureFixture[str]
) -> None:
    evalstore("run", "-q")
    day = clock.local_minute(clock.now())[:10]
    for words in (["log", "-v"], ["show", "@"], ["ls", "runs"], ["log"]):
        capsys.readouterr()
        main(words)
        assert (f"{day} " in capsys.readouterr().out) == (words != ["log"])


def test_a_name_is_a_revision_until_it_is_removed(
    workspace: Path, evalstore: Evalstore, documents: Any, store_url: str | None
) -> None:
    del store_url  # both databases
    evalstore("run", "-q")
    edit(workspace / "tests/weather.md", "must be warm", "may be cold")
    evalstore("run", "-q")
    newer, older = (run["run"] for run in documents("log")["runs"])
    assert evalstore("tag", "v1.0", "@~1").stdout.startswith("v1.0  run <short>  named <when>")
    assert documents("show", "v1.0")["id"] == older
    assert documents("diff", "v1.0", "@")["from"] == older
    assert documents("show", "v1.0:tests/weather.md::Oslo")["kind"] == "case"
    assert evalstore("report", "v1.0", "-o", "-").exit_code == 0
    assert evalstore("log").stdout.count("(v1.0)\n") == 1
    assert evalstore("tag", "v1.0").stdout == "moved 'v1.0' from <short> to <short>\n"
    assert documents("show", "v1.0")["id"] == newer
    assert documents("show", "v1.0~1")["id"] == older
    assert [tag["name"] for tag in documents("tag")["tags"]] == ["v1.0"]
    assert evalstore("tag", "-d", "v1.0").stdout.startswith("v1.0  run <short>  removed <when>")
    assert documents("tag")["tags"] == []
    assert evalstore("tag", "-d", "").exit_code == 2
    assert evalstore("show", "v1.0").exit_code == 2
    assert evalstore("fsck").exit_code == 0


@pytest.mark.parametrize(
    "name",
    [
        "abcd",
        "a b",
        "@",
        "x",
        "x..y",
        "a/b",
        "t.md",
        "",
        "v~1",
        "x:y",
        "-d",
        "friday",
        "2d",
        "2026-11-23",
    ],
)
def test_a_name_that_could_be_something_else_is_refused(
    workspace: Path, evalstore: Evalstore, name: str
) -> None:
    evalstore("run", "-q")
    refused = evalstore("tag", "--", name)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: ")
    if name in ("x", "a/b"):
        assert "hint: use 2 to 80 letters, digits, " in refused.stderr


@pytest.mark.parametrize("options", [(), ("--exclude-tag", "other"), ("--since", "@~1")])
def test_names_travel_with_push_and_pull(
    workspace: Path, evalstore: Evalstore, tmp_path: Path, options: tuple[str, ...]
) -> None:
    evalstore("run", "-q")
    other = WEATHER.replace("tags: [weather]", "tags: [other]").replace("How", "Where")
    tree(workspace, {"tests/other.md": other})
    evalstore("run", "-q", "tests/weather.md")
    evalstore("tag", "v1", "@~1")
    evalstore("remote", "add", "origin", str(tmp_path / "shared"))
    assert evalstore("push", *options).exit_code == 0
    assert evalstore("-C", str(tmp_path), "clone", "shared", "other").exit_code == 0
    assert evalstore("-C", str(tmp_path / "other"), "tag").stdout.startswith("v1  run <short>")
    evalstore("tag", "-d", "v1")
    evalstore("push")
    evalstore("-C", str(tmp_path / "other"), "pull")
    assert evalstore("-C", str(tmp_path / "other"), "tag").stdout == ""


def test_runs_without_work_are_counted_in_one_line(workspace: Path, evalstore: Evalstore) -> None:
    for _ in range(4):
        evalstore("run", "-q")
    shown = evalstore("log", "--oneline").stdout.splitlines()
    assert [shown[0][:7], shown[1], shown[2][:7]] == [
        "<short>",
        "2 runs with nothing to do (-v lists all)",
        "<short>",
    ]
    assert len(evalstore("log", "--oneline", "-v").stdout.splitlines()) == 4
    evalstore("tag", "kept", "@~1")
    assert "1 run with nothing to do" in evalstore("log").stdout


def test_since_a_run_is_after_it(
    days: Any, workspace: Path, documents: Any, evalstore: Evalstore
) -> None:
    evalstore("tag", "release-1", "@")
    [first] = documents("log")["runs"]
    for file in ([], ["tests/weather.md"]):
        assert documents("log", *file, "--since", "release-1")["runs"] == []
        assert documents("log", *file, "--until", "release-1")["runs"] == []
    assert documents("diff", "--since", "release-1")["from"] == first["run"]
    tree(workspace, {"tests/weather.md": WEATHER.replace("must be warm", "must be hot")})
    evalstore("run", "-q")
    newest = documents("log")["runs"][0]["run"]
    for name in ("release-1", first["run"][:8], "@~1", "1.day"):
        for file in ([], ["tests/weather.md"]):
            listed = documents("log", *file, "--since", name)["runs"]
            assert [run["run"] for run in listed] == [newest], name
    assert [run["run"] for run in documents("log", "--until", "@")["runs"]] == [first["run"]]
    wrong = evalstore("log", "--since", "frob")
    assert (wrong.exit_code, "@{monday}" in wrong.stderr) == (2, True)
