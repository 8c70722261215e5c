"""The search index of a store in SQLite: the words of answers, feedback, tests and instructions.

It is a separate SQLite file (FTS5) on this machine. Its entries are named by content, so it may
cover several stores, and nothing is lost with it: an index that is damaged, or of another
format, is built again. The texts themselves stay in the store.

Words are those of Unicode (`unicode61`). Scripts without blanks between words are split into
characters, and their words are found as phrases. Compared with trigrams, such an index is built
four times as fast, has a sixth of the size, and finds words of one or two characters.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from evalstore.errors import StoreError
from evalstore.store.database import select_each
from evalstore.store.ids import as_bytes, as_digits, as_id
from evalstore.store.search_index import Report, add_batches
from evalstore.store.search_texts import (
    KINDS,
    TABLES,
    Kind,
    iterate_links,
    list_named,
    load_searched,
    searchable_text,
)
from evalstore.store.search_words import fold_words, make_phrases
from evalstore.store.sqlite.connection import SQLiteConnection, harden
from evalstore.store.store import Store
from evalstore.values import Json

_FORMAT = 1
"""Increase this number when the format of the index changes."""
_BUSY_SECONDS = 10.0
_BATCH = 1_000
"""Texts in one transaction, for which other writers, and an interruption, wait."""
_SCHEMA = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, kind INTEGER
);
CREATE TABLE shown (
    document INTEGER NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (document, session)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* M* N* Co So'"
);
"""
# A document is anything with an id; its kind is set when its words are added. `shown` links a
# document to the sessions that it belongs to; an answer is linked to itself.

_FOREIGN = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
_LINKS = (
    "SELECT texts.id, sessions.id FROM documents AS texts JOIN shown ON document = texts.number "
    "JOIN documents AS sessions ON sessions.number = session WHERE texts.id IN"
)
_SESSIONS = (
    "SELECT session FROM shown WHERE document IN (SELECT rowid FROM words WHERE words MATCH ?)"
)


class SearchFile:
    """An open index; see `SearchIndex`."""

    missing = 0

    def __init__(self, connection: SQLiteConnection, path: str) -> None:
        self._connection = connection
        self.path = path
        """Empty when it is in memory."""

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open the index at a path; in memory without one, or where nothing can be written.

        Raises `StoreError` when this SQLite cannot search.
        """
        for again in (False, True):
            if path is None:
                break
            try:
                if again:
                    _remove(path)
                return cls._open(str(path))
            except sqlite3.OperationalError as error:
                if "malformed" not in str(error):
                    break  # read-only, or locked for a long time
            except sqlite3.DatabaseError:
                continue
            except OSError:
                break
        try:
            return cls._open("")
        except sqlite3.Error as error:
            raise StoreError(
                f"this SQLite ({sqlite3.sqlite_version}) has no full-text search: {error}",
                hint="use a Python whose SQLite has FTS5",
            ) from error

    @classmethod
    def _open(cls, path: str) -> Self:
        connection = sqlite3.connect(
            path or ":memory:",
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=SQLiteConnection,
        )
        try:
            harden(connection)
            if path:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA wal_autocheckpoint = 8000")
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                _make(connection)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    @property
    def in_memory(self) -> bool:
        """Return whether there is no file."""
        return not self.path

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # --- updating

    def update(self, store: Store, report: Report = lambda _done, _all: True) -> bool:
        """Add the texts of the store that are not in the index; False when `report` ended it.

        Other programs may do so at the same time: each batch is checked again when it is written.
        """
        with self._sound():
            missing = {kind: self._missing(store, kind) for kind in KINDS}

            def add(kind: Kind, ids: list[str]) -> None:
                self._take(kind, load_searched(store, kind, ids))

            return add_batches(missing, _BATCH, report, add)

    def _missing(self, store: Store, kind: Kind) -> bytes:
        """Return the sorted ids of this kind that are not in the index, concatenated."""
        query = "SELECT id FROM documents WHERE kind = ? ORDER BY id"
        known = self._connection.execute(query, (KINDS.index(kind),))
        with store.snapshot() as connection:
            ids = connection.stream(f"SELECT id FROM {TABLES[kind]} ORDER BY id")
            missing = bytearray()  # as a list of ids it would need far more memory
            for id in _without(map(_id_of, ids), map(_id_of, known)):
                missing += id
            return bytes(missing)

    def _take(self, kind: Kind, contents: dict[str, Json]) -> None:
        about = {id: list_named(kind, content) for id, content in contents.items()}
        texts = {id: fold_words(searchable_text(kind, content)) for id, content in contents.items()}
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection as connection:
            documents = self._number(
                [*contents, *(named for ids in about.values() for named in ids)]
            )
            numbers = {id: number for id, (number, _) in documents.items()}
            fresh = [id for id in contents if documents[id][1] is None]
            connection.executemany(
                "UPDATE documents SET kind = ? WHERE number = ?",
                [(KINDS.index(kind), numbers[id]) for id in fresh],
            )
            connection.executemany(
                "INSERT INTO words (rowid, text) VALUES (?, ?)",
                [(numbers[id], texts[id]) for id in fresh if texts[id]],
            )
            connection.executemany(
                "INSERT OR IGNORE INTO shown VALUES (?, ?)",
                [
                    (numbers[document], numbers[session])
                    for id in fresh
                    for document, session in iterate_links(kind, id, about[id])
                ],
            )

    def _number(self, ids: Iterable[str]) -> dict[str, tuple[int, int | None]]:
        """Return the numbers of documents, which are added if they are missing, and their kinds."""
        unique_ids = list(dict.fromkeys(ids))
        insert = "INSERT OR IGNORE INTO documents (id) VALUES (?)"
        self._connection.executemany(insert, [(as_bytes(id),) for id in unique_ids])
        query = "SELECT id, number, kind FROM documents WHERE id IN"
        rows = select_each(self._connection, query, unique_ids)
        return {as_digits(id): (number, kind) for id, number, kind in rows}

    # --- searching

    def find_sessions(self, words: Sequence[str]) -> frozenset[str]:
        """Return the sessions whose answer, feedback, test and instructions have all words.

        The last word may be the beginning of a word. Empty when `words` has no word.
        """
        with self._sound():
            phrases = list(make_phrases(words))
            sets = " INTERSECT ".join([_SESSIONS] * len(phrases))
            query = f"SELECT id FROM documents WHERE number IN ({sets})"
            rows = self._connection.execute(query, phrases) if phrases else ()
            return frozenset(as_digits(id) for (id,) in rows)

    def find_documents(self, words: Sequence[str], kinds: Sequence[Kind]) -> list[tuple[Kind, str]]:
        """Return the texts of these kinds that contain all words, as kind and id.

        They are in the order in which the index got to know them.
        """
        phrases = list(make_phrases(words))
        if not phrases:
            return []
        with self._sound():
            rows = self._connection.execute(
                "SELECT kind, id FROM documents WHERE number IN "
                "(SELECT rowid FROM words WHERE words MATCH ?) ORDER BY number",
                (" AND ".join(phrases),),
            )
            listed = [(KINDS[kind], as_digits(id)) for kind, id in rows]
        return [document for document in listed if document[0] in kinds]

    def sessions_of(self, documents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the sessions that each of these texts belongs to, sorted."""
        links: dict[str, list[str]] = defaultdict(list)
        with self._sound():
            for document, session in select_each(self._connection, _LINKS, documents):
                links[as_digits(document)].append(as_digits(session))
        return {document: tuple(sorted(sessions)) for document, sessions in links.items()}

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Delete an index that turns out to be damaged, so that it is built again next time."""
        try:
            yield
        except sqlite3.Error as error:
            self.close()
            if self.path and "locked" not in str(error):
                with suppress(OSError):
                    _remove(Path(self.path))
            raise StoreError(
                f"the search index '{self.path}' cannot be used: {error}",
                hint="search again: it is made anew",
            ) from error


def _make(connection: sqlite3.Connection) -> None:
    """Create the tables, unless they exist and have this format."""
    (format_number,) = connection.execute("PRAGMA user_version").fetchone()
    (foreign,) = connection.execute(_FOREIGN).fetchone()
    if foreign:
        raise sqlite3.DatabaseError("there are triggers or views in the search index")
    if format_number == _FORMAT:
        return
    tables = ("words", "shown", "documents")
    for table in tables:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _remove(path: Path) -> None:
    for name in (f"{path}-wal", f"{path}-shm", path):
        Path(name).unlink(missing_ok=True)


def _id_of(row: tuple[Any, ...]) -> bytes:
    return as_id(row[0])


def _without(ids: Iterator[bytes], known: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the ids that are not known; both iterators are sorted and are read in step."""
    last = next(known, None)
    for id in ids:
        while last is not None and last < id:
            last = next(known, None)
        if id != last:
            yield id
