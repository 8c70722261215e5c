"""Stores with results, and the copying of their rows, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstore.remotes.acceptance import ACCEPT_ALL, Acceptance
from evalstore.remotes.collect_garbage import Collected, collect_garbage
from evalstore.remotes.download import Pull, Pulled
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import FolderFiles, RemoteFiles, make_remote, require_remote
from evalstore.remotes.packs import IndexHeader
from evalstore.remotes.upload import IndexWriter, Sign, Written, push_records
from evalstore.store import Store
from evalstore.store.records import (
    COPIED_TABLES,
    CheckedRecord,
    CopyListener,
    check_record,
    count_by_table,
    find_missing,
)

CREATED = 1_700_000_000_000_000
"""The time of all pushes, so that they make the same files."""


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """Open a store, or create one."""
    store = Store.open(path, create=True)
    try:
        yield store
    finally:
        store.close()


def rows(store: Store) -> dict[tuple[str, bytes], dict[str, Any]]:
    """Return all rows of a store with all their columns."""
    return {(table, row["id"]): dict(row) for table, row in store.iterate()}


def records(store: Store) -> list[CheckedRecord]:
    """Return the records of a store, in the order in which they are copied."""
    return [
        check_record(record)
        for table in COPIED_TABLES
        for record in store.load_records(
            table, [id.hex() for name, id in rows(store) if name == table]
        )
    ]


def push(
    store: Store,
    files: RemoteFiles,
    cache: Path | None = None,
    *,
    rules: Acceptance = ACCEPT_ALL,
    sign: Sign | None = None,
    writer: str = "Ann@laptop",
    created: int = CREATED,
) -> Written:
    """Push everything, also rows of a store that lacks what they refer to."""
    make_remote(files)
    with (
        pytest.MonkeyPatch.context() as patch,
        IndexCache.open(cache, files.address, rules) as indexes,
    ):
        patch.setattr("evalstore.remotes.upload.find_absent", lambda *_: set())
        indexes.refresh(files)
        with store.snapshot_ids() as ids:
            missing = find_missing(ids, indexes)
        header = IndexHeader(writer, created, ())
        index_writer = IndexWriter(files, indexes, header, CopyListener(), sign)
        return push_records(store, index_writer, missing)


def pull(
    store: Store, files: RemoteFiles, cache: Path | None = None, *, rules: Acceptance = ACCEPT_ALL
) -> Pulled:
    """Pull everything."""
    require_remote(files)
    with IndexCache.open(cache, files.address, rules) as indexes:
        indexes.refresh(files)
        with store.snapshot_ids() as ids:
            missing = find_missing(indexes, ids)
        return pull_some(store, files, indexes, missing)


def collect(
    files: RemoteFiles,
    cache: Path | None = None,
    *,
    grace: timedelta = timedelta(days=14),
    rules: Acceptance = ACCEPT_ALL,
    sign: Sign | None = None,
    dry_run: bool = False,
) -> Collected:
    """Clean up a remote."""
    with IndexCache.open(cache, files.address, rules) as indexes:
        return collect_garbage(
            files,
            indexes,
            grace=grace // timedelta(microseconds=1),
            sign=sign,
            listener=CopyListener(),
            dry_run=dry_run,
        )


def push_parts(
    records: Sequence[CheckedRecord],
    files: RemoteFiles,
    folder: Path,
    count: int,
    *,
    writer: str = "Ann@laptop",
    sign: Sign | None = None,
    rules: Acceptance = ACCEPT_ALL,
    apart: int = 0,
) -> None:
    """Push records in so many pushes, `apart` microseconds; references are pushed before."""
    path = folder / f"{writer}.db"
    with opened(path) as store:
        for number in range(count):
            first, last = (len(records) * at // count for at in (number, number + 1))
            store.ensure_records(records[first:last])
            created = CREATED + number * apart
            push(store, files, writer=writer, sign=sign, rules=rules, created=created)


def to_push(store: Store, files: RemoteFiles) -> dict[str, int]:
    """Return how many rows of each table a push would copy."""
    with IndexCache.open(None, files.address) as indexes:
        indexes.refresh(files)
        with store.snapshot_ids() as ids:
            return count_by_table(find_missing(ids, indexes))


def names(root: Path) -> list[str]:
    """Return the files of a remote, sorted."""
    return sorted(file.name for file in FolderFiles(root).iterate(""))


def pull_some(
    store: Store, files: RemoteFiles, cache: IndexCache, missing: dict[str, bytes]
) -> Pulled:
    """Pull some rows, by their ids."""
    with Pull.open(store, files, cache, CopyListener()) as pull:
        return pull.copy_all(missing)
