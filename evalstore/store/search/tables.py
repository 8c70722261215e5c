"""The search index of a store in PostgreSQL: tables of the store, for all who use it.

Texts are split into words here, as FTS5 does for a SQLite file, and PostgreSQL indexes the words
(GIN): nobody has to fetch all texts, and each text is read once, by whoever searches first after it
was stored. The index finds the texts with all words of a phrase; whether these stand side by side,
the text of their words tells. So the limits that PostgreSQL sets to positions do not matter.

An index with other tables than those of `search_statements` is made anew. Words that are folded in
another way need a migration that empties the tables, because programs of several versions may
share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeVar

from evalstore.core import batches
from evalstore.core.batches import in_batches
from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.store.contents import ID_BYTES, as_bytes, as_digits, as_id, decode_row
from evalstore.store.database import again_when_lost, select_each
from evalstore.store.driver import Connection, Extent, UnwantedError, while_wanted
from evalstore.store.postgresql.schema import (
    GROWTH_MARKS,
    SEARCH_COLUMNS,
    SEARCH_LINKS,
    SEARCH_LOCK,
    SEARCH_MARKS,
    SEARCH_TEXTS,
    WORDS,
    search_statements,
)
from evalstore.store.schema.table_definitions import TableColumns
from evalstore.store.search.texts import (
    KINDS,
    TABLES,
    GoOn,
    Kind,
    Phrase,
    Query,
    Report,
    SearchIndex,
    StoredText,
    iterate_links,
    list_named,
    list_phrases,
    list_words,
    searchable_text,
    stored_texts,
)
from evalstore.store.store import Store

T = TypeVar("T")
_LONGEST_PART = 200_000
"""Characters of the words of one row: in bytes less than the megabyte that PostgreSQL takes."""
_OVERLAP = 64
"""Words at the end of a row that the next one has, too, because a phrase may begin there."""
_TEXTS = TableColumns(
    SEARCH_TEXTS,
    {"id": "BLOB", "part": "BIGINT", "kind": "BIGINT", "words": "TEXT"},
    frozenset({"id"}),
)
_LINKS = TableColumns(
    SEARCH_LINKS, {"text": "BLOB", "session": "BLOB"}, frozenset({"text", "session"})
)
_STATE = """
SELECT c.relname::text,
    c.relkind = 'r' AND NOT (c.relhasrules OR c.relhastriggers OR c.relrowsecurity),
    ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
    (SELECT count(*) FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relname = ANY(?)
"""
_INDEXES = {SEARCH_TEXTS: 2, SEARCH_LINKS: 1, SEARCH_MARKS: 1}
_IS_READ_ONLY = "current_setting('transaction_read_only') = 'on'"
_MAY_CREATE = (
    f"SELECT NOT {_IS_READ_ONLY} AND has_schema_privilege(current_schema()::text, 'CREATE')"
)
_MAY_ADD = (
    f"SELECT NOT {_IS_READ_ONLY} AND has_table_privilege('{SEARCH_TEXTS}', 'INSERT') "
    f"AND has_table_privilege('{SEARCH_LINKS}', 'INSERT')"
)


class SearchTables(SearchIndex):
    """The index of an open store, which is in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def close(self) -> None:
        """Do nothing."""

    # --- updating

    @again_when_lost
    def update(self, store: Store, report: Report = lambda _done, _all: True) -> bool:
        """Add the texts that are not in the index.

        Who may only read the store searches what others have added; `missing` says how many
        texts they have not. Raises `StoreError` where nobody has made an index yet.
        """
        self._ensure_tables()
        self.missing = 0
        with store.snapshot() as connection:
            state = look(connection)
            new, missing = _find_new(connection, state.mark)
        if any(missing.values()) and not _is_true(store, _MAY_ADD):
            self.missing = sum(len(ids) // ID_BYTES for ids in missing.values())
            return report(0, 0)

        def add(kind: Kind, ids: list[str]) -> None:
            store.write(lambda connection: _add(connection, kind, ids))

        if not _add_batches(missing, batches.SIZE, report, add):
            return False
        if new or (state.is_far and (state.has_texts or any(missing.values()))):
            note(store, state)
        return True

    def _ensure_tables(self) -> None:
        with self._store._reading() as connection:
            if _is_sound(connection):
                return
        if not _is_true(self._store, _MAY_CREATE):
            raise StoreError(
                f"the texts of the store '{self._store.path}' are not indexed yet",
                hint="a search by a user who may write to the store adds them",
            )
        self._store.write(_make_tables)

    # --- searching

    def _with_words(self, words: Sequence[str]) -> Query:
        phrases = phrases_of(words)
        return with_texts(phrases, with_all(phrases)), parameters_of(phrases)

    def _sessions_with(self, words: Sequence[str], *, in_answers: bool) -> Query:
        phrases = phrases_of(words)
        of_answers = f" WHERE kind = {KINDS.index('answers')}"
        found = " INTERSECT ".join(
            f"SELECT id AS session FROM {name}{of_answers}"
            if in_answers
            else f"SELECT session FROM {SEARCH_LINKS} WHERE text IN (SELECT id FROM {name})"
            for name in names_of(phrases)
        )
        query = with_texts(phrases, f"SELECT DISTINCT session FROM ({found}) AS ids ORDER BY 1")
        return query, parameters_of(phrases)

    @again_when_lost
    def _ask(self, query: Query, read: Callable[[Iterable[Any]], T], go_on: GoOn) -> T | None:
        with suppress(UnwantedError), while_wanted(go_on), self._store.snapshot() as connection:
            found = read(takewhile(lambda _: go_on(), connection.stream(*query)))
            return found if go_on() else None
        return None

    @again_when_lost
    def _find_links(self, documents: Sequence[str]) -> list[tuple[bytes, bytes]]:
        query = f"SELECT text, session FROM {SEARCH_LINKS} WHERE text IN"
        with self._store.snapshot() as connection:
            return [(text, session) for text, session in select_each(connection, query, documents)]


# --- adding texts


def _add_batches(
    missing: Mapping[Kind, bytes],
    size: int,
    report: Report,
    add: Callable[[Kind, list[str]], None],
) -> bool:
    """Add texts, so many at a time, by their concatenated ids; False when `report` ended it."""
    total, done = sum(map(len, missing.values())) // ID_BYTES, 0
    if not total:
        return True
    width = 2 * ID_BYTES
    for kind in KINDS:
        ids = missing[kind]
        for start in range(0, len(ids), size * ID_BYTES):
            if not report(done, total):
                return False
            joined = ids[start : start + size * ID_BYTES].hex()
            digits = [joined[at : at + width] for at in range(0, len(joined), width)]
            add(kind, digits)
            done += len(digits)
    return report(done, total)


Ids = Mapping[Kind, bytes]
"""The ids of each kind, concatenated: lists of them would need far more memory."""


def _find_new(connection: Connection, mark: Extent | None) -> tuple[bool, Ids]:
    """Return whether texts were stored since a mark, and those that are not in the index."""
    if mark is None:
        connection.execute("SET LOCAL enable_seqscan TO on")
        return False, _compare_all(connection)
    missing = {}
    is_any = False
    for kind in KINDS:
        condition, parameters = connection.dialect.growth.condition(TABLES[kind], mark)
        query = f"SELECT id FROM {TABLES[kind]} WHERE {condition}"
        ids = b"".join(as_id(id) for (id,) in connection.stream(query, parameters))
        is_any = is_any or bool(ids)
        missing[kind] = b"".join(_list_missing(connection, ids))
    return is_any, missing


def _list_missing(connection: Connection, ids: bytes) -> Iterator[bytes]:
    """Yield the ids that are not in the index."""
    query = f"SELECT id FROM {SEARCH_TEXTS} WHERE part = 0 AND id IN"
    for batch in in_batches(ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)):
        known = {bytes(id) for (id,) in connection.select_in(query, batch)}
        yield from (id for id in batch if id not in known)


def _compare_all(connection: Connection) -> Ids:
    """Return the sorted ids of all texts of the store that are not in the index."""
    query = " UNION ALL ".join(
        f"SELECT {number} AS kind, id FROM {TABLES[kind]} AS stored WHERE NOT EXISTS "
        f"(SELECT 1 FROM {SEARCH_TEXTS} AS known WHERE known.id = stored.id AND part = 0)"
        for number, kind in enumerate(KINDS)
    )
    missing = {kind: bytearray() for kind in KINDS}
    for number, id in connection.stream(f"{query} ORDER BY kind, id"):
        missing[KINDS[number]] += as_id(id)
    return {kind: bytes(ids) for kind, ids in missing.items()}


def _add(connection: Connection, kind: Kind, ids: Sequence[str]) -> None:
    """Add texts that nobody else has added meanwhile."""
    connection.execute(SEARCH_LOCK)
    query = f"SELECT id FROM {SEARCH_TEXTS} WHERE part = 0 AND id IN"
    known = {as_digits(id) for (id,) in select_each(connection, query, ids)}
    new = [id for id in ids if id not in known]
    query = f"SELECT {stored_texts(kind, 'strpos')} WHERE stored.id IN"
    stored = [StoredText(*row) for row in select_each(connection, query, new)]
    contents = dict(
        decode_row(TABLES[kind], row.id, row.content) for row in stored if row.is_of_use(kind)
    )
    # That it has been looked at is noted of a text without words, too.
    empty = [(row.id, 0, KINDS.index(kind), "") for row in stored if not row.is_of_use(kind)]
    texts = [
        (as_bytes(id), part, KINDS.index(kind), words)
        for id, content in contents.items()
        for part, words in enumerate(_split(list_words(searchable_text(kind, content))))
    ]
    connection.insert(_TEXTS, [*texts, *empty])
    links = [
        (as_bytes(text), as_bytes(session))
        for id, content in contents.items()
        for text, session in iterate_links(kind, id, list_named(kind, content))
    ]
    connection.insert(_LINKS, links)


def _split(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of each row of a text, of which there is at least one."""
    joined = join_words(words)
    if len(joined) <= _LONGEST_PART:
        yield joined
        return
    start = size = 0
    for number, word in enumerate(words):
        size += len(cut_word(word)) + 1
        if size > _LONGEST_PART:
            yield join_words(words[start:number])
            start = number - _OVERLAP
            size = len(join_words(words[start : number + 1])) + 1
    yield join_words(words[start:])


# --- the tables


def _is_true(store: Store, query: str) -> bool:
    return bool(store._select(query)[0][0])


def _is_sound(connection: Connection) -> bool:
    """Return whether the tables are those that this program makes."""
    rows = connection.execute(_STATE, (list(SEARCH_COLUMNS),)).fetchall()
    return len(rows) == len(SEARCH_COLUMNS) and all(
        is_plain and tuple(columns) == SEARCH_COLUMNS[name] and indexes >= _INDEXES[name]
        for name, is_plain, columns, indexes in rows
    )


def _make_tables(connection: Connection) -> None:
    """Make the tables, unless another process has."""
    connection.execute(SEARCH_LOCK)
    if _is_sound(connection):
        return
    for table in SEARCH_COLUMNS:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in search_statements():
        connection.execute(statement)


# --- marks of a search index in PostgreSQL: up to which snapshot of the store it has all texts


_FAR = 100
"""Transactions that may lie between the oldest and the newest one in progress of a snapshot."""
_LOOK = f"""
SELECT pg_current_snapshot()::text,
    concat_ws(' ', pg_relation_filenode('{SEARCH_TEXTS}'), pg_relation_filenode('{SEARCH_LINKS}')),
    EXISTS (SELECT FROM {SEARCH_TEXTS}),
    has_table_privilege('{SEARCH_MARKS}', 'SELECT')
"""
_MAY_MARK = "SELECT current_setting('transaction_read_only') = 'off' AND " + " AND ".join(
    f"has_table_privilege('{table}', '{right}')"
    for table in (SEARCH_MARKS, GROWTH_MARKS.name)
    for right in ("SELECT", "INSERT", "DELETE")
)


@dataclass(frozen=True, slots=True)
class IndexState:
    """What an index is known to have at the moment of a snapshot."""

    snapshot: str
    """What can be seen now."""
    tables: str
    """The files of its tables on the server: others after they were emptied or made anew."""
    has_texts: bool
    mark: Extent | None
    """The index has all texts that could be seen at this extent; None when nothing is known."""

    @property
    def is_far(self) -> bool:
        """Return whether a new mark, now, saves later searches much.

        Rows that were stored while the oldest transaction of a mark was in progress are looked at
        again and again.
        """
        if self.mark is None:
            return True
        oldest, newest = _ends(str(self.mark[1]))
        return newest - oldest > _FAR and _ends(self.snapshot)[0] >= newest


def look(connection: Connection) -> IndexState:
    """Return the state of an index, in a transaction with one snapshot."""
    ((snapshot, tables, has_texts, may_read),) = connection.execute(_LOOK).fetchall()
    marks = _find_marks(connection, tables) if may_read and has_texts else iter(())
    return IndexState(snapshot, tables, has_texts, next(marks, None))


def _find_marks(connection: Connection, tables: str) -> Iterator[Extent]:
    """Yield the marks of this very index in this very database."""
    query = f"SELECT token::text, snapshot FROM {SEARCH_MARKS} WHERE tables = ?"
    for token, snapshot in connection.execute(query, (tables,)).fetchall():
        if connection.dialect.growth.has_had(connection, (token, snapshot)):
            yield token, snapshot


def note(store: Store, state: IndexState) -> None:
    """Note that the index has all texts that could be seen in a state.

    Without the rights to it, or while another program adds texts, the next search looks at more.
    """
    if _is_true(store, _MAY_MARK):
        with suppress(StoreError):
            store.write(lambda connection: _replace(connection, state), wait=False)


def _replace(connection: Connection, state: IndexState) -> None:
    connection.execute(SEARCH_LOCK)
    connection.execute(
        f"DELETE FROM {GROWTH_MARKS.name} WHERE token IN (SELECT token FROM {SEARCH_MARKS})"
    )
    connection.execute(f"DELETE FROM {SEARCH_MARKS}")
    # The transaction of the growth mark is younger than all that the snapshot can see.
    connection.execute(
        f"WITH made AS (INSERT INTO {GROWTH_MARKS.name} (made) "
        f"VALUES ({connection.dialect.clock}) RETURNING token) "
        f"INSERT INTO {SEARCH_MARKS} (token, snapshot, tables) SELECT token, ?, ? FROM made",
        (state.snapshot, state.tables),
    )


def _ends(snapshot: str) -> tuple[int, int]:
    """Return the number of the oldest transaction in progress, and that of the next one."""
    oldest, newest, _ = snapshot.split(":")
    return int(oldest), int(newest)


# --- the queries for phrases in the search index of a store in PostgreSQL


_LONGEST_WORD = 500
"""Characters by which words are told apart; PostgreSQL takes 2,046 bytes."""
_LOOKED_UP = 32
"""Words of a phrase that are looked up in the index; all of them are compared."""
_MOST_PHRASES = 100


def phrases_of(words: Sequence[str]) -> list[Phrase]:
    """Return the phrases of words; raises `EvalstoreError` when they are too many."""
    phrases = list_phrases(words)
    if len(phrases) > _MOST_PHRASES:
        raise EvalstoreError(
            f"{len(phrases)} words are too many to search for: at most {_MOST_PHRASES}",
            hint="leave some out, or put words that follow each other in quotation marks",
        )
    return phrases


def names_of(phrases: Sequence[Phrase]) -> list[str]:
    """Return the names of the rows with each phrase."""
    return [f"texts_{number}" for number in range(len(phrases))]


def with_all(phrases: Sequence[Phrase]) -> str:
    """Return a query for the texts with all phrases; a text may have several rows."""
    first, *others = names_of(phrases)
    also = "".join(f" AND id IN (SELECT id FROM {name})" for name in others)
    return f"SELECT kind, id, min(number) AS number FROM {first} WHERE true{also} GROUP BY kind, id"


def with_texts(phrases: Sequence[Phrase], query: str) -> str:
    """Return a query in which each name is the rows of texts with a phrase.

    They are MATERIALIZED: joined with the rest, each row's words would be split again.
    """
    texts = ", ".join(
        f"{name} AS MATERIALIZED "
        f"(SELECT id, kind, number FROM {SEARCH_TEXTS} WHERE {WORDS} @@ ?::tsquery"
        + " AND strpos(' ' || words || ' ', ?) > 0" * (len(phrase.words) > 1)
        + ")"
        for name, phrase in zip(names_of(phrases), phrases, strict=True)
    )
    return f"WITH {texts} {query}"


def parameters_of(phrases: Sequence[Phrase]) -> list[str]:
    """Return the parameters of `with_texts`."""
    parameters: list[str] = []
    for phrase in phrases:
        parameters.append(_lexemes(phrase))
        if len(phrase.words) > 1:
            parameters.append(f" {join_words(phrase.words)}" + " " * (not phrase.is_prefix))
    return parameters


def _lexemes(phrase: Phrase) -> str:
    """Return a query for the words of a phrase, in which no character is special."""
    lexemes = [f"'{cut_word(word)}'" for word in phrase.words]
    if phrase.is_prefix and lexemes:
        lexemes[-1] += ":*"
    return " & ".join(list(dict.fromkeys(lexemes))[:_LOOKED_UP])


def join_words(words: Iterable[str]) -> str:
    """Return words as a row has them."""
    return " ".join(map(cut_word, words))


def cut_word(word: str) -> str:
    """Return as much of a word as is told apart."""
    return word[:_LONGEST_WORD]
