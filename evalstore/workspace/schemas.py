"""`check --schema`: the JSON Schemas of the files that evalstore reads, for editors.

That of checks is made of the descriptions of their types; the others are files in `docs/schemas`,
written by hand. What a schema refuses is refused by the reader too, but not the other way round: a
reader also looks at what a schema cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import evalstore
from evalstore.checks.base import CheckSetting, CheckType
from evalstore.checks.descriptions import (
    EVERY_SETTING,
    common_settings,
    describe_check,
    is_described,
)
from evalstore.checks.parser import PATH, known_kinds
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.files.atomic_write import write_whole
from evalstore.files.fields import suggest
from evalstore.workspace.testfiles.parser import WHEN, WORD

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


Schema = dict[str, Json]
_TEMPLATE: Schema = {"type": "string", "pattern": r"\{[{%]"}
"""A text with placeholders, which may stand for any value."""


def checks_schema() -> Schema:
    """Return the schema of a block of checks: a list, or a mapping with one."""
    kinds = known_kinds()
    settings = {name: _settings(name, kind) for name, kind in sorted(kinds.items())}
    entries: Schema = {"type": "array", "items": _ref("check"), "minItems": 1}
    block = {
        "type": "object",
        "properties": {
            "evaluator": _described({"enum": [*WHEN, None]}, "when models also judge"),
            "pass": _described(
                {"anyOf": [{"enum": ["all", "any", None]}, {"type": "string", "pattern": "^>="}]},
                "whether all must pass, any, or the mean of the scores must reach a bound",
            ),
            WORD: _described(entries, "the checks"),
        },
        "additionalProperties": False,
        "required": [WORD],
    }
    return {
        "anyOf": [entries, block],
        "$defs": {
            "check": _any_check(kinds),
            **{f"setting {setting.name}": _setting(setting) for setting in EVERY_SETTING},
            **{f"settings {name}": schema for name, schema in settings.items()},
            **{
                f"check {name}": _check(name, kinds[name], schema)
                for name, schema in settings.items()
            },
        },
    }


def _any_check(kinds: Mapping[str, CheckType]) -> Schema:
    """Return the schema of any check: its name alone, or a mapping that its name decides on."""
    names = sorted(kinds)
    mapping_schema: Schema = {
        "type": "object",
        "properties": {name: {"description": _passes_if(name, kinds[name])} for name in names},
        "anyOf": [
            *({"required": [name]} for name in names),
            {"required": ["type"], "properties": {"type": _type({"enum": names})}},
        ],
        "allOf": [{"if": _is_type(name), "then": _ref(f"check {name}")} for name in names],
    }
    return {"if": {"type": "string"}, "then": {"enum": names}, "else": mapping_schema}


def _is_type(name: str) -> Schema:
    by_name: Schema = {"required": [name]}
    if name != PATH:  # what stands beside a path is a check of the value there
        by_name["not"] = {"anyOf": [{"required": [PATH]}, _named(PATH)]}
    return {"anyOf": [by_name, _named(name)]}


def _named(name: str) -> Schema:
    return {"required": ["type"], "properties": {"type": {"const": name}}}


def _ref(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition}".replace(" ", "%20")}


def _described(schema: Schema, description: str) -> Schema:
    """Add the text that editors show to a schema."""
    return {**schema, "description": description}


def _type(schema: Schema) -> Schema:
    return _described(schema, "the type of the check, in place of 'type: value'")


def _passes_if(name: str, kind: CheckType) -> str:
    return f"passes if {describe_check(name, kind).summary}"


def _settings(name: str, kind: CheckType) -> Schema:
    """Return the schema of all settings of a type, as `type: {…}` has them."""
    own = {setting.name: _setting(setting) for setting in describe_check(name, kind).settings}
    shared = {setting.name: _ref(f"setting {setting.name}") for setting in common_settings(kind)}
    inner: dict[str, Schema] = {}
    if name == PATH:
        inner = {
            other: _described({}, _passes_if(other, it)) for other, it in known_kinds().items()
        }
    schema: Schema = {"type": "object", "properties": {**inner, **shared, **own}}
    # A package need not describe its check: then the settings are not known.
    return {**schema, "additionalProperties": False} if is_described(name, kind) else schema


def _check(name: str, kind: CheckType, settings: Schema) -> Schema:
    """Return the schema of a check of one type, as a mapping."""
    references = {
        setting: _ref(f"settings {name}/properties/{setting}") for setting in settings["properties"]
    }
    value = _described(_value(name, kind, settings), _passes_if(name, kind))
    return {**settings, "properties": {**references, name: value, "type": _type({"const": name})}}


def _setting(setting: CheckSetting) -> Schema:
    schema: Schema = {"description": setting.description.replace("`", "'")}
    if setting.type.schema:
        schema["anyOf"] = [dict(setting.type.schema), _TEMPLATE]
    return schema if setting.default is None else {**schema, "default": setting.default}


def _value(name: str, kind: CheckType, settings: Schema) -> Schema:
    """Return the schema of `type: value`: its main setting, or a mapping of all."""
    nested: Schema = {"type": "object"} if kind.takes_mapping else _ref(f"settings {name}")
    forms: list[Schema] = [nested, {"type": "null"}]
    if kind.main is None:
        return {"anyOf": [*forms, {"const": True}]}
    is_described = kind.main in settings["properties"]
    main = _ref(f"settings {name}/properties/{kind.main}") if is_described else {}
    return {"anyOf": [*forms, main]}
