"""The JSON Schemas of the frontmatter of test files and prompts."""

from __future__ import annotations

from evalstore.files.datasets.spec import FIELDS, FORMATS, SAMPLE_FIELDS
from evalstore.files.fields import OPTIONS
from evalstore.values import SPECIAL_TAGS
from evalstore.workspace.json_schemas.parts import (
    ANY,
    MAPPING,
    NAMES,
    REQUIRED_TEXT,
    SAMPLES,
    TEMPERATURE,
    TEXT,
    Schema,
    choice_schema,
    described,
    listed,
    mapping,
    number,
    whole,
)
from evalstore.workspace.testfiles.conversations import MESSAGE_FIELDS, ROLES
from evalstore.workspace.testfiles.parser import PROMPT_FIELDS, TEST_FIELDS

_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_VALUES: Schema = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]}
_PICK: Schema = {
    "type": "object",
    "properties": {
        "names": {"type": "array", "items": _SCALAR, "minItems": 1},
        "list": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]},
    },
    "required": ["names", "list"],
    "additionalProperties": False,
}
_ITEM: Schema = {
    "type": "object",
    "properties": {"$permute": _PICK, "$combine": _PICK},
    "additionalProperties": _VALUES,
}
_DATASET = mapping(
    FIELDS,
    {
        "path": described(REQUIRED_TEXT, "the file, counted from the test file"),
        "format": choice_schema(*FORMATS),
        "rows": described(TEXT, "JSON only: where the list of rows is, as in data.items"),
        "where": described(TEXT, "an expression; rows for which it is not true are left out"),
        "limit": whole(1),
        "sample": mapping(SAMPLE_FIELDS, {"n": whole(1), "seed": whole(-(2**63))}),
        "rename": described(MAPPING, "from the name of a column to another"),
        "encoding": TEXT,
        "delimiter": {"type": ["string", "null"], "minLength": 1, "maxLength": 1},
        "onError": choice_schema("fail", "skip"),
    },
    ["path"],
)
_MESSAGE = mapping(
    MESSAGE_FIELDS,
    {
        "role": choice_schema(*ROLES),
        "content": {"type": ["string", "null"]},
        "name": TEXT,
        "variable": described(TEXT, "the name of an answer that the candidate gives here"),
        "image": described(TEXT, "the path of a file that follows the text"),
    },
    or_null=False,
)
_TAGS: Schema = {
    "type": ["array", "null"],
    "items": {
        "type": "string",
        "minLength": 1,
        "anyOf": [{"enum": list(SPECIAL_TAGS)}, {"pattern": "^[^_]"}],
    },
}
_COMMON: dict[str, Schema] = {
    "id": described(TEXT, "a name for the file; the path if it is not given"),
    "description": described(ANY, "for people"),
    "tags": described(_TAGS, "labels that select tests"),
    "replacements": described(
        {"anyOf": [_ITEM, {"type": "array", "items": _ITEM, "minItems": 1}, {"type": "null"}]},
        "what fills the placeholders: a case for each combination",
    ),
    "template": described(choice_schema("plain", "jinja"), "plain: braces stay as they are"),
}
_TEST: dict[str, Schema] = {
    **_COMMON,
    "systemPrompts": described(
        {"type": ["array", "null"], "items": {"type": ["string", "null"]}},
        "ids of system prompts: the test is asked with each; null: also without",
    ),
    "availableTools": described(NAMES, "ids of tools that may be called"),
    "structuredResponseSchema": described(TEXT, "the id of the schema of the answer"),
    "lists": described(
        {"type": ["object", "null"], "additionalProperties": _VALUES},
        "lists of values for $permute and $combine",
    ),
    "dataset": described(
        {"anyOf": [REQUIRED_TEXT, _DATASET]}, "a file of rows, each of which makes a case"
    ),
    "rowId": described(TEXT, "the column or replacement that names the rows"),
    "messages": described(
        {"anyOf": [REQUIRED_TEXT, {**listed(_MESSAGE), "minItems": 1}]},
        "the conversation as a list, or a template that gives one",
    ),
    "answer": described(
        {"type": ["string", "array", "null"], "items": {"type": "string"}},
        "a recorded answer, or one for each turn: no model is asked",
    ),
    "group": described(TEXT, "what rows that are judged together have in common"),
    "options": described(
        mapping(
            OPTIONS,
            {
                "temperature": TEMPERATURE,
                "maxOutputTokens": whole(1),
                "topP": number(0, 1),
                "seed": whole(-(2**63)),
                "stop": {
                    "type": ["string", "array", "null"],
                    "items": {"type": "string", "minLength": 1},
                },
                "providerOptions": MAPPING,
            },
        ),
        "how the candidates generate",
    ),
    "attempts": described(SAMPLES, "answers to each question"),
    "repetitions": described(SAMPLES, "how often the conversation is held"),
    "evaluators": described(NAMES, "ids of the evaluators that judge this file"),
    "threshold": described(number(0, 1), "the share of results that must pass for the gate"),
}


def frontmatter() -> Schema:
    """Return the schema of the frontmatter of test files."""
    return mapping(TEST_FIELDS, _TEST)


def prompt() -> Schema:
    """Return the schema of the frontmatter of prompts."""
    return mapping(PROMPT_FIELDS, _COMMON)
