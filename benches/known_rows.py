"""`python -m benches.known_rows STORE REMOTE ROWS`: gives both sides the same ids.

The rows are only compared and never copied, so they have no content, and the remote has an index
of them without their pack.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from evalstore.remotes.layout import FolderFiles, index_name, sha256
from evalstore.remotes.packs import (
    NO_KEY,
    TABLE_NUMBERS,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    PackEntry,
    write_index,
)

_TABLES = ("tests", "evaluation_versions")
_CREATED = 1_700_000_000_000_000


def main(store: str, remote: str, count: str) -> None:
    """Add so many rows to a store, and the index of a push of them to a remote."""
    half = int(count) // 2
    records = []
    with closing(sqlite3.connect(store)) as connection, connection:
        for table in _TABLES:
            ids = [
                hashlib.sha256(f"{table} {number}".encode()).digest()[:16] for number in range(half)
            ]
            connection.executemany(f"INSERT INTO {table} VALUES (?, '{{}}')", ((id,) for id in ids))
            entries = (PackEntry(TABLE_NUMBERS[table], id, 0, 1) for id in ids)
            records += [IndexedRecord(0, entry, NO_KEY) for entry in entries]
    header = IndexHeader("bench", _CREATED, [IndexedPack(sha256(b"no pack"), 1)])
    data = write_index(header, records)
    FolderFiles(Path(remote)).create(index_name(_CREATED, sha256(data)), data)


if __name__ == "__main__":
    main(*sys.argv[1:])
