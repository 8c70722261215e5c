"""The JSON Schema of `evalstore.yaml`."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping

from evalstore.workspace.json_schemas.parts import (
    NAMES,
    REQUIRED_TEXT,
    SAMPLES,
    TEMPERATURE,
    TEXT,
    Schema,
    described,
    listed,
    mapping,
    matching,
    number,
    whole,
)
from evalstore.workspace.settings.remote_names import REMOTE_NAME
from evalstore.workspace.settings.settings import (
    FOLDERS,
    QUERY_NAMES,
    SETTING_NAMES,
    AnalysisQuery,
    BrowserSettings,
    Participant,
    QueryModel,
    RemoteSettings,
    Settings,
    Threshold,
)
from evalstore.workspace.settings.settings_reader import (
    BROWSER_FIELDS,
    CANDIDATE_FIELDS,
    EVALUATOR_FIELDS,
    QUERY_MODEL_FIELDS,
    REMOTE_FIELDS,
    THRESHOLD_FIELDS,
    THRESHOLD_GROUPS,
)

_TAGS = dict.fromkeys(("requiredTags1", "requiredTags2", "prohibitedTags"), NAMES)
_MOST = 1e9
_USD = number(0, _MOST)
_PARTICIPANT: dict[str, Schema] = {
    "id": REQUIRED_TEXT,
    "temperature": TEMPERATURE,
    "requiredTags": NAMES,
    "prohibitedTags": NAMES,
    "prompt": TEXT,
}
_QUERY_MODEL: dict[str, Schema] = {"id": REQUIRED_TEXT, "temperature": TEMPERATURE}


def settings() -> Schema:
    """Return the schema of the settings."""
    properties: dict[str, Schema] = {
        "candidates": _models(CANDIDATE_FIELDS),
        "candidatesTemperature": TEMPERATURE,
        "attempts": SAMPLES,
        **_TAGS,
        "evaluators": _models(EVALUATOR_FIELDS),
        "evaluatorsTemperature": TEMPERATURE,
        "evaluationsPerEvaluator": SAMPLES,
        "verdict": matching(r"^(majority|all|any|>=\s*(0(\.\d+)?|1(\.0+)?))$"),
        "maxTestOutputTokens": whole(1),
        "maxEvaluationOutputTokens": whole(1),
        "maxAge": matching(r"^\s*\d{1,9}(\.\d{1,9})?\s*[smhdw]\s*$"),
        "timeout": number(0.001, 86_400),
        "concurrency": whole(1, 1024),
        "requestsPerMinute": number(0.001, _MOST),
        "tokensPerMinute": number(1, _MOST),
        "maxCost": _USD,
        "maxTime": number(0, _MOST),
        "confirmAbove": _USD,
        "retries": whole(0, 100),
        "paths": mapping(
            FOLDERS, {name: described(TEXT, f"the folder of {name}") for name in FOLDERS}
        ),
        "datasetRoots": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "store": TEXT,
        "remotes": {
            "type": ["object", "null"],
            "propertyNames": {"pattern": f"^{REMOTE_NAME}$"},
            "additionalProperties": {"anyOf": [REQUIRED_TEXT, _remote()]},
        },
        "browser": _browser(),
        "thresholds": listed(_threshold()),
        "analysisQueries": listed(_query()),
    }
    return mapping(SETTING_NAMES, _with_descriptions(properties, Settings))


def _models(names: tuple[str, ...]) -> Schema:
    """Return the schema of models by their names, or as mappings."""
    entry = mapping(names, _with_descriptions(_PARTICIPANT, Participant), ["id"], or_null=False)
    return listed({"anyOf": [REQUIRED_TEXT, entry]})


def _remote() -> Schema:
    properties: dict[str, Schema] = {
        "address": REQUIRED_TEXT,
        "sign": TEXT,
        "allowedSigners": TEXT,
        "trust": {**NAMES, "minItems": 1},
        "excludeTags": NAMES,
    }
    names = _with_descriptions(properties, RemoteSettings)
    return mapping(REMOTE_FIELDS, names, ["address"], or_null=False)


def _browser() -> Schema:
    keys: Schema = {"type": ["object", "null"], "additionalProperties": TEXT}
    properties = {"theme": TEXT, "keys": keys}
    return mapping(BROWSER_FIELDS, _with_descriptions(properties, BrowserSettings))


def _threshold() -> Schema:
    properties: dict[str, Schema] = {
        "passRate": number(0, 1),
        "where": NAMES,
        "by": {"type": ["array", "null"], "items": {"enum": list(THRESHOLD_GROUPS)}},
    }
    names = _with_descriptions(properties, Threshold)
    return mapping(THRESHOLD_FIELDS, names, ["passRate"], or_null=False)


def _query() -> Schema:
    entry = mapping(
        QUERY_MODEL_FIELDS, _with_descriptions(_QUERY_MODEL, QueryModel), ["id"], or_null=False
    )
    models = listed({"anyOf": [{"type": "string", "minLength": 1}, entry]})
    properties: dict[str, Schema] = {
        "description": REQUIRED_TEXT,
        "currency": TEXT,
        **_TAGS,
        "systemPrompts": NAMES,
        "candidates": models,
        "evaluators": models,
        "candidatesTemperature": TEMPERATURE,
        "evaluatorsTemperature": TEMPERATURE,
    }
    names = _with_descriptions(properties, AnalysisQuery)
    return mapping(QUERY_NAMES, names, ["description"], or_null=False)


def _with_descriptions(properties: Mapping[str, Schema], owner: type) -> dict[str, Schema]:
    """Add the texts that document the fields of a class to the properties."""
    texts = field_texts(owner)
    return {
        name: described(schema, texts[name]) if name in texts else schema
        for name, schema in properties.items()
    }


def field_texts(owner: type) -> dict[str, str]:
    """Read the strings below the fields of a class, by the name of the setting.

    They are empty where the source of the program is not installed.
    """
    try:
        source = inspect.getsource(owner)
    except OSError:
        return {}
    (definition,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for node, below in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            name = re.sub(r"_([a-z])", lambda match: match[1].upper(), node.target.id)
            texts[name] = " ".join(str(below.value.value).replace("`", "'").split())
    return texts
