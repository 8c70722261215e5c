"""A copy of the index files of a remote that count, in an SQLite file on this machine.

It only saves reading them again: when it is lost, damaged or of another format, they are read
again. Of index files that do not count it has only the names: their records are in no query. It
belongs to one set of rules; with others it is made again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

from evalstore.core.errors import RemoteError
from evalstore.remotes.acceptance import ACCEPT_ALL, HINTS, REASONS, Acceptance, Decision
from evalstore.remotes.indexes.index_cache_file import FORMAT, Origin, make_tables, open_file
from evalstore.remotes.indexes.index_parts import LARGEST_PARTS, read_parts
from evalstore.remotes.indexes.indexed_records import IndexedRecords, Push
from evalstore.remotes.indexes.indexes import (
    LARGEST_INDEX,
    NO_KEY,
    DamagedIndexError,
    IndexHeader,
    NewerIndexError,
    read_index,
    read_rest,
)
from evalstore.remotes.indexes.replaced_indexes import ReplacedIndexes
from evalstore.remotes.indexes.unread_ids import TABLES, UnreadIds
from evalstore.remotes.packs.signatures import LARGEST_SIGNATURE
from evalstore.remotes.places.layout import (
    INDEXES,
    SIGNATURE,
    digest_of_index,
    read_parts_name,
    reading_order,
    sha256,
)
from evalstore.remotes.places.remote_files import ListedFile, MissingFileError, RemoteFiles
from evalstore.remotes.temporary_tables import file_errors, temporary_errors

if TYPE_CHECKING:
    from pathlib import Path


class RefusedPush(NamedTuple):
    """An index file that does not count."""

    name: str
    writer: str
    """Who has written it, as it says itself; empty if it is damaged."""
    created: int
    """As it says itself; 0 if it is damaged."""
    records: int
    """How many records it lists."""
    reason: str
    """One of `REASONS`."""


class _Added(NamedTuple):
    """The numbers of an index in the cache."""

    source: int
    first_pack: int


class IndexCache:
    """Reads the index files of a remote that count; `records` are those that they list."""

    def __init__(self, connection: sqlite3.Connection, rules: Acceptance = ACCEPT_ALL) -> None:
        self._connection = connection
        self.records = IndexedRecords(connection)
        self.unread = UnreadIds(connection)
        """The records of index files that were read in part."""
        self._replaced = ReplacedIndexes(connection, self.unread, by_all=not rules.identity)
        self.rules = rules

    @classmethod
    @contextmanager
    def open(
        cls, path: Path | None, address: str, rules: Acceptance = ACCEPT_ALL
    ) -> Iterator[Self]:
        """Open the cache at a path for a remote; in a temporary file without one."""
        origin = Origin(FORMAT, address, rules.identity)
        connection = open_file(path, origin) if path else None
        if connection is None:
            connection = sqlite3.connect("", isolation_level=None)
            make_tables(connection, origin)
            path = None
        with closing(connection), file_errors(path) if path else temporary_errors():
            yield cls(connection, rules)

    def refresh(self, files: RemoteFiles, *, partly: bool = False) -> int:
        """Read the index files that are not in the cache; returns how many bytes were read.

        With `partly`, the ids in large ones are left unread, but for those of runs. One that was
        refused is read again when it has another signature, and one that another replaces is not
        read. Raises `RemoteError` for an index that is damaged, unless it is refused.
        """
        read, is_whole = self._refresh(files, partly=partly)
        return read if is_whole else read + self._refresh(files, partly=partly)[0]

    def _refresh(self, files: RemoteFiles, *, partly: bool) -> tuple[int, bool]:
        """Return how many bytes were read, and whether every index was there that was listed."""
        known, refused = self._load_names()  # first: another program may push meanwhile
        found = {file.name: file for file in files.iterate(INDEXES)}
        listed = {name for name in found if digest_of_index(name) is not None}
        if (known | set(refused)) - listed:  # the remote was emptied, or cleaned up
            self._clear()
            known, refused = set(), {}
        parts = self._find_parts(files, found) if partly else {}
        read, is_whole = 0, True
        for name in reading_order(listed - known):
            signature = found.get(name + SIGNATURE) if self.rules.requires_signatures else None
            version = _version_of(files, signature)
            is_refused = name in refused and refused[name] == version
            if not is_refused and not self._replaced.contains(name):
                try:
                    read += self._read_partly(files, name, parts.get(name)) or self._read(
                        files, name, signature, version
                    )
                except MissingFileError:
                    is_whole = False  # a clean-up of the remote has replaced it
        try:
            read += self.unread.load_table(files, "runs") if partly else self.unread.load_all(files)
        except MissingFileError:
            is_whole = False
        return read, is_whole

    def _find_parts(self, files: RemoteFiles, names: Iterable[str]) -> dict[str, str]:
        """Return the index files of which parts can be read -> the files with their parts."""
        if self.rules.requires_signatures or not files.reads_parts:
            return {}
        parts = ((read_parts_name(name), name) for name in sorted(names, reverse=True))
        return {of[0]: name for of, name in parts if of}

    def _load_names(self) -> tuple[set[str], dict[str, str | None]]:
        """Return the indexes that count, and those that do not with their signatures' versions."""
        known = {name for (name,) in self._connection.execute("SELECT name FROM indexes")}
        return known, dict(self._connection.execute("SELECT name, signature FROM refused"))

    def _read(
        self, files: RemoteFiles, name: str, signature: ListedFile | None, version: str | None
    ) -> int:
        """Read an index file, and note what it lists if it counts; returns its bytes."""
        data = files.read(name, LARGEST_INDEX)
        if sha256(data) != digest_of_index(name):
            raise RemoteError(
                f"the remote '{files.address}' is damaged: '{name}' has other bytes than when "
                "it was written",
                hint=f"'evalstore fsck --remote' lists what is wrong; remove '{name}', and "
                "push again from a store that has its rows",
            )
        try:
            header = read_index(data)[0]
        except DamagedIndexError:
            header = None
        decision = self.rules.decide(data, header, _read_signature(files, signature))
        if decision.refusal is not None:
            self._refuse(name, header, decision, version)
            return len(data)
        hint = f"remove '{name}', and push again from a store that has its rows"
        with _explained(files, name, hint):
            self.add(name, data, decision.writer)
        return len(data)

    def _read_partly(self, files: RemoteFiles, name: str, parts: str | None) -> int:
        """Read an index file without its ids if another file has its parts; returns the bytes.

        They are 0 if it must be read as a whole.
        """
        try:
            data = files.read(parts, LARGEST_PARTS) if parts else b""
        except MissingFileError:
            return 0
        if not parts or not data:
            return 0
        with _explained(files, parts, f"remove '{parts}': without it, the whole index is read"):
            header, (*blocks, rest) = read_parts(data, parts)
        decision = self.rules.decide(b"", header, None)
        if decision.refusal is not None:
            self._refuse(name, header, decision, None)
            return len(data)
        start = blocks[-1].start if blocks else rest.start
        piece = files.read_range(name, start, rest.end - start)
        with _explained(files, name, "'evalstore fsck --remote' lists what is wrong"):
            last = piece[rest.start - start :]
            rest.require_sound(last)
            with self._adding(name, header, decision.writer) as added:
                if added:
                    self.unread.add(added.source, blocks, read_rest(header, last), added.first_pack)
        if added and blocks:  # most pushes have all of their runs there
            self.unread.note_last(files, added.source, piece)
        return len(data) + len(piece)

    def _refuse(
        self,
        name: str,
        header: IndexHeader | None,
        decision: Decision,
        version: str | None,
    ) -> None:
        created, records = (header.created, header.records) if header else (0, 0)
        row = (name, decision.writer, created, records, decision.refusal, version)
        self._connection.execute("INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?, ?, ?)", row)

    def _clear(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            tables = ("records", "packs", "indexes", "refused", "replaced", "range_hashes")
            for table in (*tables, *TABLES):
                self._connection.execute(f"DELETE FROM {table}")

    def add(self, name: str, data: bytes, writer: str) -> None:
        """Add the records of an index that counts; those of an earlier one stay as they are.

        Raises `DamagedIndexError`.
        """
        header, records = read_index(data)
        with self._adding(name, header, writer) as added:
            if added is None:
                return
            count = self._connection.executemany(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        entry.table,
                        entry.id,
                        None if key == NO_KEY else key,
                        added.first_pack + pack,
                        entry.offset,
                        entry.length,
                        pushed,
                    )
                    for pack, entry, key, pushed in records
                ),
            ).rowcount
            self._connection.execute(
                "UPDATE indexes SET records = ? WHERE number = ?", (max(count, 0), added.source)
            )

    @contextmanager
    def _adding(self, name: str, header: IndexHeader, writer: str) -> Iterator[_Added | None]:
        """Add an index and its packs, and in the block, its records; None if it need not be."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if connection.execute("SELECT 1 FROM indexes WHERE name = ?", (name,)).fetchone():
                yield None  # another program was faster
                return
            connection.execute("DELETE FROM refused WHERE name = ?", (name,))
            if self._replaced.settle(name, writer):
                yield None
                return
            connection.execute("DELETE FROM range_hashes")
            self._replaced.add(header.replaces, writer)
            cursor = connection.execute(
                "INSERT INTO indexes (name, writer, created, records) VALUES (?, ?, ?, 0)",
                (name, writer, header.created),
            )
            source = cursor.lastrowid or 0
            (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM packs").fetchone()
            connection.executemany(
                "INSERT INTO packs VALUES (?, ?, ?, ?)",
                [
                    (last + position, source, *pack)
                    for position, pack in enumerate(header.packs, start=1)
                ],
            )
            yield _Added(source, last + 1)

    def list_pushes(self) -> list[Push]:
        """Return the index files, oldest first."""
        query = "SELECT name, writer, created, records FROM indexes ORDER BY created, name"
        return [Push(*row) for row in self._connection.execute(query)]

    def list_refused(self) -> list[RefusedPush]:
        """Return the index files that do not count, oldest first."""
        query = "SELECT name, writer, created, records, reason FROM refused ORDER BY created, name"
        return [RefusedPush(*row) for row in self._connection.execute(query)]

    def require_accepted(self, data: bytes, signature: bytes | None) -> str:
        """Return the writer of an index that is about to be written, as it will be shown.

        Raises `RemoteError` for one that would not count here.
        """
        decision = self.rules.decide(data, read_index(data)[0], signature)
        if decision.refusal is not None:
            raise RemoteError(
                f"nothing was pushed: a push by '{decision.writer}' is "
                f"{REASONS[decision.refusal]}, and nobody would pull it",
                hint=HINTS[decision.refusal],
            )
        return decision.writer


@contextmanager
def _explained(files: RemoteFiles, name: str, hint: str) -> Iterator[None]:
    """Translate `DamagedIndexError` into `RemoteError` with the name of the file."""
    try:
        yield
    except DamagedIndexError as error:
        raise RemoteError(
            f"the remote '{files.address}' is damaged: '{name}': {error}",
            hint="install a newer version" if isinstance(error, NewerIndexError) else hint,
        ) from error


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
