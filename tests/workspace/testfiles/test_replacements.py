"""`lists`, `$permute` and `$combine`: several names take different values of one list."""

from __future__ import annotations

import pytest

from evalstore.core.errors import FileProblem
from tests.builders import expanded, shown, test_file

PETS = "lists: {PET: [cats, dogs, fish]}"


def rows(*frontmatter: str, text: str) -> list[str]:
    return [messages[0][1] for messages in shown(expanded(test_file(*frontmatter, shown=text)))]


def pick(way: str, names: str, source: str = "PET") -> str:
    return f"replacements: [{{{way}: {{names: [{names}], list: {source}}}}}]"


def test_permute_takes_every_ordered_choice() -> None:
    assert rows(PETS, pick("$permute", "a, b"), text="{{a}} {{b}}") == [
        "cats dogs",
        "cats fish",
        "dogs cats",
        "dogs fish",
        "fish cats",
        "fish dogs",
    ]


def test_combine_takes_every_choice_once() -> None:
    values = rows(PETS, pick("$combine", "a, b"), text="{{a}} {{b}}")
    assert values == ["cats dogs", "cats fish", "dogs fish"]


def test_one_name_takes_every_value() -> None:
    assert rows(PETS, pick("$permute", "a"), text="{{a}}") == ["cats", "dogs", "fish"]


def test_equal_values_count_once() -> None:
    values = rows("lists: {P: [a, a, b]}", pick("$permute", "x, y", "P"), text="{{x}} {{y}}")
    assert values == ["a b", "b a"]


def test_a_list_may_stand_in_its_place() -> None:
    assert rows(pick("$combine", "x, y", "[a, b]"), text="{{x}}{{y}}") == ["ab"]


def test_it_combines_with_the_other_names_of_its_item() -> None:
    values = rows(
        "replacements:",
        "  $permute: {names: [x, y], list: [a, b]}",
        "  n: [1, 2]",
        text="{{x}}{{y}}{{n}}",
    )
    assert values == ["ab1", "ab2", "ba1", "ba2"]


def test_other_items_stay_as_they_are() -> None:
    values = rows(
        "replacements:",
        "  - $permute: {names: [x, y], list: [a, b]}",
        "  - {x: c, y: d}",
        text="{{x}}{{y}}",
    )
    assert values == ["ab", "ba", "cd"]


@pytest.mark.parametrize(
    ("frontmatter", "message"),
    [
        ([pick("$permute", "a, b, c", "[x, y]")], "needs 3 different values, and its list has 2"),
        ([pick("$permute", "a, b", "[x, x]")], "needs 2 different values, and its list has 1"),
        ([PETS, pick("$permute", "a", "PETS")], "unknown list 'PETS'"),
        ([PETS, pick("$permute", "a", "[]")], "an empty list"),
        (["lists: {P: []}", pick("$permute", "a", "P")], "an empty list"),
        ([PETS, pick("$permute", "a, a")], "must differ"),
        ([PETS, pick("$permute", "")], "must differ"),
        ([PETS, pick("$permute", "_file")], "'_file' cannot be the name"),
        ([PETS, pick("$permute", "_foo")], "'_foo' cannot be the name"),
        (["replacements: {_foo: x}"], "'_foo' cannot be the name"),
        (["replacements: {_: x}"], "names that start with '_' are reserved"),
        (["lists: {_P: [x]}", pick("$permute", "a", "_P")], "'_P' cannot be the name"),
        (["replacements: [{$permute: [a]}]"], "'$permute' needs 'names' and the name of a 'list'"),
        (["replacements: [{$permute: {names: [a], list: [x], more: 1}}]"], "needs 'names'"),
        (["replacements: [{a: 1, $permute: {names: [a], list: [x]}}]"], "'a' has two lists"),
        (["lists: {P: [x]}", "replacements: {a: 1}"], "list 'P' is never used"),
        (["lists: {P: [x]}"], "list 'P' is never used"),
        (["lists: [a]", "replacements: {a: 1}"], "'lists' must be a mapping"),
        (
            [f"replacements: [{{$permute: {{names: [a, b, c, d], list: {list(range(40))}}}}}]"],
            "more than 100,000 cases",
        ),
    ],
)
def test_what_is_wrong_is_reported(frontmatter: list[str], message: str) -> None:
    with pytest.raises(FileProblem) as raised:
        expanded(test_file(*frontmatter, shown="{{a}}"))
    assert message in raised.value.message
