"""Results have a limited size, whatever the workspace has, and say what is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstore.core.values import Json
from evalstore.interfaces.mcp.read_tools import PAGE, PageArguments, as_text, fenced, fit, with_page

MANY = [{"text": "x" * 3_000}] * 100


@pytest.mark.parametrize(
    "value",
    [
        {"texts": ["x" * 50_000] * 500},
        {f"key {number}": "x" * 200 for number in range(5_000)},
        {"k" * 100_000: 1},
        ["\u200b" * 50_000] * 10,
        [[[["x" * 90] * 9] * 9] * 9] * 9,
    ],
    ids=["long texts", "many members", "a long name", "escapes", "nested lists"],
)
def test_a_value_fits_in_its_room(value: Any) -> None:
    assert len(as_text(fit(value, 1_000, max_text=20_000))) <= 1_000


def test_what_fits_is_not_changed() -> None:
    value = {"a": ["b", 1, None, {"c": "d"}]}
    assert fit(value, 1_000, max_text=100) == value


def test_lists_and_objects_say_what_is_left_out() -> None:
    assert fit(list(range(200)), 10_000, 100)[-1] == "… 100 of 200 are left out"
    members = {str(number): number for number in range(101)}
    assert fit(members, 10_000, 100)["…"] == "… 1 of 101 are left out"


def page_of(items: list[Json], offset: int, total: int, document: Json = None) -> Json:
    arguments = PageArguments(offset=offset, limit=100, max_text=20_000)
    return with_page(document or {}, "items", items, total, arguments)


def test_a_page_ends_where_its_room_does_and_the_next_one_follows() -> None:
    page = page_of(MANY, 0, len(MANY))
    assert len(as_text(page["items"])) <= PAGE
    assert page["page"]["next"] == len(page["items"]) == 9
    last = page_of(MANY[99:], 99, 100)
    assert (len(last["items"]), last["page"]["next"]) == (1, None)


def test_an_item_that_is_larger_than_a_page_is_cut_to_it() -> None:
    page = page_of([["x" * 3_000] * 9, ["x" * 3_000] * 50], 0, 2)
    assert (len(page["items"]), page["page"]["next"]) == (1, 1)
    page = page_of([["x" * 3_000] * 50], 1, 2)
    assert PAGE / 4 < len(as_text(page["items"])) <= PAGE + 2


def test_a_page_stands_in_the_place_of_its_list() -> None:
    assert page_of(["b"], 1, 3, {"run": "r", "items": ["a", "b", "c"]}) == {
        "run": "r",
        "items": ["b"],
        "page": {"offset": 1, "total": 3, "next": 2},
    }


def test_the_marks_of_two_results_differ() -> None:
    assert fenced({}) != fenced({})


def test_characters_that_cannot_be_seen_are_escapes() -> None:
    hidden = "a\u202eb\u200b\U000e0041\x07é"
    assert as_text(hidden) == r'"a\u202eb\u200b\udb40\udc41\u0007é"'
    assert json.loads(as_text(hidden)) == hidden
