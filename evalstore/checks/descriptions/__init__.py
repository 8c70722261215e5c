"""The descriptions of the check types of this package, loaded only where they are shown."""

from __future__ import annotations

from evalstore.checks.base import CheckType
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
from evalstore.checks.descriptions import answers, calls, data, text
from evalstore.checks.normalization import STEPS

DESCRIPTIONS = {
    **text.DESCRIPTIONS,
    **data.DESCRIPTIONS,
    **calls.DESCRIPTIONS,
    **answers.DESCRIPTIONS,
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
