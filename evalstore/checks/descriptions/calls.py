"""The descriptions of the checks of tool calls and of the call of the model."""

from __future__ import annotations

from evalstore.checks.description import (
    COUNT,
    FLAG,
    TEXTS,
    CheckDescription,
    CheckExample,
    CheckSetting,
    ValueType,
    choice,
)
from evalstore.core.values import Json

_EXPECTED_CALL: Json = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "the name of the tool"},
                "arguments": {
                    "type": ["object", "string"],
                    "description": "its arguments",
                },
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ]
}
_POSITIVE = ValueType("number", {"type": "number", "minimum": 0})


def _calls(*calls: Json) -> Json:
    return {"toolCalls": list(calls)}


_OSLO = {"name": "cityWeather", "arguments": {"city": "Oslo"}}
_ROME = {"name": "cityWeather", "arguments": {"city": "Rome"}}

DESCRIPTIONS = {
    "toolCalls": CheckDescription(
        "the expected tools are called",
        (
            CheckSetting(
                "expected",
                ValueType(
                    "list of names or of mappings with `name` and `arguments`",
                    {
                        "anyOf": [
                            _EXPECTED_CALL,
                            {"type": "array", "items": _EXPECTED_CALL},
                            {"type": ["null", "boolean"]},
                        ]
                    },
                ),
                "the calls; without it any call passes",
            ),
            CheckSetting("order", FLAG, "they must come in this order", False),
            CheckSetting(
                "extra", choice("forbid", "allow"), "whether there may be further calls", "forbid"
            ),
            CheckSetting(
                "arguments",
                choice("exact", "subset"),
                "whether a call may have further arguments",
                "exact",
            ),
            CheckSetting("count", COUNT, "the number of calls; without it any number passes"),
        ),
        (
            CheckExample("toolCalls: [cityWeather]", _calls(_OSLO), "It rains."),
            CheckExample(
                "toolCalls: [{name: cityWeather, arguments: {city: Oslo}}]",
                _calls(_OSLO),
                _calls(_ROME),
            ),
            CheckExample(
                "{toolCalls: [cityWeather], extra: allow}", _calls(_OSLO, _ROME), "It rains."
            ),
        ),
    ),
    "noToolCalls": CheckDescription(
        "no tool is called", (), (CheckExample("noToolCalls", "It rains.", _calls(_OSLO)),)
    ),
    "finishReason": CheckDescription(
        "the provider gives this reason for the end of the answer",
        (
            CheckSetting(
                "expected",
                TEXTS,
                "the reason, or alternatives: `stop`, `length`, `tool_calls` …",
                required=True,
            ),
        ),
        (CheckExample("finishReason: stop", {"finishReason": "stop"}, {"finishReason": "length"}),),
    ),
    "latency": CheckDescription(
        "the call took at most this many seconds",
        (CheckSetting("max", _POSITIVE, "seconds", required=True),),
        (CheckExample("latency: 10", {"latency": 2.5}, {"latency": 11}),),
        "A stored answer keeps the time of its original call.",
    ),
    "cost": CheckDescription(
        "the call cost at most this many USD",
        (CheckSetting("max", _POSITIVE, "USD", required=True),),
        (CheckExample("cost: 0.01", {"cost": 0.002}, {"cost": 0.02}),),
        "Without a known price the verdict is `error`.",
    ),
    "tokens": CheckDescription(
        "the call used an allowed number of tokens",
        (
            CheckSetting("max", COUNT, "the maximum; this or `min` is required"),
            CheckSetting("min", COUNT, "the minimum"),
            CheckSetting(
                "of", choice("total", "input", "output"), "which tokens are counted", "total"
            ),
        ),
        (
            CheckExample("tokens: 500", {"tokens": 120}, {"tokens": 900}),
            CheckExample("{tokens: 100, of: output}", {"tokens": 80}, {"tokens": 300}),
        ),
        "If the provider reports none, the verdict is `error`.",
    ),
}
