"""What users are told of errors of SQLite."""

from __future__ import annotations

import errno
import fcntl
import sqlite3
from pathlib import Path

import pytest

from evalstore.core.errors import StoreLockedError
from evalstore.store.sqlite.connection import explain_database_error


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_not_taken_for_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    place = str(tmp_path / "store.db")
    assert isinstance(explain_database_error(busy, place), StoreLockedError)

    def lockf(*_arguments: object) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "lockf", lockf)
    told = explain_database_error(busy, place)
    assert str(told) == f"the file system of the store '{place}' has no locks"
    assert not isinstance(told, StoreLockedError)
