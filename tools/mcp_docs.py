"""Writes the tools in docs/mcp.md from their schemas: `python -m tools.mcp_docs`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalstore.files.atomic_write import write_whole
from evalstore.interfaces.mcp.read_tools import READ_TOOLS, PageArguments, Tool
from evalstore.interfaces.mcp.server import RUN, argument_names, input_schema

PAGE = Path(__file__).parent.parent / "docs" / "mcp.md"
_BLOCK = re.compile("(?<=<!-- made: tools -->\n).*?(?=<!-- end: tools -->)", re.DOTALL)
_PAGING = tuple(PageArguments.model_fields)


def page(text: str) -> str:
    """Return the page with the sections of the tools."""
    told: dict[str, str] = {}
    sections = "".join(_section(tool, told) for tool in (*READ_TOOLS, RUN))
    shared = {name: schema for name, schema in _schemas(READ_TOOLS[0]).items() if name in _PAGING}
    made = f"{sections}\n### Pages\n\n{_list(shared, ())}\n"
    return _BLOCK.sub(lambda _: made, text)


def _section(tool: Tool, told: dict[str, str]) -> str:
    """Return the section of a tool; what is `told` of an argument is not repeated."""
    schemas, shared = _schemas(tool), {}
    if tool is RUN:
        shared = {name: each for name, each in _schemas(READ_TOOLS[0]).items() if name in schemas}
    own = {name: each for name, each in schemas.items() if name not in {*_PAGING, *shared}}
    paged = ", ".join(f"`{name}`" for name in argument_names(tool) if name in _PAGING)
    again = {name for name, each in own.items() if told.get(name) == str(each)}
    told |= {name: str(each) for name, each in own.items()}
    new = {name: each for name, each in own.items() if name not in again}
    listed = f"\n{_list(new, input_schema(tool).get('required', ()))}" if new else ""
    paged = ", ".join((*(f"`{name}`" for name in own if name in again), paged))
    before = f"\nThe arguments of `{READ_TOOLS[0].name}`, and:\n" if shared else ""
    return f"\n### {tool.name}\n\n{tool.description}\n{before}{listed}\nAnd {paged}.\n"


def _schemas(tool: Tool) -> dict[str, dict[str, Any]]:
    schemas: dict[str, dict[str, Any]] = input_schema(tool)["properties"]
    return schemas


def _list(schemas: Mapping[str, Mapping[str, Any]], required: Iterable[str]) -> str:
    lines = []
    for name, schema in schemas.items():
        about = [_type(schema)]
        if name in required:
            about.append("required")
        elif (default := schema.get("default")) not in (None, [], False):
            about.append(f"`{json.dumps(default)}` by default")
        lines.append(f"- `{name}` ({', '.join(about)}): {schema['description'].rstrip('.')}\n")
    return "".join(lines)


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return next(_type(each) for each in schema["anyOf"] if each != {"type": "null"})
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    return {"string": "text"}.get(schema["type"], str(schema["type"]))


if __name__ == "__main__":
    write_whole(PAGE, page(PAGE.read_text(encoding="utf-8")).encode())
