"""The name of the user is read from git's configuration files, without running git."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.git import read_user_name
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
