"""Reads a store of somebody else without changing it, not even by a migration."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from evalstore.core.errors import StoreError
from evalstore.files.atomic_write import temporary_file
from evalstore.files.fields import suggest_beside
from evalstore.store.driver import refuse_foreign
from evalstore.store.location import StoreLocation
from evalstore.store.schema import migrations
from evalstore.store.sqlite.connection import Pool, copy_database
from evalstore.store.sqlite.error_messages import explain_database_error
from evalstore.store.sqlite.schema_check import SCHEMA, find_foreign
from evalstore.store.store import Store

_BUSY_MILLISECONDS = 10_000


@contextmanager
def open_unchanged(location: StoreLocation) -> Iterator[Store]:
    """Open a store that is only read; raises `StoreError` as `Store.open` does.

    A store that is older than this program, or that another program may be writing to, is copied
    to a temporary file, and the copy is opened. A database must be up to date.
    """
    if not isinstance(location, Path):
        from evalstore.store.postgresql.driver import PostgreSQLDriver

        driver = PostgreSQLDriver.open(location, create=False, may_migrate=False)
        with closing(Store(driver)) as store:
            yield store
        return
    path = location
    if not path.is_file():
        raise StoreError(f"no store at '{path}'", hint=suggest_beside(path))
    if not Path(f"{path}-wal").exists() and _is_current(path):
        with closing(Store.open(path, immutable=True)) as store:
            yield store
        return
    with TemporaryDirectory(prefix="evalstore-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "store.db"
        _copy(path, copy)
        try:
            store = Store.open(copy, keep_copy=False)
        except StoreError as error:
            raise StoreError(str(error).replace(str(copy), str(path)), hint=error.hint) from error
        with closing(store):
            yield store


def _is_current(path: Path) -> bool:
    """Return whether a store needs no migration; raises `StoreError` for one that is refused."""
    pool = Pool(path, _BUSY_MILLISECONDS, immutable=True)
    with closing(pool), _translated(path), pool.connect() as connection:
        foreign = find_foreign(connection.execute(SCHEMA))
        refuse_foreign(str(path), [extra for extra in foreign if extra.blocks_reading])
        version = migrations.version_of(connection)
    if version is None:
        raise StoreError(f"'{path}' is not a store of evalstore")
    migrations.refuse_newer(version, str(path))
    return version == migrations.HEAD


def _copy(path: Path, target: Path) -> None:
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if log.exists() and not index.exists():
        # Nobody uses the store; SQLite would make the index beside it to read the log.
        for suffix in ("", "-wal"):
            _copy_file(Path(f"{path}{suffix}"), Path(f"{target}{suffix}"))
        return
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"  # the latter makes no files
    uri = f"{path.absolute().as_uri()}?{mode}"
    timeout = _BUSY_MILLISECONDS / 1000
    with (
        _translated(path),
        closing(sqlite3.connect(uri, timeout=timeout, uri=True)) as connection,
    ):
        copy_database(connection, target)


def _copy_file(path: Path, target: Path) -> None:
    try:
        with path.open("rb") as source, temporary_file(target, durable=False) as file:
            copyfileobj(source, file)
    except OSError as error:
        raise StoreError(
            f"the store '{path}' cannot be copied: {error.strerror or error}",
            hint="TMPDIR names a folder with more room",
        ) from error


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise explain_database_error(error, str(path)) from error
