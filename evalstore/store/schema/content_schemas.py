"""The schemas of the kinds of content that `hashing.describe_…` writes.

Unknown fields, such as those of later versions, are ignored if all else can be read. What authors
write freely (settings of checks, schemas, arguments of tools) is not validated.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import CoreConfig, SchemaValidator
from pydantic_core import core_schema as shape

from evalstore.core import hashing
from evalstore.core.values import VERDICTS, WORDS, Json
from evalstore.store.trees.case_chunks import MAX_PART, SCHEME

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


def make_validator(schema: Shape) -> SchemaValidator:
    """Return a validator for a schema."""
    return SchemaValidator(schema, _STRICT)


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
