"""`check --schema`: the JSON Schemas of the files that evalstore reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import write_whole
from evalstore.files.fields import suggest
from evalstore.workspace.json_schemas import SCHEMAS, FileSchema, schema_file_name


def schema_text(kind: str) -> str:
    """Return the JSON Schema of a kind of file as JSON; raises `EvalstoreError`."""
    document = _find(kind).schema()
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def schema_titles() -> dict[str, str]:
    """Return the kinds of files that have a schema, with a description of these files."""
    return {kind: schema.title for kind, schema in SCHEMAS.items()}


def write_schemas(start: Path, folder: Path, kinds: Iterable[str] = ()) -> list[Path]:
    """Write the schemas of some kinds, or of all, into a folder; returns the paths.

    `folder` and the paths are relative to `start`. Existing schemas are replaced. Raises
    `EvalstoreError`.
    """
    texts = {kind: schema_text(kind) for kind in tuple(kinds) or SCHEMAS}
    paths = []
    for kind, text in texts.items():
        path = folder / schema_file_name(kind)
        try:
            (start / folder).mkdir(parents=True, exist_ok=True)
            write_whole(start / path, text.encode())
        except OSError as error:
            raise EvalstoreError(f"'{path}' cannot be written: {error.strerror}") from error
        paths.append(path)
    return paths


def _find(kind: str) -> FileSchema:
    if kind not in SCHEMAS:
        hint = suggest(kind, SCHEMAS, "kinds")
        raise EvalstoreError(f"unknown schema '{kind}'", hint=hint)
    return SCHEMAS[kind]
