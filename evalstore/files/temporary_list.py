"""Many small values in temporary databases: lists, sorted ones, by keys, and packed ones."""

from __future__ import annotations

import json
import marshal
import sqlite3
import weakref
from abc import abstractmethod
from ast import literal_eval
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import eq
from typing import Any, TypeVar, overload

from evalstore.core import batches

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
_SHOWN = 10
"""The most values that `repr` shows of a sequence."""


class TemporaryList(Collection[Any]):
    """A list of values of JSON, which is read in its order or by number; by several threads, too.

    A named tuple becomes a list.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        """`values` are read once, and few of them are in memory meanwhile."""
        table = "CREATE TABLE list (number INTEGER PRIMARY KEY, value BLOB)"
        self._database = open_temporary(self, table)
        self._count = 0
        self.extend(values)

    def append(self, value: Any) -> None:
        """Add a value."""
        self._database.execute("INSERT INTO list VALUES (?, ?)", (self._count, _encode(value)))
        self._count += 1

    def extend(self, values: Iterable[Any]) -> None:
        """Add values."""
        rows = enumerate(map(_encode, values), self._count)
        self._count += self._database.executemany("INSERT INTO list VALUES (?, ?)", rows).rowcount

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        some = "SELECT value FROM list WHERE number >= ? ORDER BY number LIMIT ?"
        number = 0
        while rows := self._database.execute(some, (number, batches.SMALL_SIZE)).fetchall():
            yield from (marshal.loads(value) for (value,) in rows)
            number += len(rows)  # some may be added meanwhile

    def __contains__(self, value: object) -> bool:
        return any(own == value for own in self)

    def __getitem__(self, number: int) -> Any:
        row = self._database.execute(
            "SELECT value FROM list WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            raise IndexError(number)
        return marshal.loads(row[0])


def _encode(value: Any) -> bytes:
    """Encode a value, in a third of the time of JSON."""
    try:
        return marshal.dumps(value)
    except ValueError:  # it is of a class of its own, as a named tuple is
        return marshal.dumps(json.loads(json.dumps(value)))


class SortedValues:
    """Lists of JSON in a temporary database, which sorts them."""

    def __init__(self, keys: int) -> None:
        """Sort by the first `keys` values of a list, each a text, a number or None."""
        columns = ", ".join(f"key{number}" for number in range(keys))
        self._keys = keys
        self._database = open_temporary(self, f"CREATE TABLE lists ({columns}, list)")

    def add(self, lists: Iterable[Sequence[Any]]) -> None:
        """Add lists."""
        places = ", ".join("?" * (self._keys + 1))
        rows = ((*map(_comparable, each[: self._keys]), _encode(each)) for each in lists)
        self._database.executemany(f"INSERT INTO lists VALUES ({places})", rows)

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield the lists in their order; none may be added meanwhile."""
        order = ", ".join(str(number + 1) for number in range(self._keys))
        for *_, encoded in self._database.execute(f"SELECT * FROM lists ORDER BY {order}"):
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
        self._database = open_temporary(self, table)

    def update(self, values: Mapping[K, V]) -> None:
        """Add values."""
        entries = ((repr(key), _encode(self._pack(value))) for key, value in values.items())
        self._database.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?)", entries)

    def __getitem__(self, key: K) -> V:
        row = self._database.execute(
            "SELECT value FROM entries WHERE key = ?", (repr(key),)
        ).fetchone()
        if row is None:
            raise KeyError(key)
        return self._unpack(marshal.loads(row[0]))

    def __iter__(self) -> Iterator[K]:
        for (key,) in self._database.execute("SELECT key FROM entries"):
            yield literal_eval(key)

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM entries").fetchone()[0])


def open_temporary(owner: object, script: str) -> sqlite3.Connection:
    """Return a new temporary database, which is gone with its owner.

    SQLite keeps it in memory as long as it is small.
    """
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    weakref.finalize(owner, database.close)
    database.executescript(f"PRAGMA journal_mode = OFF; {script}; BEGIN")
    return database


# --- sequences whose elements are made when they are read, from a temporary file if they are many


_FEW = 10_000
"""The most values that stay in memory."""


class NumberedSequence(Sequence[T]):
    """A sequence whose elements are read one by one, by their number."""

    @abstractmethod
    def read_one(self, number: int) -> T:
        """Return the element with a number, which is not negative and less than the length."""

    @overload
    def __getitem__(self, number: int) -> T: ...

    @overload
    def __getitem__(self, number: slice) -> list[T]: ...

    def __getitem__(self, number: int | slice) -> T | list[T]:
        if isinstance(number, slice):
            return [self.read_one(each) for each in range(*number.indices(len(self)))]
        return self.read_one(range(len(self))[number])


class FiledSequence(NumberedSequence[T]):
    """A sequence in a temporary file; it is compared, copied and pickled as a list."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | FiledSequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __reduce__(self) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, ([*self],)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, islice(self, _SHOWN)))
        return f"[{shown}]" if len(self) <= _SHOWN else f"[{shown}, ... {len(self):,} values]"


class PackedSequence(FiledSequence[T]):
    """Values of one type, each packed into plain values; several threads may read them."""

    def __init__(
        self,
        values: Iterable[T],
        pack: Callable[[T], Any],
        unpack: Callable[[Any], T],
    ) -> None:
        """`values` are read once, and few of them are in memory together."""
        self._pack, self._unpack = pack, unpack
        self._packed = TemporaryList(map(pack, values))

    def extend(self, values: Iterable[T]) -> None:
        """Add values."""
        self._packed.extend(map(self._pack, values))

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[T]:
        return map(self._unpack, self._packed)

    def read_one(self, number: int) -> T:
        """Return the value with a number."""
        return self._unpack(self._packed[number])


def keep_values(
    values: Iterable[T], pack: Callable[[T], Any], unpack: Callable[[Any], T]
) -> Sequence[T]:
    """Return values as a list, or if there are many as a sequence in a temporary file.

    `pack` turns a value into plain values, and `unpack` back.
    """
    left = iter(values)
    first = list(islice(left, _FEW))
    if next_one := list(islice(left, 1)):
        return PackedSequence(chain(_taken(first), next_one, left), pack, unpack)
    return first


def _taken(values: list[T]) -> Iterator[T]:
    """Yield the values of a list, which is empty afterwards."""
    values.reverse()
    while values:
        yield values.pop()
