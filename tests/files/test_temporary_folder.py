"""A folder is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.files.atomic_write import remove_abandoned, temporary_folder
from tests.files.test_atomic_write import remove_once_locked

ABANDONED = ".out.evalstore-0123abcd.tmp"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_until_the_end_there_is_no_folder(tmp_path: Path) -> None:
    with temporary_folder(tmp_path / "out") as folder:
        (folder / "a").write_bytes(b"one")
        assert not (tmp_path / "out").exists()
    assert (names(tmp_path), names(tmp_path / "out")) == (["out"], ["a"])


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with temporary_folder(tmp_path / "out") as folder:
            (folder / "inner").mkdir()
            (folder / "inner/a").write_bytes(b"half")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fail()
    assert names(tmp_path) == []


def test_what_came_in_the_meantime_stays(tmp_path: Path) -> None:
    def be_late() -> None:
        with temporary_folder(tmp_path / "out"):
            (tmp_path / "out").mkdir()
            (tmp_path / "out/theirs").write_bytes(b"")

    with pytest.raises(OSError, match="not empty"):
        be_late()
    assert (names(tmp_path), names(tmp_path / "out")) == (["out"], ["theirs"])


def test_the_folder_of_a_living_writer_stays_and_that_of_a_killed_one_goes(tmp_path: Path) -> None:
    (tmp_path / ABANDONED).mkdir()
    (tmp_path / ABANDONED / "half").write_bytes(b"half")
    with temporary_folder(tmp_path / "out") as folder:
        remove_abandoned(tmp_path)
        assert names(tmp_path) == [folder.name]


def test_a_folder_that_was_taken_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = remove_once_locked(tmp_path, monkeypatch)
    with temporary_folder(tmp_path / "out") as folder:
        (folder / "a").write_bytes(b"one")
    assert names(tmp_path / "out") == ["a"]
    assert len(locked) == 2
