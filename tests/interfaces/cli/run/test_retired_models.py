"""`check`, `doctor` and `status` say when a model in use is retired, by litellm's table."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.providers import price_table
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

LINE = "retired: openai/old (since 2020-01-31); retiring: mine (on 2999-12-31), according to"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = {
        "old": {"litellm_provider": "openai", "deprecation_date": "2020-01-31"},
        "going": {"litellm_provider": "openai", "deprecation_date": "2999-12-31"},
        "here": {"litellm_provider": "openai"},
        "odd": {"litellm_provider": "openai", "deprecation_date": "soon"},
    }
    monkeypatch.setattr(price_table, "_table", lambda: table)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [openai/old, mine, openai/here, openai/odd]\n"
            "evaluators: [openai/old]\n",
            "models/mine.yaml": "id: mine\nprovider: openai\nproviderModelCode: going\n",
            "tests/a.md": "# User\n\nq\n\n---\n\nIt is good.\n",
        },
    )
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("command", [("check",), ("status",), ("doctor", "--no-ping")])
def test_models_that_leave_are_named_once(
    workspace: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    for _ in range(2):  # the second status is remembered
        ran = evalstore(*command)
        said = " ".join((ran.stdout + ran.stderr).split())
        assert said.count(LINE) == 1


def test_a_model_that_is_not_in_use_is_not_named(workspace: Path, evalstore: Evalstore) -> None:
    ran = evalstore("status", "-m", "openai/here", "-J", "openai/odd")
    assert "retir" not in ran.stdout + ran.stderr
