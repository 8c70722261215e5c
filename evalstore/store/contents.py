"""Decodes and checks stored contents, columns and ids.

An id is 16 bytes in the database, and 32 hexadecimal digits everywhere else.

A store may be damaged or of unknown origin. So every content is decoded here: its text must match
its id, and it must have the fields and types of its kind. Otherwise a `StoreError` names the table
and the id. A row of a newer program is not damaged: its `NewerError` asks for that.

The schemas are of the kinds of content that `hashing.describe_…` writes. Unknown fields, such as
those of later versions, are ignored if all else can be read. What authors write freely (settings of
checks, schemas, arguments of tools) is not validated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from math import isfinite
from typing import Any, TypeVar

from pydantic_core import CoreConfig, SchemaValidator
from pydantic_core import core_schema as shape

from evalstore.core import hashing
from evalstore.core.errors import ExcessiveError, NewerError, StoreError
from evalstore.core.hashing import canonical_json, hash_bytes, is_deeper
from evalstore.core.values import VERDICTS, WORDS, Json, Word
from evalstore.store.schema.table_definitions import EVENTS, VERSIONS
from evalstore.store.trees.case_chunks import MAX_PART, SCHEME, find_excess

Shape = Any
"""A core schema of pydantic."""


OPEN = "open"
"""What the metadata of a record say: whether it has fields beside those of its schema."""
_STRICT = CoreConfig(strict=True)
"""No conversions, such as from text to number; inner records do not inherit it."""


def _record(
    required: dict[str, Shape], optional: dict[str, Shape] | None = None, *, is_open: bool = False
) -> Shape:
    """Return the schema of a record; one that is open has further fields already today."""
    fields = {name: shape.typed_dict_field(field) for name, field in required.items()}
    fields |= {
        name: shape.typed_dict_field(field, required=False)
        for name, field in (optional or {}).items()
    }
    return shape.typed_dict_schema(
        fields, extra_behavior="ignore", config=_STRICT, metadata={OPEN: is_open}
    )


def _whole(least: int = -(2**63), most: int = 2**63 - 1) -> Shape:
    return shape.int_schema(ge=least, le=most)


_ANY = shape.any_schema()
_TEXT = shape.str_schema()
_ID = shape.str_schema(min_length=32, max_length=32)  # its digits are checked when it is used
_FLAG = shape.bool_schema()
_NUMBER = shape.float_schema(allow_inf_nan=False)
_COUNT = _whole(0)
_TIME = _whole(-62_135_596_800_000_000, 221_845_392_000_000_000)
_TEXTS = shape.list_schema(_TEXT)
_IDS = shape.list_schema(_ID)
_MAPPING = shape.dict_schema(_TEXT, _ANY)

_PART = shape.union_schema(
    [
        _record({"text": _TEXT}),
        _record(
            {"answers": shape.list_schema(shape.list_schema(_COUNT, min_length=2, max_length=2))},
        ),
        _record({"sample": _TEXT}),
        _record({"file": _ID, "path": _TEXT, "mediaType": _TEXT}),
    ]
)
_PARTS = shape.union_schema([_TEXT, shape.list_schema(_PART)])
_MESSAGES = shape.list_schema(
    _record({"role": _TEXT}, {"content": _PARTS, "filled": _FLAG, "name": _TEXT})
)
_CHECK = shape.definitions_schema(
    shape.definition_reference_schema("check"),
    [
        _record(
            {"type": _TEXT},
            {
                "revision": _COUNT,
                "checks": shape.list_schema(shape.definition_reference_schema("check")),
                "file": _record({"id": _ID, "path": _TEXT}),
                "name": _TEXT,
                "prompts": _IDS,
                "scope": _TEXT,
                "weight": _NUMBER,
            },
            is_open=True,
        )
        | {"ref": "check"}
    ],
)
_USAGE = _record(
    {},
    {
        f"{kind}Tokens": _whole()
        for kind in ("input", "output", "cached", "reasoning", "cacheWrite")
    },
)
_COST = _record({"usd": _NUMBER, "price": _MAPPING})
_TURN = _record(
    {},
    {
        "text": _TEXT,
        "toolCalls": shape.list_schema(_record({"name": _TEXT, "arguments": _ANY})),
        "finishReason": _TEXT,
        "refusal": _TEXT,
        "usage": _USAGE,
        "resolvedModel": _TEXT,
        "requestId": _TEXT,
        "latency": _NUMBER,
    },
)
_CASE = _record(
    {"key": _TEXT, "tests": shape.list_schema(_ID, min_length=1)},
    {
        "row": _TEXT,
        "evaluation": _ID,
        "tags": _TEXTS,
        "prompts": shape.list_schema(shape.nullable_schema(_ID), min_length=1),
        "needs": _TEXTS,
        "judgedBy": _TEXTS,
        "temperature": _NUMBER,
        "seed": _whole(),
        "limit": _COUNT,
        "recorded": _ID,
        "judgePrompts": _IDS,
        "code": _TEXTS,
    },
)
_CELL = _record(
    {"case": _COUNT, "model": _TEXT},
    {
        "prompt": _COUNT,
        "wanted": _COUNT,
        "verdict": shape.literal_schema(list(VERDICTS)),
        "score": _NUMBER,
        "sessions": _IDS,
        "evaluations": _IDS,
    },
)
_VALUES_OF_OPTIONS = {
    "temperature": _NUMBER,
    "maxOutputTokens": _COUNT,
    "topP": _NUMBER,
    "seed": _whole(),
    "stop": _TEXTS,
    "providerOptions": _MAPPING,
}
_FIRST, _SECOND = shape.literal_schema([1]), shape.literal_schema([SCHEME])
_LEVEL = _whole(1, 16)
_OF_FILE = {"attempts": _COUNT, "evaluators": _TEXTS, "threshold": _NUMBER, "id": _TEXT}
_NULL_OR_NUMBER = shape.nullable_schema(_NUMBER)

SHAPES: dict[str, Shape] = {
    "file": _record({"mediaType": _TEXT, "size": _COUNT, "digest": _TEXT}),
    "tool": _record({"name": _TEXT}, {"description": _TEXT, "parameters": _ANY}),
    "schema": _record({}, {"schema": _ANY}),
    "prompt": _record({}, {"messages": _MESSAGES, "specialTags": _TEXTS}),
    "test": _record(
        {},
        {
            "messages": _MESSAGES,
            "specialTags": _TEXTS,
            "tools": _IDS,
            "schema": _ID,
            "options": _record({}, _VALUES_OF_OPTIONS),
        },
    ),
    "evaluation": _record({}, {"instructions": _PARTS, "checks": shape.list_schema(_CHECK)}),
    "model": _record(
        {"provider": _TEXT, "code": _TEXT},
        {"baseURL": _TEXT, "service": _TEXT, "options": _MAPPING},
    ),
    "evaluator": _record(
        {},
        {
            "model": _ID,
            "prompt": _ID,
            "temperature": _NUMBER,
            "checks": _FLAG,
            "human": _TEXT,
            "system": _TEXT,
            "reading": _COUNT,
        },
    ),
    "cases": shape.union_schema(
        [
            _record({"scheme": _FIRST, "cases": shape.list_schema(_CASE)}, _OF_FILE),
            _record(
                {
                    "scheme": _SECOND,
                    "level": _LEVEL,
                    "parts": shape.list_schema(_ID, min_length=1, max_length=MAX_PART),
                    "counts": shape.list_schema(
                        _whole(1, 2**31), min_length=1, max_length=MAX_PART
                    ),
                },
                {**_OF_FILE, "code": _TEXTS},
            ),
        ],
        mode="left_to_right",
    ),
    "results": shape.union_schema(
        [
            _record({"scheme": _FIRST, "cases": _ID, "cells": shape.list_schema(_CELL)}),
            _record(
                {
                    "scheme": _SECOND,
                    "cases": _ID,
                    "level": _LEVEL,
                    "parts": shape.list_schema(
                        shape.nullable_schema(_ID), min_length=1, max_length=MAX_PART
                    ),
                }
            ),
        ],
        mode="left_to_right",
    ),
    "tree": _record(
        {},
        {
            "entries": shape.dict_schema(_TEXT, _ID),
            "children": shape.dict_schema(shape.str_schema(pattern="^[0-9a-f]$"), _ID),
        },
    ),
    "sources": _record(
        {},
        {"tests": shape.dict_schema(_TEXT, shape.dict_schema(_TEXT, _TEXT)), "isCut": _FLAG},
    ),
    "session": _record(
        {
            "test": _ID,
            "model": _ID,
            "turns": shape.list_schema(_TURN, min_length=1),
            "started": _TIME,
            "nonce": _TEXT,
            "origin": _TEXT,
        },
        {"prompt": _ID, "temperature": _NUMBER, "seed": _whole(), "limit": _COUNT, "cost": _COST},
    ),
    "judgement": _record(
        {
            "sessions": shape.list_schema(_ID, min_length=1),
            "evaluation": _ID,
            "evaluator": _ID,
            "verdict": shape.literal_schema(list(WORDS)),
            "started": _TIME,
            "nonce": _TEXT,
            "origin": _TEXT,
        },
        {
            "score": _NUMBER,
            "label": _TEXT,
            "feedback": _TEXT,
            "reasoning": _TEXT,
            "checks": shape.list_schema(
                _record(
                    {"type": _TEXT, "verdict": _TEXT},
                    {"name": _TEXT, "feedback": _TEXT},
                    is_open=True,
                )
            ),
            "usage": _USAGE,
            "cost": _COST,
            "latency": _NUMBER,
            "takenFrom": _ID,
        },
    ),
    "failure": _record(
        {"type": _TEXT, "message": _TEXT, "attempts": _COUNT, "at": _TIME},
        {
            "question": _ID,
            "subject": _ID,
            "evaluation": _ID,
            "evaluator": _ID,
            "model": _TEXT,
            "nonce": _TEXT,
            "status": _whole(),
        },
    ),
    "run": _record(
        {
            "started": _TIME,
            "ended": _TIME,
            "status": _TEXT,
            "snapshot": _ID,
            "results": _ID,
            "asked": _COUNT,
            "judged": _COUNT,
            "reused": _whole(),
            "verdicts": _record(dict.fromkeys((*VERDICTS, "pending"), _COUNT)),
        },
        {
            "message": _TEXT,
            "candidates": shape.list_schema(
                _record({"id": _TEXT, "model": _ID}, {"temperature": _NULL_OR_NUMBER})
            ),
            "evaluators": shape.list_schema(_record({"id": _TEXT, "evaluator": _ID})),
            "settings": _record({}, {"verdict": _TEXT}, is_open=True),
            "selection": _record({}, {"models": _TEXTS, "paths": _TEXTS}, is_open=True),
            "recorded": _COUNT,
            "failed": _COUNT,
            "cost": _NUMBER,
            "spending": shape.list_schema(_MAPPING),
            "git": _record({"commit": _TEXT, "dirty": shape.nullable_schema(_FLAG)}),
            "version": _TEXT,
            "sources": _ID,
            "author": _TEXT,
            "cases": shape.list_schema(_COUNT, min_length=2, max_length=2),
            "judgeOnly": _FLAG,
            "nonce": _TEXT,
            "origin": _TEXT,
        },
    ),
}
"""The schema of each kind."""


_SCHEMES = {"cases": SCHEME, "results": SCHEME}
"""The newest scheme of a kind, if it is not the one of all others."""
_ALWAYS = frozenset({"kind", "scheme"})
_SHOWN = 40
"""The most characters of a name that are shown."""


def find_unknown_form(content: Json) -> str | None:
    """Return the kind or the scheme of a content in words, if this program does not know it."""
    if content.__class__ is not dict:
        return None
    kind: Any = content.get("kind")
    scheme: Any = content.get("scheme")
    if kind.__class__ is str and kind not in SHAPES:
        return f"the kind {kind[:_SHOWN]!r} is not known"
    is_plain = kind.__class__ is str and scheme.__class__ is int
    if is_plain and scheme > _SCHEMES.get(kind, hashing.SCHEME):
        return f"the scheme {scheme} of a {kind} is not known"
    return None


def find_unknown(content: Json) -> str | None:
    """Return what of a content this program does not know, in words; None if it knows all of it.

    What authors write freely may have any fields.
    """
    if unknown := find_unknown_form(content):
        return unknown
    kind = content.get("kind") if content.__class__ is dict else None
    if kind.__class__ is not str:
        return None
    field = _find_field(SHAPES[kind], content, _ALWAYS)
    return None if field is None else f"the field {field[:_SHOWN]!r} of a {kind} is not known"


def _find_field(schema: Any, value: Json, always: frozenset[str] = frozenset()) -> str | None:
    """Return a field of a value that its schema does not have; None if there is none."""
    form: str = schema["type"]
    if form == "nullable":
        return _find_field(schema["schema"], value)
    if form == "union":
        forms: dict[Any, str] = {dict: "typed-dict", list: "list"}
        of_form = [each for each in schema["choices"] if each["type"] == forms.get(type(value))]
        fields_of_each = [_find_field(choice, value, always) for choice in of_form]
        return None if None in fields_of_each else next(iter(fields_of_each), None)
    inner: list[tuple[Any, Json]] = []
    if form == "typed-dict" and isinstance(value, dict):
        fields = schema["fields"]
        unknown = value.keys() - fields.keys() - always
        if unknown and not schema.get("metadata", {}).get(OPEN):
            return str(min(unknown))
        inner = [(fields[name]["schema"], value[name]) for name in fields.keys() & value.keys()]
    elif form == "list" and isinstance(value, list):
        inner = [(schema["items_schema"], item) for item in value]
    elif form == "dict" and isinstance(value, dict):
        inner = [(schema["values_schema"], item) for item in value.values()]
    found = (_find_field(each, item) for each, item in inner)
    return next((field for field in found if field is not None), None)


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
    validator = validator_of(stored_kind)
    if not validator.isinstance_python(content):
        raise _wrong_shape(table, id, validator, content)
    if "parts" in content and (problem := find_excess(content)):
        raise excessive(table, id, problem)
    return content


def verify(table: str, id: str, text: Any) -> None:
    """Raise `StoreError` unless a text is the one that its id was computed from."""
    if text.__class__ is not str:
        raise damaged(table, id, "its content is not a text")
    if hash_bytes(text.encode("utf-8", "surrogatepass")) != id:
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


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_read = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


@cache
def validator_of(kind: str) -> SchemaValidator:
    """Return the validator of the contents of a kind."""
    return SchemaValidator(SHAPES[kind], _STRICT)


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


def require_number(value: Any, table: str, id: str = "") -> float | None:
    """Return a finite number, or None; raises `StoreError` for another value."""
    if value is None or value.__class__ is int:
        return None if value is None else value
    if value.__class__ is float and isfinite(value):
        return float(value)
    raise damaged(table, id, "a number in it is not valid")


def require_kind(value: Any, kind: type[T], table: str, id: str = "") -> T:
    """Return a value of a class, and of no subclass; raises `StoreError` for another one."""
    if value.__class__ is kind:
        kept: T = value
        return kept
    raise damaged(table, id, "a value in it is not valid")


def as_word(value: Any) -> Word:
    """Return the verdict of an evaluation; raises `StoreError` for another value."""
    word = _WORDS.get(value) if value.__class__ is str else None
    if word is not None:
        return word
    raise StoreError(
        f"the store is damaged: '{value}' is not a verdict",
        hint="'evalstore fsck' lists what is wrong",
    )
