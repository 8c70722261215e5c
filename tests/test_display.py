"""Words and widths that all parts share."""

from __future__ import annotations

import pytest

from evalstore.core.display import (
    break_word,
    clip,
    columns_of,
    difference_at,
    first_difference,
    half_up,
    interval_bar,
    likely_price,
    percent,
    shorten_to_line,
    steady,
    whole_percent,
    widest,
    wrap,
)


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("four", 4, "four"),
        ("three", 4, "thr…"),
        ("it i…m late", 6, "it i…"),
        ("two\n\twords", 9, "two words"),
        ("漢字", 4, "漢字"),
        ("漢字漢", 5, "漢字…"),
        ("漢字漢", 4, "漢…"),
        ("cafe\u0301s", 5, "cafe\u0301s"),
        ("cafe\u0301s", 4, "caf…"),
        ("x", 0, "…"),
        ("", 0, ""),
    ],
)
def test_a_text_is_cut_to_the_columns_it_takes(text: str, columns: int, shown: str) -> None:
    assert clip(text, columns) == shown
    assert columns_of(shown) <= max(columns, 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\u2699\ufe0f gear", "\u2699 gear"),
        ("1\ufe0f\u20e3", "1\u20e3"),
        ("\U0001f44d\U0001f3fd", "\U0001f44d"),
        ("\u261d\ufe0f\U0001f3fd", "\u261d"),
        ("\u231a\ufe0e", "\u231a"),
        ("tone \U0001f3fd alone", "tone \U0001f3fd alone"),
        ("\U0001f1e9\U0001f1ea", "\U0001f1e9\U0001f1ea"),
        ("漢字 e\u0301", "漢字 e\u0301"),
    ],
)
def test_what_terminals_disagree_on_is_left_out_of_emoji(text: str, shown: str) -> None:
    """U+2699 with U+FE0F is one column in tmux, two elsewhere; a tone of skin is two, or none."""
    assert steady(text) == shown


def test_a_text_of_a_megabyte_is_cut_at_once() -> None:
    """Letter by letter from its end it would take hours."""
    assert clip("Release candidate. " * 50_000, 20) == "Release candidate. …"


def test_the_widest_of_very_many_texts() -> None:
    many = [f"row {number} …" for number in range(10_000)]
    assert widest(many) == len("row 9999 …")
    assert widest([*many, "漢字" * 10]) == 40
    assert widest(["plain", "漢"]) == 5
    assert widest([]) == 0


def test_an_upper_bound_is_not_less_than_a_bound() -> None:
    assert likely_price(0.00001, 40) == "less than $0.0001 (if an answer has 40 tokens)"
    assert likely_price(0.1, 40, 60) == (
        "about $0.1000 (if an answer has 40 tokens and a verdict 60)"
    )
    assert likely_price(0.1, None, 60, at_most=True) == (
        "up to about $0.1000 (if a verdict has 60 tokens)"
    )
    assert likely_price(0.1, 40, at_most=True) == (
        "up to about $0.1000 (if an answer has 40 tokens)"
    )
    assert likely_price(0.00001, None) == "less than $0.0001"
    assert likely_price(None, 40) == "at an unknown price"
    assert likely_price(None, 40, brief=True) == "price unknown"


@pytest.mark.parametrize(
    ("text", "at", "shown"),
    [
        ("one", 0, "'one'"),
        ("one\n\ntwo", 0, "'one…'"),
        ("\r\n  one\r\ntwo", 0, "'  one…'"),
        ("one\ntwo\nthree", 5, "'…two…'"),
        ("one\ntwo", 3, "'…two'"),
        ("one\ntwo\n", 8, "'…two'"),
        ("one\n" + "x" * 200, 100, f"'…{'x' * 120}…'"),
        (f"{'x' * 200}\none", 0, f"'{'x' * 120}…'"),
        ("\n", 0, "''"),
        ("", 0, "''"),
    ],
)
def test_a_quoted_text_is_the_line_of_a_place(text: str, at: int, shown: str) -> None:
    assert shorten_to_line(text, at) == shown


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ("a\nb\nc", "a\nx\nc", "expected '…b…', found '…x…'"),
        ("a\nb", "a\n\nb", "expected 'a\nb', found 'a\n\nb'"),
    ],
    ids=["words", "blanks"],
)
def test_a_difference_of_texts_is_visible(expected: str, actual: str, words: str) -> None:
    assert difference_at(expected, actual, first_difference(expected, actual)) == words


def test_texts_are_wrapped_by_the_columns_of_their_letters() -> None:
    text = "The shop is closed: 春節期間全部門市休息不營業。 Come later."
    lines = wrap(text, 20)
    assert lines == ["The shop is closed:", "春節期間全部門市休息", "不營業。 Come later."]
    assert wrap("naïve words of plain letters", 20) == ["naïve words of plain", "letters"]
    assert wrap("早" * 25, 20) == ["早" * 10, "早" * 10, "早" * 5]
    assert break_word("abc早", 2, 4) == ["ab", "c早"]


@pytest.mark.parametrize(
    ("interval", "rate", "drawn"),
    [
        ((0.2, 0.8), 0.5, "··├──●──┤··"),
        ((0.0, 1.0), 0.5, "├────●────┤"),
        ((1.0, 1.0), 1.0, "··········●"),
        (None, 0.5, ""),
        ((0.0, 1.0), None, ""),
    ],
)
def test_a_share_is_drawn_with_its_interval(
    interval: tuple[float, float] | None, rate: float | None, drawn: str
) -> None:
    assert interval_bar(interval, rate, 11) == drawn


def test_a_rounded_share_is_all_or_none_only_if_it_is() -> None:
    shares = (0.0, 0.001, 0.4, 0.996, 1.0)
    assert [*map(whole_percent, shares)] == ["0%", "0.1%", "40%", "99.6%", "100%"]


def test_a_half_of_a_share_is_rounded_up() -> None:
    assert [whole_percent(eighths / 8) for eighths in (1, 3, 5, 7)] == ["13%", "38%", "63%", "88%"]
    assert whole_percent(0.145) == "15%"  # times 100 it is less than 14.5
    assert [percent(part / 16) for part in (1, 3, 5)] == ["6.3%", "18.8%", "31.3%"]
    assert [*map(half_up, (-6.25, -0.01, 6.25))] == [-6.3, 0, 6.3]
