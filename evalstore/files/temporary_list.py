"""Keeps many small values in a temporary file, compressed, and sorts them there."""

from __future__ import annotations

import json
import marshal
import sqlite3
import tempfile
import threading
import weakref
import zlib
from ast import literal_eval
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from evalstore.core import batches

if TYPE_CHECKING:
    from typing import IO

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_IN_MEMORY = 1 << 20
"""The compressed bytes that stay in memory."""


class TemporaryList(Collection[Any]):
    """A list of values of JSON, which is read in its order or by number.

    It may be read by several threads. The file goes with the list; it has no name where the system
    allows that, so that a program that is killed leaves none.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        """`values` are read once, and few of them are in memory meanwhile."""
        self._filed = 0
        """How many values are in the file."""
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
        self._starts: list[int] = [0]
        """Where the bytes of each batch start, and where the last one ends."""
        self._firsts: list[int] = []
        """The number of the first value of each batch."""
        self._last: list[Any] = []
        """The values after those in the file."""
        self._lock = threading.RLock()
        self._read: tuple[int, list[Any]] = -1, []
        """The batch that was read last by number of a value."""
        weakref.finalize(self, self._file.close)
        for batch in batches.in_batches(values):
            self._add_batch(batch)

    def append(self, value: Any) -> None:
        """Add a value; until there are enough of them for a batch they stay as they are."""
        self._last.append(value)
        if len(self._last) >= batches.SIZE:
            self._file_last()

    def extend(self, values: Sequence[Any]) -> None:
        """Add values; a named tuple becomes a list, and so do tuples that are added with it."""
        if self._last:
            self._file_last()
        for batch in batches.in_batches(values):
            with self._lock:
                self._add_batch(batch)

    def _file_last(self) -> None:
        with self._lock:
            self._add_batch(self._last)
            self._last = []

    def _add_batch(self, values: Sequence[Any]) -> None:
        data = zlib.compress(_encode(values), level=1)
        self._file.seek(self._starts[-1])
        self._file.write(data)
        self._starts.append(self._starts[-1] + len(data))
        self._firsts.append(self._filed)
        self._filed += len(values)

    def __len__(self) -> int:
        with self._lock:
            return self._filed + len(self._last)

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while values := self._read_from(number):  # some may be added meanwhile
            yield from values
            number += len(values)

    def _read_from(self, number: int) -> Sequence[Any]:
        """Return the values from a number on up to the end of its batch; empty at the end."""
        with self._lock:
            if number >= self._filed:
                return self._last[number - self._filed :]
            batch = self._batch_of(number)
            return self._load(batch)[number - self._firsts[batch] :]

    def __contains__(self, value: object) -> bool:
        return any(own == value for own in self)

    def __getitem__(self, number: int) -> Any:
        if number < 0:
            raise IndexError(number)
        with self._lock:
            if number >= self._filed:
                return self._last[number - self._filed]
            batch = self._batch_of(number)
            return self._load_kept(batch)[number - self._firsts[batch]]

    def read_some(self, numbers: Iterable[int]) -> list[Any]:
        """Return the values with these numbers, in this order; each batch is read once."""
        listed = list(numbers)
        ordered = sorted({*listed})
        with self._lock:
            values = [*self._read_ordered(ordered)]
        if ordered == listed:
            return values
        found = dict(zip(ordered, values, strict=True))
        return [found[number] for number in listed]

    def _read_ordered(self, numbers: Sequence[int]) -> Iterator[Any]:
        """Yield the values with these numbers, which are in order."""
        first, batch = 0, list[Any]()
        for number in numbers:
            if number - first >= len(batch) and number < self._filed:
                of = self._batch_of(number)
                first, batch = self._firsts[of], self._load_kept(of)
            yield batch[number - first] if number < self._filed else self[number]

    def _batch_of(self, number: int) -> int:
        return bisect_right(self._firsts, number) - 1

    def _load_kept(self, number: int) -> list[Any]:
        """Return the values of a batch, which are kept until another one is read."""
        with self._lock:
            read, values = self._read
            if read != number:
                values = self._load(number)
                self._read = number, values
            return values

    def _load(self, number: int) -> list[Any]:
        start, end = self._starts[number : number + 2]
        with self._lock:
            self._file.seek(start)
            data = self._file.read(end - start)
        values: list[Any] = marshal.loads(zlib.decompress(data))
        return values


def _encode(values: Any) -> bytes:
    """Encode values, in a third of the time of JSON."""
    try:
        return marshal.dumps(values)
    except ValueError:  # one is of a class of its own, as a named tuple is
        return marshal.dumps(json.loads(json.dumps(values)))


class SortedValues:
    """Lists of JSON in a temporary database, which sorts them."""

    def __init__(self, keys: int) -> None:
        """The first `keys` values of a list, each a text, a number or None, say where it is."""
        columns = ", ".join(f"key{number}" for number in range(keys))
        self._keys = keys
        self._execute = open_temporary(self, f"CREATE TABLE lists ({columns}, list)")

    def add(self, lists: Iterable[Sequence[Any]]) -> None:
        """Add lists."""
        places = ", ".join("?" * (self._keys + 1))
        for each in lists:
            keys = map(_comparable, each[: self._keys])
            self._execute(f"INSERT INTO lists VALUES ({places})", (*keys, _encode(each)))

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield the lists in their order; none may be added meanwhile."""
        order = ", ".join(str(number + 1) for number in range(self._keys))
        for *_, encoded in self._execute(f"SELECT * FROM lists ORDER BY {order}"):
            yield marshal.loads(encoded)


def _comparable(value: Any) -> Any:
    """Return a text as bytes, which have its order; any character can be stored so."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


class TemporaryMapping(Mapping[K, V]):
    """Values by ids, or by tuples of ids, in a temporary database; the first of a key counts."""

    def __init__(
        self,
        pack: Callable[[V], Any] = lambda value: value,
        unpack: Callable[[Any], V] = lambda value: value,
    ) -> None:
        """`pack` turns a value into JSON and `unpack` back."""
        self._pack, self._unpack = pack, unpack
        table = "CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
        self._execute = open_temporary(self, table)

    def update(self, values: Mapping[K, V]) -> None:
        """Add values."""
        for key, value in values.items():
            entry = repr(key), _encode(self._pack(value))
            self._execute("INSERT OR IGNORE INTO entries VALUES (?, ?)", entry)

    def __getitem__(self, key: K) -> V:
        row = self._execute("SELECT value FROM entries WHERE key = ?", (repr(key),)).fetchone()
        if row is None:
            raise KeyError(key)
        return self._unpack(marshal.loads(row[0]))

    def __iter__(self) -> Iterator[K]:
        for (key,) in self._execute("SELECT key FROM entries"):
            yield literal_eval(key)

    def __len__(self) -> int:
        return int(self._execute("SELECT count(*) FROM entries").fetchone()[0])


def open_temporary(owner: object, script: str) -> Callable[..., sqlite3.Cursor]:
    """Return what executes statements in a new temporary database, which is gone with its owner.

    SQLite keeps it in memory as long as it is small.
    """
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    weakref.finalize(owner, database.close)
    database.executescript(f"PRAGMA journal_mode = OFF; {script}; BEGIN")
    return database.execute
