"""Which rows runs reach: what is needed to show them, and the judgements of their answers.

The ids that were seen are noted in a temporary SQLite file, as a set of a million takes 200 MB.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from struct import iter_unpack

from evalstore.core.batches import in_batches
from evalstore.remotes.differences import split_ids
from evalstore.remotes.push import iterate_records
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store import Store
from evalstore.store.contents import ID_BYTES, decode_content
from evalstore.store.records import (
    COPIED_TABLES,
    iterate_joint_subjects,
    iterate_references,
)
from evalstore.store.schema.table_definitions import SESSIONS

_WITHOUT_REFERENCES = frozenset({"files", "schemas", "tools", "models"})
_ID = f"{ID_BYTES}s"
_CACHE = 8 * 1024
"""KiB of pages in memory: ids are random, so the notes are spread over the file."""
_SCHEMA = f"""
PRAGMA cache_size = -{_CACHE};
CREATE TABLE seen (id BLOB PRIMARY KEY) WITHOUT ROWID;
"""


class ReachedIds:
    """The ids of rows that were reached, by table; an `IdSource`."""

    def __init__(self, joined: Mapping[str, bytes]) -> None:
        """Take the sorted ids of each table, concatenated; tables without any are left out."""
        self.joined = joined

    def iterate_ids(self, table: str) -> Iterator[tuple[bytes]]:
        """Yield the ids of a table, each in a tuple."""
        return iter_unpack(_ID, self.joined.get(table, b""))


def find_reached(
    store: Store,
    runs: Iterable[bytes],
    *,
    presumed: Iterable[bytes] = (),
    others: Iterable[bytes] = (),
) -> ReachedIds:
    """Return what these runs reach, with the judgements of the answers that are reached.

    What the `presumed` runs reach is left out; the judgements of their answers are not, as they
    may be newer. `others` are further rows, such as failed calls. No row is read twice.
    """
    with open_tables(_SCHEMA) as connection:
        walk = _Walk(store, connection)
        walk.reach(presumed)
        before = {table: len(ids) for table, ids in walk.reached.items()}
        walk.reach(runs)
        for joined in (bytes(walk.reached[SESSIONS.name]), b"".join(sorted(walk.subjects))):
            for subjects in split_ids(joined):
                walk.reach(store.find_judgement_ids([id.hex() for id in subjects]))
        walk.reach(others)
        return ReachedIds(
            {
                table: b"".join(sorted(each for (each,) in iter_unpack(_ID, ids[before[table] :])))
                for table, ids in walk.reached.items()
                if len(ids) > before[table]
            }
        )


class _Walk:
    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._connection = connection
        self.reached = {table: bytearray() for table in COPIED_TABLES}
        """Ids, concatenated in the order in which they were reached."""
        self.subjects: set[bytes] = set()
        """Of judgements of several answers together."""

    def reach(self, ids: Iterable[bytes]) -> None:
        """Reach these rows and, table by table, all that they refer to.

        What a row refers to is in its own table or an earlier one of `COPIED_TABLES`.
        """
        pending = self._note(set(ids))
        for table in reversed(COPIED_TABLES):
            fresh, pending = pending, bytearray()
            while fresh:
                following = bytearray()
                for batch in split_ids(fresh):
                    found = self._store.find_present(table, batch)
                    pending += b"".join(id for id in batch if id not in found)
                    self.reached[table] += b"".join(found)
                    if table not in _WITHOUT_REFERENCES:
                        following += self._reach_below(table, found)
                fresh = following

    def _reach_below(self, table: str, ids: set[bytes]) -> bytearray:
        """Return what the rows of a table refer to and was not seen yet, concatenated."""
        below = bytearray()
        for batch in in_batches(self._references(table, ids)):
            below += self._note({*batch})
        return below

    def _references(self, table: str, ids: set[bytes]) -> Iterator[bytes]:
        for record in iterate_records(self._store, {table: b"".join(sorted(ids))}):
            content = decode_content(table, record.id, record.content)
            kind = content["kind"]
            self.subjects.update(map(bytes.fromhex, iterate_joint_subjects(kind, content)))
            yield from map(bytes.fromhex, iterate_references(kind, content))

    def _note(self, ids: set[bytes]) -> bytearray:
        """Note that these ids were seen; returns those that were not before, concatenated."""
        unseen = bytearray()
        joined = b"".join(sorted(ids))
        for batch in split_ids(joined):
            query = f"SELECT id FROM seen WHERE id IN ({', '.join('?' * len(batch))})"
            seen = {id for (id,) in self._connection.execute(query, batch)}
            new = [id for id in batch if id not in seen]
            self._connection.executemany("INSERT INTO seen VALUES (?)", ((id,) for id in new))
            unseen += b"".join(new)
        return unseen
