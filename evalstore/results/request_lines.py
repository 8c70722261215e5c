"""Describes what a request had beside its messages: tools, a schema, options, and code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalstore.core.display import short
from evalstore.files.processes.application import APPLICATIONS

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.planning.reasons.version_reader import VersionReader


def describe_request(contents: VersionReader, test: str, model: Json) -> tuple[str, ...]:
    """Return the tools, schema, options and files of code of a request, one line each."""
    content = contents.find("test", test) or {}
    tools = contents.load("tool", content.get("tools", ()))
    lines = [f"tool {tool['name']}" for tool in tools.values()]
    lines += ["answers in a JSON schema"] if content.get("schema") else []
    lines += [
        f"{name} {json.dumps(value, ensure_ascii=False)}"
        for name, value in content.get("options", {}).items()
    ]
    options = dict(model.get("options") or {})
    if model.get("provider") in APPLICATIONS:
        files = options.pop("files", {})
        lines += [f"code {path} {short(digest)}" for path, digest in files.items()]
    if options and "answers" not in options:  # of recorded answers
        lines.append(f"model options {json.dumps(options, ensure_ascii=False)}")
    return tuple(lines)
