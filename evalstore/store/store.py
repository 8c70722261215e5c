"""Reading and writing the store.

Writing is insert-or-ignore: content decides the id, so whoever comes second has nothing
left to write; but an id that stands for other content is a loud error. Every call is one
transaction. Many writers may share a store; each waits for the others.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, create_engine, event, func, insert, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import col

from evalstore import hashing
from evalstore.errors import StoreError
from evalstore.store import migrate
from evalstore.store.tables import (
    EVENTS,
    VERSIONS,
    EvaluationRow,
    FailureRow,
    FileRow,
    NodeRow,
    RunRow,
    SessionRow,
)
from evalstore.values import (
    CaseFile,
    Evaluation,
    Failure,
    FileVersion,
    Json,
    Sample,
    Session,
    Vote,
)

_AT_ONCE = 8_000
"""Ids in one query."""
BUSY_SECONDS = 10.0


class Stored(NamedTuple):
    """One version with its kind: what `show` prints."""

    kind: str
    id: str
    content: Json


class Store:
    """An open store."""

    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self.path = path

    # --- opening

    @classmethod
    def open(cls, path: Path, *, create: bool = False, busy: float = BUSY_SECONDS) -> Store:
        """Open the store at a path and bring its tables up to date.

        Raises `StoreError` when it is missing (unless `create`), damaged, locked,
        read-only, or newer than this program.
        """
        name = str(path)
        if not path.exists():
            if not create:
                raise StoreError(
                    f"there is no store at '{name}'", hint="run 'evalstore init' first"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
        store = cls(_engine(path, busy), name)
        with store._translated():
            with store._connect() as connection:
                found = migrate.version_of(connection)
            if found is not None:
                migrate.refuse_newer(found, name)
            if found != migrate.HEAD:
                if found is not None:
                    store._back_up(found)
                with store._write() as connection:
                    if migrate.version_of(connection) != migrate.HEAD:
                        migrate.upgrade(connection)
        return store

    def close(self) -> None:
        """Give the file back."""
        self._engine.dispose()

    def _back_up(self, version: str) -> None:
        target = Path(f"{self.path}.before-{migrate.HEAD}")
        if not target.exists():
            with self._engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert isinstance(raw, sqlite3.Connection)
                copy = sqlite3.connect(target)
                raw.backup(copy)
                copy.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise _explain(error, self.path) from error

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._translated(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._translated(), self._engine.connect() as connection:
            connection = connection.execution_options(evalstore_write=True)
            with connection.begin():
                yield connection

    # --- versions

    def ensure_versions(
        self,
        contents: Mapping[str, tuple[str, str]],
        blobs: Mapping[str, FileVersion] | None = None,
    ) -> None:
        """Store versions unless they are there; contents are by id: kind and canonical JSON."""
        by_table: dict[Any, dict[str, dict[str, Any]]] = {}
        for id, (kind, content) in contents.items():
            by_table.setdefault(VERSIONS[kind], {})[id] = {"id": id, "content": content}
        for id, file in (blobs or {}).items():
            content = hashing.canonical_json(hashing.describe_file(file))
            by_table.setdefault(FileRow, {})[id] = {"id": id, "content": content, "data": file.data}
        if not by_table:
            return
        with self._write() as connection:
            for table, rows in by_table.items():
                _ensure(connection, table, rows)

    def ensure_files(self, blobs: Mapping[str, FileVersion]) -> None:
        """Store referenced files unless they are there."""
        self.ensure_versions({}, blobs)

    def load_contents(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """The contents of those of these versions that the store has."""
        return {id: json.loads(content) for id, content in self._find(VERSIONS[kind], ids)}

    def load_files(self, ids: Iterable[str]) -> dict[str, FileVersion]:
        """Referenced files by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, FileVersion] = {}
        with self._connect() as connection:
            for id in wanted:
                row = connection.execute(
                    select(col(FileRow.content), col(FileRow.data)).where(col(FileRow.id) == id)
                ).one_or_none()
                if row is None:
                    raise StoreError(f"the store has no file {id}", hint="run 'evalstore fsck'")
                found[id] = FileVersion(json.loads(row[0])["mediaType"], row[1])
        return found

    def load_case_files(self, ids: list[str]) -> dict[str, CaseFile]:
        """Leaves of snapshots by id; those the store does not have are missing."""
        return {
            id: hashing.restore_case_file(content)
            for id, content in self.load_contents("cases", ids).items()
        }

    def missing_files(self, ids: Iterable[str]) -> set[str]:
        """Those of these referenced files that the store does not have."""
        wanted = set(ids)
        with self._connect() as connection:
            for some in _chunks(wanted):
                wanted -= set(
                    connection.scalars(select(col(FileRow.id)).where(col(FileRow.id).in_(some)))
                )
        return wanted

    def _find(self, table: Any, ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        with self._connect() as connection:
            for some in _chunks(ids):
                query = select(col(table.id), col(table.content)).where(col(table.id).in_(some))
                for id, content in connection.execute(query):
                    yield id, content

    # --- facts

    def record(
        self,
        sessions: Mapping[str, tuple[Session, str]] | None = None,
        evaluations: Mapping[str, tuple[Evaluation, str]] | None = None,
        failures: Sequence[Failure] = (),
    ) -> None:
        """Append facts in one transaction; sessions and evaluations by id, with their content."""
        with self._write() as connection:
            if sessions:
                rows = [
                    {
                        "id": id,
                        "content": content,
                        "question": hashing.question_id(session.question),
                        "started": session.started,
                        "token_limit": session.limit,
                    }
                    for id, (session, content) in sessions.items()
                ]
                connection.execute(insert(SessionRow).prefix_with("OR IGNORE"), rows)
            if evaluations:
                judged = [
                    {
                        "id": id,
                        "content": content,
                        "subject": hashing.subject_of(evaluation.sessions),
                        "evaluation": evaluation.evaluation,
                        "evaluator": evaluation.evaluator,
                        "started": evaluation.started,
                        "verdict": evaluation.verdict,
                        "score": evaluation.score,
                    }
                    for id, (evaluation, content) in evaluations.items()
                ]
                connection.execute(insert(EvaluationRow).prefix_with("OR IGNORE"), judged)
            for failure in failures:
                id, content = hashing.identify(hashing.describe_failure(failure))
                connection.execute(
                    insert(FailureRow).prefix_with("OR IGNORE"),
                    {"id": id, "content": content, "question": failure.question, "at": failure.at},
                )

    def record_run(self, content: Json) -> str:
        """Append a run; returns its id."""
        id, canonical = hashing.identify(content)
        with self._write() as connection:
            connection.execute(
                insert(RunRow).prefix_with("OR IGNORE"),
                {"id": id, "content": canonical, "started": content["started"]},
            )
        return id

    def find_samples(self, questions: Iterable[str]) -> dict[str, list[Sample]]:
        """The sessions of these questions, oldest first."""
        row = SessionRow
        found: dict[str, list[Sample]] = {}
        with self._connect() as connection:
            for some in _chunks(questions):
                query = select(
                    col(row.question), col(row.started), col(row.id), col(row.token_limit)
                ).where(col(row.question).in_(some))
                for question, started, id, limit in connection.execute(query):
                    found.setdefault(question, []).append(Sample(started, id, limit))
        for samples in found.values():
            samples.sort(key=lambda sample: sample[:2])
        return found

    def find_votes(self, subjects: Iterable[str]) -> dict[str, list[Vote]]:
        """The evaluations of these subjects, oldest first."""
        row = EvaluationRow
        found: dict[str, list[Vote]] = {}
        with self._connect() as connection:
            for some in _chunks(subjects):
                query = select(
                    col(row.subject),
                    col(row.started),
                    col(row.id),
                    col(row.evaluation),
                    col(row.evaluator),
                    col(row.verdict),
                    col(row.score),
                ).where(col(row.subject).in_(some))
                for subject, *vote in connection.execute(query):
                    found.setdefault(subject, []).append(Vote(*vote))
        for votes in found.values():
            votes.sort(key=lambda vote: vote[:2])
        return found

    def find_failed(self, questions: Iterable[str]) -> dict[str, str]:
        """The newest failure message of each of these questions that has one."""
        row = FailureRow
        found: dict[str, str] = {}
        with self._connect() as connection:
            for some in _chunks(questions):
                query = (
                    select(col(row.question), col(row.content))
                    .where(col(row.question).in_(some))
                    .order_by(col(row.at))
                )
                for question, content in connection.execute(query):
                    found[question] = json.loads(content)["message"]
        return found

    def load_sessions(self, ids: Iterable[str]) -> dict[str, Session]:
        """Sessions by id."""
        return {
            id: hashing.restore_session(json.loads(content))
            for id, content in self._find(SessionRow, ids)
        }

    def load_evaluations(self, ids: Iterable[str]) -> dict[str, Evaluation]:
        """Evaluations by id."""
        return {
            id: hashing.restore_evaluation_result(json.loads(content))
            for id, content in self._find(EvaluationRow, ids)
        }

    def load_failures(self, limit: int) -> list[Json]:
        """The newest failures."""
        query = select(col(FailureRow.content)).order_by(col(FailureRow.at).desc()).limit(limit)
        with self._connect() as connection:
            return [json.loads(content) for content in connection.scalars(query)]

    # --- runs

    def find_runs(self, *, limit: int | None = None, offset: int = 0) -> list[tuple[str, Json]]:
        """Runs with their contents, newest first."""
        query = (
            select(col(RunRow.id), col(RunRow.content))
            .order_by(col(RunRow.started).desc(), col(RunRow.id).desc())
            .offset(offset)
            .limit(limit)
        )
        with self._connect() as connection:
            return [(id, json.loads(content)) for id, content in connection.execute(query)]

    def count_runs(self) -> int:
        """How many runs there are."""
        with self._connect() as connection:
            return int(connection.scalar(select(func.count()).select_from(RunRow)) or 0)

    # --- anything by its id

    def find_prefix(self, prefix: str, most: int = 20) -> list[tuple[str, str]]:
        """Everything whose id starts with these digits: kind and id."""
        low, high = prefix.ljust(32, "0"), prefix.ljust(32, "f")
        found: list[tuple[str, str]] = []
        with self._connect() as connection:
            for table in _tables():
                query = (
                    select(col(table.id), col(table.content))
                    .where(col(table.id) >= low, col(table.id) <= high)
                    .limit(most)
                )
                found += [
                    (json.loads(content)["kind"], id) for id, content in connection.execute(query)
                ]
        return sorted(found, key=lambda one: one[1])

    def load_any(self, kind: str, id: str) -> Stored:
        """One thing by its kind and full id; raises `StoreError` when it is not there."""
        table = {**VERSIONS, **EVENTS}[kind]
        with self._connect() as connection:
            content = connection.scalar(select(col(table.content)).where(col(table.id) == id))
        if content is None:
            raise StoreError(f"the store has no {kind} {id}", hint="run 'evalstore fsck'")
        return Stored(kind, id, json.loads(content))

    def find_questions(self, prefix: str, most: int = 20) -> list[str]:
        """Ids of questions that have a session and start with these digits."""
        low, high = prefix.ljust(32, "0"), prefix.ljust(32, "f")
        question = col(SessionRow.question)
        query = select(question).where(question >= low, question <= high).distinct().limit(most)
        with self._connect() as connection:
            return list(connection.scalars(query))

    def load_nodes(self, ids: Iterable[str]) -> dict[str, Json]:
        """Nodes of trees by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        found = {id: json.loads(content) for id, content in self._find(NodeRow, wanted)}
        for id in wanted:
            if id not in found:
                raise StoreError(f"the store has no node {id}", hint="run 'evalstore fsck'")
        return found

    # --- everything, for `fsck`

    def iterate(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every row of every table with its table's name, as it is stored."""
        with self._connect() as connection:
            raw = connection.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)
            raw.text_factory = lambda data: data.decode("utf-8", "replace")
            for table in _tables():
                rows = connection.execution_options(stream_results=True).execute(
                    select(table.__table__)
                )
                for row in rows.mappings():
                    yield table.__tablename__, row
            raw.text_factory = str

    def database_problems(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        from sqlalchemy import text

        with self._connect() as connection:
            found = [str(line) for line in connection.scalars(text("PRAGMA integrity_check"))]
        return [] if found == ["ok"] else found


def _tables() -> list[Any]:
    return list(dict.fromkeys([*VERSIONS.values(), *EVENTS.values()]))


def _ensure(connection: Connection, table: Any, rows: Mapping[str, dict[str, Any]]) -> None:
    """Insert what is missing, compare what is there."""
    missing = dict(rows)
    for some in _chunks(rows):
        query = select(col(table.id), col(table.content)).where(col(table.id).in_(some))
        for id, content in connection.execute(query):
            if content != missing.pop(id)["content"]:
                raise StoreError(
                    f"id {id} stands for other content in the store",
                    hint="run 'evalstore fsck': the store is damaged",
                )
    if missing:
        connection.execute(insert(table), list(missing.values()))


def _chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


def _engine(path: Path, busy: float) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": busy})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(busy * 1000)}")
        cursor.execute("PRAGMA foreign_keys = ON")
        if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("evalstore_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _explain(error: Exception, path: str) -> StoreError:
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    lower = text.lower()
    if "locked" in lower or "busy" in lower:
        return StoreError(
            f"the store '{path}' is locked by another program",
            hint="wait until it is done and try again",
        )
    if "readonly" in lower or "read-only" in lower:
        return StoreError(
            f"the store '{path}' is read-only",
            hint="check the permissions of the file and its folder",
        )
    if any(
        word in lower
        for word in ("malformed", "not a database", "corrupt", "no such column", "no such table")
    ):
        return StoreError(
            f"the store '{path}' is damaged: {text}",
            hint="restore a copy of it; 'evalstore fsck' lists what is wrong",
        )
    if "unable to open" in lower:
        return StoreError(
            f"the store '{path}' cannot be opened", hint="check the path and its permissions"
        )
    if "full" in lower:
        return StoreError(
            f"there is no room left for the store '{path}'", hint="free some space; nothing is lost"
        )
    return StoreError(f"the store '{path}' cannot be used: {text}")
