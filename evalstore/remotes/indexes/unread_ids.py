"""The records of index files that were read in part: all is known of them but their ids.

The ids are in blocks of one table each, which are read when a record is looked for that may be
there, and checked by their SHA-256. Then the records are like those of other index files.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import RemoteError
from evalstore.remotes.indexes.index_parts import IndexPart
from evalstore.remotes.indexes.indexes import NO_KEY, DamagedIndexError, IndexedRecord
from evalstore.remotes.packs.packs import TABLE_NUMBERS

if TYPE_CHECKING:
    import sqlite3

    from evalstore.remotes.places.remote_files import RemoteFiles

SCHEMA = """
CREATE TABLE unread_blocks (
    number INTEGER PRIMARY KEY, source INTEGER NOT NULL, kind INTEGER NOT NULL,
    ids INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL, least BLOB NOT NULL,
    greatest BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE unread_records (
    block INTEGER NOT NULL, position INTEGER NOT NULL, kind INTEGER NOT NULL, lookup BLOB,
    pack INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL, pushed INTEGER,
    PRIMARY KEY (block, position)
) WITHOUT ROWID;
CREATE INDEX unread_lookups ON unread_records (lookup) WHERE lookup IS NOT NULL;
"""
TABLES = ("unread_records", "unread_blocks")
_AT_ONCE = 30_000
_GAP = 4 * 1024
"""Bytes between two blocks that are rather read than left out by another request."""


class _Block(NamedTuple):
    number: int
    name: str
    """The name of the index file."""
    source: int
    """The number of the index file."""
    part: IndexPart


class UnreadIds:
    """The part of an `IndexCache` about index files that were read in part.

    What loads ids returns how many bytes were read. It raises `MissingFileError` for an index file
    that a clean-up of the remote has deleted, and `RemoteError` for a damaged one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(
        self,
        source: int,
        blocks: Sequence[IndexPart],
        records: Iterable[IndexedRecord],
        first_pack: int,
    ) -> None:
        """Add the records of an index file, whose ids are in these blocks.

        Raises `DamagedIndexError`. Must be called in a transaction.
        """
        query = "SELECT coalesce(max(number), 0) FROM unread_blocks"
        (last,) = self._connection.execute(query).fetchone()
        waiting = iter(records)
        for number, block in enumerate(blocks, start=last + 1):
            rows = list(itertools.islice(waiting, block.ids))
            kinds = {record.entry.table for record in rows}
            if len(rows) < block.ids or len(kinds) != 1:
                raise DamagedIndexError("its parts are not those of an index")
            self._connection.execute(
                "INSERT INTO unread_blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (number, source, *kinds, *block),
            )
            self._connection.executemany(
                "INSERT INTO unread_records VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        number,
                        position,
                        entry.table,
                        None if key == NO_KEY else key,
                        first_pack + pack,
                        entry.offset,
                        entry.length,
                        pushed,
                    )
                    for position, (pack, entry, key, pushed) in enumerate(rows)
                ),
            )
        if next(waiting, None) is not None:
            raise DamagedIndexError("its parts are not those of an index")

    def forget(self, sources: Iterable[int]) -> None:
        """Forget the records of index files; must be called in a transaction."""
        for source in sources:
            numbers = "SELECT number FROM unread_blocks WHERE source = ?"
            statement = f"DELETE FROM unread_records WHERE block IN ({numbers})"
            self._connection.execute(statement, (source,))
            self._connection.execute("DELETE FROM unread_blocks WHERE source = ?", (source,))

    def note_last(self, files: RemoteFiles, source: int, data: bytes) -> None:
        """Note the ids in the last block of an index file, which was read with what follows it."""
        for block in self._find("source = ?", source)[-1:]:
            self._note(files, [(block, data[: block.part.length])])

    def load_all(self, files: RemoteFiles) -> int:
        """Load all ids."""
        return self._load(files, self._find("TRUE"))

    def load_table(self, files: RemoteFiles, table: str) -> int:
        """Load the ids of a table."""
        return self._load(files, self._find("kind = ?", TABLE_NUMBERS[table]))

    def load_keyed(self, files: RemoteFiles, table: str, keys: Sequence[bytes]) -> int:
        """Load the ids of the records of a table with one of these lookup keys."""
        query = "SELECT DISTINCT block FROM unread_records WHERE kind = ? AND lookup IN"
        numbers = set[int]()
        for begin in range(0, len(keys), _AT_ONCE):
            batch = keys[begin : begin + _AT_ONCE]
            places = ", ".join("?" * len(batch))
            rows = self._connection.execute(f"{query} ({places})", (TABLE_NUMBERS[table], *batch))
            numbers.update(number for (number,) in rows)
        blocks = self._find("kind = ?", TABLE_NUMBERS[table]) if numbers else ()
        return self._load(files, [block for block in blocks if block.number in numbers])

    def load(self, files: RemoteFiles, table: str, ids: Iterable[bytes]) -> int:
        """Load the ids of a table among which these may be."""
        wanted = sorted(ids)
        needed = []
        for block in self._find("kind = ?", TABLE_NUMBERS[table]) if wanted else ():
            least, greatest = block.part.least, block.part.greatest
            at = bisect_left(wanted, least)
            if at < len(wanted) and wanted[at][: len(greatest)] <= greatest:
                needed.append(block)
        return self._load(files, needed)

    def _find(self, condition: str, *values: object) -> list[_Block]:
        """Return blocks in the order in which they are in the remote."""
        query = (
            "SELECT unread_blocks.number, name, source, ids, start, length, least, greatest, digest"
            " FROM unread_blocks JOIN indexes ON indexes.number = source"
            f" WHERE {condition} ORDER BY source, start"
        )
        rows = self._connection.execute(query, values)
        return [
            _Block(number, name, source, IndexPart(*part)) for number, name, source, *part in rows
        ]

    def _load(self, files: RemoteFiles, blocks: Sequence[_Block]) -> int:
        read = 0
        for group in _neighbours(blocks):
            name, start = group[0].name, group[0].part.start
            data = files.read_range(name, start, group[-1].part.end - start)
            read += len(data)
            self._note(
                files,
                [
                    (block, data[block.part.start - start : block.part.end - start])
                    for block in group
                ],
            )
        return read

    def _note(self, files: RemoteFiles, blocks: Sequence[tuple[_Block, bytes]]) -> None:
        """Note the ids in these bytes of blocks; those that another program has noted stay."""
        try:
            ids = [(block, block.part.read_ids(data)) for block, data in blocks]
        except DamagedIndexError as error:
            raise RemoteError(
                f"the remote '{files.address}' is damaged: '{blocks[0][0].name}': {error}",
                hint="'evalstore fsck --remote' lists what is wrong",
            ) from error
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            for block, found in ids:
                self._note_block(block, found)

    def _note_block(self, block: _Block, ids: Sequence[bytes]) -> None:
        connection = self._connection
        statement = "DELETE FROM unread_blocks WHERE number = ? AND digest = ?"
        if not connection.execute(statement, (block.number, block.part.digest)).rowcount:
            return
        connection.execute("DELETE FROM range_hashes")
        query = (
            "SELECT kind, lookup, pack, start, length, pushed FROM unread_records "
            "WHERE block = ? ORDER BY position"
        )
        rows = connection.execute(query, (block.number,)).fetchall()
        added = connection.executemany(
            "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((kind, id, *row) for id, (kind, *row) in zip(ids, rows, strict=True)),
        ).rowcount
        connection.execute("DELETE FROM unread_records WHERE block = ?", (block.number,))
        statement = "UPDATE indexes SET records = records + ? WHERE number = ?"
        connection.execute(statement, (max(added, 0), block.source))


def _neighbours(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Yield groups of blocks that are read together."""
    group: list[_Block] = []
    for block in blocks:
        if group:
            last = group[-1]
            if block.source != last.source or block.part.start > last.part.end + _GAP:
                yield group
                group = []
        group.append(block)
    if group:
        yield group
