"""The search index: in which answers, feedback and tests words stand.

It is a SQLite file of its own (FTS5) that belongs to this machine. What it holds is named by
content, so it may know of several stores, and losing it loses nothing: one that is damaged, or
of another format, is made anew. The texts themselves stay in the store.

Words are those of Unicode (`unicode61`). Scripts without blanks between words are taken apart
into characters, and a word of them is found as a row of characters. Against trigrams this is
four times as fast to make and a sixth of the size, and finds words of one or two characters.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Self

from evalstore.errors import StoreError
from evalstore.store.connection import harden
from evalstore.store.contents import decode
from evalstore.store.database import select_each
from evalstore.store.ids import as_bytes, as_digits, as_id
from evalstore.store.store import Store
from evalstore.values import Json

Kind = Literal["answers", "feedback", "tests", "instructions"]
KINDS: tuple[Kind, ...] = ("tests", "instructions", "answers", "feedback")
"""What is named comes before what names it: so ids are inserted in their order, which is quick."""
_TABLES = dict(zip(KINDS, ("tests", "evaluation_versions", "sessions", "evaluations"), strict=True))
"""The table of the store that holds the texts of each kind."""

_FORMAT = 1
"""Raise this when the index is made in another way."""
_BUSY_SECONDS = 10.0
_ID_BYTES = 16
_PORTION = 1_000
"""Texts in one transaction; other writers, and an interruption, wait for its end."""
_APART = re.compile(
    "(["
    "\u00a9\u00ae\u00b0\u2100-\u2bff"  # symbols
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # east of them
    "\U0001f000-\U0001faff"  # emoji
    "])"
)
"""Characters that are words of their own."""
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
# A document is anything with an id; its kind is set as soon as its words are in. `shown` says
# with which sessions a document belongs together, an answer with itself.

_FOREIGN = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
_SESSIONS = (
    "SELECT session FROM shown WHERE document IN (SELECT rowid FROM words WHERE words MATCH ?)"
)
Report = Callable[[int, int], bool]
"""Is told how many texts are in, and of how many; says whether to go on."""


def split_words(text: str) -> tuple[str, ...]:
    """What was typed as words; what stands in quotation marks is one, whatever else it holds."""
    found = (one.strip('"') for one in re.findall(r'"[^"]*"?|[^\s"]+', text))
    return tuple(one for one in found if one.strip())


def has_words(words: Sequence[str]) -> bool:
    """Whether any of them has a letter, a digit or a symbol."""
    return any(map(_is_of_word, "".join(words)))


class SearchIndex:
    """An open index."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
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
                    break  # read-only, or locked for long
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

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    # --- what is in it

    def update(self, store: Store, report: Report = lambda _done, _all: True) -> bool:
        """Take in what the store has and the index has not; False when `report` ended it.

        Others may do so at the same time: each portion is looked at again before it is written.
        """
        with self._sound():
            missing = {kind: self._missing(store, kind) for kind in KINDS}
            total, done = sum(map(len, missing.values())) // _ID_BYTES, 0
            if not total:
                return True
            for kind, ids in missing.items():
                for start in range(0, len(ids), _PORTION * _ID_BYTES):
                    if not report(done, total):
                        return False
                    some = ids[start : start + _PORTION * _ID_BYTES].hex()
                    width = 2 * _ID_BYTES
                    digits = [some[at : at + width] for at in range(0, len(some), width)]
                    self._take(kind, _contents(store, kind, digits))
                    done += len(digits)
            return report(done, total)

    def _missing(self, store: Store, kind: Kind) -> bytes:
        """The ids of this kind that the index has not, in their order, one behind the other."""
        query = "SELECT id FROM documents WHERE kind = ? ORDER BY id"
        known = self._connection.execute(query, (KINDS.index(kind),))
        with store._reading() as connection:
            ids = connection.execute(f"SELECT id FROM {_TABLES[kind]} ORDER BY id")
            missing = bytearray()  # joined they would all be objects at once
            for id in _without(map(_id_of, ids), map(_id_of, known)):
                missing += id
            return bytes(missing)

    def _take(self, kind: Kind, contents: dict[str, Json]) -> None:
        about = {id: _about(kind, content) for id, content in contents.items()}
        texts = {id: _indexed(text_of(kind, content)) for id, content in contents.items()}
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection as connection:
            documents = self._number([*contents, *(one for ids in about.values() for one in ids)])
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
                    for document, session in _links(kind, id, about[id])
                ],
            )

    def _number(self, ids: Iterable[str]) -> dict[str, tuple[int, int | None]]:
        """The numbers of documents, which get one if they have none, and their kinds."""
        wanted = list(dict.fromkeys(ids))
        insert = "INSERT OR IGNORE INTO documents (id) VALUES (?)"
        self._connection.executemany(insert, [(as_bytes(id),) for id in wanted])
        query = "SELECT id, number, kind FROM documents WHERE id IN"
        found = select_each(self._connection, query, wanted)
        return {as_digits(id): (number, kind) for id, number, kind in found}

    # --- searching

    def find_sessions(self, words: Sequence[str]) -> frozenset[str]:
        """The sessions in whose answer, feedback, test or instructions all words are.

        The last word may be the beginning of one. Without anything that is a word: none.
        """
        with self._sound():
            phrases = list(_phrases(words))
            sets = " INTERSECT ".join([_SESSIONS] * len(phrases))
            query = f"SELECT id FROM documents WHERE number IN ({sets})"
            found = self._connection.execute(query, phrases) if phrases else ()
            return frozenset(as_digits(id) for (id,) in found)

    def find_documents(self, words: Sequence[str], kinds: Sequence[Kind]) -> list[tuple[Kind, str]]:
        """The texts of these kinds that have all words, as kind and id."""
        phrases = list(_phrases(words))
        if not phrases:
            return []
        with self._sound():
            found = self._connection.execute(
                "SELECT kind, id FROM documents WHERE number IN "
                "(SELECT rowid FROM words WHERE words MATCH ?)",
                (" AND ".join(phrases),),
            )
            listed = [(KINDS[kind], as_digits(id)) for kind, id in found]
        return [one for one in listed if one[0] in kinds]

    def sessions_of(self, document: str) -> list[str]:
        """The sessions that a text belongs to."""
        query = (
            "SELECT id FROM documents WHERE number IN (SELECT session FROM shown "
            "WHERE document = (SELECT number FROM documents WHERE id = ?))"
        )
        with self._sound():
            found = self._connection.execute(query, (as_bytes(document),))
            return sorted(as_digits(id) for (id,) in found)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Damage that shows only now: the index is emptied, to be made anew next time."""
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
    """Make the tables, unless they are there and of this format."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (foreign,) = connection.execute(_FOREIGN).fetchone()
    if foreign:
        raise sqlite3.DatabaseError("there are triggers or views in the search index")
    if found == _FORMAT:
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


def _contents(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    query = f"SELECT id, content FROM {_TABLES[kind]} WHERE id IN"
    with store._reading() as connection:
        for id, content in select_each(connection, query, ids):
            digits = as_digits(id)
            found[digits] = decode(_TABLES[kind], digits, content)
    return found


# --- texts of what is stored


def load_texts(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
    """The texts of those of these documents that the store has."""
    return {id: text_of(kind, content) for id, content in _contents(store, kind, ids).items()}


def text_of(kind: Kind, content: Json) -> str:
    """What can be found of a stored thing."""
    if kind == "answers":
        return "\n\n".join(part for turn in content["turns"] for part in _said(turn))
    if kind == "feedback":
        return str(content.get("feedback", ""))
    if kind == "instructions":
        return _text_of_parts(content.get("instructions", ()))
    messages = content.get("messages", ())
    return "\n\n".join(_text_of_parts(message.get("content", ())) for message in messages)


def _said(turn: Json) -> Iterator[str]:
    for name in ("text", "refusal"):
        if turn.get(name):
            yield str(turn[name])
    for call in turn.get("toolCalls", ()):
        yield f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"


def _text_of_parts(parts: Json) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(str(part.get("text", " ")) for part in parts)


def _about(kind: Kind, content: Json) -> list[str]:
    """What else a document names: its test, or its sessions and instructions."""
    if kind == "answers":
        return [str(content["test"])]
    if kind == "feedback":
        return [str(content["evaluation"]), *map(str, content["sessions"])]
    return []


def _links(kind: Kind, id: str, about: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of documents and sessions."""
    if kind == "answers":
        yield id, id
        yield about[0], id
    elif kind == "feedback":
        for session in about[1:]:
            yield id, session
            yield about[0], session


# --- words


def _indexed(text: str) -> str:
    """A text as it is indexed: case-folded, with blanks around single-character words."""
    if text.isascii():
        return text.replace("\0", " ")
    text = text.casefold().replace("\0", " ")
    return _APART.sub(r" \1 ", text).encode("utf-8", "replace").decode()


def _id_of(row: tuple[Any, ...]) -> bytes:
    return as_id(row[0])


def _without(ids: Iterator[bytes], known: Iterator[bytes]) -> Iterator[bytes]:
    """Those that are not known; both come in their order, and neither is all there at once."""
    last = next(known, None)
    for id in ids:
        while last is not None and last < id:
            last = next(known, None)
        if id != last:
            yield id


def _phrases(words: Sequence[str]) -> Iterator[str]:
    """Each word as FTS5 reads it: in quotation marks, where nothing has a meaning."""
    real = [one for one in words if any(map(_is_of_word, one))]
    for number, word in enumerate(real, 1):
        phrase = " ".join(_indexed(word).replace('"', " ").split())
        yield f'"{phrase}"' + "*" * (number == len(real) and _is_of_word(phrase[-1]))


def _is_of_word(one: str) -> bool:
    kind = unicodedata.category(one)
    return kind[0] in "LMN" or kind in ("Co", "So")


def find_places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where words stand in a text: starts and ends, in order, none in another."""
    folded, origins = _folded(text)
    spans: list[tuple[int, int]] = []
    real = [one for one in words if any(map(_is_of_word, one))]
    for number, word in enumerate(real, 1):
        parts = re.findall(r"\w+|[^\w\s]", _APART.sub(r" \1 ", _folded(word)[0]))
        parts = [re.escape(part) for part in parts if any(map(_is_of_word, part))]
        if not parts:
            continue
        pattern = r"[\W_]*".join(parts)
        alone = not _APART.match(word)
        start = r"(?<![^\W_])" if alone else ""
        end = "" if number == len(real) or _APART.match(word[-1]) else r"(?![^\W_])"
        for found in re.finditer(start + pattern + end, folded):
            if found.end() > found.start():
                spans.append((origins[found.start()], origins[found.end() - 1] + 1))
    kept: list[tuple[int, int]] = []
    for begin, stop in sorted(spans, key=lambda one: (one[0], -one[1])):
        if not kept or begin >= kept[-1][1]:
            kept.append((begin, stop))
    return kept


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """The text without cases and accents, and where each of its characters comes from."""
    if text.isascii():
        return text.lower(), range(len(text))
    made: list[str] = []
    origins: list[int] = []
    for number, one in enumerate(text):
        plain = unicodedata.normalize("NFD", one) if one.isalpha() and one < "\u0590" else one
        for part in plain.casefold():
            if not "\u0300" <= part <= "\u036f":
                made.append(part)
                origins.append(number)
    return "".join(made), origins
