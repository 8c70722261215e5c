"""Finds index files that can be deleted, as the remote has all of their records elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstore.sharing.checked_packs import read_checked
from evalstore.sharing.indexes import IndexedRecord
from evalstore.sharing.packs import PackEntry
from evalstore.sharing.temporary_tables import open_tables

if TYPE_CHECKING:
    import sqlite3

    from evalstore.sharing.remote_files import RemoteFiles
    from evalstore.sharing.survey import RemoteSurvey

_SCHEMA = """
CREATE TABLE wanted (kind INTEGER, id BLOB, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE found (
    kind INTEGER NOT NULL, id BLOB NOT NULL, pack INTEGER NOT NULL, start INTEGER NOT NULL,
    length INTEGER NOT NULL, lookup BLOB NOT NULL, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
"""


def find_covered(
    files: RemoteFiles, survey: RemoteSurvey, names: Sequence[str], living: Sequence[str]
) -> list[str]:
    """Return those of these indexes whose records are all listed by living ones.

    Every such record is read from the pack in which it should be, as an index may be wrong. Raises
    `RemoteError` for one that is damaged.
    """
    with open_tables(_SCHEMA) as connection:
        for name in names:
            statement = "INSERT OR IGNORE INTO wanted VALUES (?, ?)"
            connection.executemany(statement, _iterate_ids(survey, name))
        for name in living:
            _find(connection, files, survey, name)
        query = "SELECT 1 FROM wanted WHERE kind = ? AND id = ?"
        return [
            name
            for name in names
            if not any(
                connection.execute(query, id).fetchone() for id in _iterate_ids(survey, name)
            )
        ]


def _iterate_ids(survey: RemoteSurvey, name: str) -> Iterator[tuple[int, bytes]]:
    return ((entry.table, entry.id) for _, entry, *_ in survey.read_records(name))


def _find(
    connection: sqlite3.Connection, files: RemoteFiles, survey: RemoteSurvey, name: str
) -> None:
    """Check the wanted records that an index lists; they are wanted no longer."""
    is_wanted = "EXISTS (SELECT 1 FROM wanted WHERE kind = ?1 AND id = ?2)"
    connection.executemany(
        f"INSERT OR IGNORE INTO found SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE {is_wanted}",
        (
            (entry.table, entry.id, pack, entry.offset, entry.length, key)
            for pack, entry, key, _ in survey.read_records(name)
        ),
    )
    query = "SELECT pack, kind, id, start, length, lookup FROM found ORDER BY pack, start"
    rows = connection.execute(query).fetchall()
    for pack, group in itertools.groupby(rows, key=lambda row: row[0]):
        records = [IndexedRecord(pack, PackEntry(*row), key) for _, *row, key in group]
        connection.executemany(
            "DELETE FROM wanted WHERE kind = ? AND id = ?",
            (
                (record.entry.table, record.entry.id)
                for record, _ in read_checked(
                    files, survey.indexes[name].header.packs[pack], records
                )
            ),
        )
    connection.execute("DELETE FROM found")
