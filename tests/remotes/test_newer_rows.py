"""Rows of a newer program are not damaged: who meets them is asked to upgrade, and none is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalstore.core import hashing
from evalstore.core.errors import NO, OK, STORE_UNUSABLE, NewerError, StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.interfaces.cli.main import main
from evalstore.remotes import upload
from evalstore.remotes.download import check_remote
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store, contents
from evalstore.store.contents import find_unknown
from evalstore.store.records import CheckedRecord, CopyListener, StoredRecord, check_record
from evalstore.store.schema.table_definitions import NODES, TABLES, VERSIONS
from tests.remotes import stores
from tests.store import old_rows
from tests.store.sessions import fill

WEIGHTS = hashing.describe("weights", tests={"tests/dot.md": {}})
PICTURE = {"audio": "1" * 32}
NEWER = {
    "a kind": ("nodes", WEIGHTS),
    "a scheme of nodes": ("nodes", hashing.describe("cases", ranges=[]) | {"scheme": 3}),
    "a scheme of versions": ("prompts", hashing.describe("prompt") | {"scheme": 2}),
    "a field": (
        "tests",
        hashing.describe("test", messages=[{"role": "user", "content": [PICTURE]}]),
    ),
}


def record_of(table: str, content: dict[str, Any]) -> StoredRecord:
    return StoredRecord(table, *hashing.identify(content))


def insert(path: Path, record: StoredRecord, **columns: Any) -> None:
    """Store a row as a newer program would."""
    values = {"id": bytes.fromhex(record.id), "content": record.content, **columns}
    places = ", ".join("?" * len(values))
    with closing(sqlite3.connect(path)) as raw:
        statement = f"INSERT INTO {record.table} ({', '.join(values)}) VALUES ({places})"
        raw.execute(statement, tuple(values.values()))
        raw.commit()


@contextmanager
def upgraded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know the kind `weights` for a while."""
    with monkeypatch.context() as patch:
        patch.setitem(VERSIONS, "weights", NODES)
        patch.setitem(contents.SHAPES, "weights", contents.SHAPES["sources"])
        contents.kinds_of.cache_clear()
        yield
    contents.kinds_of.cache_clear()


@pytest.fixture
def newest(whole: Path, tmp_path: Path) -> Path:
    """A store whose newest run refers to a node of a kind that is not known."""
    path = tmp_path / "newest.db"
    shutil.copy(whole, path)
    node = record_of("nodes", WEIGHTS)
    insert(path, node)
    with closing(sqlite3.connect(path)) as raw:
        query = "SELECT content FROM runs ORDER BY started DESC"
        run = json.loads(raw.execute(query).fetchone()[0])
    run |= {"started": run["ended"] + 1, "ended": run["ended"] + 2, "sources": node.id}
    insert(path, record_of("runs", run), started=run["started"])
    return path


def push_as_newer(path: Path, files: FolderFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Push all of a store as a program does that knows all of it."""

    def check(record: StoredRecord) -> CheckedRecord:
        try:
            return check_record(record)
        except NewerError:
            return CheckedRecord(record, "", {}, {})

    with monkeypatch.context() as patch, stores.opened(path) as store:
        patch.setattr(upload, "check_record", check)
        stores.push(store, files)


def bytes_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def require_sound(store: Store, runs: int) -> None:
    """Require that nothing in a store lacks what it refers to."""
    assert check_store(store)[1] == []
    assert sum(table == "runs" for table, _ in stores.rows(store)) == runs


@pytest.mark.parametrize("what", NEWER)
def test_a_row_with_something_that_is_not_known_is_of_a_newer_program(what: str) -> None:
    table, content = NEWER[what]
    id, text = hashing.identify(content)
    with pytest.raises(NewerError, match="was written by a newer evalstore: row") as caught:
        contents.decode_content(table, id, text)
    assert caught.value.hint == "upgrade evalstore"
    assert caught.value.exit_code == STORE_UNUSABLE


@pytest.mark.parametrize(
    "content",
    [
        hashing.describe("tool", description="no name"),
        hashing.describe("cases", cases=[]) | {"cases": 5},
        hashing.describe("session"),
    ],
    ids=lambda content: content["kind"],
)
def test_a_content_without_anything_new_is_damaged_as_ever(content: dict[str, Any]) -> None:
    id, text = hashing.identify(content)
    with pytest.raises(StoreError, match="the store is damaged") as caught:
        contents.decode_content(VERSIONS.get(content["kind"], TABLES["tools"]).name, id, text)
    assert not isinstance(caught.value, NewerError)


def test_all_that_is_stored_today_and_was_before_is_known(full: Store, tmp_path: Path) -> None:
    with stores.opened(tmp_path / "kinds.db") as kinds:
        fill(kinds)
        rows = [*full.iterate(), *kinds.iterate()]
    old = tmp_path / "old"
    old_rows.restore(old)
    with stores.opened(old / ".evalstore/store.db") as store:
        rows += store.iterate()
    assert {find_unknown(json.loads(row["content"])) for _, row in rows} == {None}


@pytest.mark.parametrize("what", NEWER)
def test_a_pull_stops_at_it_and_leaves_a_sound_store_and_remote(
    what: str,
    whole: Path,
    empty: Store,
    remote: FolderFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "with.db"
    shutil.copy(whole, path)
    insert(path, record_of(*NEWER[what]))
    push_as_newer(path, remote, monkeypatch)
    before = bytes_of(tmp_path / "remote")
    with pytest.raises(NewerError, match=f"^the remote '{remote.address}' was written by a newer"):
        stores.pull(empty, remote)
    require_sound(empty, 0)
    check = check_remote(remote, CopyListener())
    assert (len(check.problems), check.newer, check.remove) == (1, 1, [])
    assert "a newer evalstore has written row" in check.problems[0].message
    assert bytes_of(tmp_path / "remote") == before


def test_after_an_upgrade_the_next_pull_has_all(
    newest: Path, empty: Store, remote: FolderFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_as_newer(newest, remote, monkeypatch)
    with pytest.raises(NewerError):
        stores.pull(empty, remote)
    require_sound(empty, 0)
    with upgraded(monkeypatch), stores.opened(newest) as source:
        stores.pull(empty, remote)
        require_sound(empty, 3)
        assert stores.rows(empty) == stores.rows(source)


def test_a_merge_and_a_push_stop_at_it(newest: Path, empty: Store, remote: FolderFiles) -> None:
    from evalstore.exchange.sync.pull import pull
    from evalstore.planning.options import Location

    folder = newest.parent / "w"
    (folder / ".evalstore").mkdir(parents=True)
    (folder / "evalstore.yaml").write_text("{}\n")
    with pytest.raises(NewerError, match=f"^the store '{newest}' was written by a newer evalstore"):
        pull(Location(folder), str(newest))
    with stores.opened(folder / ".evalstore/store.db") as store:
        require_sound(store, 0)
    with stores.opened(newest) as store, pytest.raises(NewerError, match=r"^the store was written"):
        stores.push(store, remote)
    assert stores.pull(empty, remote).stored.total() == 0


def test_a_clean_up_of_a_remote_deletes_no_row_of_a_newer_program(
    newest: Path,
    remote: FolderFiles,
    whole_records: list[CheckedRecord],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores.push_parts(whole_records, remote, tmp_path, 12)
    push_as_newer(newest, remote, monkeypatch)
    before = stores.names(Path(remote.address))
    with pytest.raises(NewerError, match=r"^the remote .* was written by a newer"):
        stores.collect(remote)
    assert set(before) <= set(stores.names(Path(remote.address)))


@pytest.mark.parametrize("what", NEWER)
def test_fsck_tells_it_from_damage(what: str, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "with.db"
    shutil.copy(whole, path)
    insert(path, record_of(*NEWER[what]))
    with stores.opened(path) as store:
        _, [damage] = check_store(store)
    assert damage.message.startswith("it was written by a newer evalstore: the ")
    assert damage.message.endswith(" is not known; upgrade")


@pytest.mark.parametrize("command", ["log", "diff", "show", "status", "export", "stats", "report"])
def test_every_reader_of_a_run_says_so(
    newest: Path,
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """The results of the newest run are in a tree of another kind."""
    folder = tmp_path / "w"
    shutil.copytree(finished, folder)
    with closing(sqlite3.connect(newest)) as raw:
        run = json.loads(
            raw.execute("SELECT content FROM runs ORDER BY started DESC").fetchone()[0]
        )
    store = folder / ".evalstore/store.db"
    node = record_of("nodes", hashing.describe("forest", entries={}))
    insert(store, node)
    run |= {"results": node.id, "snapshot": node.id}
    insert(store, record_of("runs", run), started=run["started"])
    arguments: dict[str, list[str]] = {"show": ["@"], "stats": ["@"], "log": ["tests/dot.md"]}
    assert main(["-C", str(folder), command, *arguments.get(command, [])]) == STORE_UNUSABLE
    error = capsys.readouterr().err
    assert "error: the store was written by a newer evalstore: row" in error
    assert "hint: upgrade evalstore" in error


def test_bundles_and_clones_are_refused_with_their_names(
    newest: Path,
    finished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maker, reader = tmp_path / "maker", tmp_path / "reader"
    shutil.copytree(finished, maker)
    shutil.copy(newest, maker / ".evalstore/store.db")
    shutil.copytree(finished, reader, ignore=shutil.ignore_patterns(".evalstore"))
    bundle, remote = str(tmp_path / "all.bundle"), str(tmp_path / "remote")
    with upgraded(monkeypatch):
        assert main(["-C", str(maker), "push", bundle]) == OK
        assert main(["-C", str(maker), "remote", "add", "origin", remote]) == OK
        assert main(["-C", str(maker), "push"]) == OK
    capsys.readouterr()
    assert main(["-C", str(reader), "fsck", "--remote", bundle]) == NO
    assert "a newer evalstore has written row" in capsys.readouterr().out
    refused = {
        bundle: ["-C", str(reader), "pull", bundle],
        remote: ["-C", str(tmp_path), "clone", remote, "cloned"],
    }
    for place, command in refused.items():
        assert main(command) == STORE_UNUSABLE
        assert f"'{place}' was written by a newer evalstore: row" in capsys.readouterr().err
