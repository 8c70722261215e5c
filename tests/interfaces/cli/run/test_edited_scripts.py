"""Answers of a scripted model that count after its entries were edited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import JUDGE, ONE, Evalstore
from tests.interfaces.cli.status.test_explained_cases import section

WARM = ONE.replace("answer: Cold.", "answer: Warm!")
EDITED = (
    "warning: the 'responses' of 'scripted/one' have changed since its stored answers; "
    "'extraIdentifier: v2' in models/one.yaml asks again\n"
)


@pytest.mark.parametrize("command", ["status", "run"])
def test_edited_entries_are_warned_of(workspace: Path, evalstore: Evalstore, command: str) -> None:
    evalstore("run", "-q")
    assert evalstore(command).stderr.count("warning") == 0
    tree(workspace, {"models/one.yaml": WARM})
    assert evalstore("-q", command).stderr.count(EDITED) == 1
    tree(workspace, {"models/one.yaml": ONE})
    assert evalstore(command).stderr.count("warning") == 0


def test_edited_entries_of_a_judge_are_warned_of(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    tree(workspace, {"models/judge.yaml": JUDGE.replace("It is cold", "Cold it is")})
    assert "the 'responses' of 'scripted/judge' have changed" in evalstore("status").stderr


def test_a_refreshed_answer_does_not_hide_the_older_one_that_counts(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": WARM})
    evalstore("run", "-q", "--refresh")
    assert EDITED in evalstore("status").stderr
    evalstore("run", "-q")
    assert EDITED in evalstore("status").stderr


@pytest.mark.parametrize("content", ['{"0": 1}', "[]", "no JSON"])
def test_notes_that_cannot_be_read_are_as_none(
    workspace: Path, evalstore: Evalstore, content: str
) -> None:
    evalstore("run", "-q")
    (workspace / ".evalstore/called_scripts.json").write_text(content)
    tree(workspace, {"models/one.yaml": WARM})
    assert evalstore("status").stderr == ""
    evalstore("run", "-q", "--refresh")
    assert json.loads((workspace / ".evalstore/called_scripts.json").read_text())


def test_entries_that_are_added_are_no_edit(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("run", "-q")
    entry = "responses:\n  - {when: Bari, answer: Sunny.}\n"
    tree(workspace, {"models/one.yaml": ONE.replace("responses:\n", entry)})
    assert "warning" not in evalstore("status").stderr
    judge = JUDGE.replace("responses:\n", "responses:\n  - {when: Bari, answer: {pass: true}}\n")
    tree(workspace, {"models/judge.yaml": judge})
    for command in ("status", "run", "status"):
        assert "warning" not in evalstore(command).stderr


def test_another_order_of_entries_is_an_edit(workspace: Path, evalstore: Evalstore) -> None:
    head, _, entries = ONE.partition("responses:\n")
    first, second, costs = entries.splitlines(keepends=True)
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": f"{head}responses:\n{second}{first}{costs}"})
    for command in ("status", "run"):
        assert evalstore(command).stderr.count(EDITED) == 1


def test_an_entry_that_is_there_once_less_is_an_edit(workspace: Path, evalstore: Evalstore) -> None:
    head = ONE.partition("responses:\n")[0]
    entry = "  - {answer: Cold., times: 1}\n"
    tree(workspace, {"models/one.yaml": f"{head}responses:\n{entry * 2}"})
    evalstore("run", "-q", "-j", "1")
    tree(workspace, {"models/one.yaml": f"{head}responses:\n{entry}"})
    assert EDITED in evalstore("status").stderr


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
    words = "same question, and an older answer counts: run <short> had asked again"
    assert f"  {words}" in history
    counts = "1 of the last 2 verdicts passed, 1 change (newest first: pass, fail (counts here))"
    assert history[-1].endswith(f": {counts}")


@pytest.mark.parametrize(
    ("now", "following"),
    [("v2", "v3"), ("v9", "v10"), ("2026-11", "2026-12"), ("blue", "blue-2"), ("7", "8")],
)
def test_the_identifier_that_asks_again_is_another_one(
    workspace: Path, evalstore: Evalstore, now: str, following: str
) -> None:
    named = f"extraIdentifier: '{now}'\n"
    tree(workspace, {"models/one.yaml": ONE + named})
    evalstore("run", "-q")
    tree(workspace, {"models/one.yaml": WARM + named})
    assert (
        f"'extraIdentifier: {following}' in models/one.yaml asks again"
        in evalstore("status").stderr
    )
