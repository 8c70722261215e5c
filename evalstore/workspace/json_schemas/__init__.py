"""JSON Schemas of the files that evalstore reads, for editors.

They are made of the tables of fields of the readers. What a schema refuses is refused by the
reader too, but not the other way round: a reader also looks at what a schema cannot express.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evalstore.values import Json
from evalstore.workspace.json_schemas import checks, definitions, markdown_files, settings

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class FileSchema(NamedTuple):
    """The JSON Schema of one kind of file."""

    title: str
    """Which files it describes."""
    body: Callable[[], dict[str, Json]]

    def schema(self) -> dict[str, Json]:
        """Return the whole schema."""
        return {"$schema": DIALECT, "title": f"evalstore: {self.title}", **self.body()}


SCHEMAS = {
    "frontmatter": FileSchema("the frontmatter of test files", markdown_files.frontmatter),
    "checks": FileSchema("the block of checks in test files", checks.checks_schema),
    "prompt": FileSchema("the frontmatter of prompts", markdown_files.prompt),
    "settings": FileSchema("evalstore.yaml", settings.settings),
    "model": FileSchema("model files", definitions.model),
    "provider": FileSchema("provider files", definitions.provider),
    "currency": FileSchema("currency files", definitions.currency),
    "tool": FileSchema("tool files", definitions.tool),
}


def schema_file_name(kind: str) -> str:
    """Return the name of the file with the schema of a kind."""
    return f"{kind}.schema.json"
