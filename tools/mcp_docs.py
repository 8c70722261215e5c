"""Writes the tools in docs/mcp.md from their schemas: `python -m tools.mcp_docs`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalstore.files.atomic_write import write_whole
from evalstore.interfaces.mcp.arguments import PageArguments
from evalstore.interfaces.mcp.tool_table import READ_TOOLS, RUN, Tool, argument_names, input_schema

PAGE = Path(__file__).parent.parent / "docs" / "mcp.md"
_BLOCK = re.compile("(?<=<!-- made: tools -->\n).*?(?=<!-- end: tools -->)", re.DOTALL)
_PAGING = tuple(PageArguments.model_fields)


def page(text: str) -> str:
    """Return the page with the sections of the tools."""
    sections = "".join(map(_section, (*READ_TOOLS, RUN)))
    shared = {name: schema for name, schema in _schemas(READ_TOOLS[0]).items() if name in _PAGING}
    made = f"{sections}\n### Pages\n\n{_table(shared, ())}\n"
    return _BLOCK.sub(lambda _: made, text)


def _section(tool: Tool) -> str:
    names = argument_names(tool)
    own = {name: each for name, each in _schemas(tool).items() if name not in _PAGING}
    paged = ", ".join(f"`{name}`" for name in names if name in _PAGING)
    table = f"\n{_table(own, input_schema(tool).get('required', ()))}" if own else ""
    return f"\n### {tool.name}\n\n{tool.description}\n{table}\nAnd {paged}.\n"


def _schemas(tool: Tool) -> dict[str, dict[str, Any]]:
    schemas: dict[str, dict[str, Any]] = input_schema(tool)["properties"]
    return schemas


def _table(schemas: Mapping[str, Mapping[str, Any]], required: Iterable[str]) -> str:
    rows = [
        f"| `{name}` | {_type(schema)} | {_default(name, schema, required)} "
        f"| {schema['description'].rstrip('.')} |\n"
        for name, schema in schemas.items()
    ]
    return "| argument | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return next(_type(each) for each in schema["anyOf"] if each != {"type": "null"})
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    return {"string": "text"}.get(schema["type"], str(schema["type"]))


def _default(name: str, schema: Mapping[str, Any], required: Iterable[str]) -> str:
    if name in required:
        return "required"
    default = schema.get("default")
    return "" if default in (None, []) else f"`{json.dumps(default)}`"


if __name__ == "__main__":
    write_whole(PAGE, page(PAGE.read_text(encoding="utf-8")).encode())
