"""What all kinds of remotes must do with files."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from evalstore.core.clock import now
from evalstore.core.errors import RemoteError
from evalstore.remotes.layout import FolderFiles, MissingFileError, RemoteFiles
from evalstore.remotes.sftp import latest_time
from evalstore.store import Store
from evalstore.store.records import CheckedRecord
from tests.remotes import places, stores
from tests.remotes.azurite import azure_server
from tests.remotes.places import RecordPlace

SERVERS = [pytest.param(name, marks=pytest.mark.extended) for name in ("s3", "gs", "az")]
KINDS = ("folder", "memory", "local", "sftp", *SERVERS)
PACK = f"packs/ab/{'a' * 64}.pack"


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """A server with the protocol of S3."""
    with pytest.MonkeyPatch.context() as patch, places.s3_server(patch):
        yield


@pytest.fixture(scope="module")
def gs(s3: None) -> None:
    """The same server, with Google's condition for a new object."""


@pytest.fixture(scope="module")
def az(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server with the protocol of Azure's blob storage."""
    folder = tmp_path_factory.mktemp("azurite")
    with pytest.MonkeyPatch.context() as patch, azure_server(patch, folder):
        yield


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> RecordPlace:
    """An empty place, which may not exist yet."""
    if request.param in ("s3", "gs", "az"):
        request.getfixturevalue(request.param)
    return places.place_of(request.param, tmp_path)


def _listed(files: RemoteFiles, folder: str = "") -> list[tuple[str, int]]:
    """The names and sizes of the files below a folder."""
    return [(file.name, file.size) for file in files.iterate(folder)]


def test_files_are_created_listed_and_read(place: RecordPlace) -> None:
    files = place()
    assert list(files.iterate("")) == list(files.iterate("packs")) == []
    assert [files.create(name, name.encode()) for name in ("format", "indexes/b", PACK)] == [
        True
    ] * 3
    again = place()
    assert again.exists()
    assert sorted(_listed(again)) == [("format", 6), ("indexes/b", 9), (PACK, len(PACK))]
    assert _listed(again, "packs") == [(PACK, len(PACK))]
    assert again.read(PACK, 1000) == PACK.encode()


def test_a_file_has_the_time_at_which_it_was_created(place: RecordPlace) -> None:
    files = place()
    before = now()
    files.create(PACK, b"x")
    (file,) = files.iterate("")
    assert file.modified is not None
    minute, second = 60_000_000, 1_000_000
    assert before - 2 * second < file.modified < now() + minute


def test_a_deleted_file_is_gone_and_can_be_created_again(place: RecordPlace) -> None:
    files = place()
    files.delete(PACK)  # neither the file nor its folder is there
    for name in ("format", PACK):
        files.create(name, b"12345")
    assert files.read(PACK, 5) == b"12345"
    files.delete(PACK)
    files.delete(PACK)
    assert _listed(place()) == [("format", 5)]
    with pytest.raises(MissingFileError, match=PACK):
        files.read(PACK, 5)
    assert files.create(PACK, b"123")
    assert files.read(PACK, 5) == b"123"


NOW = 1_767_268_800_000_000
"""2026-01-01 12:00 UTC."""


@pytest.mark.parametrize(
    ("text", "latest"),
    [
        ("Jan  1 11:59", "2026-01-01T11:59:59"),
        ("Dec 31 23:00", "2025-12-31T23:00:59"),
        ("Jul  2 23:00", "2025-07-02T23:00:59"),
        ("Jan  2 10:00", "2026-01-02T10:00:59"),  # its clock is fast
        ("May 23  2024", "2024-05-23T23:59:59"),
        ("Feb 29 10:00", None),
        ("Mai 23  2024", None),
        ("23 May 2024", None),
        ("May", None),
    ],
)
def test_a_time_in_a_listing_is_never_read_as_an_earlier_one(text: str, latest: str | None) -> None:
    expected = datetime.fromisoformat(f"{latest}+00:00") if latest else None
    found = latest_time(text, NOW)
    assert found == (int(expected.timestamp()) * 1_000_000 if expected else None)


def test_a_missing_file_is_told_from_one_that_cannot_be_read(place: RecordPlace) -> None:
    files = place()
    for name in ("format", PACK):
        with pytest.raises(MissingFileError, match=name):
            files.read(name, 10)


def test_no_file_of_more_bytes_than_allowed_is_read(place: RecordPlace) -> None:
    files = place()
    files.create("format", b"12345")
    assert files.read("format", 5) == b"12345"
    for most in (4, 0):
        with pytest.raises(RemoteError, match=f"has more than {most} bytes"):
            files.read("format", most)


@pytest.mark.parametrize("size", [3, 100_000])
def test_a_file_is_created_once(place: RecordPlace, size: int) -> None:
    assert place().create(PACK, b"a" * size)
    other = place()
    assert not other.create(PACK, b"b" * size)
    assert other.read(PACK, size) == b"a" * size
    assert _listed(other) == [(PACK, size)]


def test_of_writers_at_once_one_wins_and_readers_see_its_whole_file_or_none(
    place: RecordPlace,
) -> None:
    contents = [b"a" * 300_000, b"b" * 200_000]
    start = threading.Barrier(3)
    won: list[bytes] = []

    def write(content: bytes) -> None:
        files = place()
        start.wait()
        if files.create(PACK, content):
            won.append(content)

    writers = [threading.Thread(target=write, args=[content]) for content in contents]
    for writer in writers:
        writer.start()
    reader = place()
    seen: set[bytes] = set()
    start.wait()
    while any(writer.is_alive() for writer in writers):
        try:
            seen.add(reader.read(PACK, 300_000))
        except MissingFileError:
            assert not seen
    assert len(won) == 1
    assert seen <= set(won)
    assert _listed(reader) == [(PACK, len(won[0]))]
    assert reader.read(PACK, 300_000) == won[0]


def test_what_killed_writers_left_is_not_listed(place: RecordPlace) -> None:
    files = place()
    for name in ("indexes/.tmp-1", "indexes/.x.evalstore-0123abcd.tmp", "indexes/x"):
        files.create(name, b"half")
    assert [file.name for file in files.iterate("")] == ["indexes/x"]


@pytest.mark.parametrize("kind", ["folder", "sftp"])
def test_what_killed_writers_left_goes_after_a_day(tmp_path: Path, kind: str) -> None:
    place = places.place_of(kind, tmp_path)
    root = tmp_path / places.ODD
    place().create(PACK, b"x")
    hours = {23: time.time() - 23 * 3600, 25: time.time() - 25 * 3600}
    left = {}
    for age, moment in hours.items():
        of_folder = root / f"packs/ab/.x.evalstore-{age:08x}.tmp"
        of_sftp = root / f".tmp-{int(moment):x}-{'a' * 16}"
        left[age] = of_folder if kind == "folder" else of_sftp
        left[age].write_bytes(b"half")
        os.utime(left[age], (moment, moment))
    place().create("indexes/x", b"x")
    assert [age for age in left if left[age].exists()] == [23]


def test_results_are_pushed_and_pulled(place: RecordPlace, full: Store, empty: Store) -> None:
    pushed = stores.push(full, place())
    assert stores.push(full, place()).records == 0
    assert stores.pull(empty, place()).stored.total() == pushed.records > 0
    assert stores.rows(empty) == stores.rows(full)


def test_a_remote_of_any_kind_is_cleaned_up(
    place: RecordPlace,
    whole_records: Sequence[CheckedRecord],
    full: Store,
    empty: Store,
    tmp_path: Path,
) -> None:
    stores.push_parts(whole_records, place(), tmp_path, 3)
    replaced = stores.collect(place()).replaced
    kept = _listed(place())
    assert stores.collect(place()).waiting == replaced
    assert _listed(place()) == kept
    assert stores.collect(place(), grace=timedelta(0)).deleted == replaced
    assert [name.partition("/")[0] for name, _ in sorted(_listed(place()))] == [
        "format",
        "indexes",
        "packs",
    ]
    stores.pull(empty, place())
    assert stores.rows(empty) == stores.rows(full)


# --- places that do not answer as they should


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def use(files: RemoteFiles) -> Iterator[str]:
    """The messages and hints of every use of a remote that cannot be used."""
    for action in (
        lambda: files.read("format", 10),
        lambda: list(files.iterate("")),
        lambda: files.create("format", b"x"),
        lambda: files.create("format", b"x" * 100_000),
        lambda: files.delete("format"),
    ):
        with pytest.raises(RemoteError) as caught:
            action()
        yield f"{caught.value} | {caught.value.hint}"


def test_a_server_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    places.set_s3(monkeypatch, f"http://127.0.0.1:{_closed_port()}")
    with pytest.raises(RemoteError) as caught:
        places.s3_files("s3://b/x").read("format", 10)
    assert str(caught.value) == "the remote 's3://b/x' cannot be reached"
    assert caught.value.hint == "check the network, and AWS_ENDPOINT_URL if it is set"


def test_a_folder_above_the_remote_is_not_made(tmp_path: Path) -> None:
    root = tmp_path / "none" / "remote"
    for files in (FolderFiles(root), places.sftp_files(root)):
        assert not files.exists()
        with pytest.raises(RemoteError, match=r"the folder above the remote '.*' does not exist"):
            files.create("format", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extended
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_that_does_not_exist_is_reported(s3: None, scheme: str) -> None:
    for message in use(places.s3_files(f"{scheme}://nobody/x")):
        assert message == (
            f"the remote '{scheme}://nobody/x' cannot be used: no such bucket | make the "
            "bucket first, or correct the address of the remote"
        )


def test_a_place_that_may_not_be_written_to_is_reported(tmp_path: Path) -> None:
    (tmp_path / "format").write_bytes(b"x")
    files = places.sftp_files(tmp_path, "-R")
    assert files.read("format", 1) == b"x"
    for change in (lambda: files.create("other", b"x"), lambda: files.delete("format")):
        with pytest.raises(RemoteError, match="cannot be written to: Permission denied"):
            change()
    assert files.read("format", 1) == b"x"
