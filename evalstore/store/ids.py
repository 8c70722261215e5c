"""Ids: 16 bytes in the database, 32 hexadecimal digits everywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalstore.core.errors import StoreError

_ID_BYTES = 16


def as_bytes(value: str | None) -> bytes | None:
    """Return an id as the database stores it; raises `StoreError` when it is not hexadecimal."""
    if value is None:
        return None
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise StoreError(
            f"the store is damaged: {value!r:.60} is not an id",
            hint="'evalstore fsck' lists what is wrong",
        ) from None


def all_as_bytes(values: Iterable[str | None]) -> list[bytes | None]:
    """Return ids as `as_bytes` does, many at once."""
    listed = list(values)
    try:
        return list(map(bytes.fromhex, listed))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [*map(as_bytes, listed)]


def as_digits(value: Any) -> str:
    """Return the digits of an id of the database; raises `StoreError` when it is not an id."""
    if isinstance(value, bytes) and len(value) == _ID_BYTES:
        return value.hex()
    raise _no_id()


def split_ids(joined: Any) -> tuple[str, ...]:
    """Return the digits of ids that are in a row one after the other."""
    digits, size = bytes(joined).hex(), 2 * _ID_BYTES
    if len(digits) == size:
        return (digits,)
    return tuple(digits[place : place + size] for place in range(0, len(digits), size))


def as_any_digits(value: Any) -> str:
    """Return the digits of what is in the place of an id, also if it has another length or type.

    So a row that no program of evalstore has made is found, and hides no others.
    """
    if value is None:
        raise _no_id()
    return (value if isinstance(value, bytes) else str(value).encode()).hex()


def as_id(value: Any) -> bytes:
    """Return an id of the database as bytes; raises `StoreError` when it is not an id."""
    if value.__class__ is not bytes or len(value) != _ID_BYTES:
        raise _no_id()
    return bytes(value)


def _no_id() -> StoreError:
    return StoreError(
        "the store is damaged: something in it has no id",
        hint="restore a copy of it; 'evalstore fsck' lists what is wrong",
    )
