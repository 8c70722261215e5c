"""The search index of stores: the words of answers, feedback, tests and instructions.

It is a SQLite file (FTS5) on this machine, also for a store in PostgreSQL, whose texts are fetched
once. Its entries are named by content, so it may cover several stores, and nothing is lost with
it: an index that is damaged, or of another format, is built again. The texts themselves stay in
the store.

Words are those of Unicode (`unicode61`). Scripts without blanks between words are split into
characters, and their words are found as phrases. Compared with trigrams, such an index is built
four times as fast, has a sixth of the size, and finds words of one or two characters.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from evalstore.core.batches import in_weighed_batches
from evalstore.core.errors import StoreError
from evalstore.core.values import Json
from evalstore.files.temporary_list import keep_values
from evalstore.store.contents import as_bytes, as_digits, as_id, decode_content, decode_row
from evalstore.store.driver import Connection
from evalstore.store.records import select_each
from evalstore.store.sqlite.connection import (
    STEPS,
    SQLiteConnection,
    is_interrupt,
    open_cache,
    remove_cache,
)
from evalstore.store.store import Store

Kind = Literal["answers", "feedback", "tests", "instructions"]
KINDS: tuple[Kind, ...] = ("tests", "instructions", "answers", "feedback")
"""Referenced kinds come first: then new ids are inserted in order, which is quick."""
TABLES = dict(zip(KINDS, ("tests", "evaluation_versions", "sessions", "evaluations"), strict=True))
"""The table of the store with the texts of each kind."""


_FIELDS = {"feedback": "feedback", "instructions": "instructions"}
"""The fields with the texts of kinds that are often without one."""


class StoredText(NamedTuple):
    """A row with a text, as it is stored."""

    number: int
    """Rows that are stored later have a higher one, or the same."""
    id: bytes
    content: str
    may_link: bool
    """Whether the instructions of a judgement may have a text; they may be stored later."""

    def is_of_use(self, kind: Kind) -> bool:
        """Return whether it may have a text, or link one to a session; it is not decoded for it."""
        field = _FIELDS.get(kind)
        # Inside a string, quotes are escaped.
        return field is None or self.may_link or f'"{field}":' in self.content


def stored_texts(kind: Kind, number: str) -> str:
    """Return the columns of `StoredText` and the table, for a query that calls the rows `stored`.

    `number` is the column that numbers the rows.
    """
    columns, source = f"stored.{number}, stored.id, stored.content", f"{TABLES[kind]} AS stored"
    if kind != "feedback":
        return f"{columns}, {'false' if kind in _FIELDS else 'true'} FROM {source}"
    return (
        f"{columns}, version.content IS NULL OR version.content LIKE "
        f"""'%"{_FIELDS["instructions"]}":%' FROM {source} """
        f"LEFT JOIN {TABLES['instructions']} AS version ON version.id = stored.evaluation"
    )


def load_searched(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, Json]:
    """Return the contents of those of these documents that the store has."""
    query = f"SELECT id, content FROM {TABLES[kind]} WHERE id IN"
    return dict(decode_row(TABLES[kind], *row) for row in store._select_each(query, ids))


def load_texts(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of those of these documents that the store has."""
    return {
        id: searchable_text(kind, content)
        for id, content in load_searched(store, kind, ids).items()
    }


def readable_text(kind: Kind, content: Json) -> str:
    """Return the text of a content to be read: as it is searched, with its files by their names."""
    if kind == "tests":
        content = {"messages": [_name_files(message) for message in content.get("messages", ())]}
    return searchable_text(kind, content)


def _name_files(message: Json) -> Json:
    parts = message.get("content", ())
    if isinstance(parts, str):
        return message
    named = "{{{{_file:{path}}}}}"
    return {
        "content": [{"text": named.format(path=it["path"])} if "path" in it else it for it in parts]
    }


def searchable_text(kind: Kind, content: Json) -> str:
    """Return the searchable text of a content."""
    if kind == "answers":
        return "\n\n".join(part for turn in content["turns"] for part in _texts_of_turn(turn))
    if kind == "feedback":
        return str(content.get("feedback", ""))
    if kind == "instructions":
        return _text_of_parts(content.get("instructions", ()))
    messages = content.get("messages", ())
    return "\n\n".join(_text_of_parts(message.get("content", ())) for message in messages)


def _texts_of_turn(turn: Json) -> Iterator[str]:
    for name in ("text", "refusal"):
        if turn.get(name):
            yield str(turn[name])
    for call in turn.get("toolCalls", ()):
        yield f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"


def _text_of_parts(parts: Json) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(str(part.get("text", " ")) for part in parts)


def list_named(kind: Kind, content: Json) -> list[str]:
    """Return the ids that a document refers to: its test, or its instructions and sessions."""
    if kind == "answers":
        return [str(content["test"])]
    if kind == "feedback":
        return [str(content["evaluation"]), *map(str, content["sessions"])]
    return []


def iterate_links(kind: Kind, id: str, about: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of documents and sessions."""
    if kind == "answers":
        yield id, id
        yield about[0], id
    elif kind == "feedback":
        for session in about[1:]:
            yield id, session
            yield about[0], session


_APART_RANGES = (
    "\u00a9\u00ae\u00b0\u2100-\u2bff"  # symbols
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # East Asian
    "\U0001f000-\U0001faff"  # emoji
)
_APART = re.compile(f"([{_APART_RANGES}])")
"""Characters that are words by themselves."""
_BEGIN = rf"(?:(?<![^\W_])|(?<=[{_APART_RANGES}]))"
_END = rf"(?:(?![^\W_])|(?=[{_APART_RANGES}]))"
"""Where a word of letters begins and ends."""


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a query; text in quotation marks is one word."""
    words = (word.strip('"') for word in re.findall(r'"[^"]*"?|[^\s"]+', text))
    return tuple(word for word in words if word.strip())


def has_words(words: Sequence[str]) -> bool:
    """Return whether any of them has a letter, a digit or a symbol."""
    return any(map(_is_of_word, "".join(words)))


def fold_words(text: str) -> str:
    """Return a text as it is indexed: case-folded, with blanks around single-character words."""
    if text.isascii():
        return text.replace("\0", " ")
    text = text.casefold().replace("\0", " ")
    return _APART.sub(r" \1 ", text).encode("utf-8", "replace").decode()


def make_phrases(words: Sequence[str]) -> Iterator[str]:
    """Yield each word as a phrase of FTS5, in quotation marks, where no character is special.

    The last one may be the beginning of a word.
    """
    real = [word for word in words if any(map(_is_of_word, word))]
    for number, word in enumerate(real, 1):
        phrase = " ".join(fold_words(word).replace('"', " ").split())
        yield f'"{phrase}"' + "*" * (number == len(real) and _is_of_word(phrase[-1]))


def _is_of_word(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LMN" or kind in ("Co", "So")


def find_word_places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of words in a text: sorted starts and ends, without overlaps."""
    folded, origins = _folded(text)
    spans: list[tuple[int, int]] = []
    for pattern in _patterns_of(tuple(words)):
        for match in pattern.finditer(folded):
            if match.end() > match.start():
                spans.append((origins[match.start()], origins[match.end() - 1] + 1))
    kept: list[tuple[int, int]] = []
    for begin, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or begin >= kept[-1][1]:
            kept.append((begin, stop))
    return kept


@lru_cache(maxsize=8)
def _patterns_of(words: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the patterns that find words in folded texts."""
    real = [word for word in words if any(map(_is_of_word, word))]
    patterns: list[re.Pattern[str]] = []
    for number, word in enumerate(real, 1):
        parts = re.findall(r"\w+|[^\w\s]", _APART.sub(r" \1 ", _folded(word)[0]))
        parts = [re.escape(part) for part in parts if any(map(_is_of_word, part))]
        if not parts:
            continue
        alone = not _APART.match(word)
        start = _BEGIN if alone else ""
        end = "" if number == len(real) or _APART.match(word[-1]) else _END
        patterns.append(re.compile(start + r"[\W_]*".join(parts) + end))
    return patterns


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Return the text without case and accents, and the original places of its characters."""
    if text.isascii():
        return text.lower(), range(len(text))
    made: list[str] = []
    origins: list[int] = []
    for number, character in enumerate(text):
        plain = (
            unicodedata.normalize("NFD", character)
            if character.isalpha() and character < "\u0590"
            else character
        )
        for part in plain.casefold():
            if not "\u0300" <= part <= "\u036f":
                made.append(part)
                origins.append(number)
    return "".join(made), origins


T = TypeVar("T")
Report = Callable[[int, int], bool]
"""Called with the number of added texts and of all texts; returns whether to continue."""
GoOn = Callable[[], bool]
"""Returns whether somebody still waits for what is searched."""
Query = tuple[str, Sequence[Any]]
"""A query with its parameters."""
_LINKS = (
    "SELECT texts.id, sessions.id FROM documents AS texts JOIN shown ON document = texts.number "
    "JOIN documents AS sessions ON sessions.number = session WHERE texts.id IN"
)
_WITH_WORDS = "SELECT rowid FROM words WHERE words MATCH ?"
_SESSIONS = f"SELECT session FROM shown WHERE document IN ({_WITH_WORDS})"
_ANSWERS = KINDS.index("answers")


class _EndedError(Exception):
    """Nobody waits any more for what is searched."""


_FORMAT = "search 3"
"""Change this when the format of the index changes."""
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
# answer is linked to itself. `reached` has a row of each table of a store: it, and all rows with
# lower numbers, were read. None is changed or deleted.

_HALF = 8
"""The bytes of half an id."""
_MASK = (1 << 64) - 1


class FoundIds(Set[str]):
    """The ids that a query has returned in their order. They never change."""

    def __init__(self, ids: Iterable[bytes] = (), texts: Sequence[FoundIds] = ()) -> None:
        """`ids` are in ascending order; of sessions, `texts` are those with each word."""
        self._texts = texts
        self._first, self._second = array("Q"), array("Q")
        """The halves of each id as whole numbers."""
        for id in ids:
            whole = as_id(id)
            self._first.append(int.from_bytes(whole[:_HALF], "big"))
            self._second.append(int.from_bytes(whole[_HALF:], "big"))

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[str]:
        return (f"{a:016x}{b:016x}" for a, b in zip(self._first, self._second, strict=True))

    def __contains__(self, id: object) -> bool:
        try:
            return isinstance(id, str) and self._has(int(id, 16))
        except ValueError:
            return False

    def isdisjoint(self, ids: Iterable[object]) -> bool:
        """Return whether none of these is in the set; it is asked for many cases."""
        return not any(id in self for id in ids)

    def has_words(self, texts: Collection[str]) -> bool:
        """Return whether each word is in one of these texts: those that count for a result."""
        return not any(found.isdisjoint(texts) for found in self._texts)

    def _has(self, number: int) -> bool:
        first, second = number >> 64, number & _MASK
        place = bisect_left(self._first, first)
        while place < len(self._first) and self._first[place] == first:
            if self._second[place] == second:
                return True
            place += 1
        return False

    def __hash__(self) -> int:
        return self._hash()


class SearchIndex:
    """An open index of the texts of stores.

    A text has the words of a query if it has each of them; the last one may be the beginning of a
    word. Nothing has them when none is a word.
    """

    def __init__(self, connection: SQLiteConnection, path: str) -> None:
        self._connection = connection
        self.path = path
        """Empty when it is temporary, and ends with this object."""

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open the index at a path; temporary without one, or where nothing can be written.

        Raises `StoreError` when this SQLite cannot search.
        """
        try:
            connection, opened = open_cache(path, _SCHEMA, _FORMAT)
        except sqlite3.Error as error:
            raise StoreError(
                f"this SQLite ({sqlite3.sqlite_version}) has no full-text search: {error}",
                hint="use a Python whose SQLite has FTS5",
            ) from error
        if opened:
            connection.execute("PRAGMA wal_autocheckpoint = 32000")
            connection.execute(f"PRAGMA cache_size = -{_SEARCH_CACHE}")
        return cls(connection, str(opened or ""))

    # --- updating

    def update(self, store: Store, report: Report = lambda _done, _all: True) -> bool:
        """Add the texts of a store that are not in the index; False when `report` ended it.

        Other programs may do so at the same time: each batch is checked again when it is written.
        """
        with self._sound(), store.snapshot() as connection:
            ((settled,),) = connection.execute(f"SELECT {connection.dialect.settled}").fetchall()
            reached = {kind: self._reached(connection, store.path, kind) for kind in KINDS}
            total = sum(_count_after(connection, kind, reached[kind]) for kind in KINDS)
            done = 0
            self._keep_pages(_CACHE)
            try:
                for kind in KINDS:
                    batches = _read(connection, kind, reached[kind])
                    for rows, others in pairwise(chain(batches, [()])):
                        if not report(done, total):
                            return False
                        end = rows[-1].number - (
                            bool(others) and others[0].number == rows[-1].number
                        )
                        self._take(store.path, kind, rows, min(end, settled))
                        done += len(rows)
            finally:
                self._keep_pages(_SEARCH_CACHE)
        return report(done, total) if total else True

    def _keep_pages(self, size: int) -> None:
        self._connection.execute(f"PRAGMA cache_size = -{size}")

    def _reached(self, connection: Connection, store: str, kind: Kind) -> int:
        """Return up to which number the rows of a table were read; 0 if it is another table."""
        query = "SELECT number, id FROM reached WHERE store = ? AND kind = ?"
        for number, id in self._connection.execute(query, (store, KINDS.index(kind))):
            query = f"SELECT {connection.dialect.row_number} FROM {TABLES[kind]} WHERE id = ?"
            if connection.execute(query, (id,)).fetchall() == [(number,)]:
                return int(number)
        return 0

    def _take(self, store: str, kind: Kind, rows: Sequence[StoredText], end: int) -> None:
        """Add the texts of rows; all rows up to a number were read then."""
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection as connection:
            self._add(kind, {as_digits(row.id): row for row in rows if row.is_of_use(kind)})
            for row in [row for row in rows if row.number <= end][-1:]:
                connection.execute(
                    "INSERT INTO reached VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET number = excluded.number, id = excluded.id",
                    (store, KINDS.index(kind), row.number, bytes(row.id)),
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

    def find_sessions(
        self,
        words: Sequence[str],
        go_on: GoOn = lambda: True,
        /,
        *,
        in_answers: bool = False,
    ) -> Set[str] | None:
        """Return the sessions whose answer, feedback, test and instructions have all words.

        That includes superseded feedback: `FoundIds.has_words` tells whether the current texts of
        a result have them. With `in_answers` the answer alone must have them. None when `go_on`
        returned False.
        """
        if not has_words(words):
            return FoundIds()

        def ask(query: Query, texts: Sequence[FoundIds] = ()) -> FoundIds | None:
            return self._ask(query, lambda rows: FoundIds((id for (id,) in rows), texts), go_on)

        texts: list[FoundIds] = []
        for phrase in () if in_answers else make_phrases(words):
            query = f"SELECT id FROM documents WHERE number IN ({_WITH_WORDS}) ORDER BY +id"
            found = ask((query, (phrase,)))
            if found is None:
                return None
            texts.append(found)
        return ask(self._sessions_with(words, in_answers=in_answers), texts)

    def find_newest(
        self, words: Sequence[str], kinds: Sequence[Kind], limit: int, go_on: GoOn = lambda: True, /
    ) -> tuple[list[tuple[Kind, str]], int] | None:
        """Return at most so many of the texts of these kinds with all words, and the count of all.

        Answers come before feedback, tests and instructions, and of each kind those that the index
        got to know last. None when `go_on` returned False.
        """
        if not has_words(words):
            return [], 0
        source, parameters = self._of_kinds("kind, id", words, kinds)
        query = f"{source} ORDER BY (kind + 2) % 4, number DESC LIMIT ?", (*parameters, limit)
        rows = self._ask(query, list, go_on)
        count = [(len(rows),)] if rows is not None else None
        if rows and len(rows) == limit:
            count = self._ask(self._of_kinds("count(*)", words, kinds), list, go_on)
        if rows is None or count is None:
            return None
        return [(KINDS[kind], as_digits(id)) for kind, id in rows], count[0][0]

    def find_documents(
        self, words: Sequence[str], kinds: Sequence[Kind]
    ) -> Sequence[tuple[Kind, str]]:
        """Return the texts of these kinds with all words, as kind and id.

        They are in the order in which the index got to know them; many are in a temporary file.
        """

        def read(rows: Iterable[Any]) -> Sequence[tuple[Kind, str]]:
            return keep_values(((KINDS[kind], as_digits(id)) for kind, id in rows), tuple, tuple)

        if not has_words(words):
            return ()
        source, parameters = self._of_kinds("kind, id", words, kinds)
        return self._ask((f"{source} ORDER BY number", parameters), read, lambda: True) or ()

    def _of_kinds(self, columns: str, words: Sequence[str], kinds: Sequence[Kind]) -> Query:
        numbers = ", ".join(str(KINDS.index(kind)) for kind in kinds)
        found = f"number IN ({_WITH_WORDS}) AND kind IN ({numbers})"
        match = " AND ".join(make_phrases(words))
        return f"SELECT {columns} FROM documents WHERE {found}", (match,)

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
            if is_interrupt(error):
                raise _EndedError from error
            self.close()
            if self.path and "locked" not in str(error):
                with suppress(OSError):
                    remove_cache(Path(self.path))
            raise StoreError(
                f"the search index '{self.path}' cannot be used: {error}",
                hint="search again: the index is built again",
            ) from error


def _count_after(connection: Connection, kind: Kind, number: int) -> int:
    query = f"SELECT count(*) FROM {TABLES[kind]} WHERE {connection.dialect.is_newer}"
    return int(connection.execute(query, (number,)).fetchall()[0][0])


def _read(connection: Connection, kind: Kind, after: int) -> Iterator[Sequence[StoredText]]:
    """Yield the rows of a table above a number, as many at a time as are added together."""
    dialect = connection.dialect
    texts = stored_texts(kind, dialect.row_number)
    query = f"SELECT {texts} WHERE stored.{dialect.is_newer} ORDER BY 1"
    rows = (StoredText(*row) for row in connection.stream(query, (after,)))
    return in_weighed_batches(rows, lambda row: len(row.content), _LARGEST_BATCH, _BATCH)
