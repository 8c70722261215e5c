"""Reads the packs of a remote, and copies rows that a store lacks, each of which is checked.

Each is stored only after all that it refers to. They may arrive in any order: until then they are
kept in a temporary SQLite file. A row whose references are neither stored nor in the remote waits
there: a store that has it would look damaged.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple, Self

from evalstore.core import batches
from evalstore.core.batches import in_small_batches, in_weighed_batches
from evalstore.core.display import plural, short
from evalstore.core.errors import NewerError, RemoteError, StoreError
from evalstore.core.runs import restore_run
from evalstore.remotes.bundle_files import BundleFiles
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import (
    INDEXES,
    PACKS,
    SIGNATURE,
    MissingFileError,
    RemoteFiles,
    UnreadableFileError,
    digest_of_index,
    index_beside,
    pack_name,
    repair_hint,
    require_remote,
    sha256,
)
from evalstore.remotes.packs import (
    LARGEST_INDEX,
    NO_KEY,
    TABLE_NAMES,
    TABLE_NUMBERS,
    DamagedIndexError,
    DamagedPackError,
    IndexedPack,
    IndexedRecord,
    PackEntry,
    read_index,
    read_record,
)
from evalstore.remotes.upload import find_absent, iterate_records
from evalstore.store import Store
from evalstore.store.contents import find_unknown, not_readable
from evalstore.store.records import (
    COPIED_TABLES,
    CheckedRecord,
    CopyListener,
    MissingIds,
    StoredRecord,
    check_record,
    count_ids,
)
from evalstore.store.schema.table_definitions import NODES, RUNS
from evalstore.store.sqlite.connection import open_tables
from evalstore.store.trees.case_chunks import has_parts
from evalstore.store.trees.tree_nodes import TreeSizes, load_case_parts

_MOST_KEPT = 48 * 2**20
"""Bytes of packs that are kept, unless a single one is larger."""


class PackReader:
    """Reads records of packs of a remote."""

    def __init__(self, files: RemoteFiles, cache: IndexCache, listener: CopyListener) -> None:
        self._files = files
        self._cache = cache
        self.listener = listener
        self._packs = OrderedDict[str, bytes]()
        """The bytes of the packs that were read last, by SHA-256: rows of several tables are in
        one, and one table is read several times."""
        self._kept = 0
        """Bytes of these packs."""
        self.bytes_received = 0
        """Of packs."""
        self.missing_packs: set[str] = set()
        """The SHA-256 of packs that an index lists and that are not there, or no longer."""
        self.left = Counter[str]()
        """How many of the records that should be read are in these packs, by table."""

    def read_records(self, ids: MissingIds) -> Iterator[CheckedRecord]:
        """Yield the checked records with these ids that the remote has, pack by pack.

        Raises as `read_places`.
        """
        for _, _, checked in self.read_places(self._cache.iterate_places(ids)):
            assert checked  # these tables are known
            yield checked

    def read_places(
        self, places: Iterable[IndexedRecord]
    ) -> Iterator[tuple[IndexedRecord, bytes, CheckedRecord | None]]:
        """Yield the records at these places with their bytes, and checked.

        The places are ordered by pack; a record of a table of a newer program is not checked. A
        pack that is missing is noted: a synchronised folder may have its index first, or a clean-up
        has just replaced it. Raises `RemoteError` for one that is damaged, for one that is missing
        in a bundle, and when the remote is gone, and `NewerError` for a record of a newer program
        in a table of today.
        """
        for number, group in itertools.groupby(places, key=lambda place: place.pack):
            pack, records = self._cache.find_pack(number), list(group)
            before = self.bytes_received
            try:
                content = self._read(pack)
            except MissingFileError as error:
                if isinstance(self._files, BundleFiles):
                    raise self._damaged(pack, "it is missing") from error
                require_remote(self._files)
                self.missing_packs.add(pack.digest)
                self.left.update(TABLE_NAMES.get(record.entry.table, "") for record in records)
            else:
                for record in records:
                    entry = record.entry
                    data = content[entry.offset : entry.offset + entry.length]
                    yield record, data, self._check(pack, record, data)
            self.listener.advance(len(records), self.bytes_received - before)

    def _read(self, pack: IndexedPack) -> bytes:
        content = self._packs.pop(pack.digest, None)
        if content is None:
            content = self._files.read(pack_name(pack.digest), pack.size)
            if sha256(content) != pack.digest:
                raise self._damaged(pack, "it has changed since it was written")
            self.bytes_received += pack.size
            self._kept += len(content)
        self._packs[pack.digest] = content
        while len(self._packs) > 1 and self._kept > _MOST_KEPT:
            self._kept -= len(self._packs.popitem(last=False)[1])
        return content

    def _check(self, pack: IndexedPack, record: IndexedRecord, data: bytes) -> CheckedRecord | None:
        try:
            return check_packed(data, record.entry, record.key)
        except NewerError as error:
            raise NewerError(f"the remote '{self._files.address}'", error.problem) from error
        except DamagedPackError as error:
            raise self._damaged(pack, f"the record {record.entry.id.hex()}: {error}") from error

    def _damaged(self, pack: IndexedPack, problem: str) -> RemoteError:
        """Return the error for a pack that is damaged, with how to repair the remote."""
        name = pack_name(pack.digest)
        names = [name]
        for index in self._cache.list_indexes(pack.digest):
            names += [index, index + SIGNATURE][: 1 + self._cache.rules.requires_signatures]
        hint = repair_hint(names, "; 'evalstore fsck --remote' lists all that is damaged")
        if isinstance(self._files, BundleFiles):
            hint = "make the bundle again; 'evalstore fsck --remote FILE' lists what is wrong"
        return RemoteError(
            f"the remote '{self._files.address}' is damaged: '{name}': {problem}", hint=hint
        )


def check_packed(data: bytes, entry: PackEntry, key: bytes) -> CheckedRecord | None:
    """Return the record in these bytes; None for one of a table of a newer program.

    `entry` and the lookup key are those of the index. Raises `DamagedPackError` with what is wrong
    with the record, and `NewerError` for one of a newer program that is in a table of today.
    """
    record = read_record(data, entry)
    if record is None:
        return None
    try:
        checked = check_record(record)
        own_key = bytes.fromhex(checked.key) if checked.key else NO_KEY
    except NewerError:
        raise
    except StoreError as error:
        place = f"the store is damaged: row {record.id} of the table '{record.table}': "
        raise DamagedPackError(str(error).removeprefix(place)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedPackError("its content is not that of its kind") from error
    if key != own_key:
        problem = "its index has another lookup key"
        if find_unknown(checked.content):
            raise not_readable(record.table, record.id, checked.content, problem)
        raise DamagedPackError(problem)
    return checked


_SCHEMA = """
CREATE TABLE entries (
    pack INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL, kind INTEGER NOT NULL,
    id BLOB NOT NULL, lookup BLOB NOT NULL, PRIMARY KEY (pack, start, length, kind, id, lookup)
) WITHOUT ROWID;
CREATE TABLE targets (
    id BLOB PRIMARY KEY, kind TEXT NOT NULL, source BLOB NOT NULL, pack INTEGER NOT NULL
) WITHOUT ROWID;
"""
_NAMED = 3
"""Damaged rows of a pack that are named; the others are counted."""


class RemoteProblem(NamedTuple):
    """A problem in a remote."""

    file: str
    """Its path in the remote."""
    message: str
    indexes: Sequence[str] = ()
    """The index files that list it, if it is a pack with damaged rows or is missing."""


class NewerRow(RemoteProblem):
    """A row of a newer program in a table of today: nothing is damaged."""

    __slots__ = ()


@dataclass(slots=True)
class RemoteCheck:
    """The result of a check of a remote."""

    checked: int = 0
    """Rows."""
    problems: list[RemoteProblem] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    """Packs that no index lists: of an interrupted push, which the next one uses."""
    newer: int = 0
    """Rows of a newer program, which cannot be checked."""
    remove: list[str] = field(default_factory=list)
    """The damaged files, the indexes that list them, and what belongs to these: without them, a
    push writes their rows again."""


def check_remote(
    files: RemoteFiles, listener: CopyListener, *, is_partial: bool = False
) -> RemoteCheck:
    """Check all files of a remote.

    In one that `is_partial`, rows may refer to rows that are elsewhere. Raises `RemoteError` for
    a place that is not a remote, and when it cannot be read to the end.
    """
    require_remote(files)
    with open_tables(_SCHEMA) as connection:
        check = _Check(files, listener, connection)
        check.indexes()
        check.packs()
        if not is_partial:
            check.references()
        check.repair()
    return check.result


class _Check:
    def __init__(
        self, files: RemoteFiles, listener: CopyListener, connection: sqlite3.Connection
    ) -> None:
        self._files = files
        self._listener = listener
        self._connection = connection
        self.result = RemoteCheck()
        self._packs: dict[IndexedPack, int] = {}
        """The packs that indexes list, with the numbers that they have in the tables."""
        self._listing = defaultdict[str, set[str]](set)
        """The indexes that list a pack, by its SHA-256."""
        self._indexes: set[str] = set()
        """All files in the folder of the indexes."""
        self._damaged: set[str] = set()
        """The files that a push does not write again as long as they are there."""
        self._missing: set[str] = set()

    def _report(self, file: str, message: str, digest: str = "") -> None:
        """Note a problem in a file; `digest` is that of a pack, which indexes list."""
        indexes = sorted(self._listing[digest]) if digest else ()
        self.result.problems.append(RemoteProblem(file, message, indexes))
        self._damaged |= {file, *indexes}

    def indexes(self) -> None:
        """Check each index, and note the packs and rows that it lists."""
        self._indexes = {file.name for file in self._files.iterate(INDEXES)}
        for name in sorted(self._indexes):
            digest = digest_of_index(name)
            if digest is None:
                continue  # readers ignore it
            data = self._read(name, LARGEST_INDEX)
            if data is None:
                continue
            if sha256(data) != digest:
                self._report(name, "it has changed since it was written")
                continue
            try:
                self._note_index(name, data)
            except DamagedIndexError as error:
                self._report(name, str(error))

    def _note_index(self, name: str, data: bytes) -> None:
        header, records = read_index(data)
        deque(records, 0)  # of a damaged one nothing is noted
        numbers = [self._packs.setdefault(pack, len(self._packs)) for pack in header.packs]
        for pack in header.packs:
            self._listing[pack.digest].add(name)
        self._connection.executemany(
            "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            (
                (numbers[pack], entry.offset, entry.length, entry.table, entry.id, key)
                for pack, entry, key, _ in read_index(data)[1]
            ),
        )

    def packs(self) -> None:
        """Check each pack and the rows in it that an index lists; find unused packs."""
        present = {file.name for file in self._files.iterate(PACKS)}
        (total,) = self._connection.execute("SELECT count(*) FROM entries").fetchone()
        self._listener.start(total)
        for pack in sorted(self._packs):
            name = pack_name(pack.digest)
            present.discard(name)
            data = self._read(name, pack.size, pack.digest)
            if data is not None:
                self._check_pack(self._packs[pack], name, pack.digest, data)
        self.result.unused += sorted(present)

    def _check_pack(self, number: int, name: str, digest: str, data: bytes) -> None:
        checked, damaged = 0, list[tuple[PackEntry, str]]()
        query = "SELECT lookup, kind, id, start, length FROM entries WHERE pack = ? ORDER BY start"
        for key, *row in self._connection.execute(query, (number,)):
            entry = PackEntry(*row)
            checked += 1
            problem = self._check_record(number, name, entry, key, data)
            if problem:
                damaged.append((entry, problem))
        self._listener.advance(checked, len(data))
        self.result.checked += checked
        is_whole = sha256(data) == digest
        if not is_whole:
            rows = plural(len(damaged), "damaged row") if damaged else "no damaged row"
            self._report(name, f"it has changed since it was written: {rows}", digest)
        shown = damaged if is_whole else damaged[:_NAMED]
        for entry, problem in shown:
            table = TABLE_NAMES.get(entry.table, "unknown")
            self._report(name, f"row {entry.id.hex()} ({table}): {problem}", digest)

    def _check_record(
        self, number: int, name: str, entry: PackEntry, key: bytes, data: bytes
    ) -> str | None:
        """Check a row, and note what it refers to; returns what is wrong with it."""
        try:
            checked = check_packed(data[entry.offset : entry.offset + entry.length], entry, key)
        except NewerError as error:  # it stays: a push would not write it again
            message = f"a newer evalstore has written {error.problem}"
            self.result.problems.append(NewerRow(name, message))
            self.result.newer += 1
            return None
        except DamagedPackError as error:
            return str(error)
        if checked is None:
            self.result.newer += 1
            return None
        targets = ((bytes.fromhex(id), checked.kind, entry.id, number) for id in checked.references)
        self._connection.executemany("INSERT OR IGNORE INTO targets VALUES (?, ?, ?, ?)", targets)
        return None

    def references(self) -> None:
        """Find rows that are missing although others refer to them."""
        self._connection.execute("CREATE INDEX ids ON entries (id)")
        query = """
            SELECT pack, id, kind, source FROM targets
            WHERE NOT EXISTS (SELECT 1 FROM entries WHERE entries.id = targets.id)
        """
        digests = [pack.digest for pack in self._packs]
        missing = [(digests[pack], *row) for pack, *row in self._connection.execute(query)]
        for digest, target, kind, source in sorted(missing):
            message = f"the {kind} {short(source.hex())} refers to {target.hex()}, which is missing"
            # A push writes the missing row: the pack is sound, and stays.
            self.result.problems.append(RemoteProblem(pack_name(digest), message))

    def repair(self) -> None:
        """Find the files without which a push writes their rows again; called at the end."""
        beside = {name for name in self._indexes if index_beside(name) in self._damaged}
        self.result.remove = sorted((self._damaged - self._missing) | beside)

    def _read(self, name: str, most: int, digest: str = "") -> bytes | None:
        """Return the bytes of a file; None, and a problem is reported, when it is damaged.

        Raises `RemoteError` when the remote cannot be read, which says nothing about the file.
        """
        try:
            return self._files.read(name, most)
        except MissingFileError as error:
            require_remote(self._files)  # it may be gone as a whole
            self._missing.add(name)
            self._report(name, "it is missing" if digest else str(error), digest)
        except UnreadableFileError as error:
            self._report(name, str(error), digest)
        return None


_HELD = """
CREATE TABLE held (
    kind TEXT NOT NULL, id BLOB NOT NULL, content TEXT NOT NULL, data BLOB, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
"""
_ROWS, _BYTES = 5_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are written in one transaction."""


class Arrivals:
    """Stores rows, counts those that wait, and refuses runs that describe too much to be read."""

    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._connection = connection
        self._sizes = TreeSizes(store)
        self.stored = Counter[str]()
        """How many rows were stored, by table."""

    @classmethod
    @contextmanager
    def open(cls, store: Store) -> Iterator[Self]:
        """Begin with rows for a store; those that still wait at the end of the block are left."""
        with open_tables(_HELD) as connection:
            yield cls(store, connection)

    @property
    def waiting(self) -> Counter[str]:
        """Return how many rows wait, by table."""
        query = "SELECT kind, count(*) FROM held GROUP BY kind"
        return Counter(dict(self._connection.execute(query)))

    def add(self, batch: Iterable[CheckedRecord]) -> None:
        """Store those of these rows that refer to stored rows only, but no runs."""
        ordered = sorted(batch, key=lambda checked: COPIED_TABLES.index(checked.record.table))
        for table, group in itertools.groupby(ordered, key=lambda checked: checked.record.table):
            rows = list(group)
            for some in in_small_batches(rows) if table == NODES.name else [rows]:
                self._add(some)

    def _add(self, batch: Sequence[CheckedRecord]) -> None:
        references = {
            checked.record.id: {bytes.fromhex(id) for id in checked.references} for checked in batch
        }
        table = batch[0].record.table
        below = None if table == NODES.name else table
        absent = find_absent(self._store, set().union(*references.values()), below)
        complete = list[CheckedRecord]()
        for checked in batch:
            if references[checked.record.id] & absent or checked.kind == "run":
                self._hold(checked.record)
            else:
                complete.append(checked)
        self._write(complete)

    def finish(self) -> None:
        """Store what waits only for rows that are stored; at last runs whose rows all are."""
        before = -1
        while self.stored.total() > before:
            before = self.stored.total()
            for table in COPIED_TABLES:
                for held in self._take(table) if table != RUNS.name else ():
                    self._add(held)
        known: set[bytes] = set()
        for held in self._take(RUNS.name):
            complete: list[CheckedRecord] = []
            for checked in held:
                if self._is_complete({bytes.fromhex(id) for id in checked.references}, known):
                    complete.append(checked)
                else:
                    self._hold(checked.record)
            self._write(complete)

    def _is_complete(self, ids: set[bytes], known: set[bytes]) -> bool:
        """Return whether these rows, and all below them, are stored; those are added to `known`."""
        reached: set[bytes] = set()
        pending = ids - known
        while pending:
            reached |= pending
            nodes = self._store.find_present(NODES.name, pending)
            if find_absent(self._store, pending - nodes):
                return False
            pending = {
                bytes.fromhex(id)
                for record in iterate_records(self._store, {NODES.name: b"".join(sorted(nodes))})
                for id in check_record(record).references
            }
            pending -= reached | known
        known |= reached
        return True

    def _require_bounded(self, batch: Sequence[CheckedRecord]) -> None:
        """Raise `StoreError` for a run that describes too much to be read, and for wrong counts."""
        try:
            for checked in batch:
                id, content = checked.record.id, checked.content
                if checked.kind == "run":
                    self._sizes.require_bounded(restore_run(id, content))
                elif checked.kind == "cases" and has_parts(content):
                    load_case_parts(id, content, self._store.load_cases)
        except StoreError as error:
            problem = str(error).removeprefix("the store is damaged: ")
            raise StoreError(
                f"what arrives is refused: {problem}",
                hint="its writer has a damaged store, or is malicious",
            ) from error

    def _write(self, batch: Sequence[CheckedRecord]) -> None:
        if batch:
            self._require_bounded(batch)
            self._store.ensure_records(batch)
            self.stored[batch[0].record.table] += len(batch)

    def _hold(self, record: StoredRecord) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?)",
            (record.table, bytes.fromhex(record.id), record.content, record.data),
        )

    def _take(self, table: str) -> Iterator[list[CheckedRecord]]:
        """Yield the rows of a table that are held, some at a time; they are so no longer."""
        query = "SELECT id, content, data FROM held WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        last = b""
        while rows := self._connection.execute(query, (table, last, batches.SMALL_SIZE)).fetchall():
            last = rows[-1][0]
            self._connection.execute(
                "DELETE FROM held WHERE kind = ? AND id BETWEEN ? AND ?", (table, rows[0][0], last)
            )
            yield [check_record(StoredRecord(table, id.hex(), *row)) for id, *row in rows]


def split_records(records: Iterable[CheckedRecord]) -> Iterator[list[CheckedRecord]]:
    """Yield records in the parts that are each written in one transaction."""
    return in_weighed_batches(records, lambda checked: checked.record.size, _BYTES, _ROWS)


# --- rows of a remote, or of another store


class Pulled(NamedTuple):
    """What was copied from a remote or another store."""

    stored: Counter[str]
    """How many rows were stored, by table."""
    bytes_received: int
    """Of packs, or parts of them, or of rows of another store."""
    left: Counter[str]
    """How many rows were left there, because it lacks rows that they refer to, by table."""
    missing: Counter[str]
    """How many rows are in packs that are not in the remote yet, or no longer, by table."""
    missing_packs: int

    @property
    def waiting(self) -> int:
        """Return how many runs were left in the remote."""
        return self.left.get(RUNS.name, 0)


class Pull:
    """Copies rows of a remote; runs come last, so that an interrupted pull shows no new run.

    Nothing is stored before what it refers to. What the remote lacks, or refers to rows which it
    lacks, is left there: it may come with another push.
    """

    def __init__(
        self, store: Store, cache: IndexCache, reader: PackReader, arrivals: Arrivals
    ) -> None:
        self._store = store
        self._cache = cache
        self._reader = reader
        self._arrivals = arrivals
        self._seen: set[bytes] = set()
        """The rows that were copied with what they refer to."""

    @classmethod
    @contextmanager
    def open(
        cls, store: Store, files: RemoteFiles, cache: IndexCache, listener: CopyListener
    ) -> Iterator[Self]:
        """Begin to copy; rows that still wait at the end of the block are left."""
        with Arrivals.open(store) as arrivals:
            yield cls(store, cache, PackReader(files, cache, listener), arrivals)

    @property
    def pulled(self) -> Pulled:
        """Return what was read until now."""
        arrivals, reader = self._arrivals, self._reader
        size, missing = reader.bytes_received, len(reader.missing_packs)
        return Pulled(arrivals.stored.copy(), size, arrivals.waiting, reader.left, missing)

    def find_keyed(self, table: str, keys: Iterable[str]) -> set[bytes]:
        """Return the rows of a table with these lookup keys that the remote has, the store not."""
        wanted = [bytes.fromhex(key) for key in keys]
        return self._lacking(table, set(self._cache.find_keys(table, wanted)))

    def find_newest_runs(self) -> set[bytes]:
        """Return the newest run, and the newest about all cases, if the store lacks them."""
        return self._lacking("runs", self._cache.find_newest_runs())

    def _lacking(self, table: str, ids: set[bytes]) -> set[bytes]:
        ids = ids - self._seen
        return ids - self._store.find_present(table, ids)

    def copy_all(self, missing: MissingIds) -> Pulled:
        """Copy these rows, each pack read once.

        Raises `RemoteError` for a pack that is damaged, and `StoreError` if a stored row has other
        content.
        """
        self._reader.listener.start(count_ids(missing))
        for batch in split_records(self._reader.read_records(missing)):
            self._arrivals.add(batch)
        self._arrivals.finish()
        return self.pulled

    def copy(self, table: str, ids: Iterable[bytes]) -> None:
        """Copy rows of a table with what they refer to; raises as `copy_all`."""
        wanted = {table: set(ids)}
        while wanted:
            below = set[bytes]()
            fresh = {name: b"".join(sorted(some - self._seen)) for name, some in wanted.items()}
            self._seen.update(*wanted.values())
            for batch in split_records(self._reader.read_records(fresh)):
                below.update(bytes.fromhex(id) for each in batch for id in each.references)
                self._arrivals.add(batch)
            wanted = dict(self._locate(below - self._seen))
        self._arrivals.finish()

    def _locate(self, ids: set[bytes]) -> Iterator[tuple[str, set[bytes]]]:
        """Yield the tables in which the remote has these ids, without those of the store."""
        for table in COPIED_TABLES:
            if not ids:
                return
            ids = ids - self._store.find_present(table, ids)
            places = self._cache.find_places(TABLE_NUMBERS[table], sorted(ids))
            found = {place.entry.id for place in places}
            ids = ids - found
            if found:
                yield table, found


# --- rows of another store


def copy_records(
    source: Store, target: Store, missing: MissingIds, listener: CopyListener, name: str
) -> Pulled:
    """Store these rows of another store, called `name`; each after all that it refers to.

    Raises `StoreError` for a damaged row, or if a stored row has other content. What was stored
    until then stays, and the next copy completes it.
    """
    listener.start(count_ids(missing))
    size = 0
    with Arrivals.open(target) as arrivals:
        for table in sorted(missing, key=COPIED_TABLES.index):
            rows = {table: missing[table]}
            for batch in split_records(_read_checked(source, rows, name)):
                arrivals.add(batch)
                copied = sum(checked.record.size for checked in batch)
                listener.advance(len(batch), copied)
                size += copied
        arrivals.finish()
        return Pulled(arrivals.stored.copy(), size, arrivals.waiting, Counter(), 0)


def _read_checked(source: Store, missing: MissingIds, name: str) -> Iterator[CheckedRecord]:
    """Yield these rows of a store, called `name`; raises `StoreError` for a damaged one."""
    try:
        for record in iterate_records(source, missing):
            yield check_record(record)
    except NewerError as error:
        raise NewerError(f"the store '{name}'", error.problem) from error
    except StoreError as error:
        problem = str(error).removeprefix("the store is damaged: ")
        raise StoreError(
            f"the store '{name}' is damaged: {problem}",
            hint=f"'evalstore fsck --store {quote(name)}' lists what is wrong",
        ) from error
