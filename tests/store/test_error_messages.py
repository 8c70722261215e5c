"""What users are told of errors of SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from evalstore.core.errors import StoreLockedError
from evalstore.store.sqlite.connection import explain_database_error


def test_of_a_store_that_is_locked_it_is_said_what_may_be_missing(tmp_path: Path) -> None:
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    told = explain_database_error(busy, str(tmp_path / "store.db"))
    assert isinstance(told, StoreLockedError)
    assert told.hint
    assert told.hint.endswith(
        "its file system may have no locks: set 'store' in evalstore.yaml to a file on another one"
    )
