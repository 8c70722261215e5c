"""`python -m benches.sharing_floor write|read|compare FROM TO`: minimal programs that copy rows.

`write` compresses all rows of a store as one stream and hashes it, `read` checks that file and
stores its rows in a table, and `compare` counts the ids that a store has and a cache lacks. They
know neither tables, references nor messages, and cannot read a single row of the file.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import zlib
from pathlib import Path

import xxhash

_TABLES = ("evaluation_versions", "tests", "sessions", "evaluations", "nodes", "runs")


def write(store: str, target: str) -> None:
    """Write the rows of a store: their ids, their lengths and their contents."""
    connection = sqlite3.connect(store)
    packer, digest = zlib.compressobj(1), hashlib.sha256()
    with Path(target).open("wb") as file:
        for table in _TABLES:
            for id, content in connection.execute(f"SELECT id, content FROM {table}"):
                raw = content.encode()
                xxhash.xxh3_128_digest(raw)
                packed = packer.compress(id + len(raw).to_bytes(4, "little") + raw)
                digest.update(packed)
                file.write(packed)
        file.write(packer.flush())
    connection.close()


def read(source: str, target: str) -> None:
    """Store the rows of such a file."""
    packed = Path(source).read_bytes()
    hashlib.sha256(packed).hexdigest()
    data = zlib.decompress(packed)
    rows, at = [], 0
    while at < len(data):
        end = at + 20 + int.from_bytes(data[at + 16 : at + 20], "little")
        raw = data[at + 20 : end]
        xxhash.xxh3_128_digest(raw)
        rows.append((data[at : at + 16], raw.decode()))
        at = end
    connection = sqlite3.connect(target)
    connection.execute("CREATE TABLE rows (id BLOB PRIMARY KEY, content TEXT)")
    with connection:
        connection.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?)", rows)
    connection.close()


def compare(store: str, cache: str) -> None:
    """Print how many rows of a store a cache does not list."""
    connection = sqlite3.connect(store)
    connection.execute("ATTACH ? AS cache", (cache,))
    ids = " UNION ALL ".join(f"SELECT id FROM {table}" for table in _TABLES)
    query = f"SELECT count(*) FROM ({ids}) WHERE id NOT IN (SELECT id FROM cache.records)"
    print(*connection.execute(query).fetchone())
    connection.close()


if __name__ == "__main__":
    {"write": write, "read": read, "compare": compare}[sys.argv[1]](*sys.argv[2:])
