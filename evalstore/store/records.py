"""The transactions of a store, and its rows as they are written and copied between stores.

What is copied is only their content, from which all else is computed. Their references are the ids
of other rows in it. `find_missing` says which rows one side has and the other has not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.errors import StoreError
from evalstore.core.runs import restore_run
from evalstore.core.values import FileVersion, Json
from evalstore.store.contents import (
    ID_BYTES,
    all_as_bytes,
    as_bytes,
    as_digits,
    as_id,
    as_time,
    as_word,
    decode_content,
    decode_row,
    not_readable,
    require_kind,
    require_number,
    verify,
)
from evalstore.store.driver import (
    Connection,
    Driver,
    QueryRows,
    UnexpectedObject,
    refuse_other_than_queries,
)
from evalstore.store.location import StoreLocation
from evalstore.store.rows.row_tables import ROWS_OF, write_rows
from evalstore.store.schema.table_definitions import (
    EVALUATIONS,
    FAILURES,
    RUNS,
    TABLES,
    TableColumns,
)
from evalstore.store.sqlite.driver import SQLiteDriver

BUSY_SECONDS = 10.0
NO_LIMIT = 2**63 - 1
"""A number of rows that no table has."""


class Database:
    """An open database whose tables are those of this program.

    Its transactions are those of its `Driver`, where they are described.
    """

    def __init__(self, driver: Driver[Connection]) -> None:
        self._driver = driver
        self.path = driver.name
        """The path or the address of the store, as messages show it."""
        self.is_remote = driver.is_remote
        self._reading, self.snapshot, self.writing = driver.reading, driver.snapshot, driver.writing
        self.write, self.dialect = driver.write, driver.dialect
        self.iterate, self.database_problems = driver.iterate, driver.problems
        self.find_remote_runs: Callable[[str], Sequence[str]] | None = None
        """Returns the ids of the runs of a remote, newest first; set where there is a workspace."""

    @classmethod
    def open(
        cls,
        location: StoreLocation,
        *,
        create: bool = False,
        busy: float = BUSY_SECONDS,
        inspect: bool = False,
        immutable: bool = False,
        keep_copy: bool = True,
        may_migrate: bool = True,
    ) -> Self:
        """Open the store at a path or an address, and bring its tables up to date.

        `busy` is how many seconds to wait for other writers. With `inspect`, a store that has
        views in the place of tables is opened, too: they must not be read. An `immutable` file
        is only read, and must be up to date; nobody may write to it meanwhile. Before a migration,
        a copy of a file is made, unless `keep_copy` is false. Raises `StoreError` when the
        store is missing (unless `create`), older than this program (unless `may_migrate`),
        damaged, locked, read-only, newer than this program, not a store, or out of reach.
        """
        if isinstance(location, Path):
            return cls(
                SQLiteDriver.open(
                    location,
                    create=create,
                    busy=busy,
                    inspect=inspect,
                    immutable=immutable,
                    keep_copy=keep_copy,
                    may_migrate=may_migrate,
                )
            )
        from evalstore.store.postgresql.driver import PostgreSQLDriver

        return cls(
            PostgreSQLDriver.open(location, create=create, inspect=inspect, may_migrate=may_migrate)
        )

    def close(self) -> None:
        """Close all connections."""
        self._driver.close()

    @property
    def foreign(self) -> list[UnexpectedObject]:
        """Return objects in the schema that are foreign or missing."""
        return self._driver.foreign

    @property
    def file(self) -> tuple[str, int, int] | None:
        """Return the path, the device and the inode of the file; None for a store on a server."""
        return (self.path, *self._driver.file) if self._driver.file else None

    @property
    def seconds_away(self) -> float:
        """Return for how long its server has been away and is waited for; 0 if it is there."""
        return self._driver.seconds_away

    def _select(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._reading() as connection:
            return list(connection.execute(query, parameters))

    def _select_each(
        self,
        statement: str,
        ids: Iterable[str],
        rest: str = "",
        *,
        as_value: Callable[[str], Any] | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement for these ids, as `select_each` does."""
        with self._reading() as connection:
            yield from select_each(connection, statement, ids, rest, as_value=as_value)

    @contextmanager
    def ask(self, statement: str, seconds: float) -> Iterator[QueryRows]:
        """Return the answer to a statement of a person, which can only read.

        Raises `QueryError` for one that is wrong, that writes, or that takes longer than `seconds`.
        """
        refuse_other_than_queries(statement)
        with (
            self.snapshot() as connection,
            connection.dialect.answer(connection, statement, seconds) as rows,
        ):
            yield rows


def select_each(
    connection: Connection,
    statement: str,
    ids: Iterable[str],
    rest: str = "",
    *,
    as_value: Callable[[str], Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that ends with `IN`, for these ids, as SQLite returns them.

    `rest` follows the ids in the statement; `as_value` converts an id for the comparison.
    """
    for batch in in_batches(dict.fromkeys(ids)):
        values = [*map(as_value, batch)] if as_value else all_as_bytes(batch)
        yield from connection.select_in(statement, values, rest)


def ensure(connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]) -> None:
    """Insert the rows that are missing; rows are by id.

    Raises `StoreError` if a stored row has other content.
    """
    missing = _find_missing(connection, table, rows)
    if _insert(connection, table, missing) == len(missing):
        return
    if left := _find_missing(connection, table, missing):  # others have stored some meanwhile
        raise StoreError(f"id {next(iter(left))} cannot be stored in the table '{table.name}'")


def append(connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]) -> None:
    """Insert rows that are probably new; otherwise as `ensure`."""
    if _insert(connection, table, rows) != len(rows):
        ensure(connection, table, rows)


def _find_missing(
    connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the rows that are not stored; raises `StoreError` if one has other content."""
    missing = dict(rows)
    statement = f"SELECT id, content FROM {table.name} WHERE id IN"
    for digits, content in select_each(connection, statement, rows):
        id = as_digits(digits)
        if content != missing.pop(id)["content"]:
            raise StoreError(
                f"id {id} has other content in the store",
                hint="run 'evalstore fsck': the store is damaged",
            )
    return missing


def _insert(connection: Connection, table: TableColumns, rows: Mapping[str, dict[str, Any]]) -> int:
    """Insert the rows that are missing, and those that follow from them; returns how many.

    A row may have its content `parsed`, which then is not parsed again.
    """
    if not rows:
        return 0
    columns = ([row[name] for row in rows.values()] for name in table.columns)
    named = zip(table.columns, columns, strict=True)
    values = [all_as_bytes(column) if name in table.ids else column for name, column in named]
    inserted = connection.insert(table, [*zip(*values, strict=True)])
    if table.name in ROWS_OF:
        contents = (
            (bytes.fromhex(id), row.get("parsed") or json.loads(row["content"]))
            for id, row in rows.items()
        )
        write_rows(connection, contents)
    return inserted


OF_SESSIONS = ("test", "prompt", "model", "schema")
"""The fields of a session in which it refers to one row."""
OF_VERSIONS = ("test", "prompt", "prompts", "model", "schema", "tools", "file")
"""The fields of a version, and of what is in it, that refer to other rows."""


def iterate_references(kind: str, content: Json) -> Iterator[str]:
    """Yield the ids that a content refers to."""
    if kind in ("session", "evaluator", "test"):
        yield from (content[name] for name in OF_SESSIONS if name in content)
    if kind == "test":
        yield from content.get("tools", ())
    if kind == "judgement":
        yield from content["sessions"]
        yield content["evaluation"]
        yield content["evaluator"]
    if kind == "tree":
        yield from content.get("entries", {}).values()
        yield from content.get("children", {}).values()
    if kind in ("cases", "results"):
        yield from (part for part in content.get("parts", ()) if part)
    if kind == "cases":
        for case in content.get("cases", ()):
            yield from iterate_case_references(case)
    if kind == "results":
        yield content["cases"]
        for cell in content.get("cells", ()):
            yield from cell.get("sessions", ())
            yield from cell.get("evaluations", ())
    if kind == "run":
        yield from (
            content[name] for name in ("snapshot", "results", "sources") if content.get(name)
        )
        yield from (candidate["model"] for candidate in content.get("candidates", ()))
        yield from (evaluator["evaluator"] for evaluator in content.get("evaluators", ()))
    for message in content.get("messages", ()) if kind in ("test", "prompt") else ():
        yield from _files(message.get("content"))
    if kind == "evaluation":
        yield from _files(content.get("instructions"))
        yield from _of_checks(content.get("checks", ()))


def iterate_case_references(case: Json) -> Iterator[str]:
    """Yield the ids that a case refers to."""
    yield from case["tests"]
    yield from (prompt for prompt in case.get("prompts", ()) if prompt)
    yield from case.get("judgePrompts", ())
    if "evaluation" in case:
        yield case["evaluation"]


def iterate_joint_subjects(kind: str, content: Json) -> Iterator[str]:
    """Yield the subjects of judgements of several answers together that a content is about."""
    judged = [content["sessions"]] if kind == "judgement" else []
    if kind == "results":
        judged = [cell.get("sessions", ()) for cell in content.get("cells", ())]
    for sessions in judged:
        if len(sessions) > 1:
            yield hashing.subject_of(tuple(sessions))


def _of_checks(checks: Any) -> Iterator[str]:
    """Yield the ids of schemas, prompts and files that checks refer to."""
    for check in checks:
        if isinstance(check.get("schema"), str):
            yield check["schema"]
        yield from check.get("prompts", ())
        if "file" in check:
            yield check["file"]["id"]
        yield from _of_checks(check["checks"] if check["type"] == "block" else ())


def _files(parts: Any) -> Iterator[str]:
    if isinstance(parts, list):
        yield from (part["file"] for part in parts if "file" in part)


_ID = re.compile("[0-9a-f]{32}")
COPIED_TABLES = (
    *("files", "schemas", "tools", "prompts", "models", "evaluators", "evaluation_versions"),
    *("tests", "sessions", "evaluations", "failures", "nodes", "runs"),
)
"""The tables with permanent contents. What a row refers to is in its own table or an earlier one,
so that a copy that is interrupted has no run without its results."""


class StoredRecord(NamedTuple):
    """A row, without the columns that repeat its content."""

    table: str
    id: str
    content: str
    """Canonical JSON."""
    data: bytes | None = None
    """The bytes of a file; None for everything else."""

    @property
    def size(self) -> int:
        """Return roughly how many bytes it takes in memory."""
        return len(self.content) + len(self.data or b"")


class CheckedRecord(NamedTuple):
    """A record whose content matches its id and its kind."""

    record: StoredRecord
    kind: str
    content: Json
    row: dict[str, Any]
    """All columns of its table, and the `parsed` content."""

    @property
    def key(self) -> str | None:
        """Return the digits by which a record is found without its id; None for most.

        They are the question of a session, the subject of an evaluation, and the time of a run
        (16 digits), then `01` if it was about all cases.
        """
        column = {"sessions": "question", "evaluations": "subject"}.get(self.record.table)
        if self.kind == "run":
            cases = restore_run(self.record.id, self.content).cases
            is_whole = cases is None or cases.selected == cases.total
            return f"{max(self.row['started'], 0):016x}{is_whole:02x}".ljust(32, "0")
        return self.row[column] if column else None

    @property
    def references(self) -> Iterator[str]:
        """Return the ids that it refers to."""
        return iterate_references(self.kind, self.content)


def check_record(record: StoredRecord) -> CheckedRecord:
    """Check a record of unknown origin; raises `StoreError` when it is not sound."""
    table, id = record.table, record.id
    content = decode_content(table, id, record.content)
    kind = content["kind"]
    row: dict[str, Any] = {"id": id, "content": record.content, "parsed": content}
    try:
        if kind == "file":
            row["data"] = require_kind(record.data, bytes, table, id)
            version = FileVersion(content["mediaType"], row["data"])
            if hashing.describe_file(version) != content:
                raise not_readable(table, id, content, "its bytes do not match its id")
        columns = derive_columns(kind, content)
        if not all(map(_ID.fullmatch, iterate_references(kind, content))):
            raise ValueError("it refers to something that has no id")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise not_readable(table, id, content, f"its content is not that of a {kind}") from error
    for name in {"started", "at"} & columns.keys():
        as_time(columns[name], table, id)
    if "verdict" in columns:
        as_word(columns["verdict"])
        require_number(columns["score"], table, id)
    return CheckedRecord(record, kind, content, {**row, **columns})


class RecordQueries(Database):
    """The queries that copy rows between stores."""

    @contextmanager
    def snapshot_ids(self) -> Iterator[IdSnapshot]:
        """Return the ids of all rows as they are now, however much is written meanwhile."""
        with self.snapshot() as connection:
            yield IdSnapshot(connection)

    def load_records(self, table: str, ids: Iterable[str]) -> list[StoredRecord]:
        """Return the records of those of these ids that the table has, in order of their ids.

        Raises `StoreError` for a content that does not match its id.
        """
        data = ", data" if "data" in TABLES[table].columns else ""
        statement = f"SELECT id, content{data} FROM {table} WHERE id IN"
        records = []
        for bytes_, content, *rest in self._select_each(statement, ids):
            id = as_digits(bytes_)
            verify(table, id, content)
            blob = require_kind(rest[0], bytes, table, id) if rest else None
            records.append(StoredRecord(table, id, content, blob))
        return sorted(records, key=lambda record: record.id)

    def load_sizes(self, table: str, ids: Iterable[str]) -> dict[str, int]:
        """Return roughly how many bytes these rows have, by id; those it lacks are left out."""
        data = " + length(data)" if "data" in TABLES[table].columns else ""
        statement = f"SELECT id, length(content){data} FROM {table} WHERE id IN"
        return {as_digits(id): size for id, size in self._select_each(statement, ids)}

    def find_judgement_ids(self, subjects: Iterable[str]) -> set[bytes]:
        """Return the ids of all judgements of these subjects."""
        statement = f"SELECT id FROM {EVALUATIONS.name} WHERE subject IN"
        return {as_id(id) for (id,) in self._select_each(statement, subjects)}

    def find_run_ids(self, started: int, id: str) -> tuple[set[bytes], set[bytes]]:
        """Return the ids of the runs up to one, included, and of those after it."""
        query = f"SELECT (started, id) > (?, ?), id FROM {RUNS.name}"
        runs: tuple[set[bytes], set[bytes]] = (set(), set())
        for is_later, run in self._select(query, (started, as_bytes(id))):
            runs[is_later].add(as_id(run))
        return runs

    def find_failure_ids(self, after: int) -> set[bytes]:
        """Return the ids of the calls that have failed after a time."""
        query = f"SELECT id FROM {FAILURES.name} WHERE at > ?"
        return {as_id(id) for (id,) in self._select(query, (after,))}

    def find_present(self, table: str, ids: Iterable[bytes]) -> set[bytes]:
        """Return those of these ids that the table has."""
        statement = f"SELECT id FROM {table} WHERE id IN"
        digits = [id.hex() for id in ids]
        return {as_id(id) for (id,) in self._select_each(statement, digits)}

    def ensure_records(self, records: Sequence[CheckedRecord]) -> None:
        """Store what is missing of these records, in one transaction.

        Raises `StoreError` if a stored row has other content.
        """
        by_table: dict[str, dict[str, dict[str, Any]]] = {}
        for checked in records:
            by_table.setdefault(checked.record.table, {})[checked.record.id] = checked.row

        def write(connection: Connection) -> None:
            for table in sorted(by_table, key=COPIED_TABLES.index):
                append(connection, TABLES[table], by_table[table])

        self.write(write)


class IdSnapshot:
    """The ids in a store at one moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def iterate_ids(self, table: str) -> Iterator[tuple[bytes]]:
        """Yield the ids of a table in ascending order, each in a tuple."""
        query = f"SELECT id FROM {table} WHERE id >= ? ORDER BY id"  # only bytes are as large
        return self._connection.stream(query, (bytes(ID_BYTES),))

    def iterate_fields(self, table: str, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the id of each row and these fields of its content, as SQLite reads them.

        A list is its JSON, and a field that is missing None. Nothing is checked: decoding a
        content takes ten times as long.
        """
        fields = ", ".join(map(self._connection.dialect.field, names))
        for id, *values in self._connection.stream(f"SELECT id, {fields} FROM {table}"):
            yield (as_id(id), *values)

    def iterate_contents(
        self, table: str, mentioning: Sequence[str] = ()
    ) -> Iterator[tuple[bytes, Json]]:
        """Yield the id and the content of each row, or of those that have one of some fields.

        Raises `StoreError` for a content that does not match its id or its kind.
        """
        tests = " OR ".join(self._connection.dialect.has(f'"{name}":') for name in mentioning)
        query = f"SELECT id, content FROM {table} WHERE {tests or 'TRUE'}"
        for id, content in self._connection.stream(query):
            digits, decoded = decode_row(table, id, content)
            yield bytes.fromhex(digits), decoded


def make_rows(
    contents: Mapping[str, str], described: Mapping[str, Json] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the rows of contents by id, each with its `parsed` content; not those of files.

    Those that are `described` by id are not parsed.
    """
    rows: dict[str, dict[str, Any]] = {}
    for id, text in contents.items():
        content = (described and described.get(id)) or json.loads(text)
        columns = derive_columns(content["kind"], content)
        rows[id] = {"id": id, "content": text, "parsed": content, **columns}
    return rows


def derive_columns(kind: str, content: Json) -> dict[str, Any]:
    """Return the columns beside `id`, `content` and `data`; ids are in digits.

    Raises ValueError, KeyError or TypeError for a content that is not of its kind.
    """
    if kind == "session":
        return {
            "question": hashing.id_of_question(
                content["test"],
                *(content.get("prompt"), content["model"]),
                *(content.get("temperature"), content.get("seed")),
            ),
            "started": content["started"],
            "token_limit": content.get("limit"),
        }
    if kind == "judgement":
        return {
            "subject": hashing.subject_of(tuple(content["sessions"])),
            "evaluation": content["evaluation"],
            "evaluator": content["evaluator"],
            "started": content["started"],
            "verdict": content["verdict"],
            "score": content.get("score"),
        }
    if kind == "failure":
        return {"question": content.get("question"), "at": content["at"]}
    if kind == "run":
        return {"started": content["started"]}
    return {}


MissingIds = Mapping[str, bytes]
"""The sorted ids that are missing, concatenated, by table; as lists they need ten times as much."""


class IdSource(Protocol):
    """Something that knows the ids of its rows."""

    def iterate_ids(self, table: str) -> Iterator[tuple[bytes]]:
        """Yield the ids of a table in ascending order, each in a tuple as a database returns it."""
        ...


def find_missing(
    source: IdSource,
    target: IdSource,
    tables: Iterable[str] = COPIED_TABLES,
) -> dict[str, bytes]:
    """Return the ids that the source has and the target lacks; tables without any are left out."""
    missing = {}
    for table in tables:
        lacking = _find_lacking(source.iterate_ids(table), target.iterate_ids(table))
        if found := b"".join(as_id(id) for (id,) in lacking):
            missing[table] = found
    return missing


def _find_lacking(
    ids: Iterator[tuple[bytes]], others: Iterator[tuple[bytes]]
) -> Iterator[tuple[bytes]]:
    """Yield those of these ids that are not among the others; both are in ascending order."""
    other = next(others, None)
    for id in ids:
        while other is not None and other < id:
            other = next(others, None)
        if id != other:
            yield id


def count_by_table(missing: MissingIds) -> dict[str, int]:
    """Return how many ids there are in each table."""
    return {table: len(ids) // ID_BYTES for table, ids in missing.items()}


def count_ids(missing: MissingIds) -> int:
    """Return how many ids there are in all tables."""
    return sum(map(len, missing.values())) // ID_BYTES


def split_ids(joined: bytes | bytearray) -> Iterator[list[bytes]]:
    """Yield concatenated ids in batches."""
    starts = range(0, len(joined), ID_BYTES)
    return in_batches(bytes(joined[at : at + ID_BYTES]) for at in starts)


class CopyListener:
    """Ignores all progress; subclasses override the methods that they need."""

    def start(self, records: int) -> None:
        """Report how many records will be copied."""

    def advance(self, records: int, size: int) -> None:
        """Report how many more records were copied, and the bytes that were sent or received."""
