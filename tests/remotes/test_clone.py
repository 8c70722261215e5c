"""`clone`: a workspace with the results of a remote, or nothing at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalstore.exchange.sync.pull import clone, pull
from evalstore.exchange.sync.push import create_bundle
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store
from tests.remotes import stores


@pytest.fixture
def shared(full: Store, tmp_path: Path) -> Path:
    """A remote of one push, with a name of two words."""
    stores.push(full, FolderFiles(tmp_path / "our results"))
    return tmp_path / "our results"


def test_a_clone_has_all_results_and_can_pull(full: Store, shared: Path, tmp_path: Path) -> None:
    here = Location(tmp_path)
    report = clone(here, "our results", Path("a/b"))
    assert report.pulled.address == str(shared)
    with stores.opened(tmp_path / "a/b/.evalstore/store.db") as store:
        assert stores.rows(store) == stores.rows(full)
    again = pull(Location(tmp_path / "a/b"))  # the address is allowed
    assert not any(again.records.values())
    assert again.bytes_received == 0  # the indexes are known
    assert ".evalstore/" in (tmp_path / "a/b/.gitignore").read_text()


def test_the_command_says_where_the_tests_are(
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "c").mkdir()
    monkeypatch.chdir(tmp_path / "c")
    assert main(["clone", str(shared)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("cloned 2 runs, ")
    assert f" from {shared} into our results: " in printed.out
    assert "the tests are not in a remote: they come from your repository" in printed.err
    assert main(["-C", "our results", "log", "--oneline"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["clone", str(shared)]) == 2
    error = capsys.readouterr().err
    assert "error: 'our results' exists already and is not empty" in error
    assert f"'evalstore remote add origin {shared}' and 'evalstore pull'" in error


def test_a_workspace_is_left_as_it_is(finished: Path, tmp_path: Path) -> None:
    create_bundle(Location(finished), tmp_path / "all.bundle")
    assert main(["init", "--bare", str(tmp_path / "copy")]) == 0
    assert main(["clone", str(tmp_path / "all.bundle"), str(tmp_path / "copy")]) == 2
    with stores.opened(tmp_path / "copy/.evalstore/store.db") as store:
        assert stores.rows(store) == {}


def test_a_bundle_is_cloned_without_a_workspace(
    finished: Path, full: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "our results.bundle"
    create_bundle(Location(finished), file, with_failures=True)
    here = ["-C", str(tmp_path)]
    assert main([*here, "pull", file.name]) == 2
    assert capsys.readouterr().err.endswith(
        f"hint: 'evalstore -C {tmp_path} clone 'our results.bundle' DIR' makes a workspace "
        "with these results\n"
    )
    assert main([*here, "clone", file.name]) == 0
    printed = capsys.readouterr()
    assert f" from {file} into our results: " in printed.out
    assert printed.err == (
        "the tests are not in a bundle: they come from your repository, with git\n"
    )
    with stores.opened(tmp_path / "our results/.evalstore/store.db") as store:
        assert stores.rows(store) == stores.rows(full)
    assert main([*here, "clone", file.name]) == 2
    assert f"'evalstore -C {tmp_path} pull {file}' gets the same results" in capsys.readouterr().err
    assert main(["-C", str(tmp_path / "our results"), "remote"]) == 0
    assert capsys.readouterr().out == ""
    file.write_bytes(file.read_bytes()[:-9])
    assert main([*here, "clone", file.name, "new"]) == 6
    assert not (tmp_path / "new").exists()


def test_nothing_half_made_is_left(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack,) = shared.glob("packs/*/*")
    content = pack.read_bytes()
    pack.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for directory in ("new", "a/b/new", "empty"):
        assert main(["-C", str(tmp_path), "clone", str(shared), directory]) == 6
        assert "is damaged" in capsys.readouterr().err
        assert sorted(tmp_path.rglob("*")) == before
    assert main(["-C", str(tmp_path), "clone", "missing", "new"]) == 6
    assert main(["-C", str(tmp_path), "clone", "ftp://host/results", "new"]) == 2
    (tmp_path / "file").write_bytes(b"")
    assert main(["-C", str(tmp_path), "clone", str(shared), "file"]) == 2
    assert "'file' exists already and is not a folder" in capsys.readouterr().err
    assert main(["-C", str(tmp_path), "clone", str(shared), "file/new"]) == 2
    (tmp_path / "file").unlink()
    assert sorted(tmp_path.rglob("*")) == before
    shutil.rmtree(tmp_path / "empty")
