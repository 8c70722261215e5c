"""`check --schema`: the JSON Schemas of the files that evalstore reads, for editors.

That of checks is made of the descriptions of their types; the others are files in `docs/schemas`,
written by hand. What a schema refuses is refused by the reader too, but not the other way round: a
reader also looks at what a schema cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import evalstore
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.files.atomic_write import write_whole
from evalstore.files.fields import suggest

TITLES = {
    "frontmatter": "the frontmatter of test files",
    "checks": "the block of checks in test files",
    "prompt": "the frontmatter of prompts",
    "settings": "evalstore.yaml",
    "model": "model files",
    "provider": "provider files",
    "currency": "currency files",
    "tool": "tool files",
}
"""Which files each schema describes."""
VERSION = 1
"""Rises when a schema refuses what the one before has accepted; each has it in its id."""


def schema_file_name(kind: str) -> str:
    """Return the name of the file with the schema of a kind."""
    return f"{kind}.schema.json"


def load_schema(kind: str) -> dict[str, Json]:
    """Return the JSON Schema of a kind of file; raises `EvalstoreError`."""
    if kind not in TITLES:
        raise EvalstoreError(f"unknown schema '{kind}'", hint=suggest(kind, TITLES, "kinds"))
    if kind == "checks":
        from evalstore.workspace.check_schema import checks_schema

        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:evalstore:schema:{kind}:{VERSION}",  # a name: it has no address in the web
            "title": f"evalstore: {TITLES[kind]}",
            **checks_schema(),
        }
    return read_packaged(f"schemas/{schema_file_name(kind)}")


def read_packaged(name: str) -> dict[str, Any]:
    """Return a JSON Schema of `docs/`, which is part of the package where it is installed."""
    package = Path(evalstore.__file__).parent
    packaged = package / name
    if not packaged.is_file():
        packaged = package.parent / "docs" / name
    schema: dict[str, Any] = json.loads(packaged.read_text(encoding="utf-8"))
    return schema


def schema_text(kind: str) -> str:
    """Return the JSON Schema of a kind of file as JSON; raises `EvalstoreError`."""
    return json.dumps(load_schema(kind), indent=2, ensure_ascii=False) + "\n"


def write_schemas(start: Path, folder: Path, kinds: Iterable[str] = ()) -> list[Path]:
    """Write the schemas of some kinds, or of all, into a folder; returns the paths.

    `folder` and the paths are relative to `start`. Existing schemas are replaced. Raises
    `EvalstoreError`.
    """
    texts = {kind: schema_text(kind) for kind in tuple(kinds) or TITLES}
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
