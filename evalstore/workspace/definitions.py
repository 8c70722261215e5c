"""Reads tool and schema files: a name, an id and canonical content."""

from __future__ import annotations

from typing import NamedTuple

from evalstore.checks.types.json import schema_problem
from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, ToolVersion
from evalstore.files.fields import Fields, is_json
from evalstore.files.json_document import read_json
from evalstore.files.yaml12 import read_yaml
from evalstore.workspace.index import Index

TOOL_FIELDS = ("id", "name", "description", "parameters", "tags")


class DefinitionFile(NamedTuple):
    """A tool or a schema."""

    name: str
    """The name that tests use."""
    line: int
    """The line of the name."""
    id: str
    content: str


def read_tool(text: str, default_id: str, index: Index) -> DefinitionFile:
    """Read a tool file; raises `FileProblem`."""
    document = read_yaml(text)
    if not isinstance(document.value, dict):
        raise FileProblem("a tool file must be a mapping of fields", 1)
    fields = Fields(document, TOOL_FIELDS)
    name = fields.text("name")
    if name is None:
        raise FileProblem("the tool has no 'name'", 1)
    parameters = fields.mapping("parameters")
    version = ToolVersion(name, fields.text("description") or "", parameters)
    id, content = hashing.identify(hashing.describe_tool(version))
    _check(id, parameters, "'parameters' is not a JSON Schema", fields.line("parameters"), index)
    return DefinitionFile(fields.text("id") or default_id, fields.line("id"), id, content)


def read_schema(text: str, default_id: str, index: Index, *, is_json_file: bool) -> DefinitionFile:
    """Read a schema file, whose `id` is beside the JSON Schema; raises `FileProblem`."""
    document = read_json(text) if is_json_file else read_yaml(text)
    if not isinstance(document.value, dict):
        raise FileProblem("a schema file must be a mapping", 1)
    schema = dict(document.value)
    name = schema.pop("id", None) or default_id
    if not isinstance(name, str):
        raise FileProblem("'id' must be a text, not empty", document.line("id"))
    if not is_json(schema):
        raise FileProblem("holds a number that is not finite", 1)
    id, content = hashing.identify(hashing.describe_schema(schema))
    _check(id, schema, "is not a JSON Schema", 1, index)
    return DefinitionFile(name, document.line("id"), id, content)


def _check(id: str, schema: Json, message: str, line: int, index: Index) -> None:
    """Raise unless this is a JSON Schema; the index remembers the valid ones."""
    if id in index.schemas:
        return
    wrong = schema_problem(schema)
    if wrong:
        raise FileProblem(f"{message}: {wrong}", line)
    index.schemas.add(id)
    index.changed = True
