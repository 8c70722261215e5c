"""What a workspace notes of its own pushes, so that it knows them again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from unittest import mock

import pytest

from evalstore.planning.first_pushes import (
    note_excluded_tags,
    note_own_name,
    read_excluded_tags,
    read_own_names,
)
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.remotes.layout import FolderFiles
from tests.interfaces.cli.conftest import Evalstore


def test_a_push_whose_end_is_lost_is_known_as_own(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "--fail-on", "none", "-q")
    evalstore("remote", "add", "origin", "shared")
    create = FolderFiles.create

    def killed(files: FolderFiles, name: str, data: bytes) -> bool:
        is_new = create(files, name, data)
        if name.endswith(".idx"):
            raise KeyboardInterrupt
        return is_new

    with mock.patch.object(FolderFiles, "create", killed):
        evalstore("push")
    monkeypatch.setattr("platform.node", lambda: "laptop")
    assert evalstore("pull", "-n").stdout.startswith("nothing to pull")  # so everything is there
    assert "pushed by" not in evalstore("log").stdout


def test_pushes_at_the_same_time_lose_no_note(workspace: Path) -> None:
    at, names = open_workspace(Location(workspace)), 8
    at.private.mkdir(exist_ok=True)
    together = Barrier(names)

    def note(number: int) -> None:
        together.wait()
        for part in range(5):
            note_own_name(at, f"{number}.{part}")
            note_excluded_tags(at, f"remote{number}", [f"tag{part}"])

    with ThreadPoolExecutor(names) as pool:
        list(pool.map(note, range(names)))
    assert len(read_own_names(at)) == names * 5
    assert [read_excluded_tags(at, f"remote{number}") for number in range(names)] == [
        ["tag4"]
    ] * names
