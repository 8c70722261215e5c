"""Reading and writing the store, and reading one of somebody else without changing it.

Writing is insert-or-ignore: the content determines the id, so a second writer has nothing to
write; an id with other content is an error. Every call is one transaction. Many writers may
share a store; each waits for the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from evalstore.core import hashing
from evalstore.core.errors import StoreError
from evalstore.core.hashing import canonical_json
from evalstore.core.values import FileVersion, Json
from evalstore.files.atomic_write import temporary_file
from evalstore.files.fields import suggest_beside
from evalstore.store.contents import (
    as_bytes,
    as_digits,
    decode_content,
    decode_row,
    missing,
    require,
    require_kind,
)
from evalstore.store.driver import Connection, Extent, refuse_foreign
from evalstore.store.events import EventQueries
from evalstore.store.location import StoreLocation
from evalstore.store.records import RecordQueries, append, ensure, select_each
from evalstore.store.rows.row_queries import RowQueries
from evalstore.store.rows.row_tables import ROWS_OF
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import (
    EVALUATIONS,
    EVENTS,
    FAILURES,
    FILES,
    SESSIONS,
    TABLES,
    VERSIONS,
    TableColumns,
)
from evalstore.store.shared_runs import SharedRunQueries
from evalstore.store.sqlite.connection import (
    copy_database,
    explain_database_error,
    find_foreign,
)
from evalstore.store.sqlite.driver import SQLiteDriver, version_of


class Stored(NamedTuple):
    """A content with its kind, as `show` prints it."""

    kind: str
    id: str
    content: Json


class Store(
    EventQueries,
    SharedRunQueries,
    RecordQueries,
    RowQueries,
):
    """An open store."""

    def find_prefix(self, prefix: str, most: int = 20) -> list[tuple[str, str]]:
        """Return the kind and the id of everything whose id starts with these digits."""
        matches: list[tuple[str, str]] = []
        for name in TABLES:
            query = f"SELECT id, content FROM {name} WHERE id BETWEEN ? AND ? LIMIT ?"
            rows = self._select(query, (*_range(prefix), most))
            contents = (decode_row(name, *row) for row in rows)
            matches += [(content["kind"], id) for id, content in contents]
        return sorted(matches, key=lambda match: match[1])

    def load_any(self, kind: str, id: str) -> Stored:
        """Return a content by its kind and full id; raises `StoreError` when it is missing."""
        table = {**VERSIONS, **EVENTS}[kind].name
        query = f"SELECT content FROM {table} WHERE id = ?"
        for (text,) in self._select(query, (as_bytes(id),)):
            return Stored(kind, id, decode_content(table, id, text, kind, shown=True))
        raise missing(kind, id)

    def find_questions(self, prefix: str, most: int = 20) -> list[str]:
        """Return ids of questions that have a session or a failure and start with these digits."""
        questions: set[str] = set()
        for name in (SESSIONS.name, FAILURES.name):
            query = f"SELECT DISTINCT question FROM {name} WHERE question BETWEEN ? AND ?"
            rows = self._select(f"{query} LIMIT ?", (*_range(prefix), most))
            questions |= {as_digits(id) for (id,) in rows}
        return sorted(questions)[:most]

    # --- versions

    def ensure_versions(
        self,
        contents: Mapping[str, tuple[str, str]],
        blobs: Mapping[str, FileVersion] | None = None,
    ) -> None:
        """Store versions that are missing; contents are by id: kind and canonical JSON."""
        by_table: dict[TableColumns, dict[str, dict[str, Any]]] = {}
        for id, (kind, content) in contents.items():
            by_table.setdefault(VERSIONS[kind], {})[id] = {"id": id, "content": content}
        for id, file in (blobs or {}).items():
            content = canonical_json(hashing.describe_file(file))
            by_table.setdefault(FILES, {})[id] = {"id": id, "content": content, "data": file.data}
        if not by_table:
            return

        def write(connection: Connection) -> None:
            for table, rows in by_table.items():
                (ensure if table.name in ROWS_OF else append)(connection, table, rows)

        self.write(write)

    def load_contents(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """Return the contents of those of these versions that the store has."""
        return dict(self._decode(VERSIONS[kind], ids, kind))

    def load_lengths(self, kind: str, ids: Iterable[str]) -> dict[str, int]:
        """Return the lengths, in characters, of those of these contents that the store has."""
        statement = f"SELECT id, length(content) FROM {VERSIONS[kind].name} WHERE id IN"
        return {as_digits(id): size for id, size in self._select_each(statement, ids)}

    def load_files_of(self, media_type: str) -> dict[bytes, bytes]:
        """Return the bytes of all files of a type, by id."""
        query = "SELECT id, data FROM files WHERE content LIKE ?"
        rows = self._select(query, (f'%"mediaType":"{media_type}"%',))
        return {bytes(id): bytes(data) for id, data in rows}

    def load_files(self, ids: Iterable[str]) -> dict[str, FileVersion]:
        """Return referenced files by id; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        query = "SELECT content, data FROM files WHERE id = ?"
        files: dict[str, FileVersion] = {}
        for id in unique_ids:
            for text, data in self._select(query, (as_bytes(id),)):
                content = decode_content("files", id, text)
                files[id] = FileVersion(
                    content["mediaType"], require_kind(data, bytes, "files", id)
                )
        return require(files, unique_ids, "file")

    def load_all(self, kind: str) -> dict[str, Json]:
        """Return all versions of a kind by id; only for evaluators, which are few."""
        table = VERSIONS[kind].name
        rows = self._select(f"SELECT id, content FROM {table}")
        return dict(decode_row(table, *row) for row in rows)

    # --- what is new

    def measure_extent(self) -> Extent | None:
        """Return how far the store reaches; None where its database cannot tell what is new."""
        return self.write(lambda connection: connection.dialect.growth.measure(connection))

    def find_newest(self, before: Extent | None = None) -> Extent:
        """Return how far the answers, judgements, failures and runs of the store reach.

        It equals the one `before`, which was found earlier, unless any was added since; versions
        that are read from files do not count.
        """
        with self._reading() as connection:
            return self.dialect.growth.newest(connection, before)

    def count_added(self, before: Extent, after: Extent) -> tuple[int, int]:
        """Return how many sessions and evaluations were added between two moments, at least.

        Some that were added later may count, too.
        """
        with self._reading() as connection:
            growth = self.dialect.growth
            sessions, evaluations = (
                growth.count(connection, table.name, before, after)
                for table in (SESSIONS, EVALUATIONS)
            )
        return sessions, evaluations

    def find_new_questions(self, since: Extent, most: int) -> set[str] | None:
        """Return the questions whose sessions or evaluations were added after an extent.

        None when more than `most` rows were added, and when the store never had that extent.
        """
        with self._reading() as connection:
            growth = self.dialect.growth
            if not growth.has_had(connection, since):
                return None
            condition, parameters = growth.condition(SESSIONS.name, since)
            query = f"SELECT question FROM sessions WHERE {condition} LIMIT ?"
            rows = connection.execute(query, (*parameters, most + 1)).fetchall()
            questions = {as_digits(question) for (question,) in rows}
            condition, parameters = growth.condition(EVALUATIONS.name, since)
            query = f"SELECT subject, id, content FROM evaluations WHERE {condition} LIMIT ?"
            judged = set[str]()
            count = len(rows)
            for subject, id, content in connection.execute(query, (*parameters, most + 1)):
                count += 1
                judgement = as_digits(id)
                sessions = decode_content(EVALUATIONS.name, judgement, content)["sessions"]
                judged.update(sessions if len(sessions) > 1 else [as_digits(subject)])
            if count > most:
                return None
            statement = "SELECT question FROM sessions WHERE id IN"
            found = select_each(connection, statement, judged)
            questions |= {as_digits(question) for (question,) in found}
        return questions


def _range(prefix: str) -> tuple[bytes | None, bytes | None]:
    """Return the first and the last id that start with these digits."""
    return as_bytes(prefix.ljust(32, "0")), as_bytes(prefix.ljust(32, "f"))


_BUSY_MILLISECONDS = 10_000


@contextmanager
def open_unchanged(location: StoreLocation) -> Iterator[Store]:
    """Open a store that is only read; raises `StoreError` as `Store.open` does.

    A store that is older than this program, or that another program may be writing to, is copied
    to a temporary file, and the copy is opened. A database must be up to date.
    """
    if not isinstance(location, Path):
        from evalstore.store.postgresql.driver import PostgreSQLDriver

        driver = PostgreSQLDriver.open(location, create=False, may_migrate=False)
        with closing(Store(driver)) as store:
            yield store
        return
    path = location
    if not path.is_file():
        raise StoreError(f"no store at '{path}'", hint=suggest_beside(path))
    if not Path(f"{path}-wal").exists() and _is_current(path):
        with closing(Store.open(path, immutable=True)) as store:
            yield store
        return
    with TemporaryDirectory(prefix="evalstore-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "store.db"
        _copy(path, copy)
        try:
            store = Store.open(copy, keep_copy=False)
        except StoreError as error:
            raise StoreError(str(error).replace(str(copy), str(path)), hint=error.hint) from error
        with closing(store):
            yield store


def _is_current(path: Path) -> bool:
    """Return whether a store needs no migration; raises `StoreError` for one that is refused."""
    driver = SQLiteDriver(path, _BUSY_MILLISECONDS, immutable=True)
    with closing(driver), driver.reading() as connection:
        refuse_foreign(
            str(path), [extra for extra in find_foreign(connection) if extra.blocks_reading]
        )
        version = version_of(connection)
    if version is None:
        raise StoreError(f"'{path}' is not a store of evalstore")
    table_definitions.refuse_newer(version, str(path))
    return version == table_definitions.HEAD


def _copy(path: Path, target: Path) -> None:
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if log.exists() and not index.exists():
        # Nobody uses the store; SQLite would make the index beside it to read the log.
        for suffix in ("", "-wal"):
            _copy_file(Path(f"{path}{suffix}"), Path(f"{target}{suffix}"))
        return
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"  # the latter makes no files
    uri = f"{path.absolute().as_uri()}?{mode}"
    timeout = _BUSY_MILLISECONDS / 1000
    try:
        with closing(sqlite3.connect(uri, timeout=timeout, uri=True)) as connection:
            copy_database(connection, target)
    except sqlite3.Error as error:
        raise explain_database_error(error, str(path)) from error


def _copy_file(path: Path, target: Path) -> None:
    try:
        with path.open("rb") as source, temporary_file(target, durable=False) as file:
            copyfileobj(source, file)
    except OSError as error:
        raise StoreError(
            f"the store '{path}' cannot be copied: {error.strerror or error}",
            hint="TMPDIR names a folder with more room",
        ) from error
