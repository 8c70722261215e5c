"""`pull FILE`: the union with another store file, which is never changed."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.exchange.init import init
from evalstore.exchange.sync.fsck import check_store
from evalstore.exchange.sync.pull import pull
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.store import Store
from evalstore.store.records import CheckedRecord
from tests.remotes import stores
from tests.store import old_rows


def _workspace(folder: Path, records: list[CheckedRecord] = []) -> Location:  # noqa: B006
    init(folder, bare=True)
    with stores.opened(_store(Location(folder))) as store:
        store.ensure_records(records)
    return Location(folder)


def _store(location: Location) -> Path:
    return location.directory / ".evalstore/store.db"


def _rows(location: Location) -> dict[tuple[str, bytes], dict[str, object]]:
    with stores.opened(_store(location)) as store:
        return stores.rows(store)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_pull_of_stores_is_the_union_in_whatever_order(
    full: Store, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    parts = whole_records[::2], whole_records[1:]
    first, second = (_workspace(tmp_path / str(i), list(part)) for i, part in enumerate(parts))
    both = _workspace(tmp_path / "both", list(parts[0]))
    before = _files(second.directory)
    expected = pull(both, str(_store(second)), dry_run=True)
    assert len(_rows(both)) == len(parts[0])
    assert pull(both, str(_store(second))).records == expected.records
    assert _files(second.directory) == before
    pull(second, str(_store(first)))
    assert _rows(both) == _rows(second) == stores.rows(full)
    assert not any(pull(both, str(_store(second))).records.values())
    assert _rows(both) == stores.rows(full)


def test_a_store_of_an_older_version_is_read_and_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    old_rows.restore(tmp_path / "old")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    old = Location(tmp_path / "old")
    with closing(sqlite3.connect(_store(old))) as raw:
        raw.execute("PRAGMA journal_mode = WAL")  # as evalstore has it
    before = _files(old.directory)
    new = _workspace(tmp_path / "new")
    assert pull(new, str(_store(old))).records["runs"] == 2
    assert _files(old.directory) == before
    assert not any((tmp_path / "temporary").iterdir())
    with stores.opened(_store(new)) as store:
        assert check_store(store)[1] == []
    with stores.opened(_store(old)) as store:  # migrates it
        assert stores.rows(store) == _rows(new)


def test_a_store_that_is_in_use_is_read_as_it_is(
    full: Store, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    other, here = _workspace(tmp_path / "other"), _workspace(tmp_path / "here")
    with stores.opened(_store(other)) as store:
        store.ensure_records(whole_records)
        with store.writing() as connection:
            connection.execute("DELETE FROM runs")
            pull(here, str(_store(other)))
            connection.execute("ROLLBACK")
        assert len(_rows(here)) == len(stores.rows(full))


def test_a_store_of_a_program_that_was_killed_is_read_with_its_log(
    full: Store, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    other, here = _workspace(tmp_path / "other"), _workspace(tmp_path / "here")
    left = tmp_path / "left"
    left.mkdir()
    with stores.opened(_store(other)) as store:
        store.ensure_records(whole_records)
        for name in ("store.db", "store.db-wal"):
            shutil.copy(_store(other).with_name(name), left)
    before = _files(left)
    pull(here, str(left / "store.db"))
    assert _files(left) == before
    assert _rows(here) == stores.rows(full)


def test_a_pull_that_is_killed_between_batches_leaves_a_sound_store_and_is_completed_by_the_next(
    whole: Path, whole_records: list[CheckedRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.remotes.download._ROWS", 3)
    ensure = Store.ensure_records

    class KilledError(BaseException):
        pass

    for after in range(len(whole_records)):
        here, left = _workspace(tmp_path / str(after)), after

        def ensure_some(store: Store, records: list[CheckedRecord]) -> None:
            nonlocal left
            if not left:
                raise KilledError
            left -= 1
            ensure(store, records)

        monkeypatch.setattr(Store, "ensure_records", ensure_some)
        with suppress(KilledError):
            pull(here, str(whole))
        monkeypatch.setattr(Store, "ensure_records", ensure)
        with stores.opened(_store(here)) as store:
            assert check_store(store)[1] == []
        if left:
            break
        pull(here, str(whole))
        with stores.opened(whole) as other:
            assert _rows(here) == stores.rows(other)
    assert 10 < after < len(whole_records) - 1


def test_rows_of_a_damaged_store_that_lack_what_they_refer_to_stay_there(
    whole_records: list[CheckedRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = next(checked for checked in whole_records if checked.kind == "session")
    rest = [checked for checked in whole_records if checked is not lost]
    other, here = _workspace(tmp_path / "other", rest), _workspace(tmp_path / "here")
    assert main(["-C", str(here.directory), "pull", str(_store(other))]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("pulled 2 answers")
    assert "stayed in the other store, which lacks rows that they refer to" in captured.err
    with stores.opened(_store(here)) as store:
        assert check_store(store)[1] == []
        assert store.count_runs() == 0


def _newer(raw: sqlite3.Connection) -> None:
    raw.execute("UPDATE alembic_version SET version_num = '9999'")


def _with_view(raw: sqlite3.Connection) -> None:
    raw.execute("DROP TABLE prompts")
    raw.execute("CREATE VIEW prompts AS SELECT id, content FROM models")


def _not_a_store(raw: sqlite3.Connection) -> None:
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        raw.execute(f"DROP TABLE {name}")
    raw.execute("CREATE TABLE notes (text TEXT)")


def _damaged(raw: sqlite3.Connection) -> None:
    raw.execute("UPDATE sessions SET content = replace(content, 'Warm', 'Cold')")


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_newer, "other.db' is newer than this program"),
        (_with_view, "other.db' is not read: there is a view in the place of the table 'prompts'"),
        (_not_a_store, r"other.db' is (a database, but )?not a store of evalstore"),
        (_damaged, r"other.db' is damaged: row \w+ of the table 'sessions': its content does not"),
    ],
)
def test_a_store_that_is_not_sound_is_refused(
    whole: Path, tmp_path: Path, change: object, message: str, *, in_use: bool
) -> None:
    assert callable(change)
    other = Path(shutil.copy(whole, tmp_path / "other.db"))
    here = _workspace(tmp_path / "here")
    with closing(sqlite3.connect(other)) as raw:
        change(raw)
        raw.commit()
        if not in_use:
            raw.close()
        with pytest.raises(StoreError, match=message):
            pull(here, str(other))
    assert not any(table == "sessions" for table, _ in _rows(here))


def test_errors_name_paths_without_detours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("w/evalstore.yaml", "away/deep/file"):
        (tmp_path / folder).parent.mkdir(parents=True)
        (tmp_path / folder).write_text("")
    (tmp_path / "w/link").symlink_to(tmp_path / "away/deep")
    here = ["-C", str(tmp_path / "w")]
    for command in (["pull"], ["fsck", "--remote"], ["fsck", "--store"]):
        for name, shown in (("../no", tmp_path / "no"), ("link/../no", tmp_path / "w/link/../no")):
            assert main([*here, *command, name]) == 6
            assert f"'{shown}'" in capsys.readouterr().err


def test_what_is_not_another_store_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = _workspace(tmp_path / "here")
    with pytest.raises(EvalstoreError, match="is the store of this workspace"):
        pull(here, str(Path(".evalstore/store.db")))
    with pytest.raises(StoreError, match="no store at"):
        pull(here, str(Path("missing.db")))
    (tmp_path / "text.db").write_text("not a database, but a text of some length" * 99)
    assert main(["-C", str(here.directory), "pull", "../text.db"]) == 6
    assert "error: " in capsys.readouterr().err


def test_the_command_says_what_it_copied(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.db"))
    command = ["-C", str(_workspace(tmp_path / "here").directory), "pull", str(other)]
    assert main([*command, "-n"]) == 0
    assert main(command) == 0
    assert main(command) == 0
    would, did, nothing = capsys.readouterr().out.splitlines()
    assert would.startswith("would pull 2 runs, ")
    assert did.startswith(would.replace("would pull", "pulled") + ": ")
    assert nothing == f"nothing to pull from store ({other})"
