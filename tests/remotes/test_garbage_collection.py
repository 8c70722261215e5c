"""The clean-up of a remote: all rows stay, and nothing is deleted that somebody may need."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import struct
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstore.core.clock import now
from evalstore.core.errors import RemoteError
from evalstore.remotes import packs
from evalstore.remotes.acceptance import Acceptance
from evalstore.remotes.collect_garbage import FileCounts, SurveyedIndex, choose_indexes
from evalstore.remotes.download import check_remote
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import (
    FolderFiles,
    RemoteFiles,
    digest_of_index,
    index_name,
    make_remote,
    pack_name,
    sha256,
)
from evalstore.remotes.packs import (
    MAGIC,
    MOST_RECORDS,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    PackWriter,
    read_index,
    write_index,
)
from evalstore.store import Store
from evalstore.store.records import CheckedRecord, CopyListener
from tests.remotes import stores

pytestmark = pytest.mark.extended

_numbers = itertools.count()
NONE = timedelta(0)
WRITERS = ("Ann@laptop", "Bob@desk", "ci@host")
PUSHES = st.lists(st.tuples(st.sampled_from(WRITERS), st.floats(0, 1)), min_size=1, max_size=12)


def _rows(files: RemoteFiles, folder: Path) -> dict[tuple[str, bytes], dict[str, object]]:
    """Pull everything into a new store."""
    with stores.opened(folder / f"pulled-{next(_numbers)}.db") as store:
        stores.pull(store, files)
        return stores.rows(store)


def _files(root: Path, folder: str) -> list[Path]:
    return sorted(path for path in (root / folder).rglob("*") if path.is_file())


def _age(root: Path, days: float) -> None:
    """Let packs and indexes be so old."""
    then = now() / 1e6 - days * 86_400
    for path in [*_files(root, "indexes"), *_files(root, "packs")]:
        os.utime(path, (then, then))


def _problems(files: RemoteFiles, *, is_partial: bool = False) -> list[object]:
    check = check_remote(files, CopyListener(), is_partial=is_partial)
    return [*check.problems, *check.unused]


def test_small_pushes_become_one_pack_as_if_pushed_at_once(
    whole_records: Sequence[CheckedRecord], full: Store, tmp_path: Path
) -> None:
    root, at_once = tmp_path / "remote", tmp_path / "once"
    files = FolderFiles(root)
    stores.push_parts(whole_records, files, tmp_path, 12, apart=60_000_000)
    stores.push(full, FolderFiles(at_once))
    expected = stores.rows(full)
    pushes = _pushes(files, whole_records)
    assert len(set(pushes.values())) == 12
    planned = stores.collect(files, dry_run=True)
    before = stores.names(root)
    done = stores.collect(files)
    assert (done.replaced, done.deleted) == (planned.replaced, FileCounts())
    assert (done.replaced.indexes, done.written.indexes, done.written.packs) == (12, 1, 1)
    assert set(before) < set(stores.names(root))
    assert {path.name for path in _files(at_once, "packs")} < {
        path.name for path in _files(root, "packs")
    }
    assert _rows(files, tmp_path) == expected
    with IndexCache.open(None, files.address) as cache:
        sizes = {file.name: file.size for file in files.iterate("indexes")}
        (merged,) = (name for name in sizes if name not in before)
        assert cache.refresh(files) == sizes[merged]  # what it replaces is not read
        (push,) = cache.list_pushes()
        newest = stores.CREATED + 11 * 60_000_000
        assert (push.writer, push.created) == ("Ann@laptop", newest)
        assert push.records == len(expected)
    assert _problems(files) == []
    assert _pushes(files, whole_records) == pushes


def _pushes(files: RemoteFiles, records: Sequence[CheckedRecord]) -> dict[bytes, int]:
    """Return when each record was first pushed."""
    with IndexCache.open(None, files.address) as cache:
        cache.refresh(files)
        return {
            id: push.created
            for checked in records
            for id, push in cache.find_pushes(
                checked.record.table, [bytes.fromhex(checked.record.id)]
            )
        }


def test_what_was_replaced_is_deleted_after_the_grace_and_not_before(
    whole_records: Sequence[CheckedRecord], full: Store, tmp_path: Path
) -> None:
    root, cache = tmp_path / "remote", tmp_path / "cache.db"
    files = FolderFiles(root)
    stores.push_parts(whole_records, files, tmp_path, 6)
    with stores.opened(tmp_path / "old.db") as old:
        stores.pull(old, files, cache)  # this program knows the old indexes
    replaced = stores.collect(files).replaced
    waiting = stores.names(root)
    for days in (0, 13.9):
        _age(root, days)
        again = stores.collect(files)
        assert stores.names(root) == waiting  # nor does anything grow
        assert (again.replaced, again.written, again.deleted) == (FileCounts(),) * 3
        assert again.waiting == replaced
    _age(root, 14.1)
    planned = stores.collect(files, dry_run=True)
    assert stores.names(root) == waiting
    done = stores.collect(files)
    assert done.deleted == planned.deleted == replaced
    assert done.waiting == FileCounts()
    assert [len(_files(root, folder)) for folder in ("indexes", "packs", "retired")] == [1, 1, 0]
    assert _rows(files, tmp_path) == stores.rows(full)
    with stores.opened(tmp_path / "new.db") as store:
        stores.pull(store, files, cache)
        assert stores.rows(store) == stores.rows(full)
    assert _problems(files) == []
    clean = stores.names(root)
    assert stores.collect(files).deleted == FileCounts()
    assert stores.names(root) == clean


def test_what_is_replaced_again_after_a_loss_has_the_whole_grace_again(
    whole_records: Sequence[CheckedRecord], full: Store, tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    files = FolderFiles(root)
    stores.push_parts(whole_records, files, tmp_path, 4)
    replaced = stores.collect(files).replaced
    _age(root, 30)
    (merged,) = root.glob("indexes/*.merged.idx")
    merged.unlink()
    before = stores.names(root)
    planned = stores.collect(files, dry_run=True)
    assert stores.names(root) == before
    done = stores.collect(files)
    assert (done.replaced, done.deleted) == (planned.replaced, planned.deleted)
    assert (done.replaced, done.waiting) == (replaced, replaced)
    assert (done.deleted.indexes, done.deleted.packs) == (0, 1)  # that of the lost index
    assert len([*root.glob("indexes/*.merged.idx")]) == 1
    _age(root, 15)
    assert stores.collect(files).deleted == replaced
    assert _rows(files, tmp_path) == stores.rows(full)


@given(PUSHES, st.sets(st.integers(0, 11)), st.sampled_from([400, 3_000, 100_000]))
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whoever_pushes_what_the_union_stays(
    whole_records: Sequence[CheckedRecord],
    tmp_path: Path,
    pushes: Sequence[tuple[str, float]],
    collected: set[int],
    largest_pack: int,
) -> None:
    folder = tmp_path / str(next(_numbers))
    folder.mkdir()
    files = FolderFiles(folder / "remote")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "LARGEST_PACK", largest_pack)
        expected = set[tuple[str, bytes]]()
        for number, (writer, share) in enumerate(pushes):
            with stores.opened(folder / f"{writer}.db") as store:
                store.ensure_records(whole_records[: int(share * len(whole_records))])
                stores.push(store, files, writer=writer)
                expected |= stores.rows(store).keys()
            if number in collected:
                stores.collect(files, grace=NONE)
        before = _by_writer(files)
        for _ in range(3):
            stores.collect(files, grace=NONE)
            assert _by_writer(files) == before
        clean = stores.names(folder / "remote")
        assert not any(name.startswith("retired/") for name in clean)
        stores.collect(files, grace=NONE)
        assert stores.names(folder / "remote") == clean
    listed = {(packs.TABLE_NAMES[table], id) for rows in before.values() for table, id in rows}
    assert listed == expected
    assert _rows(files, folder).keys() <= expected  # what refers to other rows waits
    assert _problems(files, is_partial=True) == []


def _by_writer(files: RemoteFiles) -> dict[str, set[tuple[int, bytes]]]:
    """Return what the pushes of each writer have brought, for whoever trusts only this one."""
    found: dict[str, set[tuple[int, bytes]]] = {}
    for file in files.iterate("indexes"):
        if not digest_of_index(file.name):
            continue
        header, records = read_index(files.read(file.name, file.size))
        found.setdefault(header.writer, set()).update(
            (record.entry.table, record.entry.id) for record in records
        )
    return found


def test_few_indexes_remain_and_each_record_is_rewritten_seldom() -> None:
    sizes: list[int] = []
    rewritten = 0
    for number in range(1_000):
        sizes.append(1 + number % 7)
        for part in choose_indexes(_listing(sizes)):
            chosen = [index.header.records for index in part]
            rewritten += sum(chosen)
            for size in chosen:
                sizes.remove(size)
            sizes.append(sum(chosen))
        assert choose_indexes(_listing(sizes)) == []
    total = sum(sizes)
    assert len(sizes) <= 12
    assert rewritten <= 12 * total


def _listing(sizes: Sequence[int]) -> list[SurveyedIndex]:
    return [
        SurveyedIndex(str(at), size, IndexHeader("Ann", 0, (), records=size))
        for at, size in enumerate(sizes)
    ]


def test_an_index_never_has_more_records_than_allowed() -> None:
    half = MOST_RECORDS // 2
    parts = choose_indexes(_listing([half] * 5 + [half + 1, MOST_RECORDS]))
    assert [[index.header.records for index in part] for part in parts] == [[half, half]] * 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"evalstore":"remote","format":2}', "has format 2; this version"),
        (b"other", "its file 'format' is not that of evalstore"),
        (None, "it has no file 'format'"),
    ],
)
def test_only_a_remote_of_this_format_is_cleaned_up(
    full: Store, tmp_path: Path, content: bytes | None, message: str
) -> None:
    files = FolderFiles(tmp_path / "remote")
    stores.push(full, files)
    (tmp_path / "remote/format").unlink()
    if content:
        files.create("format", content)
    before = stores.names(tmp_path / "remote")
    with pytest.raises(RemoteError, match=message):
        stores.collect(files, grace=NONE)
    assert stores.names(tmp_path / "remote") == before


def test_nothing_is_deleted_where_an_index_is_damaged(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 4)
    stores.collect(FolderFiles(root))
    _age(root, 30)
    index = _files(root, "indexes")[0]
    index.write_bytes(index.read_bytes()[:-1])
    before = stores.names(root)
    with pytest.raises(RemoteError, match="has changed since it was written"):
        stores.collect(FolderFiles(root))
    assert stores.names(root) == before


@pytest.mark.parametrize("is_merged", [False, True])
def test_nothing_is_deleted_where_an_index_was_written_with_a_damaged_table(
    whole_records: Sequence[CheckedRecord], tmp_path: Path, is_merged: bool
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 4)
    if is_merged:
        stores.collect(FolderFiles(root))
    index = max(_files(root, "indexes"), key=lambda path: path.stat().st_size)
    data = index.read_bytes()[:-1]
    index.unlink()
    (root / index_name(stores.CREATED, sha256(data), is_merged=is_merged)).write_bytes(data)
    _age(root, 30)
    before = stores.names(root)
    with pytest.raises(RemoteError, match="it does not end where it should"):
        stores.collect(FolderFiles(root))
    assert stores.names(root) == before


def test_what_has_a_time_in_the_future_is_not_deleted(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 4)
    stores.collect(FolderFiles(root))
    _age(root, -30)
    before = stores.names(root)
    assert not stores.collect(FolderFiles(root), grace=NONE).deleted
    assert stores.names(root) == before


def test_a_damaged_pack_is_not_copied(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 3)
    pack = _files(root, "packs")[0]
    data = bytearray(pack.read_bytes())
    data[-1] ^= 1
    pack.write_bytes(data)
    before = stores.names(root)
    with pytest.raises(RemoteError, match=f"'packs/../{pack.name}': it has changed"):
        stores.collect(FolderFiles(root), grace=NONE)
    assert stores.names(root) == before


def test_an_index_that_says_what_it_replaces_deletes_nothing_that_it_lacks(
    whole_records: Sequence[CheckedRecord], full: Store, tmp_path: Path
) -> None:
    """Whoever may only add files cannot have others delete results."""
    root = tmp_path / "remote"
    files = FolderFiles(root)
    stores.push_parts(whole_records, files, tmp_path, 2)
    indexes = [name for name in stores.names(root) if name.startswith("indexes/")]
    junk = MAGIC + bytes(100_000)
    files.create(pack_name(sha256(junk)), junk)
    header = IndexHeader("Ann@laptop", 0, [IndexedPack(sha256(junk), len(junk))], indexes)
    whole = [
        IndexedRecord(0, record.entry, record.key)
        for index in indexes
        for record in read_index(files.read(index, 10**6))[1]
    ]
    listings: list[list[IndexedRecord]] = [[], whole]
    for listed in listings:  # without the records, or with records that are not there
        data = write_index(header, listed)
        files.create(index_name(0, sha256(data), is_merged=True), data)
        _age(root, 30)
        with contextlib.suppress(RemoteError):
            assert not stores.collect(files).deleted
    assert set(indexes) < set(stores.names(root))
    for path in root.glob("indexes/*.merged.idx"):
        path.unlink()
    assert _rows(files, tmp_path) == stores.rows(full)


def test_a_pack_that_no_index_lists_is_deleted_when_no_push_can_be_at_work(tmp_path: Path) -> None:
    root = tmp_path / "remote"
    files = FolderFiles(root)
    make_remote(files)
    files.create(pack_name("ab" * 32), MAGIC)
    for days, grace in ((0, NONE), (0.9, NONE), (13, timedelta(days=14))):
        _age(root, days)
        assert not stores.collect(files, grace=grace).deleted
    _age(root, 15)
    planned = stores.collect(files, dry_run=True)
    assert files.read(pack_name("ab" * 32), 100) == MAGIC
    assert planned.deleted == stores.collect(files).deleted == FileCounts(0, 1, len(MAGIC))
    assert stores.names(root) == ["format"]


@pytest.mark.parametrize(("days", "is_used"), [(0, True), (0.4, True), (0.6, False), (30, False)])
def test_a_push_uses_a_pack_that_is_there_only_while_no_clean_up_deletes_it(
    full: Store, tmp_path: Path, days: float, is_used: bool
) -> None:
    root = tmp_path / "remote"
    stores.push(full, FolderFiles(root))
    for index in _files(root, "indexes"):
        index.unlink()
    before = _files(root, "packs")
    _age(root, days)
    stores.push(full, FolderFiles(root))
    assert (_files(root, "packs") == before) == is_used
    assert _rows(FolderFiles(root), tmp_path) == stores.rows(full)


def test_the_marks_of_an_older_program_are_not_read_and_go_after_the_grace(
    full: Store, tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push(full, FolderFiles(root))
    before = stores.names(root)
    (root / "retired").mkdir()
    mark = root / f"retired/{'a' * 64}.json"
    listed = json.dumps({"indexes": [], "packs": [path.stem for path in _files(root, "packs")]})
    mark.write_text(listed)
    assert not stores.collect(FolderFiles(root)).deleted
    assert mark.exists()
    stores.collect(FolderFiles(root), grace=NONE)
    assert stores.names(root) == before


def test_rows_of_a_newer_program_are_kept(full: Store, tmp_path: Path) -> None:
    root = tmp_path / "remote"
    files = FolderFiles(root)
    stores.push(full, files)
    records = []
    for number in range(2):  # in a table that this program does not know
        pack = PackWriter()
        id = bytes([number]) * 16
        pack.copy(99, id, struct.pack("<BB16sIII", 99, 0, id, 3, 0, 3) + b"new")
        digest, data = pack.finish()
        files.create(pack_name(digest), data)
        header = IndexHeader("Ann@laptop", number, [IndexedPack(digest, len(data))])
        index = write_index(header, [IndexedRecord(0, pack.entries[0], id)])
        files.create(index_name(number, sha256(index)), index)
        records.append((99, id))
    before = _by_writer(files)
    assert stores.collect(files, grace=NONE).replaced.indexes == 2
    stores.collect(files, grace=NONE)
    assert _by_writer(files) == before
    assert before["Ann@laptop"] > set(records)
    assert _problems(files) == []


def test_who_is_trusted_stays_as_it_was(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    files = FolderFiles(tmp_path / "remote")
    only_bob = Acceptance(writers=frozenset({"Bob"}))
    third = len(whole_records) // 3
    stores.push_parts(whole_records[:third], files, tmp_path, 3, writer="Bob", rules=only_bob)
    stores.push_parts(whole_records[third:], files, tmp_path, 3, writer="Eve")
    others = {file.name for file in files.iterate("indexes")}
    done = stores.collect(files, grace=NONE, rules=only_bob)
    assert done.replaced.indexes == 3  # what is not trusted is left alone
    for _ in range(2):
        stores.collect(files, grace=NONE)
    with IndexCache.open(None, "x", only_bob) as cache:
        cache.refresh(files)
        assert [(push.writer, push.records) for push in cache.list_pushes()] == [("Bob", third)]
        (refused,) = cache.list_refused()
        assert (refused.writer, refused.records) == ("Eve", len(whole_records) - third)
    assert others.isdisjoint(file.name for file in files.iterate("indexes"))


def test_nobody_hides_the_pushes_of_another_writer(full: Store, tmp_path: Path) -> None:
    files = FolderFiles(tmp_path / "remote")
    rules = Acceptance(writers=frozenset({"Ann@laptop", "Eve"}))
    (name,) = stores.push(full, files).indexes
    data = write_index(IndexHeader("Eve", stores.CREATED, (), [name]), ())
    files.create(index_name(stores.CREATED, sha256(data), is_merged=True), data)
    for cache in (None, tmp_path / "cache.db"):
        with stores.opened(tmp_path / f"{cache is None}.db") as store:
            stores.pull(store, files, cache, rules=rules)
            assert stores.rows(store) == stores.rows(full)
    with IndexCache.open(tmp_path / "cache.db", files.address, rules) as indexes:
        assert indexes.refresh(files) == 0
