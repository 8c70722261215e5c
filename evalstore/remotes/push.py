"""Copies rows of a store to a remote that does not have them: packs, and then their index.

The index comes last: what it lists is there when a reader sees it. A pack that is there already is
used, so that an interrupted push is completed; but not if a clean-up of the remote has marked it to
be deleted. Then the rows are written to a pack with another name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from evalstore.core.batches import in_weighed_batches
from evalstore.core.errors import RemoteError, StoreError
from evalstore.remotes.acceptance import LARGEST_SIGNATURE
from evalstore.remotes.differences import CopyListener, MissingIds, count_ids, split_ids
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.indexes import (
    MOST_PACKS,
    MOST_RECORDS,
    NO_KEY,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    write_index,
)
from evalstore.remotes.packs import PackWriter
from evalstore.remotes.places.layout import (
    SIGNATURE,
    MissingFileError,
    RemoteFiles,
    find_retired_packs,
    index_name,
    pack_name,
    sha256,
)
from evalstore.remotes.secret_scan import FoundSecret, SecretScan
from evalstore.store import Store
from evalstore.store.records import COPIED_TABLES, CheckedRecord, StoredRecord, check_record

Announce = Callable[[str], None]
"""Is told the name with which a push will be shown."""
Sign = Callable[[bytes], bytes]
"""Returns the signature of bytes; raises `EvalstoreError`."""


@dataclass(slots=True)
class Written:
    """What was written to a remote."""

    records: int = 0
    bytes_sent: int = 0
    """Of the packs, indexes and signatures that the remote did not have."""
    packs: int = 0
    indexes: list[str] = field(default_factory=list)
    """Their names."""


class IndexWriter:
    """Writes records to a remote. Every method raises `RemoteError`."""

    def __init__(
        self,
        files: RemoteFiles,
        cache: IndexCache,
        header: IndexHeader,
        listener: CopyListener,
        sign: Sign | None = None,
        announce: Announce | None = None,
    ) -> None:
        """`header` names the writer and the time; with `sign`, each index gets a signature.

        `announce` is called with the name that the push will be shown with, before each index.
        """
        self._files = files
        self._cache = cache
        self._header = header
        self.listener = listener
        self._sign = sign
        self._announce = announce
        self.written = Written()
        self._pack = PackWriter()
        self._added: list[tuple[bytes, int | None]] = []
        """The lookup keys of the records in the pack, and the times of their pushes."""
        self._packs: list[IndexedPack] = []
        self._records: list[IndexedRecord] = []
        self._retired: frozenset[str] | None = None

    @property
    def records(self) -> int:
        """Return how many records the next index lists until now."""
        return len(self._records) + len(self._added)

    @property
    def packs(self) -> int:
        """Return how many finished packs the next index lists until now."""
        return len(self._packs)

    def add(self, record: StoredRecord, key: bytes) -> None:
        """Append a record with its lookup key."""
        self._pack.add(record)
        self._append(key, None)

    def copy(self, table: int, id: bytes, data: bytes, key: bytes, pushed: int) -> None:
        """Append a record as another pack has it, with the time of its first push."""
        self._pack.copy(table, id, data)
        self._append(key, pushed)

    def _append(self, key: bytes, pushed: int | None) -> None:
        self._added.append((key, pushed))
        if self._pack.is_full:
            self.finish_pack()

    def list_pack(self, pack: IndexedPack, records: Iterable[IndexedRecord]) -> None:
        """List records of a pack that the remote has."""
        number = len(self._packs)
        self._packs.append(pack)
        self._records += [record._replace(pack=number) for record in records]

    def finish_pack(self) -> None:
        """Write the records that were added as a pack."""
        entries, added = self._pack.entries, self._added
        if not entries:
            return
        digest, size, sent = self._write_pack()
        self.list_pack(
            IndexedPack(digest, size),
            (IndexedRecord(0, entry, *of) for entry, of in zip(entries, added, strict=True)),
        )
        self._pack, self._added = PackWriter(), []
        self.written.packs += 1
        self.written.bytes_sent += sent
        self.listener.advance(len(entries), sent)

    def _write_pack(self) -> tuple[str, int, int]:
        """Return the SHA-256 and the size of the pack, and how many bytes were sent."""
        variant = 0
        while True:
            digest, data = self._pack.finish(variant)
            name = pack_name(digest)
            if self._files.create(name, data):
                return digest, len(data), len(data)
            if self._is_retired(digest):
                variant += 1
                continue
            with suppress(MissingFileError):  # a clean-up has just deleted it
                self._require_whole(name, data)
                return digest, len(data), 0

    def _is_retired(self, digest: str) -> bool:
        if self._retired is None:
            self._retired = find_retired_packs(self._files)
        return digest in self._retired

    def _require_whole(self, name: str, data: bytes) -> None:
        """Raise `RemoteError` if a file that is there is shorter or longer than it should be."""
        if self._files.read_range(name, len(data) - 1, 2) != data[-1:]:
            raise RemoteError(
                f"the remote '{self._files.address}' is damaged: '{name}' is not whole",
                hint="remove this file from the remote, and push again",
            )

    def finish_index(self) -> None:
        """Write the index of all records until now, which makes them visible."""
        self.finish_pack()
        if not self._records:
            return
        header = replace(self._header, packs=self._packs)
        data = write_index(header, self._records)
        name = index_name(header.created, sha256(data), is_merged=bool(header.replaces))
        signature = self._sign(data) if self._sign else None
        writer = self._cache.require_accepted(data, signature)
        if self._announce:
            self._announce(writer)
        if signature is not None:
            self._write_signature(name + SIGNATURE, signature, data, header)
        if self._files.create(name, data):
            self.written.bytes_sent += len(data)
        self.written.indexes.append(name)
        self.written.records += len(self._records)
        self._cache.add(name, data, writer)
        self._packs, self._records = [], []

    def _write_signature(
        self, name: str, signature: bytes, data: bytes, header: IndexHeader
    ) -> None:
        """Write a signature; one that is there already must be as good."""
        if self._files.create(name, signature):
            self.written.bytes_sent += len(signature)
            return
        found = self._files.read(name, LARGEST_SIGNATURE)
        rules = self._cache.rules
        if found != signature and not (
            rules.requires_signatures
            and rules.decide(data, header, found) == rules.decide(data, header, signature)
        ):
            raise RemoteError(
                f"the remote '{self._files.address}' has another signature in '{name}'",
                hint="remove this file from the remote, and try again",
            )


# --- rows of a store


_BYTES = 16 * 2**20
"""Roughly the most bytes that are loaded at once."""
_CHECKED = 500
"""Rows whose references are looked up at once."""


def push_records(
    store: Store, writer: IndexWriter, missing: MissingIds, scan: SecretScan | None = None
) -> Written:
    """Write these rows to a remote: packs first, then the indexes that make them visible.

    Raises `SecretsError` when `scan` finds keys, which are never written, `RemoteError`, also for
    a push that would not count here, and `StoreError` for a row of the store that is damaged or
    refers to a row that is missing. What was written until then is used by the next push.
    """
    writer.listener.start(count_ids(missing))
    if scan:  # before anything is written
        refuse_secrets(store, missing, scan)
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
                hint="pull what 'evalstore fsck' lists, or run 'evalstore fsck --repair'",
            )
        yield from batch


def find_absent(store: Store, ids: set[bytes], below: str | None = None) -> set[bytes]:
    """Return those of these ids that a store lacks; with `below`, in the tables before this one."""
    tables = COPIED_TABLES[: COPIED_TABLES.index(below)] if below else COPIED_TABLES
    absent = set(ids)
    for table in reversed(tables):  # most references are to answers and judgements
        absent -= store.find_present(table, absent)
    return absent


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
        for batch in split_ids(ids[table]):
            digits = [id.hex() for id in batch]
            sizes = Counter(store.load_sizes(table, digits))  # 0 for a row that is missing
            for part in in_weighed_batches(digits, sizes.__getitem__, _BYTES):
                yield from store.load_records(table, part)
