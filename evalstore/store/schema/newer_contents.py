"""Recognises contents that a newer program has written, which are not damaged.

A content whose text matches its id is as somebody wrote it. When it cannot be read and has a kind,
a scheme or a field that this program does not know, a newer one has written it.
"""

from __future__ import annotations

from typing import Any

from evalstore.core import hashing
from evalstore.core.values import Json
from evalstore.store.schema.content_schemas import OPEN, SHAPES
from evalstore.store.trees.case_chunks import SCHEME

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
