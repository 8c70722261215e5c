"""The descriptions of the check types of this package, loaded only where they are shown."""

from __future__ import annotations

from evalstore.checks.base import (
    ANY,
    COUNT,
    FLAG,
    MAPPING,
    NUMBER,
    ONE_TEXT,
    STEPS,
    TEXT,
    TEXTS,
    CheckDescription,
    CheckExample,
    CheckSetting,
    CheckType,
    ValueType,
    choice,
)
from evalstore.core.values import Json

_INSTALL = "It needs `pip install 'evalstore[similarity]'`; without it the file is refused."
_FLAGS = ["ignoreCase", "multiline", "dotAll", "verbose", "ascii"]
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
_EXPECTED_CALL: Json = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "the name of the tool"},
                "arguments": {"type": ["object", "string"], "description": "its arguments"},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ]
}
_NOT_NEGATIVE = ValueType("number", {"type": "number", "minimum": 0})
_OSLO = {"name": "cityWeather", "arguments": {"city": "Oslo"}}
_ROME = {"name": "cityWeather", "arguments": {"city": "Rome"}}
_JOINT = "The setting `scope` is required: it says which answers are compared."


def _texts(words: str) -> CheckSetting:
    return CheckSetting("expected", TEXTS, words, required=True)


def _calls(*calls: Json) -> Json:
    return {"toolCalls": list(calls)}


DESCRIPTIONS = {
    # --- texts: words, patterns, length and similarity
    "equals": CheckDescription(
        "the answer is the text, or one of the texts",
        (_texts("the text, or alternatives"),),
        (CheckExample("equals: Paris", "Paris", "It is Paris."),),
    ),
    "oneOf": CheckDescription(
        "the answer is one of the texts",
        (_texts("the texts"),),
        (CheckExample("oneOf: [confirmed, received]", "received", "pending"),),
    ),
    "contains": CheckDescription(
        "the text is in the answer",
        (CheckSetting("expected", ONE_TEXT, "the text", required=True),),
        (
            CheckExample("contains: Paris", "It is Paris.", "It is Lyon."),
            CheckExample("{contains: paris, ignoreCase: true}", "PARIS", "Lyon"),
            CheckExample("{contains: as an AI, not: true}", "Hello!", "Hello, as an AI I …"),
        ),
    ),
    "containsAny": CheckDescription(
        "one of the texts is in the answer",
        (_texts("the texts"),),
        (CheckExample("containsAny: [Paris, Lyon]", "It is Lyon.", "It is Nice."),),
    ),
    "containsAll": CheckDescription(
        "all of the texts are in the answer",
        (_texts("the texts"),),
        (CheckExample("containsAll: [Paris, Lyon]", "Lyon and Paris", "It is Lyon."),),
    ),
    "startsWith": CheckDescription(
        "the answer begins with the text, or with one of the texts",
        (_texts("the text, or alternatives"),),
        (CheckExample("startsWith: Dear", "Dear customer", "Hello"),),
    ),
    "endsWith": CheckDescription(
        "the answer ends with the text, or with one of the texts",
        (_texts("the text, or alternatives"),),
        (CheckExample("endsWith: ['.', '!']", "Hello!", "Hello?"),),
    ),
    "regex": CheckDescription(
        "the pattern is found in the answer",
        (
            CheckSetting("pattern", TEXT, "a regular expression of Python", required=True),
            CheckSetting(
                "flags",
                ValueType(
                    "list of flags",
                    {"anyOf": [{"enum": _FLAGS}, {"type": "array", "items": {"enum": _FLAGS}}]},
                ),
                "of `ignoreCase`, `multiline`, `dotAll`, `verbose`, `ascii`",
                [],
            ),
            CheckSetting(
                "method",
                choice("search", "match", "fullmatch"),
                "whether it is found anywhere, at the beginning, or is the whole answer",
                "search",
            ),
        ),
        (
            CheckExample("regex: '[0-9]+ days'", "In 14 days.", "In two weeks."),
            CheckExample(
                "{regex: 'yes|no', method: fullmatch, flags: [ignoreCase]}", "Yes", "Yes, it is."
            ),
        ),
        "A search that takes a second is an `error`. Put the pattern into single quotes.",
    ),
    "length": CheckDescription(
        "the length of the answer is allowed",
        (
            CheckSetting("min", COUNT, "the minimum length; this or `max` is required"),
            CheckSetting("max", COUNT, "the maximum length"),
            CheckSetting(
                "unit",
                choice("characters", "words", "lines", "sentences"),
                "what is counted",
                "characters",
            ),
        ),
        (CheckExample("length: {unit: words, max: 3}", "It is Paris.", "I think it is Paris."),),
    ),
    "notEmpty": CheckDescription(
        "the answer has a text", (), (CheckExample("notEmpty", "Hello", "  "),)
    ),
    "refusal": CheckDescription(
        "the answer is a refusal, in English",
        (),
        (CheckExample("refusal", "I cannot help with that.", "Here is how it works."),),
        "A refusal that the provider reports also counts.",
    ),
    "exact": CheckDescription(
        "the answer is one of the texts, both normalised as SQuAD does",
        (_texts("the text, or alternatives"),),
        (CheckExample("exact: Eiffel Tower", "the Eiffel tower.", "the tower"),),
        "Case, punctuation, articles and spaces are ignored.",
    ),
    "fuzzy": CheckDescription(
        "the answer contains one of the texts or is contained in it, both normalised",
        (_texts("the text, or alternatives"),),
        (CheckExample("fuzzy: the Eiffel Tower", "Eiffel", "the Louvre"),),
    ),
    "f1": CheckDescription(
        "the answer has enough words in common with one of the texts",
        (_texts("the text, or alternatives, of which the best counts"),),
        (CheckExample("{f1: cold and windy, pass: '>= 0.8'}", "windy and cold", "cold"),),
        "The score is the harmonic mean of precision and recall of words, as in SQuAD.",
    ),
    "similar": CheckDescription(
        "the answer is similar enough to one of the texts",
        (_texts("the text, or alternatives, of which the best counts"),),
        (CheckExample("{similar: Reykjavik, pass: '>= 0.8'}", "Reykjavík", "Oslo"),),
        "The score is 1 less the share of characters that are inserted or deleted.",
    ),
    "levenshtein": CheckDescription(
        "the answer is at most this many edits from one of the texts",
        (
            _texts("the text, or alternatives"),
            CheckSetting("max", COUNT, "the maximum number of edits", required=True),
        ),
        (CheckExample("levenshtein: {expected: Reykjavik, max: 1}", "Reykjavík", "Reykjav"),),
        "An edit inserts, deletes or replaces one character.",
    ),
    "bleu": CheckDescription(
        "the BLEU score of the answer is high enough",
        (_texts("the reference, or several references"),),
        (
            CheckExample(
                "{bleu: the cat sat on the mat, pass: '>= 0.6'}",
                "the cat sat on the mat",
                "a dog ran away",
            ),
        ),
        _INSTALL,
    ),
    "rouge": CheckDescription(
        "the ROUGE score of the answer is high enough",
        (
            _texts("the reference, or alternatives, of which the best counts"),
            CheckSetting("variant", choice("rouge1", "rouge2", "rougeL"), "which one", "rougeL"),
            CheckSetting("stem", FLAG, "words are compared by their stems", False),
        ),
        (
            CheckExample(
                "{rouge: the cat sat on the mat, variant: rouge1, pass: '>= 0.6'}",
                "the cat sat on a mat",
                "a dog ran away",
            ),
        ),
        _INSTALL,
    ),
    # --- numbers and JSON
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
            CheckSetting("epsilon", _NOT_NEGATIVE, "how much it may differ", 0),
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
        (CheckSetting("of", choice("any", "object", "array"), "which values do", "any"), _FENCED),
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
    # --- tool calls, and of the call of the model
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
        (_texts("the reason, or alternatives: `stop`, `length`, `tool_calls` …"),),
        (CheckExample("finishReason: stop", {"finishReason": "stop"}, {"finishReason": "length"}),),
    ),
    "latency": CheckDescription(
        "the call took at most this many seconds",
        (CheckSetting("max", _NOT_NEGATIVE, "seconds", required=True),),
        (CheckExample("latency: 10", {"latency": 2.5}, {"latency": 11}),),
        "A stored answer keeps the time of its original call.",
    ),
    "cost": CheckDescription(
        "the call cost at most this many USD",
        (CheckSetting("max", _NOT_NEGATIVE, "USD", required=True),),
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
    # --- several answers, and checks that authors define
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
            CheckSetting("max", _NOT_NEGATIVE, "how much numbers may differ (default: 0)"),
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

_STEP = {"enum": list(STEPS)}
_SETTINGS = (
    CheckSetting("not", FLAG, "the opposite must hold", False),
    CheckSetting(
        "actual",
        ANY,
        'what is checked, such as `"{{ sample.output_json.city }}"`; else the last answer',
    ),
    CheckSetting("ignoreCase", FLAG, "ignore case", False),
    CheckSetting(
        "normalize",
        ValueType("step or list of steps", {"anyOf": [_STEP, {"type": "array", "items": _STEP}]}),
        f"steps for both sides, in this order, of {', '.join(f'`{step}`' for step in STEPS)} "
        "(`squad`: ignores case, punctuation, articles and spaces, as SQuAD does)",
    ),
    CheckSetting(
        "pass",
        ValueType("bound", {"type": ["string", "number"]}),
        'the bound of the score, such as `">= 0.8"`; required where a score lies between 0 and 1',
    ),
    CheckSetting(
        "weight",
        ValueType("number above 0", {"type": "number", "exclusiveMinimum": 0}),
        "its weight in a mean of scores",
        1,
    ),
    CheckSetting("name", TEXT, "its name in feedback"),
    CheckSetting(
        "scope",
        choice("answer", "case", "group"),
        "whether it looks at each answer, at all answers of a row, or at those of all rows",
        "answer",
    ),
)
_ALLOW_EMPTY = CheckSetting(
    "allowEmpty", FLAG, "an empty value is intended; else it is an error", False
)
EVERY_SETTING = (*_SETTINGS, _ALLOW_EMPTY)
"""The settings that checks have beside their own."""


def describe_check(name: str, kind: CheckType) -> CheckDescription:
    """Return the description of a check type, or the one that a plug-in declares."""
    if kind.description is not None:
        return kind.description
    if name in DESCRIPTIONS:
        return DESCRIPTIONS[name]
    written = f"{name}: {kind.example}" if kind.example else name
    return CheckDescription("described by the package that adds it", (), (CheckExample(written),))


def is_described(name: str, kind: CheckType) -> bool:
    """Return whether the settings of a check type are known."""
    return name in DESCRIPTIONS or kind.description is not None


def common_settings(kind: CheckType) -> tuple[CheckSetting, ...]:
    """Return the settings that a check type has beside its own."""
    return (_ALLOW_EMPTY,) if kind.by_models else EVERY_SETTING
