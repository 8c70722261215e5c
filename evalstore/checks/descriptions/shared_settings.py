"""The settings that all checks have."""

from __future__ import annotations

from evalstore.checks.description import ANY, FLAG, TEXT, CheckSetting, ValueType, choice
from evalstore.checks.normalization import STEPS

STEP = {"enum": list(STEPS)}
SETTINGS = (
    CheckSetting("not", FLAG, "the opposite must hold", False),
    CheckSetting(
        "actual",
        ANY,
        'what is checked, such as `"{{ sample.output_json.city }}"`; else the last answer',
    ),
    CheckSetting("ignoreCase", FLAG, "ignore case", False),
    CheckSetting(
        "normalize",
        ValueType("step or list of steps", {"anyOf": [STEP, {"type": "array", "items": STEP}]}),
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
ALLOW_EMPTY = CheckSetting(
    "allowEmpty", FLAG, "an empty value is intended; else it is an error", False
)
