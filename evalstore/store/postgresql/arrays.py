"""Arrays in the binary format of PostgreSQL, in which nothing is escaped.

psycopg writes a list as a text, value by value; for the rows of a run that costs the client more
than the rest of its transactions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    import psycopg

_HEAD = struct.Struct("!iiIii")
"""Dimensions, whether there are NULLs, the type of the values, their number, the first index."""
_EMPTY = struct.Struct("!iiI")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)


class Array:
    """An array of values of one type; None is NULL."""

    oid: ClassVar[int]
    """The type of the array, as PostgreSQL numbers it."""
    value_oid: ClassVar[int]
    encode: ClassVar[Callable[[Any], bytes]]

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def pack(self) -> bytes:
        """Return the binary format."""
        if not self._values:
            return _EMPTY.pack(0, 0, self.value_oid)
        parts = [b""]
        encode, has_null = type(self).encode, False
        for value in self._values:
            if value is None:
                has_null = True
                parts.append(_NULL)
            else:
                encoded = encode(value)
                parts += (_LENGTH.pack(len(encoded)), encoded)
        parts[0] = _HEAD.pack(1, has_null, self.value_oid, len(self._values), 1)
        return b"".join(parts)


class _Bytes(Array):
    oid, value_oid = 1001, 17
    encode = bytes


class _Texts(Array):
    oid, value_oid = 1009, 25
    encode = str.encode


class _Wholes(Array):
    oid, value_oid = 1016, 20
    encode = struct.Struct("!q").pack


class _Reals(Array):
    oid, value_oid = 1022, 701
    encode = struct.Struct("!d").pack


ARRAYS: dict[str, type[Array]] = {
    "bytea": _Bytes,
    "text": _Texts,
    "bigint": _Wholes,
    "double precision": _Reals,
}
"""The arrays by the type of their values."""


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.pack()


def accept_arrays(connection: psycopg.Connection[Any]) -> None:
    """Let a connection take arrays as parameters."""
    for kind in ARRAYS.values():
        dumper = type("Dumper", (_ArrayDumper,), {"oid": kind.oid})
        connection.adapters.register_dumper(kind, dumper)


def array_of(values: Iterable[Any]) -> Array | list[Any]:
    """Return an array of bytes or of texts; values of other types are left to psycopg."""
    listed = list(values)
    kinds = {type(value) for value in listed}
    if kinds == {bytes}:
        return _Bytes(listed)
    return _Texts(listed) if kinds == {str} else listed
