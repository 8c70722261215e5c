"""Values as JSON: names in camelCase, and what a class declares to be different."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

import evalstore
from evalstore.files.json_output import fields_to_json, to_json
from evalstore.planning.options import SelectionOptions


class Pair(NamedTuple):
    """A named tuple."""

    was_old: int
    now: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A class with what a field can declare."""

    passed_after_fail: int
    place: PurePosixPath = field(default=PurePosixPath("a/b"), metadata={"json_name": "file"})
    change: str = field(default="", metadata={"json_as": lambda text: text or None})
    edits: tuple[Pair, ...] = field(default=(), metadata={"json_optional": True})


@dataclass
class Whole:
    """A class whose object has other members than it has fields."""

    JSON_FIELDS = ("count", "parts")
    parts: list[Part]
    hidden: int = 0

    @property
    def count(self) -> int:
        """A member that is no field."""
        return len(self.parts)


@dataclass
class Outer:
    """A class whose object has the members of another in the place of a field."""

    first: int
    part: Part = field(metadata={"json_inline": True})
    last: int


class Other:
    """A class that makes its JSON itself."""

    def document(self) -> dict[str, int]:
        """As JSON."""
        return {"x": 1}


def test_fields_are_named_in_camel_case_and_in_their_order() -> None:
    assert list(to_json(Part(3)).items()) == [
        ("passedAfterFail", 3),
        ("file", "a/b"),
        ("change", None),
    ]


def test_an_optional_field_is_there_when_it_is_not_as_by_default() -> None:
    assert to_json(Part(3, edits=(Pair(1),)))["edits"] == [{"wasOld": 1, "now": None}]


def test_a_class_lists_the_members_of_its_object() -> None:
    assert list(to_json(Whole([Part(1)]))) == ["count", "parts"]
    assert to_json(Whole([Part(1)]))["count"] == 1


def test_the_members_of_an_inline_field_stand_in_its_place() -> None:
    assert list(to_json(Outer(1, Part(3), 2)).items()) == [
        ("first", 1),
        ("passedAfterFail", 3),
        ("file", "a/b"),
        ("change", None),
        ("last", 2),
    ]


def test_an_iterator_is_not_read() -> None:
    items = iter([{"a": 1}])
    assert to_json({"items": items})["items"] is items


def test_a_class_with_a_document_is_that_wherever_it_is() -> None:
    assert to_json({"a": [Other()]}) == {"a": [{"x": 1}]}


def test_names_that_are_data_stay_as_they_are() -> None:
    assert to_json({"max_tokens": {"top_p": 1}}) == {"max_tokens": {"top_p": 1}}


def test_only_what_is_not_as_by_default_is_kept() -> None:
    selection = SelectionOptions(exclude_tags=("a",), sample=0)
    assert fields_to_json(selection, defaults=False) == {"excludeTags": ["a"], "sample": 0}


def test_a_value_without_a_form_in_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="set has no form in JSON"):
        to_json({"a": {1}})


WRITTEN_BY_HAND = {
    *("Checkup", "Diff", "FailureEntry", "JudgeStats", "Listing"),
    *("LogEntry", "PricePart"),
    *("Rate", "RateChange", "Regression", "ResultGroup", "RunBudget", "SearchHit"),
    *("ShownItem", "Stats", "VerdictChanges", "VerdictExplanation"),
}
"""Classes whose JSON is not an image of their fields: it is flat, nested or computed."""


def _classes() -> list[ast.ClassDef]:
    files = Path(evalstore.__file__).parent.rglob("*.py")
    sources = [file.read_text(encoding="utf-8") for file in files]
    trees = [ast.parse(source) for source in sources if "def document(" in source]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_only_what_is_not_an_image_of_its_fields_is_written_by_hand() -> None:
    names = {
        node.name
        for node in _classes()
        if any(
            isinstance(statement, ast.FunctionDef) and statement.name == "document"
            for statement in node.body
        )
    }
    assert names == WRITTEN_BY_HAND
