"""Reads JSON as strictly as YAML: no key twice, no half of a surrogate pair."""

from __future__ import annotations

import json

from evalstore.errors import FileProblem
from evalstore.files.yaml12 import Document
from evalstore.values import Json


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
        value = json.loads(text, object_pairs_hook=mapping)
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
