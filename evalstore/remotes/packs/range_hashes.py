"""The hashes of ranges of ids that an `IndexCache` remembers.

A push or pull compares all ids of a store with those of the remote. Those of the remote change only
with its index files, so their hashes are kept until then, which halves the work.
"""

from __future__ import annotations

import sqlite3

from evalstore.store.ids import JOINED_IDS, as_joined, hash_joined

SCHEMA = """
CREATE TABLE range_hashes (
    kind INTEGER NOT NULL, first BLOB NOT NULL, last BLOB NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (kind, first, last)
) WITHOUT ROWID"""
"""Whoever changes the records of the cache deletes all hashes in the same transaction."""


def hash_range(
    connection: sqlite3.Connection, kind: int, first: bytes, last: bytes
) -> bytes | None:
    """Return the hash of the ids of the records of a kind from `first` up to `last`.

    None if there is something else among the ids.
    """
    range_ = (kind, first, last)
    query = "SELECT hash FROM range_hashes WHERE kind = ? AND first = ? AND last = ?"
    row = connection.execute(query, range_).fetchone()
    if row is not None:
        return bytes(row[0])
    hash_ = None
    connection.execute("BEGIN")  # no hash is written if another program writes after the read
    try:
        query = f"SELECT {JOINED_IDS} FROM records WHERE kind = ? AND id BETWEEN ? AND ?"
        hash_ = hash_joined(as_joined(*connection.execute(query, range_).fetchone()))
        if hash_ is not None:
            # Another program may have written it before the transaction, for the same records.
            statement = "INSERT OR IGNORE INTO range_hashes VALUES (?, ?, ?, ?)"
            connection.execute(statement, (*range_, hash_))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # another program is writing
            raise
    finally:
        if connection.in_transaction:  # it has ended if the disk is full
            connection.execute("COMMIT")
    return hash_
