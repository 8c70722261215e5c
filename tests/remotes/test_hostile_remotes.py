"""Remotes that are damaged, of another program, or made by someone who means harm."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError, RemoteError, StoreError
from evalstore.core.hashing import canonical_json, hash_content
from evalstore.exchange.sync.fsck import check_store
from evalstore.remotes import packs
from evalstore.remotes.download import Pull, check_remote
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import FolderFiles, index_name, make_remote, pack_name, sha256
from evalstore.remotes.packs import (
    NO_KEY,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    PackEntry,
    PackWriter,
    write_index,
)
from evalstore.store import Store
from evalstore.store.records import CheckedRecord, CopyListener, StoredRecord, check_record
from tests.remotes import stores

pytestmark = pytest.mark.extended

NOW = stores.CREATED


def _publish(
    files: FolderFiles,
    pack: bytes,
    entries: Sequence[PackEntry],
    *,
    digest: str | None = None,
    size: int | None = None,
    keyed: bool = True,
) -> None:
    """Write a pack and an index of its entries."""
    make_remote(files)
    digest = digest or sha256(pack)
    files.create(pack_name(sha256(pack)), pack)
    header = IndexHeader("Eve@nowhere", NOW, [IndexedPack(digest, size or len(pack))])
    keys = [_key_of(pack, entry) if keyed else NO_KEY for entry in entries]
    index = write_index(
        header, [IndexedRecord(0, entry, key) for entry, key in zip(entries, keys, strict=True)]
    )
    files.create(index_name(NOW, sha256(index)), index)


def _key_of(pack: bytes, entry: PackEntry) -> bytes:
    """Return the lookup key of a record; none for one that is not sound."""
    try:
        record = packs.read_record(pack[entry.offset : entry.offset + entry.length], entry)
        key = record and check_record(record).key
    except (packs.DamagedPackError, StoreError):
        key = None
    return bytes.fromhex(key) if key else NO_KEY


def _pack(*records: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    writer = PackWriter()
    for record in records:
        writer.add(record)
    return writer.finish()[1], writer.entries


def _patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


@pytest.fixture
def one(whole_records: list[CheckedRecord]) -> StoredRecord:
    """A record of a prompt, which refers to nothing."""
    return next(checked.record for checked in whole_records if checked.kind == "prompt")


def test_a_flipped_byte_anywhere_in_a_pack_is_found(
    one: StoredRecord, empty: Store, tmp_path: Path
) -> None:
    pack, entries = _pack(one)
    root = tmp_path / "remote"
    _publish(FolderFiles(root), pack, entries)
    place = root / pack_name(sha256(pack))
    for at in range(len(pack)):
        place.write_bytes(_patched(pack, at, bytes([pack[at] ^ 1])))
        with pytest.raises(RemoteError, match="has changed since it was written"):
            stores.pull(empty, FolderFiles(root))
    assert stores.rows(empty) == {}


def test_a_flipped_byte_anywhere_in_an_index_is_found(
    one: StoredRecord, empty: Store, tmp_path: Path
) -> None:
    root = tmp_path / "remote"
    _publish(FolderFiles(root), *_pack(one))
    (place,) = (root / "indexes").iterdir()
    index = place.read_bytes()
    for at in range(len(index)):
        place.write_bytes(_patched(index, at, bytes([index[at] ^ 1])))
        with pytest.raises(RemoteError, match="is damaged"):
            stores.pull(empty, FolderFiles(root))


def test_a_truncated_pack_is_found(one: StoredRecord, empty: Store, tmp_path: Path) -> None:
    pack, entries = _pack(one)
    root = tmp_path / "remote"
    _publish(FolderFiles(root), pack, entries)
    place = root / pack_name(sha256(pack))
    for size in (0, 1, len(pack) // 2, len(pack) - 1):
        place.write_bytes(pack[:size])
        with pytest.raises(RemoteError, match="is damaged"):
            stores.pull(empty, FolderFiles(root))
    place.write_bytes(pack + b"more")
    with pytest.raises(RemoteError, match="has more than"):
        stores.pull(empty, FolderFiles(root))
    place.unlink()
    pulled = stores.pull(empty, FolderFiles(root))
    assert (pulled.stored.total(), pulled.missing_packs) == (0, 1)


def _bomb(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    """A record of 64 MiB of blanks that says that it has ten bytes."""
    packed = zlib.compress(b" " * 2**26, 9)
    id = bytes.fromhex(one.id)
    head = packs._OLD_HEAD.pack(packs.TABLE_NUMBERS[one.table], 1, id, 10, 0, len(packed))
    entry = PackEntry(packs.TABLE_NUMBERS[one.table], id, len(packs.MAGIC), len(head + packed))
    return packs.MAGIC + head + packed, [entry]


def _huge(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    """A record that says that it has four gigabytes."""
    _, entries = _pack(one)
    head = packs._head(packs.TABLE_NUMBERS[one.table], 4, 2**32 - 1, 0, 1) + b"x"
    return packs.MAGIC + head, [entries[0]._replace(length=len(head))]


def _unknown_coding(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    pack, entries = _pack(one)
    return _patched(pack, len(packs.MAGIC) + 1, b"\x07"), entries


def _other_table(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    """A prompt in the table of the models."""
    return _pack(one._replace(table="models"))


def _with_data(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    return _pack(one._replace(data=b"bytes that only files have"))


def _other_id(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    return _pack(one._replace(id="0" * 32))


def _longer_entry(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    pack, entries = _pack(one)
    return pack + b"....", [entries[0]._replace(length=entries[0].length + 4)]


def _inside_of_the_magic(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    pack, entries = _pack(one)
    return pack, [entries[0]._replace(offset=1, length=3)]


def _no_json(one: StoredRecord) -> tuple[bytes, list[PackEntry]]:
    return _pack(one._replace(content="{" * 100_000))


@pytest.mark.parametrize(
    "make",
    [
        _bomb,
        _huge,
        _unknown_coding,
        _other_table,
        _with_data,
        _other_id,
        _longer_entry,
        _inside_of_the_magic,
        _no_json,
    ],
)
def test_a_record_that_is_not_sound_is_refused(
    one: StoredRecord,
    empty: Store,
    remote: FolderFiles,
    make: Callable[[StoredRecord], tuple[bytes, list[PackEntry]]],
) -> None:
    _publish(remote, *make(one))
    with pytest.raises(RemoteError, match=r"is damaged: 'packs/"):
        stores.pull(empty, remote)
    assert stores.rows(empty) == {}


def test_a_record_outside_of_its_pack_is_refused(
    one: StoredRecord, empty: Store, remote: FolderFiles
) -> None:
    pack, entries = _pack(one)
    _publish(remote, pack, [entries[0]._replace(length=len(pack))])
    with pytest.raises(RemoteError, match="outside its pack"):
        stores.pull(empty, remote)


def test_an_index_of_a_newer_program_asks_for_a_newer_version(
    full: Store, empty: Store, remote: FolderFiles
) -> None:
    stores.push(full, remote)
    data = b"evalstore index 3\n{}\n"
    remote.create(index_name(NOW, sha256(data)), data)
    with pytest.raises(RemoteError, match="has format 3; this version") as caught:
        stores.pull(empty, remote)
    assert caught.value.hint == "install a newer version"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"created":1700000000000000', b'"created":-1'),
        (b'"created":1700000000000000', b'"created":253402300800000000'),
        (b'"created":1700000000000000', b'"created":' + b"9" * 30),
        (b'"Ann@laptop"', rb'"\ud800"'),
        (b'"Ann@laptop"', b'"' + b"a" * 201 + b'"'),
    ],
)
def test_a_header_that_cannot_be_stored_or_shown_is_refused(
    full: Store, empty: Store, remote: FolderFiles, tmp_path: Path, old: bytes, new: bytes
) -> None:
    stores.push(full, remote)
    (index,) = (tmp_path / "remote/indexes").iterdir()
    data = index.read_bytes().replace(old, new)
    index.unlink()
    (tmp_path / "remote" / index_name(stores.CREATED, sha256(data))).write_bytes(data)
    with pytest.raises(RemoteError, match=r"is damaged: '.*': its header "):
        stores.pull(empty, remote)


def test_two_records_with_one_id_are_one(
    one: StoredRecord, empty: Store, remote: FolderFiles
) -> None:
    pack, entries = _pack(one, one)
    _publish(remote, pack, entries)
    assert stores.pull(empty, remote).stored.total() == 1


def test_records_of_a_newer_program_stay_where_they_are(
    one: StoredRecord, empty: Store, remote: FolderFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(packs.TABLE_NUMBERS, "tags", 99)
        pack, entries = _pack(one, one._replace(table="tags", id="1" * 32))
    _publish(remote, pack, entries)
    assert stores.pull(empty, remote).stored.total() == 1
    assert stores.pull(empty, remote).stored.total() == 0
    with IndexCache.open(None, remote.address) as cache:
        cache.refresh(remote)
        assert cache.count_unknown() == 1


@pytest.mark.parametrize(
    "name",
    [
        f"indexes/.20231114T221320Z-{'a' * 64}.idx",
        f"indexes/20231114T221320Z-{'A' * 64}.idx",
        "indexes/notes.txt",
        f"indexes/deep/20231114T221320Z-{'a' * 64}.idx",
    ],
)
def test_files_with_other_names_are_ignored(
    full: Store, empty: Store, remote: FolderFiles, tmp_path: Path, name: str
) -> None:
    stores.push(full, remote)
    place = tmp_path / "remote" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"something else")
    assert stores.pull(empty, remote).stored.total() == len(stores.rows(full))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"evalstore":"remote","format":2}', "has format 2"),
        (b'{"evalstore":"store","format":1}', "not that of evalstore"),
        (b'{"evalstore":"remote","format":"1"}', "not that of evalstore"),
        (b"[" * 4000, "not that of evalstore"),
        (b"\xff", "not that of evalstore"),
        (b"", "not that of evalstore"),
        (b" " * 5000, "has more than 4,096 bytes"),
    ],
)
def test_a_remote_of_something_else_is_refused(
    full: Store, remote: FolderFiles, tmp_path: Path, text: bytes, message: str
) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/format").write_bytes(text)
    for copy in (stores.push, stores.pull):
        with pytest.raises(RemoteError, match=message):
            copy(full, remote)


def test_a_folder_with_other_files_does_not_become_a_remote(full: Store, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/cat.jpg").write_bytes(b"")
    with pytest.raises(RemoteError, match="it has other files"):
        stores.push(full, FolderFiles(tmp_path / "photos"))
    assert stores.names(tmp_path / "photos") == ["cat.jpg"]


def test_a_folder_below_one_that_is_missing_is_not_made(full: Store, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match=r"the folder above the remote '.*' does not exist"):
        stores.push(full, FolderFiles(tmp_path / "not mounted/remote"))
    assert not (tmp_path / "not mounted").exists()


def test_a_damaged_row_is_not_pushed(
    whole_records: list[CheckedRecord], remote: FolderFiles, tmp_path: Path
) -> None:
    with stores.opened(tmp_path / "s.db") as store:
        store.ensure_records(whole_records)
        with store.writing() as connection:
            connection.execute("UPDATE sessions SET content = replace(content, 'Warm', 'Cold')")
        with pytest.raises(StoreError, match="its content does not match its id"):
            stores.push(store, remote)
    assert not list((tmp_path / "remote").glob("indexes/*"))


def test_an_index_that_comes_late_is_read_later(
    full: Store, empty: Store, remote: FolderFiles, tmp_path: Path
) -> None:
    stores.push(full, remote)
    (index,) = (tmp_path / "remote/indexes").iterdir()
    late = tmp_path / index.name
    index.rename(late)
    assert stores.pull(empty, remote, tmp_path / "cache.db").stored.total() == 0
    late.rename(index)
    assert stores.pull(empty, remote, tmp_path / "cache.db").stored.total() == len(
        stores.rows(full)
    )


def test_errors_have_hints(full: Store, empty: Store, remote: FolderFiles, tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError) as missing:
        stores.pull(empty, remote)
    assert missing.value.hint
    stores.push(full, remote)
    (index,) = (tmp_path / "remote/indexes").iterdir()
    index.write_bytes(b"")
    with pytest.raises(EvalstoreError) as damaged:
        stores.pull(empty, remote)
    assert damaged.value.hint


def test_a_pack_that_is_not_whole_is_an_error_of_the_next_push(
    full: Store, remote: FolderFiles, tmp_path: Path
) -> None:
    stores.push(full, remote)
    (index,) = (tmp_path / "remote/indexes").iterdir()
    index.unlink()
    (pack,) = (tmp_path / "remote/packs").rglob("*.pack")
    whole = pack.read_bytes()
    for data in (whole[:-1], whole + b".", b""):
        pack.write_bytes(data)
        with pytest.raises(RemoteError, match="is not whole"):
            stores.push(full, remote)
        assert not list((tmp_path / "remote/indexes").iterdir())
    pack.unlink()
    stores.push(full, remote)
    assert pack.read_bytes() == whole


@pytest.mark.parametrize("id", ["z" * 32, "ab", "A" * 32, "é" * 32])
def test_a_reference_that_is_not_an_id_is_refused(
    whole_records: list[CheckedRecord], empty: Store, remote: FolderFiles, id: str
) -> None:
    session = next(checked for checked in whole_records if checked.kind == "session")
    content = canonical_json({**session.content, "model": id})
    _publish(remote, *_pack(StoredRecord("sessions", hash_content(content), content)))
    with pytest.raises(RemoteError, match="is damaged"):
        stores.pull(empty, remote)
    assert stores.rows(empty) == {}


@pytest.mark.parametrize("kind", ["session", "test", "cases", "tree"])
def test_what_refers_to_rows_that_have_not_come_yet_stays_in_the_remote(
    whole_records: list[CheckedRecord],
    full: Store,
    empty: Store,
    remote: FolderFiles,
    tmp_path: Path,
    kind: str,
) -> None:
    late = next(checked.record for checked in whole_records if checked.kind == kind)
    others = [checked.record for checked in whole_records if checked.record != late]
    _publish(remote, *_pack(*others))
    pulled = stores.pull(empty, remote)
    assert check_store(empty)[1] == []
    assert pulled.stored.total() == len(stores.rows(empty))
    assert pulled.stored.total() + sum(pulled.left.values()) == len(others)
    above = {"session": "evaluations", "test": "sessions", "cases": "nodes", "tree": "runs"}
    assert pulled.left[above[kind]] > 0
    with (
        IndexCache.open(None, "") as cache,
        stores.opened(tmp_path / "planned.db") as planned,
        Pull.open(planned, remote, cache, CopyListener()) as pull,
    ):
        cache.refresh(remote)
        for table in ("runs", "nodes", "evaluations"):
            wanted = [checked.record for checked in whole_records]
            pull.copy(table, [bytes.fromhex(row.id) for row in wanted if row.table == table])
        assert check_store(planned)[1] == []
        assert pull.pulled.waiting == pulled.waiting
        assert stores.rows(planned).items() <= stores.rows(empty).items()
    _publish(remote, *_pack(late))
    assert stores.pull(empty, remote).left == {}
    assert stores.rows(empty) == stores.rows(full)


def test_links_in_a_remote_are_not_followed(full: Store, empty: Store, tmp_path: Path) -> None:
    root, outside = tmp_path / "remote", tmp_path / "outside"
    outside.mkdir()
    make_remote(FolderFiles(root))
    (root / "packs").symlink_to(outside)
    with pytest.raises(RemoteError, match="is a symbolic link"):
        stores.push(full, FolderFiles(root))
    assert list(outside.iterdir()) == []
    (root / "packs").unlink()
    stores.push(full, FolderFiles(root))
    (root / "indexes/loop").symlink_to(root)
    (root / "indexes/all").symlink_to("/")
    (index,) = (root / "indexes").glob("*.idx")
    os.mkfifo(index.with_name(f"20260101T000000Z-{'a' * 64}.idx"))
    assert stores.pull(empty, FolderFiles(root)).stored.total() == len(stores.rows(full))


def test_a_lookup_key_that_is_not_that_of_the_row_is_refused(
    whole_records: list[CheckedRecord], empty: Store, remote: FolderFiles
) -> None:
    """Otherwise a remote could hide its newest run, and with it what broke since."""
    _publish(remote, *_pack(*(checked.record for checked in whole_records)), keyed=False)
    with pytest.raises(RemoteError, match="its index has another lookup key"):
        stores.pull(empty, remote)
    with IndexCache.open(None, remote.address) as cache:
        cache.refresh(remote)
        with (
            Pull.open(empty, remote, cache, CopyListener()) as pull,
            pytest.raises(RemoteError, match="its index has another lookup key"),
        ):
            pull.copy("runs", pull.find_newest_runs())
    problems = check_remote(remote, CopyListener()).problems
    assert {problem.message.rpartition(": ")[2] for problem in problems} == {
        "its index has another lookup key"
    }
    assert empty.count_runs() == 0
