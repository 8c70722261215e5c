"""Markdown in answers is rendered, and nothing that a model has written is hidden or active."""

from __future__ import annotations

import time
from collections import Counter
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.display import StyledLine, StyledSpan, safe
from evalstore.interfaces.tui.render.answer import (
    code_lines,
    render_text,
)
from evalstore.interfaces.tui.text_view import TEXT_STYLES, wrap_line
from evalstore.results.value_text import _MARKUP, LONGEST, _is_sign, _parser


def shown(text: str) -> str:
    rendered = render_text(text)
    assert rendered
    return "\n".join(" " * line.indent + line.text.rstrip() for line in rendered.lines)


WRITTEN = """\
# Title

Some **bold** and *slanted* words with `code`,
and [a link](https://a.example/x "its title") or ![a picture](x.png).

- one
  1. inner
  2. inner two
- two

> said before

| a | b |
|---|---|
| 1 | **two** |
| 漢字 | x |

```python
if x:
    return 1
```
"""
RENDERED = """\
Title

Some bold and slanted words with code,
and a link (https://a.example/x "its title") or [image a picture: x.png].

• one
  1. inner
  2. inner two

• two

│ said before

a    │ b
─────┼────
1    │ two
漢字 │ x

python
  if x:
      return 1"""


def test_markdown_is_shown_without_its_signs() -> None:
    assert shown(WRITTEN) == RENDERED


def test_long_items_are_wrapped_below_their_text() -> None:
    rendered = render_text("- " + "word " * 6)
    assert rendered
    rows = ["".join(span.text for span in row).rstrip() for row in wrap_line(rendered.lines[0], 14)]
    assert rows == ["• word word", "  word word", "  word word"]


def test_a_wide_table_is_shown_cell_by_cell() -> None:
    table = f"| name | what |\n|---|---|\n| a | {'x ' * 40}|\n| b | y |\n"
    assert shown(table).split("\n") == [
        "name: a",
        f"what: {'x ' * 40}".rstrip(),
        "",
        "name: b",
        "what: y",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "plain words\nin two lines",
        "2*3*4 = 24 and a_b_c",
        "1 < 2 & 3 > 2",
        "",
        "    four blanks",
        "x" * (LONGEST + 1),
        "# x\n" * LONGEST,
        "|a" * 700 + "|\n" + "|-" * 700 + "|\n" + "x\n" * 8_000,
    ],
    ids=["plain", "product", "signs", "empty", "indented", "long", "long Markdown", "table"],
)
def test_what_is_not_markdown_or_is_too_long_is_shown_as_it_is_written(text: str) -> None:
    assert render_text(text) is None


def test_json_has_colours() -> None:
    json = render_text('{"a": [1, true, "x"]}')
    assert json
    assert not json.is_markdown
    assert {span.text: span.colour for span in json.lines[0].spans if span.colour} == {
        '"a"': "code-keyword",
        "1": "code-number",
        "true": "code-keyword",
        '"x"': "code-string",
    }
    (line,) = code_lines("def f(): return 'a'  # b", "Python")
    assert line.spans == (StyledSpan("def f(): return 'a'  # b", "code"),)


ACTIVE = {
    "escape": "# a\n\n\x1b[31mred\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "escape in code": "```python\nx = '\x1b[2J'\n```",
    "escape in a language": "```py\x1b[2J\nx\n```",
    "escape in an address": "[a](http://x/\x1b]0;title\x07)",
    "entity": "# &#27;[31m &#x1b;]0;t&#7; &amp;",
    "entity in an address": "[a](http://x/&#27;&#x202e;)",
    "direction": "**a** \u202e\u2066evil",
    "script": "**a** <script>alert(1)</script> [b](javascript:alert(1)) <http://x>",
    "markup": "**a** [bold red]x[/] [@click=app.quit]y[/] [/]",
    "hidden": "# a\n\n[//]: # (hidden words)\n\n[name]: http://evil 'title'\n\n<!-- comment -->",
    "cells": "| a |\n|---|\n| b | dropped |\n",
    "word of a fence": "~~~ some words {.class}\nx\n~~~",
    "deep": "> " * 60 + "words",
    "nul": "# a\x00b",
    "carriage return": "**a**\rb\r\nc",
}


@pytest.mark.parametrize("text", ACTIVE.values(), ids=ACTIVE)
def test_nothing_in_an_answer_is_active_or_hidden(text: str) -> None:
    rendered = render_text(text)
    if rendered is None:  # then it is shown as it is written
        return
    for line in rendered.lines:
        assert line.text == safe(line.text)
    assert not missing(text, rendered.lines)


def missing(text: str, lines: list[StyledLine]) -> Counter[str]:
    """The letters and digits of a text that are not shown."""
    letters = Counter(filter(str.isalnum, text))
    return letters - Counter(char for line in lines for char in line.text)


MARKS = st.sampled_from(
    [
        *("# ", "\n", "\n\n", "- ", "1. ", "> ", "```", "`", "*", "**", "_", "~~", "|", "|-|\n"),
        *("[", "](", ")", "![", "]: ", "<", ">", "&amp;", "&#x41;", "\\", '"', " ", "    ", "---"),
        *("word", "x", "漢", "\x1b[1m", "\u202e", "\t", "http://a.b", "python", "\r", "+", "="),
    ]
)


@given(st.lists(MARKS, max_size=40).map("".join))
def test_every_letter_of_any_text_is_shown_and_every_style_exists(text: str) -> None:
    rendered = render_text(text)
    if rendered:
        assert not missing(text, rendered.lines)
        assert all(line.text == safe(line.text) for line in rendered.lines)
        colours = {span.colour for line in rendered.lines for span in line.spans if span.colour}
        assert colours <= TEXT_STYLES.keys()


REPEATED = [
    *("[", "![", "[a](", "*a ", "**a", "`", "> ", "- ", "<", "_a_", "~~a", "&#1;", "\\*", "|"),
    *("1. a\n", "# a\n", '[a](b "', "|a|\n|-|\n", "{", '{"a":', "[[", "```\n", "\t", "a\n\n"),
]


@pytest.mark.parametrize("part", REPEATED)
def test_no_answer_takes_long_to_be_rendered(part: str) -> None:
    """The square of the length would take minutes."""
    begun = time.process_time()
    render_text(f"# a\n{part * LONGEST}"[:LONGEST])
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("part", ["a ", "\n", '"', '\\"', "\\", '"a":', "1", "-", "true", "null "])
def test_no_json_takes_long_to_be_coloured(part: str) -> None:
    begun = time.process_time()
    code_lines(f'"{part * LONGEST}', "json")
    assert time.process_time() - begun < 5


@given(st.text(max_size=200), st.sampled_from(["json", "python"]))
def test_code_is_shown_as_it_is_written(code: str, language: str) -> None:
    lines = code_lines(code, language)
    assert all(line.text == safe(line.text) for line in lines)
    if code.isascii() and code.replace("\n", "").isprintable():
        assert [line.text for line in lines] == code.split("\n")


@given(st.text(st.sampled_from("a1 \n\r\t#>=+*-_~`|<[]()!.:\\\u2028\v"), max_size=24))
def test_only_a_text_without_any_markup_is_not_parsed(text: str) -> None:
    if not _MARKUP.search(text):
        assert not any(map(_is_sign, _parser().parse(text)))


@pytest.mark.parametrize("text", ["plain", "two lines\nof 3 words, x = y - z", "50 % (of 8)"])
def test_the_parser_is_not_needed_for_plain_answers(text: str) -> None:
    with mock.patch("evalstore.results.value_text._parser") as parser:
        assert render_text(text) is None
    parser.assert_not_called()
