"""A disk without room for the SQLite files of sharing: an error that says where, not a bug."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from pkgutil import resolve_name

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store
from evalstore.store.sqlite.connection import SQLiteConnection, open_cache
from tests.remotes import stores

_SMALL, _FULL = "PRAGMA page_size = 512;", "PRAGMA max_page_count = 1;"
"""After the second, a file cannot grow: SQLite fails as on a full disk."""


@pytest.fixture
def team(full: Store, remote: FolderFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace whose remote has rows."""
    stores.push(full, remote)
    root = tmp_path / "w"
    root.mkdir()
    (root / "evalstore.yaml").write_text("candidates: []\n")
    monkeypatch.chdir(root)
    assert main(["remote", "add", "origin", str(tmp_path / "remote")]) == 0
    return root


@pytest.mark.parametrize(
    ("command", "schema"),
    [
        ("pull", "evalstore.remotes.index_cache._WANTED"),
        ("fsck --remote", "evalstore.remotes.download._SCHEMA"),
    ],
)
def test_of_temporary_files_it_is_said_how_they_get_room(
    team: Path,
    command: str,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setenv("SQLITE_TMPDIR", str(team.parent))
        patch.setattr(schema, _SMALL + resolve_name(schema) + _FULL)
        assert main([*command.split(), "--quiet"]) == 6
    assert capsys.readouterr().err == (
        "error: no space left for temporary files\n"
        "hint: free some space, or name another folder in SQLITE_TMPDIR\n"
    )
    assert main(["pull", "--quiet"]) == 0


def test_of_the_copy_of_the_indexes_the_file_is_named(
    team: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def open_file(path: Path, schema: str, identity: str) -> tuple[SQLiteConnection, Path | None]:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(_SMALL + "PRAGMA user_version = 1;")
        opened, place = open_cache(path, schema, identity)
        opened.execute(_FULL)
        return opened, place

    with monkeypatch.context() as patch:
        patch.setattr("evalstore.remotes.index_cache.open_cache", open_file)
        capsys.readouterr()
        assert main(["pull", "-n", "--quiet"]) == 6
    error, hint = capsys.readouterr().err.splitlines()
    [cache] = (team / ".evalstore/remotes").glob("*.db")
    assert error == f"error: no space left for '{cache}'"
    assert hint == "hint: free some space and try again"
    assert main(["pull", "--quiet"]) == 0
