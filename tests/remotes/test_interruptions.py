"""A kill, or another program, at every moment of a push or a pull."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.exchange.sync.pull import PullReport, pull_for_plan
from evalstore.exchange.sync.pull import pull as pull_all
from evalstore.planning.options import Location
from evalstore.remotes import download, packs
from evalstore.remotes.layout import FolderFiles, ListedFile
from evalstore.store import Store
from evalstore.store.records import CheckedRecord
from tests.remotes import stores

pytestmark = pytest.mark.extended

MOST = 60
"""More operations than a push or a pull of these tests makes."""


class Killed(Exception):  # noqa: N818 - it is not an error
    """The program ends here."""


class Scheduled(FolderFiles):
    """A remote that calls a function before the operation with a number."""

    def __init__(self, root: Path, at: int, then: Callable[[], object]) -> None:
        super().__init__(root)
        self._left = at
        self._then = then
        self.reached = False

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0 and not self.reached:
            self.reached = True
            self._then()

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        self._step()
        return super().iterate(folder)

    def read(self, name: str, most: int) -> bytes:
        self._step()
        return super().read(name, most)

    def create(self, name: str, data: bytes) -> bool:
        self._step()
        return super().create(name, data)

    def delete(self, name: str) -> None:
        self._step()
        super().delete(name)


def _kill() -> None:
    raise Killed


@pytest.fixture(autouse=True)
def _small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many packs, indexes and transactions, also for few rows."""
    monkeypatch.setattr(packs, "LARGEST_PACK", 3_000)
    monkeypatch.setattr("evalstore.remotes.upload.MOST_RECORDS", 17)
    monkeypatch.setattr(download, "_ROWS", 5)


def _copy_of(remote: Path, tmp_path: Path, name: str) -> dict[tuple[str, bytes], object]:
    """Pull a remote into a new store that must be sound, and return its rows."""
    with stores.opened(tmp_path / f"{name}.db") as store:
        stores.pull(store, FolderFiles(remote))
        damages = check_store(store)[1]
        assert [damage for damage in damages if damage.kind == "run"] == []
        return dict(stores.rows(store))


def test_a_push_that_is_killed_anywhere_is_completed_by_the_next(
    full: Store, tmp_path: Path
) -> None:
    undisturbed = tmp_path / "undisturbed"
    stores.push(full, FolderFiles(undisturbed))
    for at in range(MOST):
        root = tmp_path / str(at)
        files = Scheduled(root, at, _kill)
        with contextlib.suppress(Killed):
            stores.push(full, files)
        if not files.reached:
            break
        if (root / "format").exists():
            _copy_of(root, tmp_path, f"half-{at}")  # no run without what it refers to
        stores.push(full, FolderFiles(root))
        assert _copy_of(root, tmp_path, f"whole-{at}") == stores.rows(full)
        packs_of = [name for name in stores.names(root) if name.startswith("packs/")]
        expected = [name for name in stores.names(undisturbed) if name.startswith("packs/")]
        assert packs_of == expected  # what was written was used
    else:
        raise AssertionError("the push has more operations")
    assert at > 6


def test_a_pull_that_is_killed_anywhere_is_completed_by_the_next(
    full: Store, tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push(full, FolderFiles(root))
    for at in range(MOST):
        files = Scheduled(root, at, _kill)
        with stores.opened(tmp_path / f"{at}.db") as store:
            with contextlib.suppress(Killed):
                stores.pull(store, files)
            if not files.reached:
                break
            assert stores.rows(store).items() <= stores.rows(full).items()
            assert store.count_runs() == 0
            stores.pull(store, FolderFiles(root))
            assert stores.rows(store) == stores.rows(full)
    else:
        raise AssertionError("the pull has more operations")
    assert at > 6


def test_a_pull_reads_each_pack_once(
    full: Store,
    whole_records: list[CheckedRecord],
    empty: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of every table are in the packs of every push, and few ids are looked up at once."""
    monkeypatch.setattr("evalstore.core.batches.SIZE", 3)
    files = FolderFiles(tmp_path / "remote")
    for part in range(3):
        with stores.opened(tmp_path / f"{part}.db") as store:
            store.ensure_records(whole_records[part::3])
            stores.push(store, files)
    read: list[str] = []

    class Noting(FolderFiles):
        def read(self, name: str, most: int) -> bytes:
            read.append(name)
            return super().read(name, most)

    pulled = stores.pull(empty, Noting(tmp_path / "remote"))
    assert stores.rows(empty) == stores.rows(full)
    packs_read = [name for name in read if name.startswith("packs/")]
    sizes = {file.name: file.size for file in files.iterate("packs")}
    assert sorted(packs_read) == sorted(sizes)
    assert pulled.bytes_received == sum(sizes.values())


def test_two_pushes_at_once_lose_nothing(
    full: Store, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    with stores.opened(tmp_path / "other.db") as other:
        other.ensure_records(whole_records[: len(whole_records) // 2])
        for at in range(MOST):
            root = tmp_path / str(at)

            def push_other(root: Path = root) -> None:
                stores.push(other, FolderFiles(root))

            files = Scheduled(root, at, push_other)
            stores.push(full, files)
            if not files.reached:
                break
            assert _copy_of(root, tmp_path, f"copy-{at}") == stores.rows(full)
        else:
            raise AssertionError("the push has more operations")


def test_rows_that_are_written_during_a_push_come_with_the_next(
    whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    half = len(whole_records) // 2
    for at in range(0, MOST, 2):
        root = tmp_path / str(at)
        with stores.opened(tmp_path / f"{at}.db") as store:
            store.ensure_records(whole_records[:half])

            def write(store: Store = store) -> None:
                store.ensure_records(whole_records[half:])

            files = Scheduled(root, at, write)
            stores.push(store, files)
            if not files.reached:
                break
            stores.push(store, FolderFiles(root))
            assert _copy_of(root, tmp_path, f"copy-{at}") == stores.rows(store)
    assert at > 6


@pytest.mark.parametrize("copy", [pull_all, pull_for_plan], ids=["all", "for-plan"])
def test_packs_that_are_replaced_during_a_pull_are_found_again(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: Callable[..., PullReport]
) -> None:
    first, whole = (FolderFiles(tmp_path / name) for name in ("first", "whole"))
    with stores.opened(finished.parent / "first.db") as store:
        stores.push(store, first)
    with stores.opened(finished / ".evalstore/store.db") as store:
        stores.push(store, first)
        stores.push(store, whole)
        expected = stores.rows(store)
    complete = 0
    for at in range(MOST):
        workspace, remote = tmp_path / f"w{at}", tmp_path / f"remote{at}"
        shutil.copytree(finished, workspace, ignore=shutil.ignore_patterns(".evalstore"))
        with (workspace / "evalstore.yaml").open("a") as settings:
            settings.write("remotes: {origin: shared}\n")
        shutil.copytree(tmp_path / "first", remote)

        def replace(remote: Path = remote) -> None:
            shutil.rmtree(remote)
            shutil.copytree(tmp_path / "whole", remote)

        files = Scheduled(remote, at, replace)
        monkeypatch.setattr("evalstore.exchange.sync.remotes.open_files", lambda *_, it=files: it)
        copied = copy(Location(workspace))
        if not files.reached:
            break
        complete += copied.records["runs"] > 0
        if not copied.records["runs"]:  # it was replaced before anything was known of it
            copy(Location(workspace))
        with stores.opened(workspace / ".evalstore/store.db") as store:
            rows = stores.rows(store)
        assert rows.items() <= expected.items()
        assert len(rows) == len(expected) or copy is pull_for_plan
    assert 0 < at < MOST - 1
    assert complete > at // 2


@pytest.fixture
def job(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., PullReport]:
    """Pulls for the plan of a workspace with a store of its own, by its name."""
    with stores.opened(finished / ".evalstore/store.db") as store:
        stores.push(store, FolderFiles(tmp_path / "remote"))

    def pull(name: str, files: FolderFiles) -> PullReport:
        workspace = tmp_path / name
        if not workspace.exists():
            shutil.copytree(finished, workspace, ignore=shutil.ignore_patterns(".evalstore"))
            with (workspace / "evalstore.yaml").open("a") as settings:
                settings.write("remotes: {origin: shared}\n")
        monkeypatch.setattr("evalstore.exchange.sync.remotes.open_files", lambda *_: files)
        return pull_for_plan(Location(workspace))

    return pull


def test_a_pull_for_the_plan_that_is_killed_anywhere_is_completed_by_the_next(
    job: Callable[..., PullReport], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    job("undisturbed", FolderFiles(root))
    with stores.opened(tmp_path / "undisturbed/.evalstore/store.db") as store:
        expected = stores.rows(store)
    for at in range(4 * MOST):
        files = Scheduled(root, at, _kill)
        with contextlib.suppress(Killed):
            job(str(at), files)
        if not files.reached:
            break
        job(str(at), FolderFiles(root))
        with stores.opened(tmp_path / f"{at}/.evalstore/store.db") as store:
            assert stores.rows(store) == expected
            assert check_store(store)[1] == []
    else:
        raise AssertionError("the pull has more operations")
    assert at > 6
