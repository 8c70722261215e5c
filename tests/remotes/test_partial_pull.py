"""Pulls that read index files in part: the same rows, fewer bytes, and nothing less is checked."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstore.core.errors import RemoteError
from evalstore.exchange.sync.pull import PullReport
from evalstore.exchange.sync.pull_for_plan import pull_for_plan
from evalstore.planning.options import Location
from evalstore.remotes.acceptance import Acceptance
from evalstore.remotes.bundle_files import BundleDescription, BundleFiles
from evalstore.remotes.bundle_writer import BundleWriter
from evalstore.remotes.check_remote import check_remote
from evalstore.remotes.indexes.index_cache import IndexCache
from evalstore.remotes.indexes.indexed_records import RecordPlace
from evalstore.remotes.packs.packs import TABLE_NUMBERS
from evalstore.remotes.places.folder import FolderFiles
from evalstore.remotes.places.layout import digest_of_index, parts_name, sha256
from evalstore.remotes.progress import CopyListener
from evalstore.remotes.pull_referenced import ReferencedPull
from evalstore.store import Store
from evalstore.store.fsck import check_store
from evalstore.store.records import COPIED_TABLES, CheckedRecord
from tests.remotes import keys, stores
from tests.remotes.places import sftp_files
from tests.remotes.test_interruptions import MOST, Killed, Scheduled

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("small_parts")]

MARKED_LONG_AGO = 30 * 86_400


class Noting(FolderFiles):
    """A remote that counts the bytes that are read, by file, and the requests."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.sizes: dict[str, int] = {}
        self.requests = 0

    def read(self, name: str, most: int) -> bytes:
        return self._noted(name, super().read(name, most))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        return self._noted(name, super().read_range(name, start, length))

    def _noted(self, name: str, data: bytes) -> bytes:
        self.requests += 1
        self.sizes[name] = self.sizes.get(name, 0) + len(data)
        return data

    def of_indexes(self) -> int:
        return sum(size for name, size in self.sizes.items() if digest_of_index(name))


def _parts(root: Path) -> list[Path]:
    return sorted(root.glob("indexes/*.parts"))


def _rows(cache: IndexCache) -> dict[str, list[RecordPlace]]:
    """All that is known of the records, without what is numbered as it comes."""
    found = {}
    for table in COPIED_TABLES:
        ids = sorted(id for (id,) in cache.records.find_range(table, bytes(16), b"\xff" * 16))
        places = cache.records.find_places(table, ids)
        found[table] = sorted(places, key=lambda place: place.entry.id)
    return found


def _tables(path: Path) -> dict[str, set[tuple[object, ...]]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = ("indexes", "packs", "records", "replaced", "unread_blocks", "unread_records")
        return {table: set(connection.execute(f"SELECT * FROM {table}")) for table in tables}


@given(st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_loaded_is_what_the_whole_index_says(
    whole_records: Sequence[CheckedRecord], full: Store, tmp_path: Path, data: st.DataObject
) -> None:
    folder = tmp_path / "laws"
    files = FolderFiles(folder / "remote")
    if not folder.exists():
        folder.mkdir()
        stores.push_parts(whole_records, files, folder, 2)
        stores.collect(files)  # its index has the rows in another order
        half = whole_records[: len(whole_records) // 2]
        stores.push_parts(half, files, folder, 1, writer="Bob")
    with IndexCache.open(None, "") as whole, IndexCache.open(None, "") as partial:
        whole.refresh(files)
        expected = _rows(whole)
        partial.refresh(files, partly=True)
        assert partial.records.list_runs() == whole.records.list_runs()
        assert partial.records.find_newest_runs() == whole.records.find_newest_runs()
        assert partial.records.count_unknown() == whole.records.count_unknown()
        for _ in range(3):
            table = data.draw(st.sampled_from(COPIED_TABLES))
            ids = [place.entry.id for place in expected[table]]
            wanted = data.draw(st.lists(st.sampled_from(ids))) if ids else []
            unknown = data.draw(st.lists(st.binary(min_size=16, max_size=16), max_size=3))
            partial.unread.load(files, table, {*wanted, *unknown})
            found = partial.records.find_places(table, [*wanted, *unknown])
            assert sorted(place.entry for place in found) == sorted(
                place.entry for place in whole.records.find_places(table, wanted)
            )
            lookups = [place.key for place in expected[table]]
            looked_up = data.draw(st.lists(st.sampled_from(lookups))) if lookups else []
            partial.unread.load_keyed(files, table, looked_up)
            assert partial.records.find_keys(table, looked_up) == whole.records.find_keys(
                table, looked_up
            )
        partial.refresh(files)
        assert _rows(partial) == expected


def test_a_cache_that_is_completed_is_like_one_that_was_read_as_a_whole(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    files = FolderFiles(tmp_path / "remote")
    stores.push_parts(whole_records, files, tmp_path, 3)
    for name, ways in (("whole", [False]), ("completed", [True, True, False])):
        with IndexCache.open(tmp_path / name, "") as cache:
            for partly in ways:
                before = _tables(tmp_path / name)
                received = cache.refresh(files, partly=partly)
                assert (received > 0) is (_tables(tmp_path / name) != before)
    whole = _tables(tmp_path / "whole")
    assert _tables(tmp_path / "completed") == whole
    assert not whole["unread_blocks"] | whole["unread_records"]
    assert whole["records"]


def test_each_byte_of_an_index_is_read_once_however_it_is_completed(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 1)
    (index,) = root.glob("indexes/*.idx")
    files = Noting(root)
    with IndexCache.open(None, "") as cache:
        received = cache.refresh(files, partly=True)
        assert files.of_indexes() < index.stat().st_size / 2
        received += cache.refresh(files)
        assert files.of_indexes() <= index.stat().st_size
        assert received == sum(files.sizes.values())
        assert cache.refresh(files) == 0


def test_blocks_that_are_near_are_read_with_one_request(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Noting(tmp_path / "remote")
    stores.push(full, files)
    files.requests = 0
    with IndexCache.open(None, "") as cache:
        cache.refresh(files, partly=True)
        assert files.requests == 2  # the parts, and all but the ids with those of runs
        ids = sorted(id for table, id in stores.rows(full) if table == "nodes")
        assert len(ids) >= 9
        cache.unread.load(files, "nodes", [ids[0], ids[6]])
        assert files.requests == 3
        assert len(list(cache.records.find_places("nodes", ids))) == 6  # without what is between
        cache.unread.load(files, "nodes", [ids[0], ids[6]])
        assert files.requests == 3
        cache.unread.load_all(files)
        assert files.requests == 3 + 1  # all that is left is near
    monkeypatch.setattr("evalstore.remotes.indexes.unread_ids._GAP", -1)
    with IndexCache.open(None, "") as cache:
        cache.refresh(files, partly=True)
        before = files.requests
        cache.unread.load(files, "nodes", [ids[0], ids[6]])
        assert files.requests == before + 2


def _pull_all(store: Store, files: FolderFiles, cache: IndexCache) -> ReferencedPull:
    """Pull all that runs refer to."""
    cache.refresh(files, partly=True)
    pull = ReferencedPull(store, files, cache, CopyListener())
    pull.copy("runs", [bytes.fromhex(id) for id in cache.records.list_runs()])
    return pull


def test_rows_that_refer_to_others_bring_them_from_indexes_that_are_read_in_part(
    full: Store, whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    stores.push_parts(whole_records, FolderFiles(tmp_path / "remote"), tmp_path, 3)
    files = Noting(tmp_path / "remote")
    with stores.opened(tmp_path / "s.db") as store, IndexCache.open(None, "") as cache:
        pull = _pull_all(store, files, cache)
        rows = stores.rows(store)
        assert check_store(store)[1] == []
        received = pull.pulled.bytes_received
    with stores.opened(tmp_path / "t.db") as other, IndexCache.open(None, "") as cache:
        cache.refresh(files)
        again = ReferencedPull(other, files, cache, CopyListener())
        again.copy("runs", [bytes.fromhex(id) for id in cache.records.list_runs()])
        assert stores.rows(other) == rows
        assert received > again.pulled.bytes_received  # it counts what it reads of indexes
    assert rows.items() <= stores.rows(full).items()
    assert {table for table, _ in rows} >= {"runs", "sessions", "evaluations", "tests"}


def test_a_flipped_byte_in_what_is_read_is_found(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 1)
    with stores.opened(tmp_path / "s.db") as store, IndexCache.open(None, "") as cache:
        _pull_all(store, FolderFiles(root), cache)
        expected = stores.rows(store)
    found = 0
    paths = [*root.glob("indexes/*.idx"), *_parts(root)]
    for path in paths:
        data = path.read_bytes()
        for at in range(0, len(data), 7):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with stores.opened(tmp_path / f"{path.suffix}{at}.db") as store:
                error = _error_of_pull(store, FolderFiles(root))
                if error:
                    assert "is damaged" in str(error)
                    assert f"'indexes/{path.name}'" in str(error)
                    assert error.hint
                    found += 1
                else:  # nothing of it was needed
                    assert path.suffix == ".idx"
                    assert stores.rows(store) == expected
        path.write_bytes(data)
    assert found > sum(path.stat().st_size for path in paths) / 7 / 2


def _error_of_pull(store: Store, files: FolderFiles) -> RemoteError | None:
    try:
        with IndexCache.open(None, "") as cache:
            _pull_all(store, files, cache)
    except RemoteError as error:
        return error
    return None


def test_an_index_whose_parts_are_not_there_is_read_as_a_whole(
    whole_records: Sequence[CheckedRecord], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 1)
    (index,), (parts,) = root.glob("indexes/*.idx"), _parts(root)

    class Late(Noting):
        """The file with the parts is removed after it was listed."""

        def read(self, name: str, most: int) -> bytes:
            if name.endswith(".parts"):
                parts.unlink(missing_ok=True)
            return super().read(name, most)

    for files in (Late(root), Noting(root)):
        with IndexCache.open(None, "") as cache:
            cache.refresh(files, partly=True)
            assert files.sizes == {f"indexes/{index.name}": index.stat().st_size}
            assert cache.unread.load_all(files) == 0


@pytest.mark.parametrize("is_partial", [False, True])
def test_only_places_that_read_parts_are_read_in_part(
    whole_records: Sequence[CheckedRecord], tmp_path: Path, is_partial: bool
) -> None:
    """SFTP downloads whole files, so an index would be downloaded again and again."""
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 1)
    (index,) = root.glob("indexes/*.idx")
    files = Noting(root) if is_partial else sftp_files(root)
    with IndexCache.open(None, "") as cache:
        read = cache.refresh(files, partly=True)
        if isinstance(files, Noting):  # with what tells the parts, it may be as many bytes
            read = files.of_indexes()
        assert (read == index.stat().st_size) is not is_partial
        assert bool(cache.unread.load_all(files)) is is_partial


def test_a_signature_is_that_of_the_whole_index(full: Store, tmp_path: Path) -> None:
    ann = keys.make_key(tmp_path, "ann")
    rules = keys.allowing(keys.line_of(ann, "ann@example.com"))
    root = tmp_path / "remote"
    stores.push(full, FolderFiles(root), rules=rules, sign=keys.signed_by(ann))
    (index,) = root.glob("indexes/*.idx")
    assert not _parts(root)
    stores.push_parts(stores.records(full), FolderFiles(tmp_path / "open"), tmp_path, 1)
    for path in _parts(tmp_path / "open"):  # somebody adds parts to it
        data = path.read_bytes()
        (root / parts_name(f"indexes/{index.name}", sha256(data))).write_bytes(data)
    files = Noting(root)
    with IndexCache.open(None, "", rules) as cache:
        cache.refresh(files, partly=True)
        assert files.of_indexes() == index.stat().st_size
        assert not any(name.endswith(".parts") for name in files.sizes)
        assert cache.list_refused() == []


def test_a_writer_who_is_not_trusted_is_left_out(full: Store, tmp_path: Path) -> None:
    files = FolderFiles(tmp_path / "remote")
    stores.push(full, files, writer="Eve")
    with IndexCache.open(None, "", Acceptance(writers=frozenset({"Ann"}))) as cache:
        for _ in range(2):
            cache.refresh(files, partly=True)
            (refused,) = cache.list_refused()
            assert (refused.writer, refused.reason) == ("Eve", "untrusted")
            assert cache.list_pushes() == []
            assert cache.unread.load_all(files) == 0


def test_bundles_have_no_parts(full: Store, tmp_path: Path) -> None:
    description = BundleDescription("Ann", stores.CREATED, [])
    with BundleWriter.open(tmp_path / "b", description) as bundle:
        stores.push(full, bundle)
    with BundleFiles.open(tmp_path / "b") as written:
        assert len(list(written.iterate("indexes"))) == 1


def test_parts_go_with_their_index_and_what_a_killed_push_left_after_the_grace(
    whole_records: Sequence[CheckedRecord], full: Store, tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    files = FolderFiles(root)
    stores.push_parts(whole_records, files, tmp_path, 3)
    before = _parts(root)
    assert len(before) == 3
    stores.collect(files)
    (merged,) = set(_parts(root)) - set(before)
    lone = root / f"indexes/20231114T221320Z-{'e' * 64}.idx.{'f' * 64}.parts"
    lone.write_bytes(b"of a killed push")
    assert stores.collect(files).deleted.size == 0
    assert lone.exists()
    for path in root.rglob("*"):
        os.utime(path, (path.stat().st_mtime - MARKED_LONG_AGO,) * 2)
    sizes = {name: path.stat().st_size for name, path in ((p.name, p) for p in root.rglob("*.*"))}
    expected = stores.collect(files, dry_run=True).deleted
    deleted = stores.collect(files).deleted
    assert deleted == expected
    assert deleted.indexes == 3
    assert _parts(root) == [merged]
    kept = {path.name for path in root.rglob("*.*")}
    gone = sum(size for name, size in sizes.items() if name not in kept | {"clock"})
    retired = sum(size for name, size in sizes.items() if name.endswith(".json"))
    assert deleted.size == gone - retired
    assert stores.collect(files, grace=timedelta(0)).deleted.size == 0


def test_fsck_names_parts_that_are_wrong(full: Store, tmp_path: Path) -> None:
    root = tmp_path / "remote"
    stores.push(full, FolderFiles(root))
    (index,), (parts,) = root.glob("indexes/*.idx"), _parts(root)
    assert check_remote(FolderFiles(root), CopyListener()).problems == []
    data = parts.read_bytes()
    parts.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    other = data.replace(b"Ann@laptop", b"Eve@laptop")
    lies = root / parts_name(f"indexes/{index.name}", sha256(other))
    lies.write_bytes(other)
    check = check_remote(FolderFiles(root), CopyListener())
    assert {(problem.file, problem.message) for problem in check.problems} == {
        (f"indexes/{parts.name}", "it has other bytes than when it was written"),
        (f"indexes/{lies.name}", "it has other records than its index"),
    }
    assert check.remove == sorted(f"indexes/{path.name}" for path in (parts, lies))
    index.write_bytes(b"x")  # without it, they are of no use
    check = check_remote(FolderFiles(root), CopyListener())
    assert {f"indexes/{path.name}" for path in (index, parts, lies)} <= set(check.remove)


@pytest.fixture
def job(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., PullReport]:
    """Pulls for the plan of a workspace with a store of its own, by its name."""
    with stores.opened(finished / ".evalstore/store.db") as store:
        stores.push(store, FolderFiles(tmp_path / "remote"))

    def pull(name: str, files: FolderFiles, *, to_push: bool = False) -> PullReport:
        workspace = tmp_path / name
        if not workspace.exists():
            shutil.copytree(finished, workspace, ignore=shutil.ignore_patterns(".evalstore"))
            with (workspace / "evalstore.yaml").open("a") as settings:
                settings.write("remotes: {origin: shared}\n")
        monkeypatch.setattr("evalstore.exchange.sync.open_remote.open_files", lambda *_: files)
        return pull_for_plan(Location(workspace), to_push=to_push)

    return pull


def test_where_a_push_follows_indexes_are_read_as_a_whole_at_once(
    job: Callable[..., PullReport], tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    files = Noting(root)
    assert job("job", files, to_push=True).records == job("other", FolderFiles(root)).records
    (index,) = root.glob("indexes/*.idx")
    assert files.of_indexes() == index.stat().st_size
    assert not any(name.endswith(".parts") for name in files.sizes)


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


def _kill() -> None:
    raise Killed


def test_a_clean_up_that_deletes_an_index_meanwhile_is_noticed(
    job: Callable[..., PullReport], full: Store, tmp_path: Path
) -> None:
    """The pull reads the remote again; what it has then is what the new index lists."""
    root = tmp_path / "remote"
    undisturbed = job("undisturbed", FolderFiles(root)).records

    class Cleaned(FolderFiles):
        """A clean-up of another program replaces the index before the first block is read."""

        ranges = 0

        def read_range(self, name: str, start: int, length: int) -> bytes:
            self.ranges += digest_of_index(name) is not None
            if self.ranges == 2:
                self.ranges += 1
                for path in (*root.glob("indexes/*.idx"), *_parts(root)):
                    path.unlink()
                stores.push(full, FolderFiles(root), created=stores.CREATED + 10**6)
            return super().read_range(name, start, length)

    files = Cleaned(root)
    assert job("cleaned", files).records == undisturbed
    assert files.ranges > 2


def test_a_store_that_knows_an_index_in_part_pushes_only_what_is_new(
    job: Callable[..., PullReport], tmp_path: Path, full: Store
) -> None:
    root = tmp_path / "remote"
    job("job", FolderFiles(root))
    (cache,) = (tmp_path / "job/.evalstore/remotes").glob("*.db")
    assert _tables(cache)["unread_blocks"]
    before = stores.names(root)
    copy = tmp_path / "copy.db"
    shutil.copy(cache, copy)
    with IndexCache.open(copy, str(root)) as indexes:
        assert indexes.unread.load_table(FolderFiles(root), "runs") == 0
    stores.push(full, FolderFiles(root), copy)
    assert stores.names(root) == before
    assert not _tables(copy)["unread_blocks"]


def test_answers_that_were_not_loaded_are_known_by_their_questions(
    full: Store, tmp_path: Path
) -> None:
    files = FolderFiles(tmp_path / "remote")
    stores.push(full, files)
    with IndexCache.open(None, "") as whole, IndexCache.open(None, "") as partial:
        whole.refresh(files)
        partial.refresh(files, partly=True)
        lookups = {place.key for place in _rows(whole)["sessions"]}
        own = whole.records.find_keys("sessions", sorted(lookups))
        found = partial.records.find_keys("sessions", sorted(lookups))
        assert sorted(found.values()) == sorted(own.values())
        assert not full.find_present("sessions", found.keys())
        assert {len(id) for id in found} == {16}
        assert TABLE_NUMBERS["sessions"] == 9
