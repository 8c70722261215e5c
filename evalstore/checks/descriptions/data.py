"""The descriptions of the checks of numbers and JSON."""

from __future__ import annotations

from evalstore.checks.description import (
    ANY,
    FLAG,
    TEXT,
    CheckDescription,
    CheckExample,
    CheckSetting,
    ValueType,
    choice,
)

_FENCED = CheckSetting(
    "fenced",
    FLAG,
    "JSON in a code block also counts; of several blocks, the one that is JSON",
    False,
)
_COMPARISON = (
    CheckSetting("expected", ANY, "the value", required=True),
    CheckSetting("ignoreOrder", FLAG, "ignore the order of lists", False),
    CheckSetting("anyOf", FLAG, "the value is a list, and one entry is enough", False),
    _FENCED,
)

DESCRIPTIONS = {
    "number": CheckDescription(
        "the last number in the answer is the expected one",
        (
            CheckSetting(
                "expected",
                ValueType("number", {"type": ["number", "string"]}),
                "the number; a text such as a cell of a table is read as one",
                required=True,
            ),
            CheckSetting(
                "op", choice("==", "!=", "<", "<=", ">", ">="), "how it is compared", "=="
            ),
            CheckSetting(
                "epsilon",
                ValueType("number", {"type": "number", "minimum": 0}),
                "how much it may differ",
                0,
            ),
            CheckSetting(
                "commas", FLAG, "read numbers with thousands separators, such as `1,000`", False
            ),
        ),
        (
            CheckExample("number: 42", "It is 6 times 7, so 42.", "It is 41."),
            CheckExample("{number: 3.14, epsilon: 0.01}", "about 3.142", "about 3"),
            CheckExample("{number: 1000, op: '>=', commas: true}", "1,250 people", "900 people"),
        ),
    ),
    "json": CheckDescription(
        "the answer is JSON",
        (
            CheckSetting("of", choice("any", "object", "array"), "which values do", "any"),
            _FENCED,
        ),
        (
            CheckExample("json", "[1, 2]", "one and two"),
            CheckExample(
                "json: {of: object, fenced: true}", '```json\n{"city": "Oslo"}\n```', "[1, 2]"
            ),
        ),
    ),
    "jsonSchema": CheckDescription(
        "the answer is JSON that matches the schema",
        (
            CheckSetting(
                "schema",
                ValueType("id or schema", {"type": ["string", "object", "boolean"]}),
                "the id of a schema file, or a JSON Schema",
                required=True,
            ),
            _FENCED,
        ),
        (
            CheckExample(
                "jsonSchema: {type: object, required: [city]}", '{"city": "Oslo"}', '{"town": "x"}'
            ),
        ),
    ),
    "jsonEquals": CheckDescription(
        "the answer is this value as JSON",
        _COMPARISON,
        (CheckExample("jsonEquals: {city: Oslo}", '{"city": "Oslo"}', '{"city": "Rome"}'),),
    ),
    "jsonSubset": CheckDescription(
        "the answer has at least these keys and values as JSON",
        _COMPARISON,
        (
            CheckExample(
                "jsonSubset: {city: Oslo}", '{"city": "Oslo", "days": 2}', '{"city": "Rome"}'
            ),
            CheckExample(
                "{jsonSubset: {tags: [b, a]}, ignoreOrder: true}",
                '{"tags": ["a", "b"]}',
                '{"tags": ["a"]}',
            ),
        ),
    ),
    "jsonPath": CheckDescription(
        "there is a value at the path, and the check inside passes for it",
        (
            CheckSetting(
                "path", TEXT, "a [JMESPath](https://jmespath.org) expression", required=True
            ),
            CheckSetting(
                "check",
                ValueType("check", {"$ref": "#/$defs/check"}),
                "a check of the value, also written beside `path`; without one any value passes",
            ),
            _FENCED,
        ),
        (
            CheckExample("jsonPath: city", '{"city": "Oslo"}', '{"town": "Oslo"}'),
            CheckExample(
                "{jsonPath: 'items[0].name', contains: bike}",
                '{"items": [{"name": "city bike"}]}',
                '{"items": [{"name": "kayak"}]}',
            ),
            CheckExample(
                "{jsonPath: status, check: {oneOf: [confirmed, received]}}",
                '{"status": "received"}',
                '{"status": "lost"}',
            ),
        ),
    ),
}
