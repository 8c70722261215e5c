"""Two texts word by word and line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.reports import word_diff
from evalstore.reports.word_diff import Pieces, TextPiece, lines_apart, words_apart

texts = st.text("ab 漢\n\t", max_size=40)


def plain(lines: list[Pieces]) -> str:
    return "\n".join("".join(piece.text for piece in line) for line in lines)


@given(texts, texts)
def test_both_texts_are_whole(was: str, now: str) -> None:
    apart = words_apart(was, now)
    assert apart is not None
    assert (plain(apart[0]), plain(apart[1])) == (was, now)


@given(texts, texts)
def test_a_difference_holds_all_lines_that_differ(was: str, now: str) -> None:
    hunks = lines_apart(was, now, context=100)
    assert len(hunks) == (was != now and bool(was or now))
    for hunk in hunks:
        for sign, text in (("-", was), ("+", now)):
            kept = [line.pieces for line in hunk if line.sign in (" ", sign)]
            assert plain(kept) == text


def test_words_that_differ_are_told() -> None:
    apart = words_apart("It is cold in Oslo.\nBring a hat.", "It is warm in Oslo.\nBring hats.")
    assert apart == (
        [
            (TextPiece("It is "), TextPiece("cold ", True), TextPiece("in Oslo.")),
            (TextPiece("Bring "), TextPiece("a hat.", True)),
        ],
        [
            (TextPiece("It is "), TextPiece("warm ", True), TextPiece("in Oslo.")),
            (TextPiece("Bring "), TextPiece("hats.", True)),
        ],
    )


def test_lines_far_from_an_edit_are_left_out() -> None:
    was = [str(number) for number in range(40)]
    now = [*was[:10], "ten", *was[11:30], "thirty", *was[31:]]
    hunks = lines_apart("\n".join(was), "\n".join(now), context=2)
    assert [[line.sign + line.pieces[0].text for line in hunk] for hunk in hunks] == [
        [" 8", " 9", "-10", "+ten", " 11", " 12"],
        [" 28", " 29", "-30", "+thirty", " 31", " 32"],
    ]


def test_what_is_too_long_is_not_compared_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_diff, "_MOST", 10)
    assert words_apart("a b c d", "e f g h") is None
    (hunk,) = lines_apart("a\nb\nc\nd", "e\nf\ng\nh")
    assert "".join(line.sign for line in hunk) == "----++++"
