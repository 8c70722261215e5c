"""No file of keys is shown to a model, by any of its names and by whatever it is mentioned."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstore.workspace.reader import read_workspace
from evalstore.workspace.trust import is_private_name
from tests.builders import tree, workspace_of
from tests.interfaces.cli.conftest import Evalstore

SECRET = "OPENAI_API_KEY=sk-very-secret"


def link(path: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)

    return make


def hard_link(path: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).hardlink_to(folder / target)

    return make


def nothing(folder: Path) -> None:
    pass


PRIVATE: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "at the root": (".env", nothing, "../.env"),
    "local": (".env.local", nothing, "../.env.local"),
    "of a stage": (".env.production", nothing, "../.env.production"),
    "in a folder": ("sub/.env", nothing, "../sub/.env"),
    "in a folder, of a stage": ("tests/deep/.env.test", nothing, "deep/.env.test"),
    "in capitals": (".ENV", nothing, "../.ENV"),
    "as a suffix": ("production.env", nothing, "../production.env"),
    "of direnv": (".envrc", nothing, "../.envrc"),
    "by a link": (".env", link("tests/notes.txt", "../.env"), "notes.txt"),
    "by a hard link": (".env", hard_link("tests/notes.txt", ".env"), "notes.txt"),
    "by a hard link to a deep one": (
        "sub/deep/.env",
        hard_link("tests/notes.txt", "sub/deep/.env"),
        "notes.txt",
    ),
    "what a link leads to": ("keys.txt", link(".env", "keys.txt"), "../keys.txt"),
    "what a link in a folder leads to": (
        "tests/keys.txt",
        link("tests/.env.local", "keys.txt"),
        "keys.txt",
    ),
    "of git": ("sub/.git/config", nothing, "../sub/.git/config"),
    "of the store": ("sub/.evalstore/store.db", nothing, "../sub/.evalstore/store.db"),
}


@pytest.mark.parametrize("how", PRIVATE)
def test_it_is_not_shown_to_a_model(folder: Path, how: str) -> None:
    path, prepare, mentioned = PRIVATE[how]
    tree(folder, {path: SECRET})
    prepare(folder)
    text = f"# 👤\n\n`{{{{_file:{mentioned}}}}}`\n\n---\n\nExpect it.\n"
    reading = read_workspace(workspace_of(folder, {"tests/one.md": text}))
    [problem] = reading.errors
    assert problem.message == f"'{mentioned}' is private, so it is not shown to a model"
    assert "sk-very-secret" not in repr(reading)


@pytest.mark.parametrize("how", PRIVATE)
def test_it_is_not_data(folder: Path, how: str) -> None:
    path, prepare, mentioned = PRIVATE[how]
    tree(folder, {path: '{"OPENAI_API_KEY": "sk-very-secret"}\n'})
    prepare(folder)
    text = (
        f"---\ndataset: {{path: {mentioned}, format: jsonl}}\n---\n\n"
        "# 👤\n\n{{OPENAI_API_KEY}}\n\n---\n\nExpect it.\n"
    )
    reading = read_workspace(workspace_of(folder, {"tests/one.md": text}))
    assert any("is private, so it is not data" in error.message for error in reading.errors)
    assert "sk-very-secret" not in repr(reading)


LISTED = [
    "tests/two.md",
    "prompts/two.md",
    "tools/two.yaml",
    "schemas/two.json",
    "models/two.yaml",
    "providers/two.yaml",
    "currencies/two.yaml",
]


@pytest.mark.parametrize("make", [link, hard_link], ids=["link", "hard link"])
@pytest.mark.parametrize("path", LISTED)
def test_it_is_not_a_file_of_the_workspace(
    folder: Path,
    path: str,
    make: Callable[[str, str], Callable[[Path], None]],
) -> None:
    tree(folder, {".env": SECRET, "tests/one.md": "# 👤\n\nHi\n\n---\n\nExpect it.\n"})
    make(path, "../.env" if make is link else ".env")(folder)
    reading = read_workspace(workspace_of(folder, {}))
    assert [(error.file, error.message) for error in reading.errors] == [
        (path, "is private, so it is not read: it holds keys")
    ]
    assert "sk-very-secret" not in repr(reading)


def test_a_hard_link_to_something_else_is_read(folder: Path) -> None:
    tree(folder, {".env": SECRET, "other.txt": "x"})
    hard_link("tests/notes.txt", "other.txt")(folder)
    text = "# 👤\n\n`{{_file:notes.txt}}`\n\n---\n\nExpect it.\n"
    assert read_workspace(workspace_of(folder, {"tests/one.md": text})).errors == []


def test_a_file_that_becomes_private_is_not_taken_from_the_index(
    folder: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(
        folder,
        {
            "evalstore.yaml": "candidates: [one]\n",
            "models/one.yaml": "id: one\nprovider: scripted\nresponses: [{answer: Hi}]\n",
            "tests/keys.txt": SECRET,
            "tests/one.md": (
                "# 👤\n\n`{{_file:keys.txt}}`\n\n---\n\n```checks\n- contains: Hi\n```\n"
            ),
        },
    )
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    monkeypatch.chdir(folder)
    assert evalstore("run").exit_code == 0
    (folder / ".env").symlink_to("tests/keys.txt")
    assert "'keys.txt' is private" in evalstore("run").stderr


@pytest.mark.parametrize(
    "name", ["environment.txt", "env", "tests/env.md", "dotenv.md", "a.envelope", ".gitignore"]
)
def test_other_names_are_not_private(name: str) -> None:
    assert not is_private_name(name)
