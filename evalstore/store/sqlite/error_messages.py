"""Translates errors of SQLite into `StoreError` with messages for users."""

from __future__ import annotations

import errno
import fcntl
import re
import sqlite3
from pathlib import Path
from tempfile import TemporaryFile

from evalstore.core.errors import StoreError, StoreLockedError
from evalstore.store.sqlite.connection import LARGEST_VALUE

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_LONGEST = 300
"""The most characters of a message of SQLite, which may quote a whole value."""
_REASONS = (
    (
        "readonly|read-only",
        "the store '{path}' is read-only",
        "check the permissions of the file and its folder",
    ),
    (
        "malformed|not a database|corrupt|can't decode|could not decode|no such (column|table)"
        "|unsafe use|datatype mismatch",
        "the store '{path}' is damaged: {text}",
        "restore a copy of it; 'evalstore fsck' lists what is wrong",
    ),
    ("unable to open", "the store '{path}' cannot be opened", "check the path and its permissions"),
    (
        "disk i/o error",
        "the store '{path}' cannot be used: {text}",
        "check the disk, and the size of files that the shell allows ('ulimit -f')",
    ),
    (
        "too big",
        "a value is too large for the store '{path}'",
        f"the limit is {LARGEST_VALUE // 2**20} MiB; 'evalstore fsck' lists what is wrong",
    ),
    (
        "is full",
        "no space left for the store '{path}'",
        "free some space and run again: what is in the store stays there",
    ),
)
"""Patterns of messages of SQLite, with the message and the hint for the user."""


def is_locked(error: Exception) -> bool:
    """Return whether another program has locked the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def _lacks_locks(folder: Path) -> bool:
    """Return whether a file system refuses locks, which SQLite takes for those of others.

    A file of its own is locked: closing the store's file once more would end SQLite's locks.
    """
    try:
        with TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
    return False


def explain_database_error(error: Exception, path: str) -> StoreError:
    """Return the `StoreError` for an error of the database at a path."""
    text = str(error)[:_LONGEST]
    if is_locked(error) and _lacks_locks(Path(path).parent):
        return StoreError(
            f"the file system of the store '{path}' has no locks",
            hint="set 'store' in evalstore.yaml to a file on another one",
        )
    if is_locked(error):
        return StoreLockedError(
            f"the store '{path}' is locked by another program",
            hint="wait until it is done and try again",
        )
    for pattern, message, hint in _REASONS:
        if re.search(pattern, text.lower()):
            return StoreError(message.format(path=path, text=text), hint=hint)
    return StoreError(f"the store '{path}' cannot be used: {text}")


def is_interrupt(error: BaseException) -> bool:
    """Return whether a statement was ended because nobody waits for it any more."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT
