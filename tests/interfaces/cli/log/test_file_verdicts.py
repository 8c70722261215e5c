"""The verdicts of a run by test file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.flips.verdict_changes import read_run_differences
from evalstore.runs.status import dashboard
from evalstore.runs.status.dashboard import read_file_verdicts
from evalstore.store import Store
from evalstore.store.driver import UnwantedError, while_wanted
from evalstore.store.results import read_results
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

CHECKED = "# 👤\n\nHello {name}\n\n---\n\n```checks\n- contains: {word}\n```\n"
ROWS = "---\nreplacements: {{n: [{rows}]}}\n---\n\n"


def counted(location: Location) -> dict[str, Counter[str | None]]:
    """The results of the newest run by file, read one by one."""
    with open_store(location) as store:
        [run] = store.find_runs(limit=1)
        found: dict[str, Counter[str | None]] = {}
        for result in read_results(store, run):
            found.setdefault(result.file, Counter())[result.word] += 1
    return found


def newest(location: Location) -> str:
    with open_store(location) as store:
        return store.find_runs(limit=1)[0].id


def test_each_file_has_the_verdicts_of_its_results_those_with_failures_first(
    echo: Echo, tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a file whose results are in several nodes, and a pending case."""
    location = Location(tmp_path / "echo")
    rows = ", ".join(str(number) for number in range(1500))
    long = ROWS.format(rows=rows) + CHECKED.format(name="{{n}}", word="'7'")
    files = {
        "tests/a.md": CHECKED.format(name="a", word="Hello"),
        "tests/b.md": CHECKED.format(name="b", word="no"),
        "tests/long.md": long,
        "tests/later.md": CHECKED.format(name="later", word="Hello"),
    }
    tree(tmp_path / "echo", files)
    echo.failing = "Hello later"
    evalstore("run", "-q")
    found = read_file_verdicts(location, newest(location), {})
    assert found is not None
    one_by_one = counted(location)
    assert one_by_one["tests/later.md"] == {"pending": 1}
    assert {each.file: dict(each.verdicts) for each in found.files} == one_by_one
    assert [each.file for each in found.files] == [
        *("tests/long.md", "tests/b.md", "tests/a.md", "tests/later.md")
    ]
    assert found.more == 0
    load = Store.load_run
    mixed = {"pending": 7}  # as if some other answers were not judged by anything
    monkeypatch.setattr(
        Store, "load_run", lambda store, id: replace(load(store, id), verdicts=mixed)
    )
    assert read_file_verdicts(location, newest(location), {}) == found


def test_new_failures_come_first_and_files_beyond_the_limit_are_counted(
    echo: Echo, tmp_path: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location(tmp_path / "echo")
    tree(
        tmp_path / "echo",
        {f"tests/{name}.md": CHECKED.format(name=name, word="no") for name in "abcd"},
    )
    evalstore("run", "-q")
    monkeypatch.setattr(dashboard, "_LISTED", 2)
    found = read_file_verdicts(location, newest(location), {"tests/d.md": 1})
    assert [(each.file, each.new_failures) for each in found.files] == [
        ("tests/d.md", 1),
        ("tests/a.md", 0),
    ]
    assert found.more == 2
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        read_file_verdicts(location, newest(location), {})


def test_the_differences_of_runs_say_which_files_have_new_failures(
    echo: Echo, tmp_path: Path, evalstore: Evalstore
) -> None:
    location = Location(tmp_path / "echo")
    rows = ROWS.format(rows="1, 2")
    tree(
        tmp_path / "echo",
        {
            "tests/a.md": rows + CHECKED.format(name="{{n}}", word="Hello"),
            "tests/b.md": CHECKED.format(name="b", word="no"),
        },
    )
    evalstore("run", "-q")
    tree(
        tmp_path / "echo",
        {
            "tests/a.md": rows + CHECKED.format(name="{{n}}", word="no"),
            "tests/c.md": CHECKED.format(name="c", word="no"),
        },
    )
    evalstore("run", "-q")
    [differences] = read_run_differences(location, [newest(location)]).values()
    assert differences.new_failures == (("tests/a.md", 2), ("tests/c.md", 1))
