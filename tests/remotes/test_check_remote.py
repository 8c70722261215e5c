"""`fsck --remote`: every problem of a remote is listed with its file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import RemoteError
from evalstore.interfaces.cli.main import main
from evalstore.remotes.download import RemoteCheck, check_remote
from evalstore.remotes.layout import FolderFiles, ListedFile, sha256
from evalstore.remotes.sftp import SftpSession
from evalstore.store import Store
from evalstore.store.records import CheckedRecord, CopyListener
from tests.remotes import places, stores


@pytest.fixture
def shared(full: Store, tmp_path: Path) -> Path:
    """A remote of one push."""
    stores.push(full, FolderFiles(tmp_path / "shared"))
    return tmp_path / "shared"


def _check(root: Path) -> RemoteCheck:
    return check_remote(FolderFiles(root), CopyListener())


def _only(root: Path, pattern: str) -> Path:
    (path,) = root.glob(pattern)
    return path


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_sound_remote_has_no_problems(full: Store, shared: Path) -> None:
    check = _check(shared)
    assert (check.checked, check.problems, check.unused) == (len(stores.rows(full)), [], [])


def test_all_problems_are_listed_with_their_files(
    full: Store, shared: Path, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    for number, checked in enumerate(whole_records[:3]):
        with stores.opened(tmp_path / f"{number}.db") as store:
            store.ensure_records([checked])
            stores.push(store, FolderFiles(tmp_path / str(number)))
        shutil.copytree(tmp_path / str(number), shared, dirs_exist_ok=True)
    flipped, gone, of_lost = (_only(tmp_path / str(number), "packs/*/*") for number in range(3))
    lost = shared / "indexes" / _only(tmp_path / "2", "indexes/*").name
    _flip(shared / flipped.relative_to(tmp_path / "0"), -1)
    (shared / gone.relative_to(tmp_path / "1")).unlink()
    _flip(lost, -1)
    check = _check(shared)
    listing = f"indexes/{_only(tmp_path / '1', 'indexes/*').name}"
    assert [(problem.file, problem.message) for problem in check.problems[:1]] == [
        (f"indexes/{lost.name}", "it has changed since it was written")
    ]
    names = [f"packs/{path.parent.name}/{path.name}" for path in (flipped, gone, of_lost)]
    others = {(problem.file, problem.message) for problem in check.problems[1:]}
    assert (names[0], "it has changed since it was written: 1 damaged row") in others
    assert (names[1], "it is missing") in others
    of_flipped = f"indexes/{_only(tmp_path / '0', 'indexes/*').name}"
    listings = {problem.file: list(problem.indexes) for problem in check.problems[1:]}
    assert listings == {names[0]: [of_flipped], names[1]: [listing]}
    assert check.remove == sorted([names[0], of_flipped, listing, f"indexes/{lost.name}"])
    row = next(message for name, message in others - {(names[0], "")} if message[:4] == "row ")
    assert row.startswith(f"row {whole_records[0].record.id} (")
    assert len(check.problems) == 4
    assert check.unused == [names[2]]


def test_a_connection_that_is_lost_is_not_damage(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SftpSession.run
    left = 0

    def breaking(session: SftpSession, *commands: Any, **options: Any) -> list[list[bytes]]:
        nonlocal left
        left -= 1
        if left == 0:
            session._process.kill()
        return run(session, *commands, **options)

    monkeypatch.setattr(SftpSession, "run", breaking)
    assert check_remote(places.sftp_files(shared), CopyListener()).problems == []
    for at in range(1, 1 - left):
        left = at
        with pytest.raises(RemoteError, match=r"the connection to the remote '.*' was lost"):
            check_remote(places.sftp_files(shared), CopyListener())
    assert at > 4


def test_a_folder_that_is_unmounted_meanwhile_is_not_damage(shared: Path, tmp_path: Path) -> None:
    class Unmounted(FolderFiles):
        def iterate(self, folder: str) -> Iterator[ListedFile]:
            if folder == "packs":
                shared.rename(tmp_path / "away")
            return super().iterate(folder)

    with pytest.raises(RemoteError, match="is not a remote of evalstore: there is nothing"):
        check_remote(Unmounted(shared), CopyListener())


def test_files_that_cannot_be_those_of_a_push_are_damage(shared: Path) -> None:
    pack = _only(shared, "packs/*/*")
    whole = pack.read_bytes()
    pack.write_bytes(whole + b"more")
    assert f"has more than {len(whole):,} bytes" in _check(shared).problems[0].message
    pack.rename(shared / "away")
    pack.symlink_to(shared / "away")
    assert "is a symbolic link" in _check(shared).problems[0].message


def test_rows_that_are_missing_are_listed(
    whole_records: list[CheckedRecord], remote: FolderFiles, tmp_path: Path
) -> None:
    """A remote of a program that has left out what rows refer to."""
    left_out = next(checked for checked in whole_records if checked.kind == "evaluator")
    with stores.opened(tmp_path / "s.db") as store:
        store.ensure_records([checked for checked in whole_records if checked is not left_out])
        stores.push(store, remote)
    (problem,) = _check(tmp_path / "remote").problems
    assert problem.file.startswith("packs/")
    assert problem.message.endswith(f" refers to {left_out.record.id}, which is missing")


@pytest.mark.extended
def test_a_flipped_byte_anywhere_is_found(
    whole_records: list[CheckedRecord], remote: FolderFiles, tmp_path: Path
) -> None:
    with stores.opened(tmp_path / "s.db") as store:
        store.ensure_records([checked for checked in whole_records if checked.kind == "model"][:1])
        stores.push(store, remote)
    for path in [path for path in (tmp_path / "remote").rglob("*") if path.suffix]:
        data = path.read_bytes()
        for at in range(len(data)):
            _flip(path, at)
            assert _check(tmp_path / "remote").problems, (path, at)
            path.write_bytes(data)
    assert not _check(tmp_path / "remote").problems


def test_an_index_that_somebody_else_has_made_is_checked(shared: Path) -> None:
    index = _only(shared, "indexes/*")
    for data, message in ((b"evalstore index 1\n{}\n", "header"), (b"", "is not an index")):
        name = f"{index.name.partition('-')[0]}-{sha256(data)}.idx"
        (shared / "indexes" / name).write_bytes(data)
        (problem,) = _check(shared).problems
        assert problem.file == f"indexes/{name}"
        assert message in problem.message
        (shared / "indexes" / name).unlink()


def test_what_is_not_a_remote_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="is not a remote"):
        _check(tmp_path)


def test_the_command_prints_the_problems_and_exits_with_1(
    finished: Path, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = shutil.copytree(finished, tmp_path / "w")
    command = ["-C", str(workspace), "fsck", "--remote"]
    assert main(["-C", str(workspace), "remote", "add", "origin", str(shared)]) == 0
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().out.endswith(" rows checked: all is well\n")
    pack = _only(shared, "packs/*/*")
    index = f"indexes/{_only(shared, 'indexes/*').name}"
    _flip(pack, 0)
    (shared / "packs/00").mkdir(exist_ok=True)
    (shared / f"packs/00/{'0' * 64}.pack").write_bytes(b"")
    (shared / f"{index}.sig").write_text("a signature")
    assert main(command) == 1
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    name = f"packs/{pack.parent.name}/{pack.name}"
    assert lines[:2] == [
        f"{name}: it has changed since it was written: no damaged row; listed by {index}",
        f"packs/00/{'0' * 64}.pack: unused, no index lists it",
    ]
    assert lines[2].endswith(" rows checked: 1 problem, 1 unused pack")
    assert main([*command, "origin", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["problems"][0]["file"] == name
    assert len(report["unused"]) == 1
    assert main(["-C", str(workspace), "fsck", "origin"]) == 2
    assert "takes no argument without --remote" in capsys.readouterr().err
    with stores.opened(tmp_path / "other.db") as other:
        with pytest.raises(RemoteError) as damaged:
            stores.pull(other, FolderFiles(shared))
        assert stores.rows(other) == {}
    hint, *files = printed.err.splitlines()
    assert hint == (
        "hint: remove these files from the remote, and push from every store that may have "
        "their rows:"
    )
    assert files == [f"  {file}" for file in (index, f"{index}.sig", name)]
    assert str(damaged.value.hint).splitlines()[1:] == [f"  {name}", f"  {index}"]
    assert main(["-C", str(workspace), "push"]) == 0
    assert capsys.readouterr().out.startswith("nothing to push")
    for file in files:
        (shared / file.strip()).unlink()
    assert main(["-C", str(workspace), "push"]) == 0
    assert main(command) == 0
    sound = capsys.readouterr()
    assert sound.out.endswith(" rows checked: all is well, 1 unused pack\n")
    assert sound.err == ("hint: push from every store that may have the missing rows\n")
