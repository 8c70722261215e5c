"""Bundles that are damaged, or made by someone who means harm."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalstore.core.errors import RemoteError
from evalstore.exchange.sync.fsck import verify_bundle
from evalstore.remotes import bundle_files
from evalstore.remotes.bundle_files import (
    DESCRIPTION,
    DIGEST_SIZE,
    BundleDescription,
    BundleFiles,
    BundleWriter,
)
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store
from evalstore.store.records import CheckedRecord
from tests.remotes import stores

pytestmark = pytest.mark.extended
FORMAT = b'{"evalstore":"remote","format":1}'
NEWER = "a newer evalstore has written the bundle '.*': it has format 2, and this .* up to 1$"
OURS = b'{"bundle":1,"created":1760000000000000,"presumes":[],"writer":"Eve@nowhere"}'


@pytest.fixture
def small(whole_records: list[CheckedRecord], tmp_path: Path) -> Path:
    """A bundle with one row, which refers to nothing."""
    path = tmp_path / "small.bundle"
    with stores.opened(tmp_path / "one.db") as store:
        store.ensure_records([checked for checked in whole_records if checked.kind == "model"][:1])
        with BundleWriter.open(path, BundleDescription("Ann", stores.CREATED, ())) as files:
            stores.push(store, files)
    return path


def _is_refused(path: Path) -> bool:
    """Whether `verify` finds anything."""
    try:
        return bool(verify_bundle(path.parent, path).check.problems)
    except RemoteError as error:
        return "damaged" in str(error) or "is not a bundle" in str(error)


def _sealed(data: bytes) -> bytes:
    """The same with the right digest at its end."""
    data = data[:-DIGEST_SIZE]
    return data + hashlib.sha256(data).hexdigest().encode()


def test_a_flipped_byte_anywhere_is_found(small: Path) -> None:
    assert not _is_refused(small)
    data = small.read_bytes()
    for at in range(len(data)):
        small.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert _is_refused(small), at


def test_a_flipped_byte_of_a_member_is_found_without_the_digest_of_the_file(small: Path) -> None:
    data = small.read_bytes()
    with zipfile.ZipFile(small) as archive:
        members = [info for info in archive.infolist() if "/" in info.filename]
    assert len(members) == 2
    for member in members:
        start = member.header_offset + 30 + len(member.filename)
        for at in range(start, start + member.file_size):
            small.write_bytes(_sealed(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]))
            assert _is_refused(small), at


def test_a_bundle_that_lacks_a_pack_is_not_awaited(small: Path, empty: Store) -> None:
    """A remote may get the pack later, but a bundle never changes."""
    lacking = small.with_name("lacking.bundle")
    with zipfile.ZipFile(small) as archive, zipfile.ZipFile(lacking, "w") as copy:
        for info in archive.infolist():
            if not info.filename.startswith("packs/"):
                copy.writestr(zipfile.ZipInfo(info.filename), archive.read(info))
        copy.comment = bytes(DIGEST_SIZE)
    lacking.write_bytes(_sealed(lacking.read_bytes()))
    with lacking.open("rb") as file, pytest.raises(RemoteError, match="it is missing") as caught:
        stores.pull(empty, BundleFiles(lacking, file))
    assert str(caught.value.hint).startswith("make the bundle again")


def test_a_truncated_bundle_is_found(small: Path, empty: Store) -> None:
    data = small.read_bytes()
    for step in range(50):
        small.write_bytes(data[: len(data) * step // 50])
        with pytest.raises(RemoteError), BundleFiles.open(small) as files:
            stores.pull(empty, files)
        assert _is_refused(small)
    small.write_bytes(data + b"more")
    assert _is_refused(small)
    assert stores.rows(empty) == {}


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """A ZIP file with the right digest and what a bundle has at least."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"0" * DIGEST_SIZE
        archive.writestr(DESCRIPTION, OURS)
        yield archive
    path.write_bytes(_sealed(path.read_bytes()))


def _compressed(path: Path) -> None:
    with _archive(path) as archive:
        archive.writestr("format", FORMAT + b" " * 10_000, zipfile.ZIP_DEFLATED)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def _twice(path: Path) -> None:
    with _archive(path) as archive:
        archive.writestr("format", FORMAT)
        archive.writestr("format", FORMAT)


def _patched(path: Path, old: bytes, change: Callable[[bytearray, int], None]) -> None:
    """A bundle in which something is changed at a place in the list of files."""
    with _archive(path) as archive:
        archive.writestr("format", FORMAT)
    data = bytearray(path.read_bytes())
    change(data, data.rindex(old))
    path.write_bytes(_sealed(bytes(data)))


def _encrypted(path: Path) -> None:
    def change(data: bytearray, at: int) -> None:
        data[at + 8] |= 1

    _patched(path, b"PK\x01\x02", change)


def _too_long(path: Path) -> None:
    """The list says that a file is longer than the ZIP file."""

    def change(data: bytearray, at: int) -> None:
        data[at + 20 : at + 28] = (4_000).to_bytes(4, "little") * 2

    _patched(path, b"PK\x01\x02", change)


def _shorter(path: Path) -> None:
    def change(data: bytearray, at: int) -> None:
        data[at + 20 : at + 24] = (1).to_bytes(4, "little")

    _patched(path, b"PK\x01\x02", change)


def _elsewhere(path: Path) -> None:
    """The list says that a file begins in the middle of another."""

    def change(data: bytearray, at: int) -> None:
        data[at + 42 : at + 46] = (7).to_bytes(4, "little")

    _patched(path, b"PK\x01\x02", change)


def _endless_list(path: Path) -> None:
    """The end says that the list of files has four gigabytes."""

    def change(data: bytearray, at: int) -> None:
        data[at + 12 : at + 16] = b"\xf0\xff\xff\xff"

    _patched(path, b"PK\x05\x06", change)


def _without_description(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"0" * DIGEST_SIZE
        archive.writestr("format", FORMAT)
    path.write_bytes(_sealed(path.read_bytes()))


def _plain_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("format", FORMAT)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_compressed, "a file in it is there twice, or compressed"),
        (_twice, "a file in it is there twice, or compressed"),
        (_encrypted, "'format' cannot be read: .* encrypted"),
        (_too_long, "'format' cannot be read"),
        (_shorter, "a file in it is there twice, or compressed"),
        (_elsewhere, "'format' cannot be read: Bad magic number"),
        (_endless_list, "its list of files cannot be read"),
        (_without_description, "its 'bundle.json' cannot be read"),
        (_plain_zip, "it does not end where it should"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_archive_is_refused(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "f.bundle"
    make(path)
    with pytest.raises(RemoteError, match=f"is damaged: {message}"):
        verify_bundle(tmp_path, path)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_files, "MOST_FILES", 20)
    path = tmp_path / "f.bundle"
    with _archive(path) as archive:
        for number in range(20):
            archive.writestr(str(number), b"")
    with pytest.raises(RemoteError, match="it has more than 20 files"):
        verify_bundle(tmp_path, path)


def test_files_with_other_names_are_ignored(
    small: Path, empty: Store, tmp_path: Path, full: Store
) -> None:
    names = ["../../evil", "/etc/evil", "notes.txt", "packs/aa/x.pack", f"packs/00/{'a' * 64}.pack"]
    with zipfile.ZipFile(small, "a") as archive:
        for name in names:
            archive.writestr(name, b"evil", zipfile.ZIP_DEFLATED)
    small.write_bytes(_sealed(small.read_bytes()))
    before = sorted(tmp_path.rglob("*"))
    with BundleFiles.open(small) as files:
        assert stores.pull(empty, files).stored.total() == 1
        assert {file.name.partition("/")[0] for file in files.iterate("")} == {
            *("bundle.json", "format", "packs", "indexes")
        }
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (b"[]", "'bundle.json' cannot be read"),
        (b"[" * 5000, "'bundle.json' cannot be read"),
        (OURS.replace(b"[]", b'["..."]'), "'bundle.json' has other fields"),
        (OURS.replace(b'"bundle":1', b'"bundle":2'), NEWER),
        (b'{"bundle":2,"other":[]}', NEWER),
    ],
)
def test_a_description_that_is_not_sound_is_refused(
    tmp_path: Path, description: bytes, message: str
) -> None:
    path = tmp_path / "f.bundle"
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"0" * DIGEST_SIZE
        archive.writestr(DESCRIPTION, description)
        archive.writestr("format", FORMAT)
    path.write_bytes(_sealed(path.read_bytes()))
    with pytest.raises(RemoteError, match=message):
        verify_bundle(tmp_path, path)


def test_of_a_file_that_may_be_replaced_no_large_list_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.bundle"
    with BundleWriter.open(path, BundleDescription("Eve@nowhere", stores.CREATED, ())):
        pass
    assert bundle_files.is_bundle(path)
    monkeypatch.setattr(bundle_files, "_LARGEST_LIST", 10)
    assert not bundle_files.is_bundle(path)


def test_the_files_of_a_bundle_are_those_of_a_folder(
    full: Store, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    path = tmp_path / "all.bundle"
    with BundleWriter.open(path, BundleDescription("Ann", stores.CREATED, ())) as files:
        stores.push(full, files)
    stores.push(full, FolderFiles(tmp_path / "remote"))
    with stores.opened(tmp_path / "s.db") as store, BundleFiles.open(path) as files:
        store.ensure_records(whole_records[1:])
        pulled = stores.pull(store, files)
        assert pulled.stored.total() == 1
        folder = FolderFiles(tmp_path / "remote")
        for file in folder.iterate(""):
            whole = folder.read(file.name, 10**9)
            assert files.read(file.name, 10**9) == whole
            with pytest.raises(RemoteError, match="has more than"):
                files.read(file.name, len(whole) - 1)
