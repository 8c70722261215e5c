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
_PRICES = {
    "costPerPromptToken": "for a token in",
    "costPerCachedPromptToken": "for a token in that came from the provider's cache",
    "costPerCompletionToken": "for a token out",
    "costPerCall": "for an answer of any length",
    "costPerHour": "for the time of the call: a machine that is rented by the hour",
}
_MEDIA = {
    "text": "text",
    "image": "images",
    "file": "files",
    "pdf": "PDF files",
    "audio": "sound",
    "video": "videos",
    "structured": "JSON that matches a schema",
    "tools": "calls of tools",
    "reasoning": "its reasoning apart from the answer",
}
"""What a model can take or give, by the names of capabilities."""
_TOKENS = {
    "inputTokens": "tokens in",
    "outputTokens": "tokens out",
    "cachedTokens": "input tokens that came from a cache",
    "reasoningTokens": "output tokens that were reasoning",
}
_DAY = described(matching(r"^\d{4}-\d{2}-\d{2}"), "the first day it is in force, in UTC")
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SECONDS: Schema = {"type": "number", "minimum": 0}
_TEMPERATURE = described(TEMPERATURE, "as in this part; else that of the settings")
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
            **{name: described(_PRICE, text) for name, text in _PRICES.items()},
            "currency": described(TEXT, "the code of a currency file; else USD"),
            "validFrom": _DAY,
        },
        or_null=False,
    )
)
_ERROR = mapping(
    ERROR_FIELDS,
    {
        "status": described(_STATUS, "of the answer of a server"),
        "message": described({"type": "string"}, "what the server says"),
        "retryAfter": described(_SECONDS, "after how many seconds the call may be repeated"),
        "kind": described({"enum": sorted(ERROR_KINDS)}, "in place of a status"),
    },
    or_null=False,
)
_CALL = mapping(
    TOOL_CALL_FIELDS,
    {
        "name": described({"type": "string"}, "the name of the tool"),
        "arguments": described(ANY, "its arguments"),
    },
    ["name"],
    or_null=False,
)
_RESPONSE: Schema = {
    **mapping(
        RESPONSE_FIELDS,
        {
            "when": described(
                {"type": "string"}, "the last message, or a pattern found in all messages"
            ),
            "answer": described(ANY, "the answer: a text, or JSON"),
            "toolCalls": described({"type": "array", "items": _CALL}, "the tools that it calls"),
            "error": described(
                {"anyOf": [_STATUS, {"type": "string"}, _ERROR]},
                "the call fails: a status, a message, or both",
            ),
            "times": described(
                {"type": "integer", "minimum": 1},
                "how many calls it answers before the next entry does",
            ),
            "usage": described(
                mapping(
                    USAGE_FIELDS,
                    {name: described(_COUNT, text) for name, text in _TOKENS.items()},
                    or_null=False,
                ),
                "the tokens; else they are estimated",
            ),
            "latency": described(_SECONDS, "the seconds that it waits before it answers"),
            "finishReason": described(
                {"type": "string"}, "why the answer ends: stop, tool_calls, length or error"
            ),
            "model": described({"type": "string"}, "the name of the version that answers"),
        },
        or_null=False,
    ),
    "oneOf": [{"required": [name]} for name in ("answer", "toolCalls", "error")],
}


def model() -> Schema:
    """Return the schema of model files."""
    overrides = mapping(OVERRIDE_FIELDS, {**_OPTIONS, "temperature": _TEMPERATURE})
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
        "keepThoughts": described(FLAG, "true: thoughts in front of an answer stay in its text"),
        "candidateOverrides": described(overrides, "options as a candidate"),
        "evaluatorOverrides": described(overrides, "options as a judge"),
        "capabilities": described(
            mapping(
                CAPABILITIES,
                {
                    side: described(
                        mapping(known, {name: described(FLAG, _MEDIA[name]) for name in known}),
                        f"what it can {verb}",
                    )
                    for (side, known), verb in zip(
                        CAPABILITIES.items(), ("take", "give"), strict=True
                    )
                },
            ),
            "what it can take and give; a test that needs more is skipped",
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
        "service": described(
            TEXT, "replaces baseURL in model versions: all addresses share answers"
        ),
        "apiKeyEnvVar": described(
            matching("^[A-Za-z_][A-Za-z0-9_]*$"), "the variable that holds the key"
        ),
        "supportsStructuredOutputs": described(
            FLAG, "false: JSON is asked for in JSON mode, and checked here"
        ),
        "concurrency": described(whole(1, 1024), "maximum concurrent calls"),
        "requestsPerMinute": described(number(0.001, _MOST), "maximum calls per minute"),
        "tokensPerMinute": described(number(1, _MOST), "maximum tokens per minute, in and out"),
    }
    return mapping(PROVIDER_FIELDS, properties, ["code"], or_null=False)


def currency() -> Schema:
    """Return the schema of currency files."""
    rate = mapping(
        RATE_FIELDS,
        {
            "rateInUSD": described(
                {"type": "number", "minimum": 0, "maximum": _MOST}, "what one unit is worth in USD"
            ),
            "validFrom": _DAY,
        },
        ["rateInUSD"],
        or_null=False,
    )
    properties: dict[str, Schema] = {
        "code": described(REQUIRED_TEXT, "what prices and --currency call it, such as EUR"),
        "name": described(ANY, "for people"),
        "symbol": described(ANY, "for people"),
        "rates": described(listed(rate), "what it is worth; the newest that is in force counts"),
    }
    return mapping(CURRENCY_FIELDS, properties, ["code"], or_null=False)


def tool() -> Schema:
    """Return the schema of tool files."""
    properties: dict[str, Schema] = {
        "id": described(TEXT, "what tests call it"),
        "name": described(REQUIRED_TEXT, "what the model is shown"),
        "description": described(TEXT, "when to call it: shown to the model"),
        "tags": described(ANY, "for people"),
        "parameters": described(MAPPING, "a JSON Schema"),
    }
    return mapping(TOOL_FIELDS, properties, ["name"], or_null=False)
