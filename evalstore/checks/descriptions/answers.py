"""The descriptions of the checks of several answers, and of those that authors define."""

from __future__ import annotations

from evalstore.checks.description import (
    FLAG,
    MAPPING,
    NUMBER,
    TEXT,
    TEXTS,
    CheckDescription,
    CheckExample,
    CheckSetting,
    ValueType,
    choice,
)

_JOINT = "The setting `scope` is required: it says which answers are compared."

DESCRIPTIONS = {
    "allEqual": CheckDescription(
        "all answers are equal",
        (),
        (CheckExample("allEqual: {scope: case}", ["Oslo", "Oslo"], ["Oslo", "Rome"]),),
        _JOINT,
    ),
    "allSame": CheckDescription(
        "a key has the same value, or numbers close enough, in the JSON of all answers",
        (
            CheckSetting("key", TEXT, "the key", required=True),
            CheckSetting(
                "max",
                ValueType("number", {"type": "number", "minimum": 0}),
                "how much numbers may differ (default: 0)",
            ),
        ),
        (
            CheckExample(
                "{allSame: salary, max: 100, scope: group}",
                ['{"salary": 50000}', '{"salary": 50050}'],
                ['{"salary": 50000}', '{"salary": 60000}'],
            ),
        ),
        _JOINT,
    ),
    "monotonic": CheckDescription(
        "the last numbers of the answers rise, or fall",
        (
            CheckSetting(
                "order", choice("increasing", "decreasing"), "the direction", "increasing"
            ),
            CheckSetting("strict", FLAG, "equal numbers fail", False),
            CheckSetting(
                "by",
                ValueType("list of numbers", {"type": ["array", "string"]}),
                "numbers that order the answers; default: their own order",
            ),
            CheckSetting(
                "pattern", TEXT, "a regular expression that captures the number; else the last one"
            ),
            CheckSetting(
                "commas", FLAG, "read numbers with thousands separators, such as `1,000`", False
            ),
        ),
        (
            CheckExample(
                "{monotonic: increasing, strict: true, scope: group}", ["1", "5"], ["5", "5"]
            ),
            CheckExample(
                "{monotonic: decreasing, by: [2, 1], scope: case}", ["1", "5"], ["5", "1"]
            ),
        ),
        _JOINT,
    ),
    "expr": CheckDescription(
        "the expression is true",
        (
            CheckSetting(
                "expression",
                TEXT,
                "over `answer`, `answers`, `json`, `tool_calls`, `sample`, `item` and the values "
                "of the row",
                required=True,
            ),
        ),
        (
            CheckExample("expr: len(answer.split()) < 4", "It is Paris.", "I think it is Paris."),
            CheckExample(
                "{expr: 'answer.count(\"a\") / len(answer)', pass: '>= 0.5'}", "aab", "abb"
            ),
        ),
        "It is written in a subset of Python. A number is a score, and needs `pass`.",
    ),
    "python": CheckDescription(
        "a function in a Python file of the workspace says so",
        (
            CheckSetting("file", TEXT, "the path of the file", required=True),
            CheckSetting("function", TEXT, "the function; this or `class` is required"),
            CheckSetting("class", TEXT, "the class"),
            CheckSetting("args", MAPPING, "arguments by name", {}),
            CheckSetting("network", FLAG, "whether it needs the network", False),
            CheckSetting(
                "timeout",
                ValueType("number", {"type": "number", "exclusiveMinimum": 0, "maximum": 600}),
                "seconds for one verdict",
                10,
            ),
            CheckSetting(
                "memory",
                ValueType("whole number", {"type": "integer", "minimum": 64}),
                "MiB of address space",
                1024,
            ),
        ),
        (CheckExample("python: {file: checks/haiku.py, function: judge, args: {lines: 3}}"),),
        "The file does not run before it is trusted: `evalstore trust FILE`.",
    ),
    "judge": CheckDescription(
        "a judge passes it, by a prompt of the test, a choice or a score",
        (
            CheckSetting("prompt", TEXT, "the id of a judge prompt; else that of each judge"),
            CheckSetting("choices", TEXTS, "the choices of the judge"),
            CheckSetting(
                "scores",
                ValueType("mapping, list or `numbers`", {"type": ["object", "array", "string"]}),
                "what each choice is worth",
            ),
            CheckSetting(
                "pass",
                ValueType("bound or choices", {"type": ["string", "number", "array", "boolean"]}),
                'the bound of the score, such as `">= 0.5"`, or the choices that pass',
            ),
            CheckSetting(
                "answer",
                choice("cot_classify", "classify_cot", "classify"),
                "whether reasons come before the choice, after it, or not at all",
                "cot_classify",
            ),
            CheckSetting(
                "parser",
                ValueType(
                    "mapping",
                    {
                        "type": "object",
                        "properties": {
                            "regex": {
                                **TEXT.schema,
                                "description": "a pattern whose first group is the score",
                            },
                            "json": {
                                **TEXT.schema,
                                "description": "the path of the score in the judge's object",
                            },
                            "min": {**NUMBER.schema, "description": "the lowest score"},
                            "max": {**NUMBER.schema, "description": "the highest score"},
                        },
                        "additionalProperties": False,
                    },
                ),
                "finds the score in the reply: `regex` or `json`, and `min` and `max`",
            ),
            CheckSetting(
                "invalid",
                choice("undecided", "lowest"),
                "the verdict for a reply that cannot be read",
                "undecided",
            ),
        ),
        (
            CheckExample("judge: {prompt: fact, choices: [A, B, C], pass: [A, B]}"),
            CheckExample(
                "judge: {prompt: helpful, parser: {regex: 'SCORE: ([1-5])', min: 1, max: 5}, "
                "pass: '>= 4'}"
            ),
        ),
        "A test has one such check at most.",
    ),
}
