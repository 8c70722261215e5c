"""How lines are wrapped."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from evalstore.core.display import StyledLine, StyledSpan, text_lines
from evalstore.interfaces.tui.text_view import TextView, wrap_line

parts = st.sampled_from(["word", "a", " ", "   ", "漢字", "é", "e\u0301", "x" * 30])
spans = st.lists(st.lists(parts, max_size=12).map("".join), min_size=1, max_size=4)


@given(spans, st.integers(10, 60), st.integers(0, 4), st.integers(0, 20))
def test_rows_fit_and_nothing_is_lost(texts: list[str], width: int, indent: int, hang: int) -> None:
    line = StyledLine(
        tuple(StyledSpan(text, str(number)) for number, text in enumerate(texts)), indent, hang
    )
    rows = list(wrap_line(line, width + indent))
    assert all(sum(cell_len(span.text) for span in row) <= width + indent for row in rows)
    shown = "".join(span.text for row in rows for span in row)
    assert shown.replace(" ", "") == "".join(texts).replace(" ", "")
    for number, text in enumerate(texts):
        here = "".join(span.text for row in rows for span in row if span.colour == str(number))
        assert here.replace(" ", "") == text.replace(" ", "")


def test_lines_are_broken_between_words() -> None:
    (line,) = text_lines("one two three fourteen")
    assert [row[0].text.rstrip() for row in wrap_line(line, 10)] == ["one two", "three", "fourteen"]


def test_the_first_row_of_a_hanging_line_has_the_whole_width() -> None:
    line = StyledLine((StyledSpan("name  ", "heading"), StyledSpan("one two three four")), 2, 6)
    rows = ["".join(span.text for span in row).rstrip() for row in wrap_line(line, 20)]
    assert rows == ["  name  one two", "        three four"]


def test_each_row_of_a_comment_begins_with_its_mark() -> None:
    line = StyledLine((StyledSpan("# one two three four", "fail"),), 2, mark="# ")
    rows = list(wrap_line(line, 14))
    texts = ["".join(span.text for span in row).rstrip() for row in rows]
    assert texts == ["  # one two", "  # three four"]
    assert [row[-1].colour for row in rows] == ["fail", "fail"]


def test_control_characters_are_escapes_and_tabs_are_blanks() -> None:
    lines = [line.spans[0].text for line in text_lines("a\tb\n\x1b[31m\r\n\n")]
    assert lines == ["a   b", "\\x1b[31m\\r", "", ""]


class Reader(App[None]):
    def get_css_variables(self) -> dict[str, str]:
        return {**super().get_css_variables(), "faint": "#888888"}

    def compose(self) -> ComposeResult:
        yield TextView()


def test_what_is_revealed_is_on_the_screen() -> None:
    async def scenario() -> None:
        app = Reader()
        async with app.run_test(size=(60, 10)) as pilot:
            view = app.query_one(TextView)
            words = StyledLine((StyledSpan("some words " * 500), StyledSpan("needle", "error")))
            view.show([words, *text_lines("after it\n" * 20)])
            await pilot.pause()
            view.reveal("error")
            shown = [view.render_line(y).text for y in range(view.size.height)]
            assert any("needle" in line for line in shown)

    asyncio.run(scenario())


def test_half_a_page_is_scrolled() -> None:
    async def scenario() -> list[float]:
        app = Reader()
        async with app.run_test(size=(30, 4)) as pilot:
            view = app.query_one(TextView)
            view.show([*text_lines("line\n" * 20)])
            view.focus()
            await pilot.pause()
            places = []
            for key in ("ctrl+d", "ctrl+d", "ctrl+u"):
                await pilot.press(key)
                places.append(view.scroll_y)
            return places

    assert asyncio.run(scenario()) == [2, 4, 2]
