"""Copies rows of a store that a remote does not have to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evalstore.core.errors import StoreError
from evalstore.remotes.arrivals import find_absent
from evalstore.remotes.differences import MissingIds, count_ids, split_ids
from evalstore.remotes.indexes.index_writer import Announce, IndexWriter, Sign, Written
from evalstore.remotes.indexes.indexes import MOST_PACKS, MOST_RECORDS, NO_KEY, IndexHeader
from evalstore.store.records import COPIED_TABLES, CheckedRecord, StoredRecord, check_record

if TYPE_CHECKING:
    from evalstore.remotes.indexes.index_cache import IndexCache
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.remotes.progress import CopyListener
    from evalstore.remotes.secret_scan import FoundSecret, SecretScan
    from evalstore.store import Store

_ROWS, _BYTES = 2_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are loaded at once."""
_CHECKED = 500
"""Rows whose references are looked up at once."""


def push_records(
    store: Store,
    files: RemoteFiles,
    cache: IndexCache,
    missing: MissingIds,
    header: IndexHeader,
    listener: CopyListener,
    scan: SecretScan | None = None,
    sign: Sign | None = None,
    announce: Announce | None = None,
) -> Written:
    """Write these rows to a remote: packs first, then the indexes that make them visible.

    `header` names the writer and the time. With `sign`, each index gets a signature, which is
    written before it; `announce` is called with the name that the push will be shown with, before
    anybody can see it. Raises `SecretsError` when `scan` finds keys, which are never written,
    `RemoteError`, also for a push that would not count here, and `StoreError` for a row of the
    store that is damaged or refers to a row that is missing. What was written until then is used
    by the next push.
    """
    listener.start(count_ids(missing))
    if scan:  # before anything is written
        refuse_secrets(store, missing, scan)
    writer = IndexWriter(files, cache, header, listener, sign, announce)
    for checked in _iterate_whole(store, missing):
        writer.add(checked.record, bytes.fromhex(checked.key) if checked.key else NO_KEY)
        if writer.records >= MOST_RECORDS or writer.packs >= MOST_PACKS:
            writer.finish_index()
    writer.finish_index()
    return writer.written


def _iterate_whole(store: Store, ids: MissingIds) -> Iterator[CheckedRecord]:
    """Yield these rows checked; raises `StoreError` for one that refers to a missing row."""
    records = map(check_record, iterate_records(store, ids))
    while batch := list(islice(records, _CHECKED)):
        references = {bytes.fromhex(id) for checked in batch for id in checked.references}
        if absent := {id.hex() for id in find_absent(store, references)}:
            kind, id, target = next(
                (checked.kind, checked.record.id, target)
                for checked in batch
                for target in checked.references
                if target in absent
            )
            raise StoreError(
                f"the store is damaged, so its rows are not copied: {kind} {id} refers to "
                f"{target}, which is not there",
                hint="'evalstore fsck' lists what is missing; pull it, or remove what "
                "refers to it with 'evalstore fsck --repair'",
            )
        yield from batch


class SecretsError(Exception):
    """There are keys in what would have been pushed."""

    def __init__(self, secrets: Sequence[FoundSecret]) -> None:
        super().__init__(f"{len(secrets)} keys")
        self.secrets = secrets


def refuse_secrets(store: Store, missing: MissingIds, scan: SecretScan) -> None:
    """Raise `SecretsError` when there are keys in these rows."""
    secrets = [found for found in map(scan.find, iterate_records(store, missing)) if found]
    if secrets:
        raise SecretsError(secrets)


def iterate_records(store: Store, ids: MissingIds) -> Iterator[StoredRecord]:
    """Yield the records with these ids, table by table in the order in which they are copied."""
    for table in sorted(ids, key=COPIED_TABLES.index):
        for batch in split_ids(ids[table], _ROWS):
            digits = [id.hex() for id in batch]
            for part in _by_size(digits, store.load_sizes(table, digits)):
                yield from store.load_records(table, part)


def _by_size(ids: list[str], sizes: dict[str, int]) -> Iterator[list[str]]:
    part: list[str] = []
    total = 0
    for id in ids:
        size = sizes.get(id, 0)
        if part and total + size > _BYTES:
            yield part
            part, total = [], 0
        part.append(id)
        total += size
    if part:
        yield part
