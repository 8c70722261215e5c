"""Builds small repositories of LVE."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalstore.core.values import Json
from evalstore.exchange.importers.base import Imported, ImportOptions
from evalstore.exchange.importers.lve.reader import read
from evalstore.files.templates import compile_text
from tests.builders import tree

if TYPE_CHECKING:
    from pathlib import Path

SAFE = {"checker_name": "RefuseChecker"}
"""A checker that takes what it gets."""
TIME = "Sun Oct 22 21:28:30 2023"


def definition(**fields: Json) -> dict[str, Json]:
    """A `test.json` with one message, unless a prompt is given."""
    defaults: dict[str, Json] = {"description": "d", "model": "dummy/dummy", "checker_args": SAFE}
    if not {"prompt", "prompt_file", "multi_run_prompt"} & fields.keys():
        defaults["prompt"] = [{"content": "Hello"}]
    return {**defaults, **fields}


def instance(args: Mapping[str, Json], response: Json = "r", **fields: Json) -> str:
    """A line of a file of instances."""
    run_info = {"timestamp": TIME}
    return json.dumps({"args": args, "response": response, "run_info": run_info, **fields}) + "\n"


def imported(
    path: Path,
    test: Mapping[str, Json] | str,
    *instances: str,
    files: Mapping[str, str] | None = None,
    place: str = "trust/colours/acme--m1",
    sessions: bool = False,
) -> Imported:
    """What a repository with one test comes to."""
    folder = f"repository/{place}"
    text = test if isinstance(test, str) else json.dumps(test, indent=1)
    contents = {f"{folder}/test.json": text}
    if instances:
        contents[f"{folder}/instances/all.jsonl"] = "".join(instances)
    contents |= {f"{folder}/{name}": content for name, content in (files or {}).items()}
    return read([tree(path, contents)], ImportOptions("lve", sessions=sessions))


def texts(result: Imported) -> dict[str, str]:
    """The files as texts."""
    return {name: content.decode() for name, content in result.files.items()}


def reasons(result: Imported) -> str:
    """Why things were left."""
    return "; ".join(item.reason for item in result.left)


def filled(template: str, values: Mapping[str, Json]) -> Any:
    """A template with its values, as one of a row comes to."""

    def lookup(name: str) -> list[Any]:
        value = values[name]
        return [value if isinstance(value, str) else json.dumps(value)]

    compiled = compile_text(template, values, lambda _offset: 1)
    return compiled.value(lookup, values.__getitem__)
