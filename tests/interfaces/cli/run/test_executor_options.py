"""Which options of `run --executor` go together, and what is refused before anything is asked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evalstore.runs import run
from evalstore.store import Store
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

DASK = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        (("--workers", "2"), "'--workers' needs '--executor'", "add '--executor processes'"),
        (("--scheduler", "local"), "'--scheduler' needs '--executor'", "'--executor dask'"),
        (
            ("--executor", "processes", "--scheduler", "local"),
            "'--scheduler' needs '--executor dask'",
            "",
        ),
        (("--executor", "dask"), "'--executor dask' needs a scheduler", "--scheduler local"),
        (("--executor", "processes", "--workers", "0"), "--workers: must be at least 1", ""),
        (("--executor", "threads"), "'threads' is not a valid value", "processes"),
        (("--join", "@", "--executor", "processes"), "'--executor' cannot be combined with", ""),
        (("--until-eof",), "'--until-eof' needs '--join'", ""),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    workspace: Path, evalstore: Evalstore, options: tuple[str, ...], error: str, hint: str
) -> None:
    ran = evalstore("run", *options)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert error in ran.stderr
    assert hint in ran.stderr
    assert not (workspace / ".evalstore/store.db").exists() or not runs(workspace)


def runs(workspace: Path) -> int:
    """How many runs are recorded or in progress."""
    with closing(Store.open(workspace / ".evalstore/store.db")) as store:
        return len(store.find_runs()) + len(store.find_shared_runs())


def test_a_store_in_a_file_is_not_for_dask(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda _name: object())
    ran = evalstore("run", *DASK)
    assert ran.exit_code == 2
    assert "is a file, which the workers of dask cannot share" in ran.stderr
    assert "--executor processes" in ran.stderr


def test_without_its_package_dask_is_refused_with_the_extra_that_has_it(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_spec", lambda _name: None)
    ran = evalstore("run", *DASK)
    assert ran.exit_code == 2
    assert ran.stderr == (
        "error: '--executor dask' needs the package 'distributed'\n"
        "hint: install it with: pip install 'evalstore[dask]'\n"
    )


def test_variables_of_a_run_are_not_options_of_one_that_joins(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    for name, value in (
        ("EXECUTOR", "processes"),
        ("WORKERS", "2"),
        ("MAX_COST", "1"),
        ("TAGS", "a"),
        ("FAIL_ON", "none"),
    ):
        monkeypatch.setenv(f"EVALSTORE_RUN_{name}", value)
    assert "no run is in progress" in evalstore("run", "--join", "@").stderr


def test_a_file_can_be_joined_without_a_workspace(
    workspace: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    evalstore("run")
    (tmp_path / "empty").mkdir()
    store = str(workspace / ".evalstore/store.db")
    ran = evalstore("-C", str(tmp_path / "empty"), "--store", store, "run", "--join", "@")
    assert "no run is in progress" in ran.stderr


def test_nothing_is_started_when_there_is_nothing_to_do(
    workspace: Path, evalstore: Evalstore
) -> None:
    evalstore("run")
    ran = evalstore("run", "--executor", "processes")
    assert "0 new answers" in ran.stdout
    assert "process" not in ran.stderr


def test_a_run_with_a_key_in_its_files_starts_no_runners(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"prompts/helper.md": f"Use sk-proj-{'a1B2' * 12} here.\n"})
    ran = evalstore("run", "--executor", "processes")
    assert ran.exit_code == 2
    assert "no other runner can take part in this run: " in ran.stderr
    assert runs(workspace) == 0


def test_a_run_that_lacks_a_key_leaves_nothing_that_could_be_joined(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(
        workspace,
        {
            "evalstore.yaml": "candidates: [two]\n",
            "models/two.yaml": "id: two\nprovider: openai\nproviderModelCode: gpt-4o\n",
            "tests/weather.md": "# 👤\n\nHello\n\n---\n\n~~~checks\n- contains: a\n~~~\n",
        },
    )
    ran = evalstore("run", "--executor", "processes")
    assert "OPENAI_API_KEY" in ran.stderr
    assert runs(workspace) == 0
