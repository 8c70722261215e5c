"""The name of the user is read from git's configuration files, without running git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalstore.workspace.git import read_user_name
from evalstore.workspace.git.status import name_of_user, name_of_writer
from tests.builders import tree

HEAD = {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/.keep": "", ".git/objects/.keep": ""}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n", "Ada Lovelace"),
        ('[core]\nname = no\n[USER]\nName = "Ada L" # me\n', "Ada L"),
        ('[user "x"]\nname = no\n[user]\n', None),
        ("", None),
    ],
)
def test_the_name_is_that_of_the_repository(tmp_path: Path, text: str, name: str | None) -> None:
    assert read_user_name(tree(tmp_path, HEAD | {".git/config": text})) == name


def test_the_name_of_the_user_holds_where_the_repository_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tree(tmp_path / "home", {".gitconfig": "[user]\nname = Ada\n"})
    assert read_user_name(tree(tmp_path / "w", HEAD | {".git/config": "[core]\n"})) == "Ada"


def test_outside_of_a_checkout_there_is_no_name(tmp_path: Path) -> None:
    assert read_user_name(tmp_path) is None


def test_outside_of_a_checkout_the_name_of_the_user_can_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tree(tmp_path / "home", {".gitconfig": "[user]\nname = Ada\n"})
    assert read_user_name(tmp_path, outside=True) == "Ada"


def test_what_is_not_utf_8_is_replaced(tmp_path: Path) -> None:
    folder = tree(tmp_path, HEAD | {".git/config": b"[user]\n\tname = J\xf6rg\n"})
    assert read_user_name(folder) == "J\ufffdrg"


def test_a_pipe_in_the_place_of_a_configuration_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tree(tmp_path / "w", HEAD)
    os.mkfifo(folder / ".git" / "config")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tree(tmp_path / "home", {".gitconfig": "[include]\npath = x\n[user]\nname = Ada\n"})
    assert read_user_name(folder) == "Ada"


def test_the_author_of_a_push_is_the_user_of_git_or_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no git is started
    monkeypatch.setattr("platform.node", lambda: "h\udcf6st")
    monkeypatch.setattr("getpass.getuser", lambda: "\udcf6rg")
    assert name_of_writer(tmp_path) == "\ufffdrg@h\ufffdst"
    tree(tmp_path / "home", {".gitconfig": "[user]\nname = Ada\n"})
    assert name_of_user(tmp_path) == "Ada"
