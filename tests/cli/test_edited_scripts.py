"""Answers of a scripted model that count after its entries were edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import tree
from tests.cli.conftest import JUDGE, ONE, Evalstore
from tests.cli.test_explained_cases import section

WARM = ONE.replace("answer: Cold.", "answer: Warm!")
EDITED = "warning: 1 entry of 'responses' of 'scripted/one' has changed since it answered"


@pytest.mark.parametrize("command", ["status", "run"])
def test_edited_entries_are_warned_of(workspace: Path, evalstore: Evalstore, command: str) -> None:
    evalstore("run", "-q")
    assert evalstore(command).stderr.count("warning") == 0
    tree(workspace, {"models/one.yaml": WARM})
    assert evalstore("-q", command).stderr.count(EDITED) == 1
    assert "extraIdentifier: v2" in evalstore(command).stderr
    tree(workspace, {"models/one.yaml": ONE})
    assert evalstore(command).stderr.count("warning") == 0


def test_edited_entries_of_a_judge_are_warned_of(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    tree(workspace, {"models/judge.yaml": JUDGE.replace("It is cold", "Cold it is")})
    assert "1 entry of 'responses' of 'scripted/judge'" in evalstore("status").stderr


def test_entries_that_are_added_are_no_edit(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    entry = "responses:\n  - {when: Bari, answer: Sunny.}\n"
    tree(workspace, {"models/one.yaml": ONE.replace("responses:\n", entry)})
    assert "warning" not in evalstore("status").stderr


def test_an_entry_that_fails_has_no_stored_answer(workspace: Path, evalstore: Evalstore) -> None:
    failing = ONE.replace("answer: Cold.", "error: {status: 404}")
    tree(workspace, {"models/one.yaml": failing})
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": ONE})
    assert "warning" not in evalstore("status").stderr


def test_a_new_version_of_the_model_ends_the_warning(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    second = WARM.replace("provider: scripted", "provider: scripted\nextraIdentifier: v2")
    tree(workspace, {"models/one.yaml": second})
    assert "warning" not in evalstore("status").stderr


def test_an_older_answer_that_counts_again_is_explained(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": WARM})
    evalstore("run", "-q", "--refresh", "--lf")
    evalstore("run", "-q")
    history = section(evalstore("show", "tests/weather.md::Oslo").stdout, "history")
    words = "same question, and an older stored answer counts: run <short> had asked again"
    assert f"  {words}" in history
