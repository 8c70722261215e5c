"""`show` and `status --explain`: former paths, costs, and lines that fit the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalstore.core.display import columns_of
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.status.test_explained_cases import write


def test_a_former_path_names_the_later_one(echo: Echo, evalstore: Evalstore) -> None:
    write(file="tests/old.md")
    write("Other", "Other", file="tests/other.md")
    evalstore("run", "-q")
    Path("tests/old.md").rename("tests/new.md")
    evalstore("run", "-q")
    hint = "hint: it was renamed to 'tests/new.md'\n"
    for name in ("tests/old.md", "tests/old.md::", "@:old.md"):
        ran = evalstore("show", name)
        assert (ran.exit_code, ran.stderr.splitlines(keepends=True)[-1]) == (2, hint)
    assert evalstore("show", "@~1:tests/old.md").exit_code == 0
    Path("tests/new.md").rename("tests/newest.md")
    evalstore("run", "-q")
    assert "hint: it was renamed to 'tests/newest.md'\n" in evalstore("show", "tests/old.md").stderr
    Path("tests/newest.md").unlink()
    evalstore("run", "-q")
    assert "renamed" not in evalstore("show", "tests/old.md").stderr


def test_the_cost_of_a_scripted_answer_is_simulated(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    shown = evalstore("show", "tests/weather.md::city=Oslo").stdout
    assert re.search(r"^\$0\.\d+ simulated, ", shown, re.MULTILINE)


def test_the_first_of_several_answers_is_listed_and_the_others_counted(
    echo: Echo, evalstore: Evalstore
) -> None:
    write()
    evalstore("run", "-q", "-r", "12")
    assert evalstore("show", "@").stdout.endswith("  scripted/one  <short> +11\n")


def test_reasons_are_wrapped_to_the_terminal(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("Say ten euros and nothing else", file="tests/a name that is rather long.md")
    evalstore("run", "-q", "--fail-on", "none")
    write("Say twenty euros and more, please", file="tests/a name that is rather long.md")
    monkeypatch.setenv("COLUMNS", "60")
    lines = evalstore("status", "--explain").stdout.splitlines()
    assert max(map(columns_of, lines)) <= 60
    listed = "\n".join(lines).partition("Would ask")[2]
    assert "test changed" in " ".join(listed.split())


def test_texts_of_a_file_in_a_run_are_wrapped(
    echo: Echo, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("What does it cost to rent a city bike for three days and a helmet for a child, too?")
    evalstore("run", "-q")
    whole = evalstore("show", "@:tests/t.md").stdout
    monkeypatch.setenv("COLUMNS", "60")
    shown = evalstore("show", "@:tests/t.md").stdout
    assert max(map(columns_of, shown.splitlines())) <= 60
    assert "for a child, too?" in " ".join(shown.split())
    assert max(map(columns_of, whole.splitlines())) > 60
