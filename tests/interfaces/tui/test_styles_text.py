"""The styles of a screen as a text: what is the same on the screen is the same text."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.interfaces.tui.styles_text import describe_styles, style_differences

RED, BOLD = Style.parse("#ff0000 on #000000"), Style.parse("bold #ffffff on #000000")
UNDERLINED = Style.parse("underline #ffffff on #000000")


def described(*lines: tuple[tuple[str, Style], ...]) -> str:
    return describe_styles("Page", [Strip(Segment(*part) for part in line) for line in lines])


def test_styles_are_runs_with_a_legend() -> None:
    text = described((("ab", RED), ("漢", BOLD), (" ", UNDERLINED)), *[(("x", RED),)] * 2)
    assert text == (
        "Page\n\na  #ff0000 on #000000\nb  #ffffff on #000000 bold\n"
        "c  #ffffff on #000000 underline\n\n    1  a2 b2 c\n  2-3  a\n"
    )


def test_invisible_differences_do_not_count() -> None:
    whole = described((("ab cd", RED),))
    assert whole == described((("a", RED), ("b", RED), (" ", BOLD), ("cd  ", RED)))
    assert whole != described((("ab", RED), (" ", UNDERLINED), ("cd", RED)))


def test_differences_name_the_place_the_words_and_both_styles() -> None:
    before = described((("a word", RED), ("!", BOLD)), (("same", RED),))
    now = described((("a ", RED), ("word", BOLD), ("!", BOLD)), (("same", RED),))
    differences = style_differences(before, now, "a word!\nsame")
    assert differences == (
        "line 1, column 3 'word': #ffffff on #000000 bold, it was #ff0000 on #000000"
    )
