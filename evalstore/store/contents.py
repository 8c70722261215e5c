"""Decodes and checks stored contents, columns and ids.

An id is 16 bytes in the database, and 32 hexadecimal digits everywhere else.

A store may be damaged or of unknown origin. So every content is decoded here: its text must match
its id, and it must have the fields and types of its kind. Otherwise a `StoreError` names the
table and the id. A row of a newer program is not damaged: its `NewerError` asks for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from math import isfinite
from typing import Any, TypeVar

from evalstore.core.canonical_json import canonical_json, is_deeper
from evalstore.core.errors import ExcessiveError, NewerError, StoreError
from evalstore.core.hashing import hash_content
from evalstore.core.values import WORDS, Json, Word
from evalstore.store.schema.content_schemas import (
    SHAPES,
    find_unknown,
    find_unknown_form,
    make_validator,
)
from evalstore.store.schema.table_definitions import EVENTS, VERSIONS
from evalstore.store.trees.case_chunks import find_excess

ID_BYTES = 16


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
    if isinstance(value, bytes) and len(value) == ID_BYTES:
        return value.hex()
    raise _no_id()


def split_ids(joined: Any) -> tuple[str, ...]:
    """Return the digits of ids that are in a row one after the other."""
    digits, size = bytes(joined).hex(), 2 * ID_BYTES
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
    if value.__class__ is not bytes or len(value) != ID_BYTES:
        raise _no_id()
    return bytes(value)


def _no_id() -> StoreError:
    return StoreError(
        "the store is damaged: something in it has no id",
        hint="restore a copy of it; 'evalstore fsck' lists what is wrong",
    )


HINT = "'evalstore fsck' lists what is wrong; restore a copy of the store"
_DEEPEST = 400
"""The deepest nesting of lists and objects that Python can still process."""
_LONGEST = 256 * 2**20
"""The most characters of a content, except for nodes, which are read in pieces."""
T = TypeVar("T")
_LARGE = 16 * 2**20
_MOST_VALUES = 8_000_000
"""The most values of a large content: more need gigabytes of memory."""
_STRUCTURE = re.compile(r'[,\[{](?=["\d\[{\]}tfn-])')
"""Matches the characters before a value, which are rare inside strings."""
_WORDS: dict[str, Word] = {str(word): word for word in WORDS}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 221_845_392_000_000_000
"""The years 1 and 9000, in microseconds since 1970: dates that Python can compute with."""


def damaged(table: str, id: str, problem: str) -> StoreError:
    """Return the error for a damaged row, or for a damaged table when `id` is empty."""
    place = f"row {id} of the table '{table}'" if id else f"the table '{table}'"
    return StoreError(f"the store is damaged: {place}: {problem}", hint=HINT)


def excessive(table: str, id: str, problem: str) -> ExcessiveError:
    """Return the error for a row that describes more than is stored, or than can be read."""
    error = damaged(table, id, problem)
    return ExcessiveError(str(error), hint="'evalstore fsck --repair' removes runs that have it")


def not_readable(table: str, id: str, content: Json, problem: str) -> StoreError:
    """Return the error for a content that matches its id and cannot be read.

    One with something that only a newer program knows is a `NewerError`.
    """
    unknown = find_unknown(content)
    return newer(table, id, unknown) if unknown else damaged(table, id, problem)


def newer(table: str, id: str, unknown: str) -> NewerError:
    """Return the error for a row of a newer program, of which something is not known."""
    return NewerError("the store", f"row {id} of the table '{table}': {unknown}")


def missing(kind: str, id: str) -> StoreError:
    """Return the error for something that is missing although something else refers to it."""
    return StoreError(f"the store is damaged: it has no {kind} {id}", hint=HINT)


def require(values: dict[str, T], ids: Iterable[str], kind: str) -> dict[str, T]:
    """Return the same values; raises `StoreError` when one of the ids is missing."""
    for id in ids:
        if id not in values:
            raise missing(kind, id)
    return values


# --- contents


def decode_content(
    table: str, id: str, text: Any, kind: str | None = None, *, shown: bool = False
) -> Json:
    """Return the content of a row; raises `StoreError` unless it matches its id and its kind.

    Without `kind`, every kind of the table is allowed. With `shown`, the depth of unknown fields
    is limited, too, because they are printed.
    """
    verify(table, id, text)
    length = len(text)
    try:
        if length > _LARGE:
            _refuse_size(table, text)
        content, end = _read(text)
        if end != length:
            raise ValueError("it is followed by something else")
        if "\\" in text and ("\\ud" in text or "\\uD" in text):
            canonical_json(content).encode()  # fails for lone surrogates
        # The known fields of a node are flat.
        if (
            length > 2 * _DEEPEST
            and (shown or table != "nodes")
            and text.count("{") + text.count("[") >= _DEEPEST
            and is_deeper(content, _DEEPEST)
        ):
            raise ValueError(f"it is more than {_DEEPEST} levels deep")
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise damaged(table, id, f"its content cannot be read: {why}") from error
    if unknown := find_unknown_form(content):
        raise newer(table, id, unknown)
    stored_kind = content.get("kind") if content.__class__ is dict else None
    if stored_kind != kind if kind else stored_kind not in kinds_of(table):
        raise damaged(table, id, f"its content is not a {kind or ' or '.join(kinds_of(table))}")
    validator = _validator_of(stored_kind)
    if not validator.isinstance_python(content):
        raise _wrong_shape(table, id, validator, content)
    if "parts" in content and (problem := find_excess(content)):
        raise excessive(table, id, problem)
    return content


def verify(table: str, id: str, text: Any) -> None:
    """Raise `StoreError` unless a text is the one that its id was computed from."""
    if text.__class__ is not str:
        raise damaged(table, id, "its content is not a text")
    if hash_content(text) != id:
        raise damaged(table, id, "its content does not match its id")


def decode_row(table: str, id: Any, content: Any) -> tuple[str, Json]:
    """Return the id of a row, in digits, and its decoded content."""
    digits = as_digits(id)
    return digits, decode_content(table, digits, content)


@cache
def kinds_of(table: str) -> tuple[str, ...]:
    """Return the kinds of content of a table."""
    known = {**VERSIONS, **EVENTS}.items()
    return tuple(kind for kind, columns in known if columns.name == table)


def is_of_kind(kind: str, content: Json) -> bool:
    """Return whether a content has the fields and types of its kind."""
    return bool(_validator_of(kind).isinstance_python(content))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_read = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


@cache
def _validator_of(kind: str) -> Any:
    return make_validator(SHAPES[kind])


def _wrong_shape(table: str, id: str, validator: Any, content: Json) -> StoreError:
    try:
        validator.validate_python(content)
    except ValueError as error:
        first: Any = error.errors()[0]  # type: ignore[attr-defined]
        field = ".".join(map(str, first["loc"]))
        kind = content["kind"]
        words = f"the field '{field}' of its content is not what a {kind} has: {first['msg']}"
    return not_readable(table, id, content, words)


def _refuse_size(table: str, text: str) -> None:
    if len(text) > _LONGEST and table != "nodes":
        raise ValueError(f"it has {len(text):,} characters")
    count = text.count(",") + text.count("[") + text.count("{")
    if count > _MOST_VALUES and sum(1 for _ in _STRUCTURE.finditer(text)) > _MOST_VALUES:
        raise ValueError("it has too many values")


# --- columns


def as_time(value: Any, table: str, id: str = "") -> int:
    """Return a time in microseconds since 1970; raises `StoreError` for another value."""
    if value.__class__ is int and _FIRST_TIME <= value <= _LAST_TIME:
        return int(value)
    raise damaged(table, id, "a time in it is not valid")


def as_count(value: Any, table: str, id: str = "") -> int | None:
    """Return a whole number, or None; raises `StoreError` for another value."""
    if value is None or value.__class__ is int:
        return None if value is None else int(value)
    raise damaged(table, id, "a number in it is not valid")


def require_number(value: Any, table: str, id: str = "") -> float | None:
    """Return a finite number, or None; raises `StoreError` for another value."""
    if value is None or value.__class__ is int:
        return None if value is None else value
    if value.__class__ is float and isfinite(value):
        return float(value)
    raise damaged(table, id, "a number in it is not valid")


def require_text(value: Any, table: str, id: str = "") -> str:
    """Return a text; raises `StoreError` for another value."""
    if value.__class__ is str:
        return str(value)
    raise damaged(table, id, "a text in it is not valid")


def as_blob(value: Any, table: str, id: str = "") -> bytes:
    """Return bytes; raises `StoreError` for another value."""
    if value.__class__ is bytes:
        return bytes(value)
    raise damaged(table, id, "bytes in it are not valid")


def as_word(value: Any) -> Word:
    """Return the verdict of an evaluation; raises `StoreError` for another value."""
    word = _WORDS.get(value) if value.__class__ is str else None
    if word is not None:
        return word
    raise StoreError(
        f"the store is damaged: '{value}' is not a verdict",
        hint="'evalstore fsck' lists what is wrong",
    )
