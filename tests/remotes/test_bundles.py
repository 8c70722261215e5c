"""Bundles: all results, or those since a run, as one file."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Collection
from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.errors import EvalstoreError, RemoteError
from evalstore.exchange.init import init
from evalstore.exchange.sync.fsck import check_store, verify_bundle
from evalstore.exchange.sync.pull import pull
from evalstore.exchange.sync.push import create_bundle, push
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.remotes.bundle_files import BundleFiles
from evalstore.remotes.layout import FolderFiles
from evalstore.remotes.upload import find_reached
from evalstore.store import Store
from evalstore.store.records import StoredRecord, check_record
from evalstore.store.schema.table_definitions import FAILURES, RUNS
from tests.builders import tree
from tests.interfaces.cli.conftest import GROUP, WEATHER_WORKSPACE
from tests.remotes import stores


@pytest.fixture
def other(tmp_path: Path) -> Location:
    """A workspace without results."""
    init(tmp_path / "other", bare=True)
    return Location(tmp_path / "other")


def _rows_of(location: Location) -> dict[tuple[str, bytes], dict[str, object]]:
    with stores.opened(location.directory / ".evalstore/store.db") as store:
        assert check_store(store)[1] == []
        return stores.rows(store)


def _has_first(location: Location, finished: Path) -> None:
    """Let a workspace have the store after the first run."""
    shutil.copy(finished.parent / "first.db", location.directory / ".evalstore/store.db")


def test_a_bundle_brings_the_whole_store(
    finished: Path, full: Store, other: Location, tmp_path: Path
) -> None:
    file = tmp_path / "all.bundle"
    written = create_bundle(Location(finished), file, with_failures=True)
    assert written.bytes_sent == file.stat().st_size
    assert (written.records["runs"], written.presumes) == (2, [])
    check = verify_bundle(tmp_path, Path("all.bundle")).check
    assert (check.checked, check.problems) == (len(stores.rows(full)), [])
    assert pull(other, str(file), dry_run=True).records == written.records
    assert not any(table == RUNS.name for table, _ in _rows_of(other))
    assert pull(other, str(file)).records == written.records
    assert _rows_of(other) == stores.rows(full)
    assert not any(pull(other, str(file)).records.values())


def test_a_store_that_has_the_run_has_everything_with_the_bundle_since_it(
    finished: Path, full: Store, other: Location, tmp_path: Path
) -> None:
    file = tmp_path / "new.bundle"
    written = create_bundle(Location(finished), file, since="@~1", with_failures=True)
    assert written.records["runs"] == 1
    assert len(written.presumes) == 1
    assert verify_bundle(tmp_path, file).check.problems == []
    with pytest.raises(RemoteError, match=f"needs 1 earlier run: {written.presumes[0][:8]}"):
        pull(other, str(file))
    _has_first(other, finished)
    before = _rows_of(other)
    copied = pull(other, str(file))
    assert copied.records == written.records  # nothing that the store had
    assert before.items() < _rows_of(other).items()
    assert _rows_of(other) == stores.rows(full)


def test_a_push_since_a_run_brings_that_run_whole(
    finished: Path, full: Store, empty: Store, tmp_path: Path
) -> None:
    workspace = shutil.copytree(finished, tmp_path / "w")
    assert main(["-C", str(workspace), "remote", "add", "origin", str(tmp_path / "r"), "-q"]) == 0
    assert push(Location(workspace), since="@~1").records["runs"] == 1
    assert push(Location(workspace), since="@").records == dict.fromkeys(
        ("runs", "answers", "judgements", "versions"), 0
    )
    stores.pull(empty, FolderFiles(tmp_path / "r"))
    assert check_store(empty)[1] == []
    assert [run.id for run in empty.find_runs()] == [full.find_runs()[0].id]
    labels = [content for content in _contents(full, "evaluations") if '"feedback":"no"' in content]
    assert labels
    assert set(labels) <= set(_contents(empty, "evaluations"))
    assert not _contents(empty, FAILURES.name)
    with stores.opened(Path(shutil.copy(finished.parent / "first.db", tmp_path / "s.db"))) as store:
        stores.pull(store, FolderFiles(tmp_path / "r"))
        new_failures = stores.rows(full).keys() - stores.rows(store).keys()
    assert {table for table, _ in new_failures} == {FAILURES.name}


def _contents(store: Store, table: str) -> list[str]:
    return [str(row["content"]) for (name, _), row in stores.rows(store).items() if name == table]


def test_reachable_rows_are_read_once_and_few_at_a_time(
    full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, earlier = ({bytes.fromhex(run.id)} for run in full.find_runs())
    expected = find_reached(full, later, presumed=earlier).joined
    read: list[tuple[str, str]] = []
    load, find_present = Store.load_records, Store.find_present

    def counted(store: Store, table: str, ids: list[str]) -> object:
        read.extend((table, id) for id in ids)
        return load(store, table, ids)

    def few(store: Store, table: str, ids: Collection[bytes]) -> set[bytes]:
        assert len(ids) <= 3
        return find_present(store, table, ids)

    monkeypatch.setattr(Store, "load_records", counted)
    monkeypatch.setattr(Store, "find_present", few)
    monkeypatch.setattr("evalstore.core.batches.SIZE", 3)
    beyond = find_reached(full, later, presumed=earlier)
    assert beyond.joined == expected
    assert len([*beyond.iterate_ids(RUNS.name)]) == 1
    assert len(read) == len(set(read))
    assert not {table for table, _ in read} & {"files", "models"}


def test_a_later_judgement_of_answers_that_are_judged_together_is_reached(
    tmp_path: Path,
) -> None:
    folder = tree(tmp_path / "w", {**WEATHER_WORKSPACE, "tests/weather.md": GROUP})
    for _ in range(2):
        assert main(["-C", str(folder), "run", "--fail-on", "none", "-q"]) == 0
    with stores.opened(folder / ".evalstore/store.db") as store:
        (joint,) = [checked for checked in stores.records(store) if checked.kind == "judgement"]
        assert len(joint.content["sessions"]) == 2
        id, content = hashing.identify({**joint.content, "started": stores.CREATED})
        store.ensure_records([check_record(StoredRecord(joint.record.table, id, content))])
        later, earlier = ({bytes.fromhex(run.id)} for run in store.find_runs())
        reached = find_reached(store, later, presumed=earlier)
        assert reached.joined.keys() == {RUNS.name, joint.record.table}
        assert reached.joined[joint.record.table] == bytes.fromhex(id)


def test_a_push_since_a_run_that_is_not_there_makes_no_remote(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = str(shutil.copytree(finished, tmp_path / "w"))
    assert main(["-C", workspace, "remote", "add", "origin", str(tmp_path / "r")]) == 0
    assert main(["-C", workspace, "push", "--since", "@~9"]) == 2
    assert "unknown run '@~9'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_bundle_that_cannot_be_written_changes_nothing(finished: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.bundle"
    create_bundle(Location(finished), file)
    before = file.read_bytes()
    with pytest.raises(EvalstoreError, match="no run after '@'"):
        create_bundle(Location(finished), file, since="@")
    workspace = shutil.copytree(finished, tmp_path / "w")
    with stores.opened(workspace / ".evalstore/store.db") as store, store.writing() as connection:
        connection.execute("UPDATE sessions SET content = replace(content, 'Warm', 'Cold')")
    with pytest.raises(EvalstoreError, match="does not match its id"):
        create_bundle(Location(workspace), file)
    assert file.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"all.bundle", "w"}


@pytest.mark.parametrize(
    "name", [".evalstore/store.db", "evalstore.yaml", "tests/weather.md", "code.zip"]
)
def test_another_file_is_never_replaced_by_a_bundle(
    finished: Path, tmp_path: Path, name: str
) -> None:
    workspace = shutil.copytree(finished, tmp_path / "w")
    with zipfile.ZipFile(workspace / "code.zip", "w") as archive:
        archive.writestr("bundle.json", '{"bundle": 1}')
    before = (workspace / name).read_bytes()
    with pytest.raises(EvalstoreError, match="is another file, not a bundle"):
        create_bundle(Location(workspace), Path(name))
    assert (workspace / name).read_bytes() == before


def test_a_key_is_not_written_to_a_bundle(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", "The answer must be")
    with pytest.raises(EvalstoreError, match=r"nothing was written: \d+ rows? would reveal a key"):
        create_bundle(Location(finished), tmp_path / "all.bundle")
    assert not any(tmp_path.iterdir())
    create_bundle(Location(finished), tmp_path / "all.bundle", allow_keys=True)


def test_a_bundle_is_read_only(finished: Path, tmp_path: Path) -> None:
    create_bundle(Location(finished), tmp_path / "all.bundle")
    with BundleFiles.open(tmp_path / "all.bundle") as files:
        for change in (lambda: files.create("format", b""), lambda: files.delete("format")):
            with pytest.raises(RemoteError, match="cannot be changed"):
                change()


def test_the_command_says_what_it_did(
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    init(tmp_path / "other", bare=True)
    _has_first(Location(tmp_path / "other"), finished)
    monkeypatch.chdir(tmp_path)
    file = str(tmp_path / "new.bundle")
    assert main(["-C", str(finished), "push", file, "--since", "@~1"]) == 0
    assert main(["fsck", "--remote", "new.bundle"]) == 0  # without a workspace
    assert main(["-C", "other", "pull", file, "--dry-run"]) == 0
    assert main(["-C", "other", "pull", file]) == 0
    assert main(["-C", "other", "pull", file]) == 0
    created, presumed, written, presumes, checked, *copied = capsys.readouterr().out.splitlines()
    counted = created.removeprefix("pushed ").partition(" to bundle (")[0]
    assert counted.startswith("1 run, ")
    assert presumed == "it needs 1 earlier run in the store that pulls it"
    assert written.startswith("written  20")
    assert presumes.startswith("needs 1 run: ")
    assert checked.endswith("rows checked: all is well")
    assert copied[0] == f"would pull {counted} from bundle ({file})"
    assert copied[1].startswith(f"pulled {counted} from bundle ({file}): ")
    assert copied[2] == f"nothing to pull from bundle ({file})"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["push", "a.bundle", "--dry-run"], "'--dry-run' is for remotes: a bundle has all results"),
        (["push", "other.db"], "'other.db' is neither a remote nor a bundle"),
        (["push", "../team"], "'../team' is neither a remote nor a bundle"),
        (["push", "s3://team/results"], "'s3://team/results' is neither a remote nor a bundle"),
        (["push", "orgin"], "unknown remote 'orgin'"),
        (["pull", "a.bundle"], "a.bundle' cannot be read: No such file or directory"),
        (["pull", "tests"], "unknown remote 'tests'"),
        (["pull", "../w/tests"], "'../w/tests' is neither a bundle nor a store"),
        (["pull", "s3://team/results"], "'s3://team/results' is neither a bundle nor a store"),
        (["fsck", "--remote", "a.bundle"], "a.bundle' cannot be read: No such file or directory"),
        (
            ["fsck", "--remote", "postgresql://u:secret@h/d"],
            "unknown remote 'postgresql://u:***@h/d'",
        ),
        (["push", "postgresql://u:secret@h/d"], "'postgresql://u:***@h/d' is neither a remote nor"),
    ],
)
def test_what_is_neither_a_remote_nor_such_a_file_is_refused(
    words: list[str],
    message: str,
    finished: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    workspace = shutil.copytree(finished, tmp_path / "w")
    before = {path.name for path in tmp_path.iterdir()}, {path.name for path in workspace.iterdir()}
    assert main(["-C", str(workspace), *words]) != 0
    told = capfd.readouterr().err
    assert message in told
    assert "secret" not in told
    after = {path.name for path in tmp_path.iterdir()}, {path.name for path in workspace.iterdir()}
    assert after == before


def test_the_name_of_a_remote_comes_before_that_of_a_file(finished: Path, tmp_path: Path) -> None:
    workspace = str(shutil.copytree(finished, tmp_path / "w"))
    assert main(["-C", workspace, "remote", "add", "all.bundle", str(tmp_path / "r"), "-q"]) == 0
    assert main(["-C", workspace, "push", "all.bundle"]) == 0
    assert (tmp_path / "r/format").is_file()
    assert not (tmp_path / "w/all.bundle").exists()
    assert main(["-C", workspace, "fsck", "--remote", "all.bundle"]) == 0
    assert main(["-C", workspace, "pull", "all.bundle"]) == 0
    assert main(["-C", workspace, "push", "./all.bundle"]) == 0
    assert (tmp_path / "w/all.bundle").is_file()
