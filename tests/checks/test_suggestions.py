"""Hints on checks that do not exist."""

from __future__ import annotations

import pytest

from evalstore.checks.parser import read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json


@pytest.mark.parametrize(
    ("definition", "hint"),
    [
        *(
            ({name: "x"}, "write {contains: …, not: true}")
            for name in ("notContains", "not-contains", "not_contains", "NotContains")
        ),
        ({"notRegex": "x"}, "write {regex: …, not: true}"),
        ({"not-contains-any": ["x"]}, "write {containsAny: …, not: true}"),
        ({"not-icontains": "x"}, "write {contains: …, ignoreCase: true, not: true}"),
        ({"icontains": "x"}, "write {contains: …, ignoreCase: true}"),
        ({"type": "not-json"}, "write {type: json, not: true}"),
        ("notJson", "write {type: json, not: true}"),
        ({"not": {"contains": "x"}}, "write {contains: …, not: true}"),
        ({"not": "json"}, "write {type: json, not: true}"),
        ({"not": True}, "write 'not: true' beside a check"),
        ({"llm-rubric": "x"}, "write the rubric as text above the block: a judge applies it"),
        ("equals x y", "write 'equals: x y'"),
        ({"contians": "x"}, "did you mean 'contains'?"),
        ({"notEmtpy": True}, "did you mean 'notEmpty'?"),
    ],
)
def test_the_opposite_of_a_check_is_suggested_and_never_the_check(
    definition: Json, hint: str
) -> None:
    with pytest.raises(FileProblem) as problem:
        read_check(definition)
    assert problem.value.hint == hint


@pytest.mark.parametrize(
    ("definition", "setting", "hint"),
    [
        ({"type": "equals", "expectd": "x"}, "expectd", "did you mean 'expected'?"),
        ({"python": {"fille": "a.py"}}, "fille", "did you mean 'file'?"),
        ({"length": {"maximum": 4}}, "maximum", "did you mean 'max'?"),
        ({"contains": "x", "ignorecase": True}, "ignorecase", "did you mean 'ignoreCase'?"),
        ({"contains": "x", "Not": True}, "Not", "did you mean 'not'?"),
        ({"jsonPath": "a", "equal": 4}, "equal", "did you mean 'equals'?"),
        ({"similar": "x", "pas": ">= 0.5"}, "pas", "did you mean 'pass'?"),
        (
            {"contains": "x", "zzz": 1},
            "zzz",
            "the settings are actual, allowEmpty, expected, ignoreCase, name, normalize, not, "
            "pass, scope, weight",
        ),
    ],
)
def test_a_setting_that_a_check_does_not_have_is_named_with_the_nearest_one(
    definition: Json, setting: str, hint: str
) -> None:
    with pytest.raises(FileProblem) as problem:
        read_check(definition)
    assert problem.value.message.endswith(f" has no setting '{setting}'")
    assert problem.value.hint == hint
