"""A store that lies where nothing can be written is read, and nothing else."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import StoreError
from evalstore.store import Store
from evalstore.store.sqlite.connection import is_on_read_only_media
from tests.store.sessions import fill

MOUNTED = """\
mkdir -p "$2" && mount -t tmpfs none "$2" && cp "$1" "$2/store.db" && mount -o remount,ro "$2" \
    || exit 77
exec "$3" -c "$4" "$2/store.db"
"""
SCRIPT = """\
import sys
from pathlib import Path
from evalstore.core.errors import StoreError
from evalstore.store import Store
from evalstore.exchange.sync.fsck import check_store
from tests.store.sessions import a_run
store = Store.open(Path(sys.argv[1]))
print(len(store.find_runs()), check_store(store)[1])
try:
    store.record_run(a_run(50))
except StoreError as error:
    print(error)
"""


@pytest.fixture
def filled(path: Path) -> Path:
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.mark.skipif(shutil.which("unshare") is None, reason="it takes a mount of its own")
def test_a_store_on_read_only_media_is_read(filled: Path, tmp_path: Path) -> None:
    arguments = (str(filled), str(tmp_path / "mnt"), sys.executable, SCRIPT)
    ran = subprocess.run(
        ["unshare", "-rm", "sh", "-c", MOUNTED, "sh", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if ran.returncode == 77 or "unshare" in ran.stderr:
        pytest.skip("this system gives no mounts")
    opened, refused = ran.stdout.splitlines()
    assert opened == "1 []"
    assert refused.endswith("store.db' is read-only")


def test_a_store_with_a_log_is_not_taken_for_one_that_nobody_writes(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert is_on_read_only_media(filled)
    Path(f"{filled}-wal").write_bytes(b"x")
    assert not is_on_read_only_media(filled)


def test_other_errors_stay_errors(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    path.write_bytes(b"no store" * 1000)
    with pytest.raises(StoreError, match="is damaged"):
        Store.open(path)
