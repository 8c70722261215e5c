"""In what two versions of a test file differ: whatever differs is named."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from evalstore.comparison.comparison import (
    PairedCases,
    differ_conversations,
    differ_otherwise,
    differ_pair,
)
from evalstore.core.values import Case, CaseFile, Json

CONTENTS: dict[str, Json] = {
    "t1": {"messages": [{"role": "user", "content": "one"}]},
    "t2": {"messages": [{"role": "user", "content": "two"}]},
    "t3": {"messages": [{"role": "user", "content": "three"}]},
    "e1": {"instructions": "be kind"},
    "e2": {"instructions": "be brief"},
    "p1": {"messages": [{"role": "system", "content": "you are one"}]},
    "p2": {"messages": [{"role": "system", "content": "you are two"}]},
    "r1": {"options": {"answers": ["yes"]}},
}
CASE = Case("a", "k", ("t1",), "e1", ("tag",), ("p1",))
FILE = CaseFile((CASE,))

EDITS: dict[str, tuple[Any, str]] = {
    "tests": (("t2",), "message 1, line 1: one -> two"),
    "evaluation": ("e2", "instructions changed: line 1: be kind -> be brief"),
    "prompts": (("p2",), "system prompt line 1: you are one -> you are two"),
    "judged_by": (("checks", "models", "always"), "judged by: models -> checks, models, always"),
    "temperature": (0.5, "temperature not set -> 0.5"),
    "seed": (7, "seed not set -> 7"),
    "limit": (100, "limit: not set -> 100"),
    "recorded": ("r1", "recorded answer: not set -> yes"),
    "judge_prompts": (("p2",), "judge prompt p2 is new"),
}
"""Fields of a case: another value, and what is said of it."""
LABELS = {"row", "key", "tags"}
"""Fields that say what a case is called."""
DERIVED = {"needs", "code"}
"""Fields that follow from the test versions, and from the checks."""
SETTINGS: dict[str, tuple[Any, str]] = {
    "attempts": (3, "attempts not set -> 3"),
    "evaluators": ((), "evaluators: not set -> none"),
    "threshold": (0.5, "threshold: not set -> 0.5"),
    "id": ("x", "id: not set -> x"),
}
"""The same of the file."""


def find(_kind: str, id: str) -> Json:
    return CONTENTS.get(id)


def name(_kind: str, _id: str) -> None:
    return None


def differences_of(was: CaseFile, now: CaseFile) -> list[str]:
    """In what two versions of a test file differ: the first difference of each kind."""
    paired = PairedCases(was, now)
    differences = [
        difference for old, case in paired for difference in differ_pair(old, case, find, name)
    ]
    by_kind: dict[str, str] = {}
    for difference in [*differences, *differ_otherwise(was, now, paired.gone())]:
        by_kind.setdefault(difference.subject, str(difference))
    return [*by_kind.values()]


def conversation_differences(was: tuple[str, ...], now: tuple[str, ...]) -> list[str]:
    return [str(difference) for difference in differ_conversations(was, now, find, name)]


def test_every_field_of_a_case_and_of_a_file_is_looked_at() -> None:
    assert {*Case._fields} == EDITS.keys() | LABELS | DERIVED
    assert {field.name for field in fields(CaseFile)} == SETTINGS.keys() | {"cases", "code"}


@pytest.mark.parametrize("field", EDITS)
def test_an_edit_of_a_case_is_named(field: str) -> None:
    value, expected = EDITS[field]
    assert differences_of(FILE, CaseFile((CASE._replace(**{field: value}),))) == [expected]


@pytest.mark.parametrize("field", SETTINGS)
def test_an_edit_of_a_setting_is_named(field: str) -> None:
    value, expected = SETTINGS[field]
    assert differences_of(FILE, replace(FILE, **{field: value})) == [expected]


def test_other_labels_and_tags_are_named() -> None:
    assert differences_of(FILE, CaseFile((CASE._replace(row="b"),))) == ["row renamed: a -> b"]
    assert differences_of(FILE, CaseFile((CASE._replace(tags=("other",)),))) == [
        "tags: tag -> other"
    ]


def test_rows_that_are_new_or_gone_are_named() -> None:
    other = CASE._replace(row="b", key="l")
    assert differences_of(FILE, CaseFile((CASE, other))) == ["row b is new"]
    assert differences_of(CaseFile((CASE, other)), FILE) == ["row b is gone"]


def test_a_row_without_a_label_is_the_only_one() -> None:
    alone = CaseFile((CASE._replace(row="", key="l"),))
    assert differences_of(alone, FILE) == ["row a is new", "the only row is gone"]
    assert differences_of(FILE, alone) == ["the only row is new", "row a is gone"]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (("t1",) * 3, ("t1",) * 2, ["repetitions 3 -> 2"]),
        (("t1",), ("t1",) * 2, ["repetitions 1 -> 2"]),
        (
            ("t1",) * 3,
            ("t2",) * 2,
            ["message 1, line 1: one -> two", "repetitions 3 -> 2"],
        ),
        (("t1", "t2"), ("t1", "t3"), ["conversation 2, message 1, line 1: two -> three"]),
        (("t1", "t2", "t2"), ("t1", "t2"), ["conversation 2, repetitions 2 -> 1"]),
        (("t1",), ("t1", "t2"), ["conversation 2 is new"]),
        (("t1", "t2"), ("t2",), ["conversation 1 is gone"]),
        (("t1", "t2"), ("t2", "t1"), ["order of the conversations"]),
        (("t1", "t2"), ("t1", "t2"), []),
    ],
)
def test_what_becomes_of_conversations_is_named(
    was: tuple[str, ...], now: tuple[str, ...], expected: list[str]
) -> None:
    assert conversation_differences(was, now) == expected


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (("p1",), ("p1", "p2"), ["system prompt p2 is new"]),
        (("p1", None), ("p1",), ["case without system prompt is gone"]),
        ((None,), ("p1",), ["system prompt p1 is new", "case without system prompt is gone"]),
        (("p1", "p2"), ("p2", "p1"), ["system prompts exchanged"]),
    ],
)
def test_what_becomes_of_system_prompts_is_named(
    was: tuple[str | None, ...], now: tuple[str | None, ...], expected: list[str]
) -> None:
    files = [CaseFile((CASE._replace(prompts=prompts),)) for prompts in (was, now)]
    assert differences_of(*files) == expected
