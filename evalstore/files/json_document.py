"""Reads JSON strictly: no NaN, and in documents no key twice and no half of a surrogate pair."""

from __future__ import annotations

import json
import re
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.files.yaml12 import Document

_NOT_A_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')


def refuse_constant(name: str) -> Json:
    """Raise `ValueError` for NaN and Infinity, as the `parse_constant` of a decoder."""
    raise ValueError(f"Unknown value {name}")


def parse_json(text: str, **options: Any) -> Json:
    """Parse JSON in which NaN and Infinity are errors; raises `ValueError`.

    `options` are those of `json.loads`.
    """

    def refuse(name: str) -> Json:
        at = next(match.start() for match in _NOT_A_NUMBER.finditer(text) if match[1])
        raise json.JSONDecodeError(f"Unknown value {name}", text, at)

    return json.loads(text, parse_constant=refuse, **options)


def read_json(text: str) -> Document:
    """Read JSON with the same strictness; only problems have line numbers."""

    def mapping(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise FileProblem(f"key '{twice}' appears twice", 1)
        return members

    try:
        value = parse_json(text, object_pairs_hook=mapping)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return Document(value, None, 1)
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise FileProblem(f"half of a surrogate pair ({half}) is not a character", 1) from error
    except json.JSONDecodeError as error:
        raise FileProblem(error.msg, error.lineno, column=error.colno) from error
    except (RecursionError, ValueError) as error:
        raise FileProblem(f"cannot be read: {error}", 1) from error
