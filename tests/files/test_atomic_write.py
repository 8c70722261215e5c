"""A file is written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalstore.files.atomic_write import remove_abandoned, temporary_file, write_whole

ROOT = Path(__file__).parents[2]
ABANDONED = ".a.txt.evalstore-0123abcd.tmp"
HOLD = """
import sys, time
from pathlib import Path
from evalstore.files.atomic_write import temporary_file
with temporary_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print(file.name, flush=True)
    time.sleep(600)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", b"one")
    write_whole(tmp_path / "a.txt", b"two")
    assert (tmp_path / "a.txt").read_bytes() == b"two"
    assert names(tmp_path) == ["a.txt"]


def test_until_the_end_the_old_file_stays(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", b"old")
    with temporary_file(tmp_path / "a.txt") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert (tmp_path / "a.txt").read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_other(
    tmp_path: Path, error: type[BaseException]
) -> None:
    write_whole(tmp_path / "a.txt", b"old")

    def fail() -> None:
        with temporary_file(tmp_path / "a.txt") as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert names(tmp_path) == ["a.txt"]


def test_a_full_disk_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "a.txt", b"old")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "a.txt", b"new")
    assert (tmp_path / "a.txt").read_bytes() == b"old"
    assert names(tmp_path) == ["a.txt"]


def test_exclusive_writing_replaces_nothing(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", b"mine", exclusive=True)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a.txt", b"yours", exclusive=True)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "link", b"yours", exclusive=True)
    assert (tmp_path / "a.txt").read_bytes() == b"mine"
    assert names(tmp_path) == ["a.txt", "link"]


def test_exclusive_writing_replaces_nothing_that_came_in_the_meantime(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError), temporary_file(tmp_path / "a.txt", exclusive=True):
        (tmp_path / "a.txt").write_bytes(b"mine")
    assert (tmp_path / "a.txt").read_bytes() == b"mine"
    assert names(tmp_path) == ["a.txt"]


def test_exclusive_writing_works_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fail)
    write_whole(tmp_path / "a.txt", b"mine", exclusive=True)
    with pytest.raises(FileExistsError), temporary_file(tmp_path / "b.txt", exclusive=True):
        (tmp_path / "b.txt").write_bytes(b"mine")
    assert names(tmp_path) == ["a.txt", "b.txt"]


def test_permissions_are_kept_or_set(tmp_path: Path) -> None:
    def mode(name: str) -> int:
        return (tmp_path / name).stat().st_mode & 0o777

    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "new", b"")
        write_whole(tmp_path / "private", b"", mode=0o600)
        write_whole(tmp_path / "kept", b"")
        (tmp_path / "kept").chmod(0o755)
        write_whole(tmp_path / "kept", b"more")
    finally:
        os.umask(before)
    assert [mode(name) for name in ("new", "private", "kept")] == [0o644, 0o600, 0o755]


def test_a_link_is_replaced_and_what_it_names_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"old"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "link").is_symlink()


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    name = "é" * 127
    write_whole(tmp_path / name, b"one")
    assert names(tmp_path) == [name]


def test_the_file_of_a_killed_writer_is_removed_by_the_next_one(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "a.txt"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert writer.stdout
    left = Path(writer.stdout.readline().strip())
    try:
        remove_abandoned(tmp_path)
        assert names(tmp_path) == [left.name]  # its writer lives
    finally:
        writer.kill()
        writer.communicate()
    assert left.read_bytes() == b"half"
    write_whole(tmp_path / "b.txt", b"whole")
    assert names(tmp_path) == ["b.txt"]


def test_only_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    others = ["a.tmp", ".a.tmp", "a.txt.evalstore-0123abcd.tmp", ".a.evalstore-0123abcd.tmp.md"]
    for name in (*others, ABANDONED, f"{ABANDONED}-journal"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".link.evalstore-0123abcd.tmp").symlink_to("a.tmp")
    remove_abandoned(tmp_path)
    assert names(tmp_path) == sorted([*others, ".link.evalstore-0123abcd.tmp"])


def remove_once_locked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Remove what is in a folder when it is locked for the first time; returns all locks."""
    lock = fcntl.flock
    locked: list[int] = []

    def remove_first(file: int, operation: int) -> None:
        lock(file, operation)
        locked.append(operation)
        if len(locked) == 1:
            (only,) = folder.iterdir()
            if only.is_dir():
                only.rmdir()
            else:
                only.unlink()

    monkeypatch.setattr(fcntl, "flock", remove_first)
    return locked


def test_a_file_that_was_taken_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = remove_once_locked(tmp_path, monkeypatch)
    write_whole(tmp_path / "a.txt", b"whole")
    assert len(locked) == 2
    assert (tmp_path / "a.txt").read_bytes() == b"whole"
