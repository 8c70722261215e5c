"""Copies rows of a store that a remote does not have to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.errors import RemoteError
from evalstore.sharing.differences import MissingIds, count_ids, split_ids
from evalstore.sharing.indexes import (
    MOST_PACKS,
    MOST_RECORDS,
    NO_KEY,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    write_index,
)
from evalstore.sharing.layout import SIGNATURE, index_name, pack_name, sha256
from evalstore.sharing.packs import PackWriter
from evalstore.sharing.signatures import LARGEST_SIGNATURE
from evalstore.store.records import COPIED_TABLES, StoredRecord, check_record

if TYPE_CHECKING:
    from evalstore.sharing.index_cache import IndexCache
    from evalstore.sharing.progress import CopyListener
    from evalstore.sharing.remote_files import RemoteFiles
    from evalstore.sharing.secret_scan import FoundSecret, SecretScan
    from evalstore.store import Store

Sign = Callable[[bytes], bytes]
"""Returns the signature of bytes; raises `EvalstoreError`."""
_ROWS, _BYTES = 2_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are loaded at once."""


@dataclass(slots=True)
class Pushed:
    """What a push has written."""

    records: int = 0
    bytes_sent: int = 0
    """Of the packs and indexes that the remote did not have."""
    packs: int = 0
    indexes: list[str] = field(default_factory=list)
    """Their names."""


def push_records(
    store: Store,
    files: RemoteFiles,
    cache: IndexCache,
    missing: MissingIds,
    header: IndexHeader,
    listener: CopyListener,
    scan: SecretScan | None = None,
    sign: Sign | None = None,
) -> Pushed:
    """Write these rows to a remote: packs first, then the indexes that make them visible.

    `header` names the writer and the time. With `sign`, each index gets a signature, which is
    written before it. Raises `SecretsError` when `scan` finds keys, which are never written,
    `RemoteError`, also for a push that would not count here, and `StoreError` for a row of the
    store that is damaged. What was written until then is used by the next push.
    """
    return _Push(store, files, cache, header, listener, scan, sign).run(missing)


class SecretsError(Exception):
    """There are keys in what would have been pushed."""

    def __init__(self, secrets: Sequence[FoundSecret]) -> None:
        super().__init__(f"{len(secrets)} keys")
        self.secrets = secrets


class _Push:
    def __init__(
        self,
        store: Store,
        files: RemoteFiles,
        cache: IndexCache,
        header: IndexHeader,
        listener: CopyListener,
        scan: SecretScan | None,
        sign: Sign | None,
    ) -> None:
        self._store = store
        self._files = files
        self._cache = cache
        self._header = header
        self._listener = listener
        self._scan = scan
        self._sign = sign
        self._pushed = Pushed()
        self._pack = PackWriter()
        self._keys: list[bytes] = []
        """The lookup keys of the records in the pack."""
        self._packs: list[IndexedPack] = []
        self._records: list[IndexedRecord] = []

    def run(self, missing: MissingIds) -> Pushed:
        self._listener.start(count_ids(missing))
        if self._scan:  # before anything is written
            found = map(self._scan.find, iterate_records(self._store, missing))
            secrets = [secret for secret in found if secret]
            if secrets:
                raise SecretsError(secrets)
        for record in iterate_records(self._store, missing):
            self._add(record)
        self._finish_pack()
        self._finish_index()
        return self._pushed

    def _require_whole(self, name: str, data: bytes) -> None:
        """Raise `RemoteError` if a file that is there is shorter or longer than it should be."""
        if self._files.read_range(name, len(data) - 1, 2) != data[-1:]:
            raise RemoteError(
                f"the remote '{self._files.address}' is damaged: '{name}' is not whole",
                hint="remove this file from the remote, and push again",
            )

    def _add(self, record: StoredRecord) -> None:
        checked = check_record(record)
        self._pack.add(record)
        self._keys.append(bytes.fromhex(checked.key) if checked.key else NO_KEY)
        if self._pack.is_full:
            self._finish_pack()
        if len(self._records) + len(self._keys) >= MOST_RECORDS or len(self._packs) >= MOST_PACKS:
            self._finish_pack()
            self._finish_index()

    def _finish_pack(self) -> None:
        entries, keys = self._pack.entries, self._keys
        if not entries:
            return
        digest, data = self._pack.finish()
        sent = len(data) if self._files.create(pack_name(digest), data) else 0
        if not sent:
            self._require_whole(pack_name(digest), data)
        number = len(self._packs)
        self._packs.append(IndexedPack(digest, len(data)))
        self._records += [
            IndexedRecord(number, entry, key) for entry, key in zip(entries, keys, strict=True)
        ]
        self._pack, self._keys = PackWriter(), []
        self._pushed.packs += 1
        self._pushed.bytes_sent += sent
        self._listener.advance(len(entries), sent)

    def _finish_index(self) -> None:
        if not self._records:
            return
        header = IndexHeader(self._header.writer, self._header.created, self._packs)
        data = write_index(header, self._records)
        name = index_name(header.created, sha256(data))
        signature = self._sign(data) if self._sign else None
        writer = self._cache.require_accepted(data, signature)
        if signature is not None:
            self._write_signature(name + SIGNATURE, signature)
        if self._files.create(name, data):
            self._pushed.bytes_sent += len(data)
        self._pushed.indexes.append(name)
        self._pushed.records += len(self._records)
        self._cache.add(name, data, writer)
        self._packs, self._records = [], []

    def _write_signature(self, name: str, signature: bytes) -> None:
        if self._files.create(name, signature):
            self._pushed.bytes_sent += len(signature)
        elif self._files.read(name, LARGEST_SIGNATURE) != signature:
            raise RemoteError(
                f"the remote '{self._files.address}' has another signature in '{name}'",
                hint="push again: then the index has another name",
            )


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
