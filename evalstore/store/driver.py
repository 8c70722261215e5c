"""What the queries need of a database: one protocol for SQLite and PostgreSQL.

Statements are written once, with `?` for parameters and nothing that only one of the two knows.
What each writes in another way is in `Dialect`, or is a method of `Connection`.

What a thread reads is ended when nobody waits for it any more, and it tells how far it has come:
SQLite ends the statement; PostgreSQL is told to, and the connection is closed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Event, Lock, local
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import TABLES, TableColumns

_QUERIES = ("select", "with", "values")
_HINT = "'evalstore sql' without a query lists the views and their columns"


class QueryRows(NamedTuple):
    """The rows of a query."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


class QueryError(EvalstoreError):
    """A statement that the database refuses."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message, hint=hint)


def refuse_other_than_queries(statement: str) -> None:
    """Raise `QueryError` for a statement that begins like one that changes something."""
    word = statement.split(maxsplit=1)[0].rstrip(";").lower() if statement.strip() else ""
    if word not in _QUERIES and not word.startswith(("(", "-", "/")):
        raise refuse_writing()


def refuse_writing() -> QueryError:
    """Return the error for a statement that does more than read."""
    return QueryError(
        "'evalstore sql' only reads the store", "begin the statement with SELECT or WITH"
    )


def took_too_long(seconds: float) -> QueryError:
    """Return the error for a statement that was ended."""
    return QueryError(
        f"the query took longer than {seconds:g} s", "ask for less, or raise --timeout"
    )


T = TypeVar("T")
C_co = TypeVar("C_co", bound="Connection", covariant=True)
_KEPT = 5
"""The number of idle connections that stay open."""
PATIENCE_SECONDS = 120.0
"""How long a server that goes away is waited for."""
Extent = tuple[int | str, ...]
"""How far a store reached at a moment, as its database says it; only `Growth` reads it."""


@dataclass(frozen=True)
class Dialect:
    """Expressions that SQLite and PostgreSQL write in different ways."""

    field: Callable[[str], str]
    """Returns the expression for a field of `content`, such as `usage.inputTokens`."""
    text: Callable[[str], str]
    """Returns the same for a text, which texts can be compared with."""
    has: Callable[[str], str]
    """Returns the condition that `content` has a text somewhere."""
    as_stored: Callable[[str], str]
    """Returns the expression for a column that may have a value of another type.

    Where a text need not be UTF-8, its bytes are returned.
    """
    usd: str
    """The cost of a session or a judgement."""
    longest_output: str
    """The most output tokens of a turn of a session."""
    feedback: str
    """The feedback of a judgement as two columns: itself, or the content that has it."""
    newest_first: str
    """The order in which the rows of a table were stored, newest first."""
    growth: Growth
    """Finds the rows that are new."""
    row_number: str
    """A column of tests, instructions, answers and judgements: a later row has no lower number."""
    is_newer: str
    """The condition that the number of a row is higher than a parameter."""
    settled: str
    """A number: no row that is stored later has it, or a lower one."""
    for_update: str
    """The end of a query whose rows others cannot change until the transaction ends."""
    skip_locked: str
    """The end of a query that skips rows that another transaction changes."""
    clock: str
    """The time by the clock of the database, in microseconds since 1970."""
    answer: Callable[[Any, str, float], AbstractContextManager[QueryRows]]
    """Returns the rows of a statement of a person, in a connection that reads."""


class Growth(Protocol):
    """What a database knows of the rows that were added to a table after a moment."""

    def measure(self, connection: Connection) -> Extent | None:
        """Return how far a store reaches, in a transaction that writes; None if it cannot tell."""

    def newest(self, connection: Connection, before: Extent | None) -> Extent:
        """Return how far the answers, judgements, failures and runs reach.

        It equals the one `before` unless any was added since; versions do not count.
        """

    def has_had(self, connection: Connection, extent: Extent) -> bool:
        """Return whether the store of a connection, and none but it, has reached this far."""

    def count(self, connection: Connection, table: str, before: Extent, after: Extent) -> int:
        """Return how many rows were added to a table from one moment to a later one, at least."""

    def condition(self, table: str, since: Extent) -> tuple[str, tuple[int | str, ...]]:
        """Return the condition for the rows that were added since, and its parameters."""


class Connection(Protocol):
    """A connection, which one thread uses at a time."""

    inserted: tuple[str, bytes] | None
    """The table and the id of the last permanent row that the transaction has inserted."""

    @property
    def dialect(self) -> Dialect:
        """Return the expressions of its database."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Any:
        """Execute a statement, and return its cursor; the rows may be held in memory."""

    def change_in(self, statement: str, values: Sequence[Any], *before: Any) -> None:
        """Execute a statement that changes rows and ends with `IN`, for these values.

        `before` are its other parameters.
        """

    def stream(self, statement: str, parameters: Sequence[Any] = (), /) -> Iterator[Any]:
        """Yield the rows of a query, in a snapshot, without holding all of them in memory."""

    def select_in(self, statement: str, values: Sequence[Any], rest: str = "") -> list[Any]:
        """Return the rows of a query that ends with `IN`, for these values.

        `rest` follows the values in the statement.
        """

    def insert(self, table: TableColumns, rows: Sequence[Sequence[Any]]) -> int:
        """Insert rows, in the order of their columns, except those whose id is in the table.

        Returns how many were inserted.
        """

    def commit(self) -> None:
        """Commit the transaction."""

    def close(self) -> None:
        """Close it."""


class UnexpectedObject(NamedTuple):
    """An object in the schema that evalstore has not created, or one that is missing."""

    words: str
    """A message, such as `the trigger 'x' does not belong to evalstore`."""
    table: str | None = None
    """The table of evalstore that it replaces."""
    blocks_writing: bool = False
    """Whether it could change what is written."""
    blocks_reading: bool = False
    """Whether reading it could run code of its author, without end."""
    missing: bool = False


def refuse_foreign(name: str, foreign: Sequence[UnexpectedObject]) -> None:
    """Raise `StoreError` if there are objects that make reading or writing unsafe."""
    if foreign:
        verb = "read" if any(extra.blocks_reading for extra in foreign) else "written to"
        raise StoreError(
            f"the store '{name}' is not {verb}: {foreign[0].words}",
            hint="'evalstore fsck' lists what is wrong; do not use a store of unknown origin",
        )


GoOn = Callable[[], bool]
"""Returns whether somebody still waits for what is read."""


class Reached(NamedTuple):
    """How far a long reading has come."""

    counted: str
    """What is counted, such as `rows`."""
    done: int
    total: int
    """Of how many; 0 while that is not known."""


Tell = Callable[[Reached], None]
"""Is told in the thread that reads."""


class UnwantedError(StoreError):
    """Nobody waits any more for what was read."""

    def __init__(self) -> None:
        super().__init__("this was not read to its end, as nobody is waiting for it")


class _Thread(local):
    go_on: GoOn | None = None
    tell: Tell | None = None


_thread = _Thread()


@contextmanager
def while_wanted(go_on: GoOn | None) -> Iterator[None]:
    """End what this thread reads in the block with `UnwantedError` once `go_on` returns False.

    None: it is read to its end.
    """
    before, _thread.go_on = _thread.go_on, go_on
    try:
        yield
    finally:
        _thread.go_on = before


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Tell how far what this thread reads in the block has come."""
    before, _thread.tell = _thread.tell, tell
    try:
        yield
    finally:
        _thread.tell = before


def note_reached(counted: str, done: int, total: int = 0) -> None:
    """Tell how far what this thread reads has come.

    Raises `UnwantedError` if nobody waits any more for it.
    """
    refuse_unwanted()
    if _thread.tell is not None:
        _thread.tell(Reached(counted, done, total))


def may_end() -> bool:
    """Return whether what this thread reads can be ended."""
    return _thread.go_on is not None


def is_unwanted() -> bool:
    """Return whether nobody waits any more for what this thread reads."""
    return _thread.go_on is not None and not _thread.go_on()


def refuse_unwanted() -> None:
    """Raise `UnwantedError` if nobody waits any more for what this thread reads."""
    if is_unwanted():
        raise UnwantedError


class Driver(ABC, Generic[C_co]):
    """An open database with the tables of this program, and its connections.

    Each connection is used by one thread at a time; the one that was returned last is used next.
    """

    dialect: Dialect
    """The expressions of its database."""
    is_remote: bool
    """Whether a transaction may take long because it crosses a network."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The path or the address of the store, as messages show it."""
        self.file: tuple[int, int] | None = None
        """The device and inode of the open file, because its path may be replaced; None for a
        database on a server."""
        self.foreign: list[UnexpectedObject] = []
        """Objects in the schema that evalstore has not created, and objects that are missing."""
        self._version: str | None = None
        """The migration of the tables, once it is open."""
        self._stored: Sequence[tuple[str, bytes]] = ()
        """The tables and ids of the rows that were stored last: they must stay there."""
        self._idle: list[C_co] = []
        self._lock = Lock()
        self._closed = Event()

    @property
    def seconds_away(self) -> float:
        """Return for how long its server has been away and is waited for; 0 if it is there."""
        return 0.0

    def close(self) -> None:
        """Close all connections; those in use are closed when they are returned."""
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def reading(self) -> Iterator[C_co]:
        """Return a connection that reads; each statement sees what is committed."""
        refuse_unwanted()
        with self._translated(), self._connection() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[C_co]:
        """Return a connection that reads what is committed now, however much is written."""
        with self.reading() as connection:
            self._begin_snapshot(connection)
            yield connection

    @contextmanager
    def writing(self, *, wait: bool = True) -> Iterator[C_co]:
        """Return a transaction that writes.

        Without `wait`, `StoreLockedError` is raised at once where it would wait for others.
        """
        with self._translated(), self._transaction(wait=wait) as connection:
            yield connection

    def write(self, work: Callable[[C_co], T], *, wait: bool = True) -> T:
        """Do work in a transaction that writes, and return its result.

        Where that is safe, it is done again when the database has rolled it back: it must compute
        the same again.
        """
        with self.writing(wait=wait) as connection:
            return work(connection)

    def iterate(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield every row of every table with permanent contents, with the name of its table.

        Ids are bytes. In a text, bytes that are not UTF-8 are kept as surrogates.
        """
        foreign = {extra.table for extra in self.foreign}
        with self.snapshot() as connection:
            for name, table in TABLES.items():
                columns = tuple(table.columns)
                query = f"SELECT {', '.join(columns)} FROM {name}"
                for row in self._stream_damaged(connection, query) if name not in foreign else ():
                    yield name, dict(zip(columns, row, strict=True))

    @abstractmethod
    def problems(self) -> list[str]:
        """Return the problems that the database finds in itself."""

    @contextmanager
    def _transaction(self, *, wait: bool) -> Iterator[C_co]:
        refuse_foreign(self.name, [extra for extra in self.foreign if extra.blocks_writing])
        with while_wanted(None), self._connection() as connection:
            connection.inserted = None
            version = self._begin(connection, wait=wait)
            if self._version:
                table_definitions.refuse_migrated(version, self._version, self.name)
            yield connection
            connection.commit()
            inserted: tuple[str, bytes] | None = connection.inserted
            self._stored = [inserted] if inserted else self._stored

    @contextmanager
    def _connection(self) -> Iterator[C_co]:
        """Return a connection for a block; what is not committed at its end is rolled back."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            is_kept = False
            try:
                is_sound = self._roll_back(connection)
                with self._lock:
                    is_kept = is_sound and not self._closed.is_set() and len(self._idle) < _KEPT
                    if is_kept:
                        self._idle.append(connection)
            finally:
                if not is_kept:
                    connection.close()

    def _refuse_migrated(self) -> None:
        """Raise `StoreError` if another program has migrated the store since it was opened."""
        if self._version:
            with self._connection() as connection:
                version = self._find_version(connection)
            table_definitions.refuse_migrated(version, self._version, self.name)

    @abstractmethod
    def _connect(self) -> C_co:
        """Return a new connection."""

    @abstractmethod
    def _roll_back(self, connection: Any) -> bool:
        """Roll back what was not committed; returns whether the connection can be used again."""

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """Raise errors of the database as `StoreError`."""

    @abstractmethod
    def _begin_snapshot(self, connection: Any) -> None: ...

    @abstractmethod
    def _begin(self, connection: Any, *, wait: bool) -> str | None:
        """Begin a transaction that writes; returns the migration of the store.

        Raises `StoreError` if a row is gone that was stored.
        """

    @abstractmethod
    def _find_version(self, connection: Any) -> str | None:
        """Return the migration of the store; None for one without tables."""

    @abstractmethod
    def _stream_damaged(self, connection: Any, query: str) -> Iterator[Any]:
        """Yield the rows of a query, also those with texts that are not UTF-8."""
