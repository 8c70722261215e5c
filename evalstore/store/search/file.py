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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from evalstore.core.errors import StoreError
from evalstore.store.contents import as_bytes, as_digits, decode_content
from evalstore.store.database import select_each
from evalstore.store.search.texts import (
    KINDS,
    TABLES,
    GoOn,
    Kind,
    Query,
    Report,
    SearchIndex,
    StoredText,
    fold_words,
    iterate_links,
    list_named,
    make_phrases,
    searchable_text,
    stored_texts,
)
from evalstore.store.sqlite.connection import STEPS, SQLiteConnection, harden, is_interrupt
from evalstore.store.store import Store

T = TypeVar("T")
_LINKS = (
    "SELECT texts.id, sessions.id FROM documents AS texts JOIN shown ON document = texts.number "
    "JOIN documents AS sessions ON sessions.number = session WHERE texts.id IN"
)
_WITH_WORDS = "SELECT rowid FROM words WHERE words MATCH ?"
_SESSIONS = f"SELECT session FROM shown WHERE document IN ({_WITH_WORDS})"
_ANSWERS = KINDS.index("answers")


class _EndedError(Exception):
    """Nobody waits any more for what is searched."""


def remove_index(path: Path) -> None:
    """Remove the file of an index."""
    for name in (f"{path}-wal", f"{path}-shm", path):
        Path(name).unlink(missing_ok=True)


_FORMAT = 2
"""Increase this number when the format of the index changes."""
_BUSY_SECONDS = 10.0
_BATCH = 10_000
"""Texts in one transaction, for which other writers, and an interruption, wait.

Their ids are in no order: with fewer texts, the same pages are written more often."""
_LARGEST_BATCH = 16_000_000
"""Characters in one transaction, where texts are long."""
_CACHE = 64 * 1024
"""KiB of the index in memory, for the same reason."""
_SEARCH_CACHE = 4 * 1024
"""KiB of it once nothing is added any more."""
_SCHEMA = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, kind INTEGER
);
CREATE TABLE shown (
    document INTEGER NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (document, session)
) WITHOUT ROWID;
CREATE TABLE reached (
    store TEXT NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL,
    PRIMARY KEY (store, kind)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* M* N* Co So'"
);
"""
# A document is anything with an id; its kind is set when its words are added. One without words is
# left out unless it is a session. `shown` links a document to the sessions that it belongs to; an
# answer is linked to itself. `reached` has the last row of each table of a store that was read:
# SQLite numbers rows in the order in which they are committed, and none is changed or deleted.

_FOREIGN = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"


class SearchFile(SearchIndex):
    """An open index."""

    def __init__(self, connection: SQLiteConnection, path: str) -> None:
        self._connection = connection
        self.path = path
        """Empty when it is in memory."""
        self.in_memory = not path

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

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
                    remove_index(path)
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
                connection.execute("PRAGMA wal_autocheckpoint = 32000")
                connection.execute(f"PRAGMA cache_size = -{_SEARCH_CACHE}")
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                _make(connection)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    # --- updating

    def update(self, store: Store, report: Report = lambda _done, _all: True) -> bool:
        """Add the texts that are not in the index.

        Other programs may do so at the same time: each batch is checked again when it is written.
        """
        with self._sound():
            ends = _last_rows(store)
            reached = {kind: self._reached(store, kind) for kind in KINDS}
            total = sum(max(ends[kind] - reached[kind], 0) for kind in KINDS)
            done = 0
            self._keep_pages(_CACHE)
            try:
                for kind in KINDS:
                    while reached[kind] < ends[kind]:
                        if not report(done, total):
                            return False
                        rows = _read(store, kind, reached[kind])
                        if not rows:
                            break
                        self._take(store, kind, rows)
                        last, _ = rows[-1]
                        done += min(last, ends[kind]) - reached[kind]
                        reached[kind] = last
            finally:
                self._keep_pages(_SEARCH_CACHE)
            return report(done, total) if total else True

    def _keep_pages(self, size: int) -> None:
        self._connection.execute(f"PRAGMA cache_size = -{size}")

    def _reached(self, store: Store, kind: Kind) -> int:
        """Return the number of the last row of a table that was read; 0 if it is another one."""
        query = "SELECT number, id FROM reached WHERE store = ? AND kind = ?"
        for number, id in self._connection.execute(query, (store.path, KINDS.index(kind))):
            query = f"SELECT id FROM {TABLES[kind]} WHERE rowid = ?"
            if store._select(query, (number,)) == [(id,)]:
                return int(number)
        return 0

    def _take(self, store: Store, kind: Kind, rows: Sequence[tuple[int, StoredText]]) -> None:
        """Add the texts of rows, and note the last one as reached."""
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection as connection:
            self._add(kind, {as_digits(row.id): row for _, row in rows if row.is_of_use(kind)})
            number, last = rows[-1]
            connection.execute(
                "INSERT INTO reached VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET number = excluded.number, id = excluded.id",
                (store.path, KINDS.index(kind), number, last.id),
            )

    def _add(self, kind: Kind, rows: Mapping[str, StoredText]) -> None:
        ids = sorted(rows)  # in this order pages are read and written once
        numbers, known = self._insert(ids, kind)
        contents = {
            id: decode_content(TABLES[kind], id, rows[id].content) for id in ids if id not in known
        }
        about = {id: list_named(kind, content) for id, content in contents.items()}
        named = {other for others in about.values() for other in others}
        found = {
            id: number for id, (number, _) in self._find(sorted(named - numbers.keys())).items()
        }
        numbers |= found | self._insert(sorted(named - numbers.keys() - found.keys()))[0]
        texts = {id: fold_words(searchable_text(kind, content)) for id, content in contents.items()}
        self._connection.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            [(numbers[id], text) for id, text in texts.items() if text],
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO shown VALUES (?, ?)",
            sorted(
                (numbers[document], numbers[session])
                for id in contents
                for document, session in iterate_links(kind, id, about[id])
            ),
        )

    def _find(self, ids: Iterable[str]) -> dict[str, tuple[int, int | None]]:
        """Return the numbers of those of these documents that are there, and their kinds."""
        query = "SELECT id, number, kind FROM documents WHERE id IN"
        found = select_each(self._connection, query, ids)
        return {as_digits(id): (number, kind) for id, number, kind in found}

    def _insert(
        self, ids: Sequence[str], kind: Kind | None = None
    ) -> tuple[dict[str, int], set[str]]:
        """Add documents, and set their kind; returns their numbers, and those that had a kind."""
        if not ids:
            return {}, set()
        number = None if kind is None else KINDS.index(kind)
        (last,) = self._connection.execute("SELECT max(number) FROM documents").fetchone()
        numbers = {id: at for at, id in enumerate(ids, (last or 0) + 1)}
        statement = "INSERT OR IGNORE INTO documents VALUES (?, ?, ?)"
        rows = [(at, as_bytes(id), number) for id, at in numbers.items()]
        if self._connection.executemany(statement, rows).rowcount == len(rows):
            return numbers, set()
        found = self._find(ids)
        old = {id for id, (at, _) in found.items() if at != numbers[id]}
        known = {id for id in old if found[id][1] is not None}
        self._connection.executemany(
            "UPDATE documents SET kind = ? WHERE number = ?",
            [(number, found[id][0]) for id in old - known],
        )
        return {id: at for id, (at, _) in found.items()}, known

    # --- searching

    def _with_words(self, words: Sequence[str]) -> Query:
        match = " AND ".join(make_phrases(words))
        return f"SELECT kind, id, number FROM documents WHERE number IN ({_WITH_WORDS})", (match,)

    def _sessions_with(self, words: Sequence[str], *, in_answers: bool) -> Query:
        phrases = list(make_phrases(words))
        if in_answers:
            found, phrases = f"({_WITH_WORDS}) AND kind = {_ANSWERS}", [" AND ".join(phrases)]
        else:
            found = f"({' INTERSECT '.join([_SESSIONS] * len(phrases))})"
        # The sign keeps SQLite from reading all documents in the order of their ids.
        return f"SELECT id FROM documents WHERE number IN {found} ORDER BY +id", phrases

    def _ask(self, query: Query, read: Callable[[Iterable[Any]], T], go_on: GoOn) -> T | None:
        self._connection.set_progress_handler(lambda: not go_on(), STEPS)
        try:
            with self._sound():
                return read(self._connection.execute(*query))
        except _EndedError:
            return None
        finally:
            with suppress(sqlite3.ProgrammingError):  # it was damaged, and is closed
                self._connection.set_progress_handler(None, STEPS)

    def _find_links(self, documents: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
        with self._sound():
            yield from select_each(self._connection, _LINKS, documents)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Delete an index that turns out to be damaged, so that it is built again next time."""
        try:
            yield
        except sqlite3.Error as error:
            if is_interrupt(error):
                raise _EndedError from error
            self.close()
            if self.path and "locked" not in str(error):
                with suppress(OSError):
                    remove_index(Path(self.path))
            raise StoreError(
                f"the search index '{self.path}' cannot be used: {error}",
                hint="search again: the index is built again",
            ) from error


def _make(connection: sqlite3.Connection) -> None:
    """Create the tables, unless they exist and have this format."""
    (format_number,) = connection.execute("PRAGMA user_version").fetchone()
    (foreign,) = connection.execute(_FOREIGN).fetchone()
    if foreign:
        raise sqlite3.DatabaseError("there are triggers or views in the search index")
    if format_number == _FORMAT:
        return
    tables = ("words", "shown", "reached", "documents")
    for table in tables:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _last_rows(store: Store) -> dict[Kind, int]:
    """Return the numbers of the last rows; what a row refers to is in the store before it."""
    with store.snapshot() as connection:
        queries = {kind: f"SELECT max(rowid) FROM {table}" for kind, table in TABLES.items()}
        return {
            kind: connection.execute(query).fetchall()[0][0] or 0 for kind, query in queries.items()
        }


def _read(store: Store, kind: Kind, after: int) -> list[tuple[int, StoredText]]:
    """Return the next rows of a table with their numbers, as many as are added together."""
    query = f"SELECT stored.rowid, {stored_texts(kind, 'instr')} WHERE stored.rowid > ?"
    rows: list[tuple[int, StoredText]] = []
    size = 0
    with store._reading() as connection:
        for number, *row in connection.stream(f"{query} ORDER BY 1 LIMIT ?", (after, _BATCH)):
            rows.append((number, StoredText(*row)))
            size += len(rows[-1][1].content)
            if size > _LARGEST_BATCH:
                break
    return rows
