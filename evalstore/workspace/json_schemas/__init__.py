"""JSON Schemas of the files that evalstore reads, for editors.

They are made of the tables of fields of the readers. What a schema refuses is refused by the
reader too, but not the other way round: a reader also looks at what a schema cannot express.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evalstore.core.values import Json
from evalstore.workspace.json_schemas import checks, definitions, markdown_files, settings

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
"""Rises when a schema refuses what the one before has accepted."""


class FileSchema(NamedTuple):
    """The JSON Schema of one kind of file."""

    title: str
    """Which files it describes."""
    body: Callable[[], dict[str, Json]]
    name: str

    def schema(self) -> dict[str, Json]:
        """Return the whole schema; its id is a name, as it has no address in the web."""
        return {
            "$schema": DIALECT,
            "$id": f"urn:evalstore:schema:{self.name}:{VERSION}",
            "title": f"evalstore: {self.title}",
            **self.body(),
        }


_FILES: dict[str, tuple[str, Callable[[], dict[str, Json]]]] = {
    "frontmatter": ("the frontmatter of test files", markdown_files.frontmatter),
    "checks": ("the block of checks in test files", checks.checks_schema),
    "prompt": ("the frontmatter of prompts", markdown_files.prompt),
    "settings": ("evalstore.yaml", settings.settings),
    "model": ("model files", definitions.model),
    "provider": ("provider files", definitions.provider),
    "currency": ("currency files", definitions.currency),
    "tool": ("tool files", definitions.tool),
}
SCHEMAS = {name: FileSchema(title, body, name) for name, (title, body) in _FILES.items()}


def schema_file_name(kind: str) -> str:
    """Return the name of the file with the schema of a kind."""
    return f"{kind}.schema.json"
