"""How lines are wrapped."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from evalstore.operations.views.styled_text import StyledLine, StyledSpan, text_lines
from evalstore.tui.widgets.text_view import TextView, wrap_line

parts = st.sampled_from(["word", "a", " ", "   ", "漢字", "é", "e\u0301", "x" * 30])
spans = st.lists(st.lists(parts, max_size=12).map("".join), min_size=1, max_size=4)


@given(spans, st.integers(10, 60), st.integers(0, 4))
def test_rows_fit_and_nothing_is_lost(texts: list[str], width: int, indent: int) -> None:
    line = StyledLine(
        tuple(StyledSpan(text, str(number)) for number, text in enumerate(texts)), indent
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


def test_control_characters_are_escapes_and_tabs_are_blanks() -> None:
    lines = [line.spans[0].text for line in text_lines("a\tb\n\x1b[31m\r\n\n")]
    assert lines == ["a   b", "\\x1b[31m\\r", "", ""]


def test_lines_that_are_inserted_above_do_not_move_what_is_read() -> None:
    class Reader(App[None]):
        def get_css_variables(self) -> dict[str, str]:
            return {**super().get_css_variables(), "faint": "#888888"}

        def compose(self) -> ComposeResult:
            yield TextView()

    async def scenario() -> list[bool]:
        app = Reader()
        async with app.run_test(size=(30, 4)) as pilot:
            view = app.query_one(TextView)
            lines = [line for number in range(20) for line in text_lines(f"{number} word " * 7)]
            view.show(lines)
            await pilot.pause()
            seen = []
            for y in (0, 8, 9):
                view.scroll_to(y=y, animate=False, immediate=True)
                await pilot.pause()
                before = view.render_line(0).text
                for inserted in ("new\n" * 3, ""):
                    view.show([*lines[:1], *text_lines(inserted), *lines[1:]], stay=True)
                    seen.append(view.render_line(0).text == before)
            return seen

    assert asyncio.run(scenario()) == [True] * 6
