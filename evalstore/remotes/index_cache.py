"""A copy of the index files of a remote that count, in an SQLite file on this machine.

It only saves reading them again: when it is lost, damaged or of another format, they are read
again. Of index files that do not count it has only the names: their records are in no query. It
belongs to one set of rules; with others it is made again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from evalstore.core.batches import in_batches
from evalstore.core.errors import EvalstoreError, RemoteError, RevisionError
from evalstore.remotes.acceptance import (
    ACCEPT_ALL,
    HINTS,
    LARGEST_SIGNATURE,
    REASONS,
    Acceptance,
    acceptance_of,
)
from evalstore.remotes.layout import (
    INDEXES,
    SIGNATURE,
    ListedFile,
    MissingFileError,
    RemoteFiles,
    digest_of_index,
    reading_order,
    sha256,
)
from evalstore.remotes.packs import (
    NO_KEY,
    TABLE_NAMES,
    TABLE_NUMBERS,
    DamagedIndexError,
    IndexedPack,
    IndexedRecord,
    PackEntry,
    explaining_damage,
    load_index,
    read_index,
)
from evalstore.store.records import MissingIds, split_ids
from evalstore.store.sqlite.connection import (
    file_errors,
    open_cache,
    open_tables,
    temporary_errors,
)
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.remote_names import CACHES, is_database, is_folder, path_of
from evalstore.workspace.settings.remotes import find_remote, folder_of, read_database, read_url

_FORMAT = 8
_SCHEMA = """
CREATE TABLE indexes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, writer TEXT NOT NULL,
    created INTEGER NOT NULL, records INTEGER NOT NULL
);
CREATE TABLE packs (
    number INTEGER PRIMARY KEY, source INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
);
CREATE TABLE records (
    kind INTEGER NOT NULL, id BLOB NOT NULL, lookup BLOB, pack INTEGER NOT NULL,
    start INTEGER NOT NULL, length INTEGER NOT NULL, pushed INTEGER, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE TABLE refused (
    name TEXT PRIMARY KEY, writer TEXT NOT NULL, created INTEGER NOT NULL, records INTEGER NOT NULL,
    reason TEXT NOT NULL, signature TEXT
) WITHOUT ROWID;
CREATE TABLE replaced (
    name TEXT NOT NULL, writer TEXT NOT NULL, is_known INTEGER NOT NULL, PRIMARY KEY (name, writer)
) WITHOUT ROWID;
CREATE INDEX lookups ON records (lookup) WHERE lookup IS NOT NULL;
"""

_WANTED = """
CREATE TABLE wanted (
    pack INTEGER NOT NULL, kind INTEGER NOT NULL, id BLOB NOT NULL, start INTEGER NOT NULL,
    length INTEGER NOT NULL, lookup BLOB NOT NULL
);
"""


class Push(NamedTuple):
    """An index file, which is what a push has written."""

    name: str
    writer: str
    created: int
    """Microseconds since 1970, UTC."""
    records: int
    """How many records no earlier index has; of one that does not count, all that it lists."""
    reason: str | None = None
    """Why it does not count: one of `REASONS`. Then the rest is as it says itself, or empty."""


class IndexCache:
    """Reads the index files of a remote that count, and finds the records that they list."""

    def __init__(self, connection: sqlite3.Connection, rules: Acceptance = ACCEPT_ALL) -> None:
        self._connection = connection
        self.rules = rules

    @classmethod
    @contextmanager
    def open(
        cls, path: Path | None, address: str, rules: Acceptance = ACCEPT_ALL
    ) -> Iterator[Self]:
        """Open the cache at a path for a remote; in a temporary file without one."""
        with suppress(OSError):
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
        origin = json.dumps([_FORMAT, address, rules.identity])
        connection, path = open_cache(path, _SCHEMA, origin)
        with closing(connection), file_errors(path) if path else temporary_errors():
            yield cls(connection, rules)

    def refresh(self, files: RemoteFiles) -> int:
        """Read the index files that are not in the cache; returns how many bytes were read.

        One that was refused is read again when it has another signature, and one that another
        replaces is not read. Raises `RemoteError` for an index that is damaged, unless it is
        refused.
        """
        read, is_whole = self._refresh(files)
        return read if is_whole else read + self._refresh(files)[0]

    def _refresh(self, files: RemoteFiles) -> tuple[int, bool]:
        """Return how many bytes were read, and whether every index was there that was listed."""
        # First: another program may push meanwhile.
        known = {name for (name,) in self._connection.execute("SELECT name FROM indexes")}
        refused: dict[str, str | None] = dict(
            self._connection.execute("SELECT name, signature FROM refused")
        )
        found = {file.name: file for file in files.iterate(INDEXES)}
        listed = {name for name in found if digest_of_index(name) is not None}
        if (known | set(refused)) - listed:  # the remote was emptied, or cleaned up
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                for table in ("records", "packs", "indexes", "refused", "replaced"):
                    self._connection.execute(f"DELETE FROM {table}")
            known, refused = set(), {}
        read, is_whole = 0, True
        for name in reading_order(listed - known):
            signature = found.get(name + SIGNATURE) if self.rules.requires_signatures else None
            version = _version_of(files, signature)
            is_refused = name in refused and refused[name] == version
            if not is_refused and not self._is_replaced(name):
                try:
                    read += self._read(files, name, signature, version)
                except MissingFileError:
                    is_whole = False  # a clean-up of the remote has replaced it
        return read, is_whole

    def _read(
        self, files: RemoteFiles, name: str, signature: ListedFile | None, version: str | None
    ) -> int:
        """Read an index file, and note what it lists if it counts; returns its bytes."""
        with explaining_damage(files, name):
            data = load_index(files, name)
        try:
            header = read_index(data)[0]
        except DamagedIndexError:
            header = None
        decision = self.rules.decide(data, header, _read_signature(files, signature))
        if decision.refusal is not None:
            created, records = (header.created, header.records) if header else (0, 0)
            row = (name, decision.writer, created, records, decision.refusal, version)
            statement = "INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?, ?, ?)"
            self._connection.execute(statement, row)
            return len(data)
        with explaining_damage(files, name):
            self.add(name, data, decision.writer)
        return len(data)

    def add(self, name: str, data: bytes, writer: str) -> None:
        """Add the records of an index that counts; those of an earlier one stay as they are.

        Raises `DamagedIndexError`.
        """
        header, records = read_index(data)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if connection.execute("SELECT 1 FROM indexes WHERE name = ?", (name,)).fetchone():
                return  # another program was faster
            connection.execute("DELETE FROM refused WHERE name = ?", (name,))
            note = "UPDATE replaced SET is_known = 1 WHERE name = ? AND (writer = ? OR ?)"
            if connection.execute(note, (name, writer, not self.rules.identity)).rowcount:
                return
            for replaced in header.replaces:
                self._replace(replaced, writer)
            source = connection.execute(
                "INSERT INTO indexes (name, writer, created, records) VALUES (?, ?, ?, 0)",
                (name, writer, header.created),
            ).lastrowid
            query = "SELECT coalesce(max(number), 0) + 1 FROM packs"
            (first,) = connection.execute(query).fetchone()
            connection.executemany(
                "INSERT INTO packs VALUES (?, ?, ?, ?)",
                [(first + position, source, *pack) for position, pack in enumerate(header.packs)],
            )
            count = connection.executemany(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        entry.table,
                        entry.id,
                        None if key == NO_KEY else key,
                        first + pack,
                        entry.offset,
                        entry.length,
                        pushed,
                    )
                    for pack, entry, key, pushed in records
                ),
            ).rowcount
            connection.execute(
                "UPDATE indexes SET records = ? WHERE number = ?", (max(count, 0), source)
            )

    def _is_replaced(self, name: str) -> bool:
        """Return whether an index need not be read, as a clean-up has written another in its place.

        Where only some pushes count, that is known when it was read and is of the same writer:
        nobody hides what others have pushed.
        """
        query = "SELECT 1 FROM replaced WHERE name = ? AND (is_known OR ?)"
        return bool(self._connection.execute(query, (name, not self.rules.identity)).fetchone())

    def _replace(self, name: str, writer: str) -> None:
        """Note that an index of a writer replaces another one, and forget what that lists."""
        connection = self._connection
        query = "SELECT number FROM indexes WHERE name = ? AND (writer = ? OR ?)"
        row = connection.execute(query, (name, writer, not self.rules.identity)).fetchone()
        note = "INSERT OR IGNORE INTO replaced VALUES (?, ?, ?)"
        connection.execute(note, (name, writer, row is not None))
        if row:
            packs = "SELECT number FROM packs WHERE source = ?"
            connection.execute(f"DELETE FROM records WHERE pack IN ({packs})", row)
            connection.execute("DELETE FROM packs WHERE source = ?", row)
            connection.execute("DELETE FROM indexes WHERE number = ?", row)

    def list_pushes(self) -> list[Push]:
        """Return the index files, oldest first."""
        query = "SELECT name, writer, created, records FROM indexes ORDER BY created, name"
        return [Push(*row) for row in self._connection.execute(query)]

    def list_refused(self) -> list[Push]:
        """Return the index files that do not count, oldest first."""
        query = "SELECT name, writer, created, records, reason FROM refused ORDER BY created, name"
        return [Push(*row) for row in self._connection.execute(query)]

    def require_accepted(self, data: bytes, signature: bytes | None) -> str:
        """Return the writer of an index that is about to be written, as it will be shown.

        Raises `RemoteError` for one that would not count here.
        """
        decision = self.rules.decide(data, read_index(data)[0], signature)
        if decision.refusal is not None:
            raise RemoteError(
                f"nothing was pushed: a push by '{decision.writer}' is "
                f"{REASONS[decision.refusal]}, so nobody would pull it",
                hint=HINTS[decision.refusal],
            )
        return decision.writer

    # --- the records that the index files list, and their packs

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Read what is known now until the block ends, also if another program refreshes it."""
        self._connection.execute("BEGIN")
        with self._connection:
            yield

    def find_pack(self, number: int) -> IndexedPack:
        """Return a pack by its number."""
        query = "SELECT digest, size FROM packs WHERE number = ?"
        return IndexedPack(*self._connection.execute(query, (number,)).fetchone())

    def list_indexes(self, digest: str) -> list[str]:
        """Return the names of the index files that list a pack."""
        query = (
            "SELECT DISTINCT name FROM packs JOIN indexes ON indexes.number = source "
            "WHERE digest = ? ORDER BY name"
        )
        return [name for (name,) in self._connection.execute(query, (digest,))]

    def iterate_ids(self, table: str) -> Iterator[tuple[bytes]]:
        """Yield the ids of the records of a table in ascending order, each in a tuple."""
        query = "SELECT id FROM records WHERE kind = ? ORDER BY id"
        return self._connection.execute(query, (TABLE_NUMBERS[table],))

    def iterate_packs(self) -> Iterator[tuple[IndexedPack, list[IndexedRecord]]]:
        """Yield each pack with the records in it, and the times of their pushes.

        `pack` of a record is a number in the cache.
        """
        query = (
            "SELECT digest, size, min(pack) OVER (PARTITION BY digest, size), kind, id, start, "
            "length, coalesce(lookup, ?), coalesce(pushed, created) FROM records "
            "JOIN packs ON packs.number = pack JOIN indexes ON indexes.number = source "
            "ORDER BY digest, size, start"
        )
        rows = self._connection.execute(query, (NO_KEY,))
        for pack, group in itertools.groupby(rows, key=lambda row: IndexedPack(*row[:2])):
            yield (
                pack,
                [
                    IndexedRecord(number, PackEntry(*entry), key, pushed)
                    for _, _, number, *entry, key, pushed in group
                ],
            )

    def iterate_places(self, ids: MissingIds) -> Iterator[IndexedRecord]:
        """Yield these records that the remote has, pack by pack, though two indexes list one."""
        first: dict[str, int] = {}
        query = "SELECT digest, number FROM packs ORDER BY number"
        numbers = {
            number: first.setdefault(digest, number)
            for digest, number in self._connection.execute(query)
        }
        with open_tables(_WANTED) as wanted:
            for table, joined in ids.items():
                for some in split_ids(joined):
                    places = self.find_places(TABLE_NUMBERS[table], some)
                    rows = ((numbers[place.pack], *place.entry, place.key) for place in places)
                    wanted.executemany("INSERT INTO wanted VALUES (?, ?, ?, ?, ?, ?)", rows)
            for pack, *entry, key in wanted.execute("SELECT * FROM wanted ORDER BY pack, start"):
                yield IndexedRecord(pack, PackEntry(*entry), key)

    def find_places(self, table: int, ids: Sequence[bytes]) -> Iterator[IndexedRecord]:
        """Yield these records of a table that the remote has; `pack` is a number in the cache."""
        query = "SELECT pack, kind, id, start, length, lookup FROM records WHERE kind = ? AND id IN"
        for pack, *entry, key in self._select(query, table, ids):
            yield IndexedRecord(pack, PackEntry(*entry), key or NO_KEY)

    def find_pushes(self, table: str, ids: Sequence[bytes]) -> Iterator[tuple[bytes, Push]]:
        """Yield those of these records that the remote has, each with its first push.

        Where a clean-up has put pushes together, `created` is the time of the first one with the
        record.
        """
        query = (
            "SELECT id, name, writer, coalesce(pushed, created), indexes.records FROM records "
            "JOIN packs ON packs.number = pack JOIN indexes ON indexes.number = source "
            "WHERE kind = ? AND id IN"
        )
        yield from ((id, Push(*row)) for id, *row in self._select(query, TABLE_NUMBERS[table], ids))

    def find_keys(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the ids of the records of a table with one of these lookup keys -> the key."""
        query = "SELECT id, lookup FROM records WHERE kind = ? AND lookup IN"
        return dict(self._select(query, TABLE_NUMBERS[table], keys))

    def _select(self, query: str, table: int, values: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query about a table that ends before a list of these values."""
        return itertools.chain.from_iterable(
            self._connection.execute(f"{query} ({', '.join('?' * len(batch))})", (table, *batch))
            for batch in in_batches(values)
        )

    def find_newest_runs(self) -> set[bytes]:
        """Return the ids of the newest run, and of the newest that was about all cases.

        Runs without a lookup key are returned, too: whoever reads them finds that it is wrong.
        """
        query = "SELECT id, coalesce(lookup, x'ff') FROM records WHERE kind = ?"
        rows = self._connection.execute(query, (TABLE_NUMBERS["runs"],))
        runs = sorted(((lookup, id) for id, lookup in rows), reverse=True)
        whole = (id for lookup, id in runs if lookup[8:9] == b"\1")
        return {id for _, id in runs[:1]} | {id for id in (next(whole, None),) if id is not None}

    def list_runs(self) -> list[str]:
        """Return the ids of the runs of the remote, newest first, as the store orders them."""
        query = "SELECT id FROM records WHERE kind = ? ORDER BY substr(lookup, 1, 8) DESC, id DESC"
        rows = self._connection.execute(query, (TABLE_NUMBERS["runs"],))
        return [id.hex() for (id,) in rows]

    def count_unknown(self) -> int:
        """Return how many records are of tables that only a newer program knows."""
        numbers = ", ".join(map(str, TABLE_NAMES))
        query = f"SELECT count(*) FROM records WHERE kind NOT IN ({numbers})"
        return int(self._connection.execute(query).fetchone()[0])

    def count_bytes(self) -> int:
        """Return the bytes of all packs of the remote."""
        query = "SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT digest, size FROM packs)"
        return int(self._connection.execute(query).fetchone()[0])


def _read_signature(files: RemoteFiles, signature: ListedFile | None) -> bytes | None:
    """Return the signature of an index; None if there is none that could be one."""
    if signature is None or signature.size > LARGEST_SIGNATURE:
        return None
    try:
        return files.read(signature.name, LARGEST_SIGNATURE)
    except MissingFileError:
        return None


def _version_of(files: RemoteFiles, signature: ListedFile | None) -> str | None:
    """Return a text that is another one for another signature; None if there is none."""
    if signature is None:
        return None
    version = signature.version
    if not version:  # the content must tell
        version = sha256(_read_signature(files, signature) or b"")
    return f"{signature.size}-{version}"


# --- what is known of a remote without asking it


def cache_path(
    workspace: WorkspaceFolder, name: str, address: str, rules: Acceptance = ACCEPT_ALL
) -> Path:
    """Return the path of the copy of the indexes of a remote; other rules have another one."""
    named = address.encode("utf-8", "surrogateescape") + rules.identity.encode()
    digest = hashlib.sha256(named).hexdigest()[:8]
    return workspace.private / CACHES / f"{name}-{digest}.db"


@contextmanager
def open_known(workspace: WorkspaceFolder, remote: str) -> Iterator[IndexCache | None]:
    """Open what is known of a remote; None when it was never read.

    Raises `EvalstoreError` for a remote that is not set, and for a database.
    """
    name, settings = find_remote(workspace, remote)
    if is_database(settings.address):
        raise EvalstoreError(
            f"the remote '{name}' is a database, of which no copy is kept here",
            hint=f"'evalstore pull {name}' copies its runs",
        )
    address = absolute_address(workspace.root, settings.address)
    rules = acceptance_of(workspace, name, settings)
    path = cache_path(workspace, name, address, rules)
    if not path.is_file():
        yield None
        return
    with IndexCache.open(path, address, rules) as cache:
        yield cache


def absolute_address(root: Path, address: str) -> str:
    """Return an address of settings in this folder; a folder by its absolute path.

    Raises `EvalstoreError` for a URL that cannot be used.
    """
    if is_folder(address):
        return str(folder_of(root, path_of(address)))
    return str(read_database(address)) if is_database(address) else read_url(address).address


def find_known_runs(workspace: WorkspaceFolder, remote: str) -> list[str]:
    """Return the ids of the runs that a remote had when it was last read, newest first.

    Raises `RevisionError` when it is not set or was never read.
    """
    try:
        with open_known(workspace, remote) as cache:
            if cache is not None and cache.list_pushes():
                return cache.list_runs()
    except EvalstoreError as error:
        raise RevisionError(str(error), hint=error.hint) from error
    raise RevisionError(
        f"the runs of '{remote}' are not known", hint=f"'evalstore pull -n {remote}' reads them"
    )
