"""Formats of several files, which `export` writes as a new folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalstore.core import batches
from evalstore.exchange.exports.formats import FileNames
from evalstore.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.core.values import Session
    from tests.interfaces.cli.conftest import Evalstore

FOLDERS = ("inspect", "langbite", "every-eval-ever")


@pytest.mark.parametrize("format", FOLDERS)
def test_an_empty_folder_is_filled_and_another_is_refused(
    workspace: Path, evalstore: Evalstore, format: str
) -> None:
    evalstore("run")
    (workspace / "out").mkdir()
    assert evalstore("export", "--format", format, "-o", "out").stderr == "wrote out\n"
    files = sorted(Path("out").rglob("*"))
    assert files
    ran = evalstore("export", "--format", format, "-o", "out")
    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: 'out' cannot be written: the folder is not empty\n"
        "hint: name a folder that does not exist yet\n",
    )
    assert sorted(Path("out").rglob("*")) == files


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("evalstore.yaml", "it is not a folder"),
        ("gone/out", "folder 'gone' not found"),
    ],
)
def test_a_folder_that_cannot_be_made_is_refused(
    workspace: Path, evalstore: Evalstore, name: str, problem: str
) -> None:
    ran = evalstore("export", "--format", "inspect", "-o", name)
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"error: '{name}' cannot be written: {problem}\nhint: ")
    assert not (workspace / "gone").exists()


@pytest.mark.parametrize("format", FOLDERS)
def test_several_files_are_not_printed(workspace: Path, evalstore: Evalstore, format: str) -> None:
    ran = evalstore("export", "--format", format)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (
        2,
        "",
        f"error: '{format}' writes several files, which cannot be printed\n"
        "hint: name a folder with -o\n",
    )


@pytest.mark.parametrize("format", FOLDERS)
def test_an_export_that_fails_leaves_nothing(
    workspace: Path, evalstore: Evalstore, format: str
) -> None:
    evalstore("run")
    with sqlite3.connect(next(workspace.glob(".evalstore/*.db"))) as connection:
        connection.execute("UPDATE sessions SET content = replace(content, 'Warm', 'Worm')")
    connection.close()
    before = set(workspace.iterdir())
    assert evalstore("export", "--format", format, "-o", "out").exit_code == 6
    assert set(workspace.iterdir()) == before


@pytest.mark.parametrize("format", FOLDERS)
def test_a_workspace_without_answers_is_exported(
    workspace: Path, evalstore: Evalstore, format: str
) -> None:
    assert evalstore("export", "@work", "--format", format, "-o", "out").exit_code == 0
    assert Path("out").is_dir()


@pytest.mark.parametrize("format", ["otlp", *FOLDERS])
def test_answers_are_read_a_few_at_a_time(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    evalstore("run")
    read: list[int] = []
    find = Store.find_sessions

    def count(store: Store, ids: Iterable[str]) -> dict[str, Session]:
        sessions = find(store, ids)
        read.append(len(sessions))
        return sessions

    monkeypatch.setattr(Store, "find_sessions", count)
    monkeypatch.setattr(batches, "SMALL_SIZE", 1)
    assert evalstore("export", "--format", format, "-o", "out").exit_code == 0
    assert read == [1, 1]


def test_names_of_files_are_neither_hidden_nor_paths_nor_equal() -> None:
    names = FileNames()
    texts = ("a/b", "A b", "a-b", "../..", ".hidden", "", "x" * 300)
    made = [names.make(text, ".eval") for text in texts]
    assert made[:6] == [
        "a-b.eval",
        "A-b-2.eval",
        "a-b-3.eval",
        "unnamed.eval",
        "hidden.eval",
        "unnamed-2.eval",
    ]
    assert len(made[6]) < 120
