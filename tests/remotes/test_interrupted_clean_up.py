"""A kill, or another program, at every moment of the clean-up of a remote."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from evalstore.core.clock import now
from evalstore.exchange.sync.pull import pull_missing
from evalstore.exchange.sync.remotes import OpenRemote
from evalstore.remotes.acceptance import Acceptance
from evalstore.remotes.download import check_remote
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import FolderFiles, MissingFileError
from evalstore.store.records import CheckedRecord, CopyListener
from tests.remotes import stores
from tests.remotes.test_interruptions import MOST, Killed, Scheduled

pytestmark = pytest.mark.extended

Rows = set[tuple[str, bytes]]
ONLY_BOB = Acceptance(writers=frozenset({"Bob"}))


@pytest.fixture
def base(whole_records: Sequence[CheckedRecord], tmp_path: Path) -> Path:
    """A remote with small pushes, what earlier ones left, and what can be deleted."""
    root = tmp_path / "base"
    third = len(whole_records) // 3
    stores.push_parts(whole_records[:third], FolderFiles(root), tmp_path, 3)
    stores.collect(FolderFiles(root))
    stores.push_parts(whole_records[: 2 * third], FolderFiles(root), tmp_path, 2)
    (root / f"packs/00/{'0' * 64}.pack").parent.mkdir()
    (root / f"packs/00/{'0' * 64}.pack").write_bytes(b"of a killed push")
    for path in root.rglob("*"):
        os.utime(path, (now() / 1e6 - 30 * 86_400,) * 2)
    return root


def _copies(base: Path, tmp_path: Path, step: int = 1) -> Iterator[tuple[int, Path]]:
    for at in range(0, MOST, step):
        yield at, shutil.copytree(base, tmp_path / str(at))
    raise AssertionError("there are more operations")


def _finish(root: Path) -> list[str]:
    """Clean up until there is nothing to do, and return the names of all files."""
    for _ in range(3):
        stores.collect(FolderFiles(root), grace=timedelta(0))
    return stores.names(root)


def _require_rows(root: Path, tmp_path: Path, expected: Rows, *, left: bool = False) -> None:
    """Require that a remote is sound and has these rows; packs may be `left` of killed programs."""
    check = check_remote(FolderFiles(root), CopyListener(), is_partial=True)
    assert check.problems == []
    assert left or check.unused == []
    with stores.opened(tmp_path / f"rows-{root.name}.db") as store:
        stores.pull(store, FolderFiles(root))
        assert {key for key in stores.rows(store) if key[0] != "runs"} == expected


def _rows(records: Sequence[CheckedRecord]) -> Rows:
    return {(item.record.table, bytes.fromhex(item.record.id)) for item in records}


def test_what_a_try_has_done_is_counted_though_it_was_disturbed(
    base: Path, whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    """Another clean-up deletes what the first try reads: it is made again."""
    half = len(whole_records) // 2
    stores.push_parts(whole_records[half:], FolderFiles(base), tmp_path, 3, writer="Zoe")
    before = {name for name in stores.names(base) if name.startswith("indexes/")}

    class Missing(FolderFiles):
        def __init__(self, root: Path, at: int) -> None:
            super().__init__(root)
            self.left = at

        def read(self, name: str, most: int) -> bytes:
            self.left -= 1
            if self.left == -1:
                raise MissingFileError(f"the remote has no file '{name}'")
            return super().read(name, most)

    for at, root in _copies(base, tmp_path):
        files = Missing(root, at + 1)  # after it was seen to be a remote
        done = stores.collect(files)
        after = {name for name in stores.names(root) if name.startswith("indexes/")}
        assert done.written.indexes == len(after - before) > 0, at
        assert done.deleted.indexes == len(before - after), at
        if files.left >= 0:
            break
    assert at > 20


def _in_base(records: Sequence[CheckedRecord]) -> Rows:
    return _rows(records[: 2 * (len(records) // 3)])


def test_one_that_is_killed_anywhere_is_completed_by_the_next(
    base: Path, whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    expected = _in_base(whole_records)
    undisturbed = shutil.copytree(base, tmp_path / "undisturbed")
    done = stores.collect(FolderFiles(undisturbed))
    assert done.replaced
    assert done.deleted
    clean = _finish(undisturbed)

    def kill() -> None:
        raise Killed

    for at, root in _copies(base, tmp_path):
        files = Scheduled(root, at, kill)
        with contextlib.suppress(Killed):
            stores.collect(files)
        _require_rows(root, tmp_path, expected, left=True)
        if not files.reached:
            break
        stores.collect(FolderFiles(root))
        assert _finish(root) == clean
    assert at > 20


def _collect(root: Path, _: Path, __: Sequence[CheckedRecord]) -> None:
    stores.collect(FolderFiles(root))


def _push(root: Path, tmp_path: Path, records: Sequence[CheckedRecord]) -> None:
    """Push everything, and as somebody to whom no other push counts, what Ann has pushed first."""
    with stores.opened(tmp_path / f"{root.name}-pushed.db") as store:
        store.ensure_records(records)
        stores.push(store, FolderFiles(root))
    with stores.opened(tmp_path / f"{root.name}-again.db") as store:
        store.ensure_records(records[: len(records) // 3 // 3])
        stores.push(store, FolderFiles(root), writer="Bob", rules=ONLY_BOB)


@pytest.mark.parametrize("other", [_collect, _push])
def test_others_may_write_at_the_same_time(
    base: Path,
    whole_records: Sequence[CheckedRecord],
    tmp_path: Path,
    other: Callable[[Path, Path, Sequence[CheckedRecord]], None],
) -> None:
    expected = _in_base(whole_records)
    if other is _push:
        expected = {key for key in _rows(whole_records) if key[0] != "runs"}
    for at, root in _copies(base, tmp_path, step=2):

        def act(root: Path = root) -> None:
            other(root, tmp_path, whole_records)

        files = Scheduled(root, at, act)
        stores.collect(files)
        if not files.reached:
            break
        _finish(root)
        _require_rows(root, tmp_path, expected)
    assert at > 20


def test_a_push_never_lists_a_pack_that_is_being_deleted(
    base: Path, whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    early = whole_records[: len(whole_records) // 3 // 3]
    with stores.opened(tmp_path / "early.db") as store:
        store.ensure_records(early)
        stores.push(store, FolderFiles(tmp_path / "alone"), writer="Bob")
        same = {name for name in stores.names(tmp_path / "alone") if name.startswith("packs/")}
        assert same <= set(stores.names(base))  # what Ann's first push has written
        for at, root in _copies(base, tmp_path):

            def collect(root: Path = root) -> None:
                stores.collect(FolderFiles(root))

            files = Scheduled(root, at, collect)
            stores.push(store, files, writer="Bob", rules=ONLY_BOB)
            if not files.reached:
                break
            _finish(root)
            _require_rows(root, tmp_path, _in_base(whole_records))
            with IndexCache.open(None, "x", ONLY_BOB) as cache:
                cache.refresh(FolderFiles(root))
                assert sum(push.records for push in cache.list_pushes()) == len(early)
    assert at > 4


def test_a_pull_meanwhile_gets_everything(
    base: Path, whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    expected = {key for key in _in_base(whole_records) if key[0] != "runs"}
    for at, root in _copies(base, tmp_path):

        def collect(root: Path = root) -> None:
            _finish(root)

        files = Scheduled(root, at, collect)
        cache = tmp_path / f"{at}.cache"
        with (
            stores.opened(tmp_path / f"{at}.db") as store,
            IndexCache.open(cache, "x") as indexes,
        ):
            if at % 2:  # it knows the old indexes
                indexes.refresh(FolderFiles(root))
            opened = OpenRemote("origin", "x", files, indexes, store)
            pull_missing(opened, dry_run=False, listener=None)
            if not files.reached:
                break
            assert {key for key in stores.rows(store) if key[0] != "runs"} == expected
    assert at > 4


def test_another_program_may_read_the_indexes_during_a_pull(
    base: Path, whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    """Both use the same file of what is known of the remote."""
    expected = {key for key in _in_base(whole_records) if key[0] != "runs"}
    for at, root in _copies(base, tmp_path):
        cache = tmp_path / f"{at}.cache"

        def act(root: Path = root, cache: Path = cache) -> None:
            _finish(root)
            with IndexCache.open(cache, "x") as others:
                others.refresh(FolderFiles(root))

        files = Scheduled(root, at, act)
        with (
            stores.opened(tmp_path / f"{at}.db") as store,
            IndexCache.open(cache, "x") as indexes,
        ):
            indexes.refresh(FolderFiles(root))
            opened = OpenRemote("origin", "x", files, indexes, store)
            pull_missing(opened, dry_run=False, listener=None)
            if not files.reached:
                break
            assert {key for key in stores.rows(store) if key[0] != "runs"} == expected
    assert at > 2
