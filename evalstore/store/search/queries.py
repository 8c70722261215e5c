"""The queries of the search index that is a file."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from evalstore.core.errors import StoreError
from evalstore.store.database import select_each
from evalstore.store.found_ids import FoundIds
from evalstore.store.ids import as_digits
from evalstore.store.search.index import NEWEST_ORDER, Documents, GoOn
from evalstore.store.search.texts import KINDS, Kind
from evalstore.store.search.words import make_phrases
from evalstore.store.sqlite.connection import STEPS, SQLiteConnection
from evalstore.store.sqlite.error_messages import is_interrupt

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


class SearchQueries:
    """Searches an open index; see `SearchIndex`."""

    def __init__(self, connection: SQLiteConnection, path: str) -> None:
        self._connection = connection
        self.path = path
        """Empty when it is in memory."""

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def find_sessions(
        self,
        words: Sequence[str],
        go_on: GoOn = lambda: True,
        /,
        *,
        in_answers: bool = False,
    ) -> Set[str] | None:
        """Return the sessions whose answer, feedback, test and instructions have all words.

        With `in_answers` the answer alone must. The last word may be the beginning of a word. Empty
        when `words` has no word; None when `go_on` returned False.
        """
        phrases = list(make_phrases(words))
        if not phrases:
            return FoundIds()
        if in_answers:
            found, phrases = f"({_WITH_WORDS}) AND kind = {_ANSWERS}", [" AND ".join(phrases)]
        else:
            found = f"({' INTERSECT '.join([_SESSIONS] * len(phrases))})"
        # The sign keeps SQLite from reading all documents in the order of their ids.
        query = f"SELECT id FROM documents WHERE number IN {found} ORDER BY +id"
        return self._answer(
            go_on, lambda: FoundIds(id for (id,) in self._connection.execute(query, phrases))
        )

    def find_newest(
        self, words: Sequence[str], kinds: Sequence[Kind], limit: int, go_on: GoOn = lambda: True, /
    ) -> tuple[list[tuple[Kind, str]], int] | None:
        """Return at most so many of the texts of these kinds with all words, and the count of all.

        Answers come before feedback, tests and instructions, and of each kind those that the index
        got to know last. None when `go_on` returned False.
        """
        phrases = list(make_phrases(words))
        if not phrases:
            return [], 0
        match, numbers = " AND ".join(phrases), ", ".join(str(KINDS.index(it)) for it in kinds)
        source = f"FROM documents WHERE number IN ({_WITH_WORDS}) AND kind IN ({numbers})"

        def find() -> tuple[list[tuple[Kind, str]], int]:
            count = f"SELECT count(*) {source}"
            ((total,),) = self._connection.execute(count, (match,)).fetchall()
            query = f"SELECT kind, id {source} ORDER BY {NEWEST_ORDER} LIMIT ?"
            rows = self._connection.execute(query, (match, limit))
            return [(KINDS[kind], as_digits(id)) for kind, id in rows], total

        return self._answer(go_on, find)

    def _answer(self, go_on: GoOn, search: Callable[[], T]) -> T | None:
        """Return what a search returns; None when `go_on` returned False meanwhile."""
        self._connection.set_progress_handler(lambda: not go_on(), STEPS)
        try:
            with self._sound():
                return search()
        except _EndedError:
            return None
        finally:
            with suppress(sqlite3.ProgrammingError):  # it was damaged, and is closed
                self._connection.set_progress_handler(None, STEPS)

    def find_documents(self, words: Sequence[str], kinds: Sequence[Kind]) -> Documents:
        """Return the texts of these kinds that contain all words, as kind and id.

        They are in the order in which the index got to know them.
        """
        phrases = list(make_phrases(words))
        if not phrases:
            return Documents((), kinds)
        with self._sound():
            rows = self._connection.execute(
                "SELECT kind, id FROM documents WHERE number IN "
                "(SELECT rowid FROM words WHERE words MATCH ?) ORDER BY number",
                (" AND ".join(phrases),),
            )
            return Documents(rows, kinds)

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
                    remove_index(Path(self.path))
            raise StoreError(
                f"the search index '{self.path}' cannot be used: {error}",
                hint="search again: it is made anew",
            ) from error


def remove_index(path: Path) -> None:
    """Remove the file of an index."""
    for name in (f"{path}-wal", f"{path}-shm", path):
        Path(name).unlink(missing_ok=True)
