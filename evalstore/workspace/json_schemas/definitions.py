"""The JSON Schemas of model, provider, currency and tool files."""

from __future__ import annotations

from evalstore.providers.script import ERROR_FIELDS, ERROR_KINDS, TOOL_CALL_FIELDS, USAGE_FIELDS
from evalstore.providers.script import FIELDS as RESPONSE_FIELDS
from evalstore.workspace.definitions import TOOL_FIELDS
from evalstore.workspace.json_schemas.parts import (
    ANY,
    FLAG,
    MAPPING,
    NAMES,
    REQUIRED_TEXT,
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
from evalstore.workspace.model_files import (
    CAPABILITIES,
    COST_FIELDS,
    CURRENCY_FIELDS,
    MODEL_FIELDS,
    OVERRIDE_FIELDS,
    PROVIDER_FIELDS,
    RATE_FIELDS,
)

_MOST = 1e9
_PRICE = number(0, _MOST)
_DAY = described(matching(r"^\d{4}-\d{2}-\d{2}"), "the first day it is in force, in UTC")
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SECONDS: Schema = {"type": "number", "minimum": 0}
_STATUS: Schema = {"type": "integer", "minimum": 400, "maximum": 599}
_OPTIONS: dict[str, Schema] = {
    "thinking": described(ANY, "a text or 'effort' alone is sent as reasoning_effort"),
    "providerOptions": described(MAPPING, "further fields of the request's body"),
    "providerTools": described(listed({"type": "object"}), "tools that the provider runs itself"),
    "uniqueProperties": described(
        {"type": ["array", "object", "null"], "items": {"type": "string", "minLength": 1}},
        "what tells versions of the model apart",
    ),
    "providerModelCode": described(TEXT, "the model's name at its provider"),
}
_COSTS = listed(
    mapping(
        COST_FIELDS,
        {
            **{name: _PRICE for name in COST_FIELDS if name.startswith("cost")},
            "currency": described(TEXT, "the code of a currency file; else USD"),
            "validFrom": _DAY,
        },
        or_null=False,
    )
)
_ERROR = mapping(
    ERROR_FIELDS,
    {
        "status": _STATUS,
        "message": {"type": "string"},
        "retryAfter": _SECONDS,
        "kind": {"enum": sorted(ERROR_KINDS)},
    },
    or_null=False,
)
_CALL = mapping(TOOL_CALL_FIELDS, {"name": {"type": "string"}}, ["name"], or_null=False)
_RESPONSE: Schema = {
    **mapping(
        RESPONSE_FIELDS,
        {
            "when": described(
                {"type": "string"}, "the last message, or a pattern found in all messages"
            ),
            "toolCalls": {"type": "array", "items": _CALL},
            "error": {"anyOf": [_STATUS, {"type": "string"}, _ERROR]},
            "times": {"type": "integer", "minimum": 1},
            "usage": mapping(USAGE_FIELDS, dict.fromkeys(USAGE_FIELDS, _COUNT), or_null=False),
            "latency": _SECONDS,
            "finishReason": {"type": "string"},
            "model": {"type": "string"},
        },
        or_null=False,
    ),
    "oneOf": [{"required": [name]} for name in ("answer", "toolCalls", "error")],
}


def _flags(names: tuple[str, ...]) -> Schema:
    return mapping(names, dict.fromkeys(names, FLAG))


def model() -> Schema:
    """Return the schema of model files."""
    overrides = mapping(OVERRIDE_FIELDS, {**_OPTIONS, "temperature": TEMPERATURE})
    properties: dict[str, Schema] = {
        "id": described(TEXT, "what the settings call it"),
        "code": described(
            {"anyOf": [TEXT, listed(REQUIRED_TEXT)]},
            "the model's name at its provider; of an application its function or command line",
        ),
        "name": described(ANY, "for people"),
        "description": described(ANY, "for people"),
        "tags": described(ANY, "for people"),
        "provider": described(REQUIRED_TEXT, "the code of a provider file, or a kind of provider"),
        "active": described(FLAG, "false: left out unless it is named with -m or -J"),
        "extraIdentifier": described(TEXT, "not sent; tells versions of the model apart"),
        "candidateOverrides": described(overrides, "options as a candidate"),
        "evaluatorOverrides": described(overrides, "options as an evaluator"),
        "capabilities": mapping(
            CAPABILITIES,
            {
                side: mapping(known, dict.fromkeys(known, FLAG))
                for side, known in CAPABILITIES.items()
            },
        ),
        "costs": described(_COSTS, "prices; the newest that is in force counts"),
        "responses": described(listed(_RESPONSE), "scripted models: what they answer"),
        "uses": described(NAMES, "applications: the other files that they read or import"),
        "env": described(NAMES, "applications: the variables of the environment that they get"),
        **_OPTIONS,
    }
    return mapping(MODEL_FIELDS, properties, ["provider"], or_null=False)


def provider() -> Schema:
    """Return the schema of provider files."""
    properties: dict[str, Schema] = {
        "code": described(REQUIRED_TEXT, "what model files call it"),
        "name": described(ANY, "for people"),
        "description": described(ANY, "for people"),
        "type": described(TEXT, "the kind of provider; else the code"),
        "baseURL": described(matching(r"^\s*https?://\S+$"), "it is stored and must hold no key"),
        "apiKeyEnvVar": described(
            matching("^[A-Za-z_][A-Za-z0-9_]*$"), "the variable that holds the key"
        ),
        "supportsStructuredOutputs": FLAG,
        "concurrency": described(whole(1, 1024), "the most calls at once"),
        "requestsPerMinute": number(0.001, _MOST),
        "tokensPerMinute": number(1, _MOST),
    }
    return mapping(PROVIDER_FIELDS, properties, ["code"], or_null=False)


def currency() -> Schema:
    """Return the schema of currency files."""
    rate = mapping(
        RATE_FIELDS,
        {"rateInUSD": {"type": "number", "minimum": 0, "maximum": _MOST}, "validFrom": _DAY},
        ["rateInUSD"],
        or_null=False,
    )
    properties: dict[str, Schema] = {"code": REQUIRED_TEXT, "rates": listed(rate)}
    return mapping(CURRENCY_FIELDS, properties, ["code"], or_null=False)


def tool() -> Schema:
    """Return the schema of tool files."""
    properties: dict[str, Schema] = {
        "id": described(TEXT, "what tests call it"),
        "name": described(REQUIRED_TEXT, "what the model is shown"),
        "description": TEXT,
        "parameters": described(MAPPING, "a JSON Schema"),
    }
    return mapping(TOOL_FIELDS, properties, ["name"], or_null=False)
