"""The JSON Schemas of the frontmatter of test files and prompts."""

from __future__ import annotations

from evalstore.core.values import SPECIAL_TAGS
from evalstore.files.datasets.spec import FIELDS, FORMATS, SAMPLE_FIELDS
from evalstore.files.fields import OPTIONS
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
        "names": described(
            {"type": "array", "items": _SCALAR, "minItems": 1}, "the placeholders that it fills"
        ),
        "list": described(
            {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]},
            "the values, or the name of a list in 'lists'",
        ),
    },
    "required": ["names", "list"],
    "additionalProperties": False,
}
_ITEM: Schema = {
    "type": "object",
    "properties": {
        "$permute": described(_PICK, "a row for each choice of different values, in each order"),
        "$combine": described(_PICK, "a row for each choice of different values, in one order"),
    },
    "additionalProperties": _VALUES,
}
_DATASET = mapping(
    FIELDS,
    {
        "path": described(REQUIRED_TEXT, "the file, counted from the test file"),
        "format": described(choice_schema(*FORMATS), "auto: as the name of the file ends"),
        "rows": described(TEXT, "JSON only: where the list of rows is, as in data.items"),
        "where": described(TEXT, "an expression; rows for which it is not true are left out"),
        "limit": described(whole(1), "only the first N rows"),
        "sample": described(
            mapping(
                SAMPLE_FIELDS,
                {
                    "n": described(whole(1), "how many rows"),
                    "seed": described(whole(-(2**63)), "another seed draws other rows"),
                },
            ),
            "random rows, the same ones each time",
        ),
        "rename": described(MAPPING, "from the name of a column to another"),
        "encoding": described(TEXT, "of the file; else UTF-8"),
        "delimiter": described(
            {"type": ["string", "null"], "minLength": 1, "maxLength": 1},
            "of tables; else a comma or a tab",
        ),
        "onError": described(
            choice_schema("fail", "skip"), "skip: rows that cannot be read are left out"
        ),
    },
    ["path"],
)
_MESSAGE = mapping(
    MESSAGE_FIELDS,
    {
        "role": described(choice_schema(*ROLES), "who says it"),
        "content": described({"type": ["string", "null"]}, "the text, with placeholders"),
        "name": described(TEXT, "of who says it"),
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
                "temperature": described(TEMPERATURE, "0: as far as possible the same answer"),
                "maxOutputTokens": described(whole(1), "maximum tokens of an answer"),
                "topP": described(number(0, 1), "the share of likely tokens that is drawn from"),
                "seed": described(whole(-(2**63)), "sent to providers that draw tokens with it"),
                "stop": described(
                    {
                        "type": ["string", "array", "null"],
                        "items": {"type": "string", "minLength": 1},
                    },
                    "a text that ends the answer, or several",
                ),
                "providerOptions": described(MAPPING, "further fields of the request's body"),
            },
        ),
        "how the candidates generate",
    ),
    "attempts": described(SAMPLES, "answers to each question"),
    "repetitions": described(SAMPLES, "how often the conversation is held"),
    "evaluators": described(NAMES, "ids of the judges of this file"),
    "threshold": described(number(0, 1), "the share of results that must pass for the gate"),
}


def frontmatter() -> Schema:
    """Return the schema of the frontmatter of test files."""
    return mapping(TEST_FIELDS, _TEST)


def prompt() -> Schema:
    """Return the schema of the frontmatter of prompts."""
    return mapping(PROMPT_FIELDS, _COMMON)
