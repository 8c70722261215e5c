"""Markdown becomes trees of a few elements, and never HTML."""

from __future__ import annotations

import json

import pytest

from evalstore.core.values import Json
from evalstore.interfaces.html.case_data import LONGEST as LONGEST_TEXT
from evalstore.interfaces.html.case_data import TextTable, markdown_tree, packed, shown_text
from evalstore.results.value_text import LONGEST


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A **b** _c_", [["p", "A ", ["strong", "b"], " ", ["em", "c"]]]),
        ("- x\n- y", [["ul", ["li", ["p", "x"]], ["li", ["p", "y"]]]]),
        ("1. x\n2. y", [["ol", ["li", ["p", "x"]], ["li", ["p", "y"]]]]),
        ("3. x\n4. y", None),
        ("# T\n\n> q", [["h1", "T"], ["blockquote", ["p", "q"]]]),
        ("`a<b`", [["p", ["code", "a<b"]]]),
        ("```py\nx = 1\n```", [["small", "py"], ["pre", "x = 1"]]),
        ("~~old~~", [["p", ["s", "old"]]]),
        ("[w](https://x.y)", [["p", ["a", "https://x.y", "w"]]]),
        ('[w](https://x.y "t")', [["p", ["a", "https://x.y", "w"], ' ("t")']]),
        ("`x` [w](javascript:x)", [["p", ["code", "x"], " [w](javascript:x)"]]),
        ("`x` [w](file:///etc)", [["p", ["code", "x"], " [w](file:///etc)"]]),
        ("[w](ftp://x.y)", [["p", "w", " (ftp://x.y)"]]),
        ("[w](data:image/png;base64,x)", [["p", "w", " (data:image/png;base64,x)"]]),
        ("![alt](https://x.y/z.png)", [["p", "[image alt: https://x.y/z.png]"]]),
        ("**<b>x</b>**", [["p", ["strong", "<b>x</b>"]]]),
        ("**a**\n\n***", [["p", ["strong", "a"]], ["hr"]]),
        ("a**b**\nc", [["p", "a", ["strong", "b"], "\n", "c"]]),
    ],
)
def test_trees(text: str, tree: Json) -> None:
    assert markdown_tree(text) == tree


def test_a_table() -> None:
    assert markdown_tree("| a |\n|---|\n| 1 |") == [
        ["table", ["thead", ["tr", ["th", "a"]]], ["tbody", ["tr", ["td", "1"]]]]
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Plain text.",
        "Two\n\nparagraphs, 3 < 4.",
        "2*3*4",
        "*" * (LONGEST + 1),
        "> " * 60 + "x",
        "| a |\n|---|\n| b | lost |",
    ],
    ids=["empty", "plain", "paragraphs", "multiplied", "long", "deep", "hidden"],
)
def test_texts_that_are_shown_as_they_are(text: str) -> None:
    assert markdown_tree(text) is None


def test_entities_and_control_characters_are_shown_as_they_are_written() -> None:
    expected = [["p", ["strong", "a"], " &#x202e;b\\u202e"]]
    assert markdown_tree("**a** &#x202e;b\u202e") == expected


@pytest.mark.parametrize(
    "text", ["A **bold word** and the\n\n- first\n- second item", "a **bold word** and 😀"]
)
def test_a_packed_tree_has_numbers_for_parts_of_the_text(text: str) -> None:
    tree = markdown_tree(text)
    assert isinstance(tree, list)
    at = 0

    def unpack(node: Json) -> Json:
        nonlocal at
        if isinstance(node, int):
            at += node // 131_072 + node % 131_072
            return text[at - node % 131_072 : at]
        return [*map(unpack, node)] if isinstance(node, list) else node

    small = packed(tree, text)
    assert [*map(unpack, small)] == tree
    assert ("bold word" in json.dumps(small)) == (not text.isascii()), "a script counts halves"


def test_equal_texts_have_one_number() -> None:
    texts = TextTable()
    assert [texts.add(text) for text in ("a", "`b`", "a")] == [0, 1, 0]
    assert texts.add("`b`", markdown=False) == 2
    assert texts.entries == ["a", ["`b`", [["p", ["code", "b"]]]], "`b`"]


def test_a_long_text_is_cut_with_a_note() -> None:
    text = shown_text("x" * (LONGEST_TEXT + 5))
    assert text == "x" * LONGEST_TEXT + "\n\n[5 more characters are left out]"
    assert shown_text("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT
