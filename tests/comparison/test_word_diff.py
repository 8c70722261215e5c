"""Two texts word by word and line by line."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.comparison import version_diff
from evalstore.comparison.version_diff import (
    Pieces,
    Stretch,
    TextPiece,
    compare_side_by_side,
    compare_words,
    diff_lines,
)

texts = st.text("ab 漢,\n\t\r", max_size=40)


def plain(lines: list[Pieces]) -> str:
    return "\n".join("".join(piece.text for piece in line) for line in lines)


def test_loading_the_module_does_not_compile_the_pattern_of_words() -> None:
    """`status` and `log` load it and compare no texts; compiling takes 2 % of their time."""
    patterns = [
        value.pattern for value in vars(version_diff).values() if isinstance(value, re.Pattern)
    ]
    assert not any(version_diff._IDEOGRAPHS in pattern for pattern in patterns)


@given(texts, texts)
def test_both_texts_are_whole(was: str, now: str) -> None:
    old, new = compare_side_by_side(was, now)
    assert (plain(old), plain(new)) == (was, now)


@given(texts, texts)
def test_a_difference_holds_all_lines_that_differ(was: str, now: str) -> None:
    hunks = diff_lines(was, now, context=100)
    assert len(hunks) == (was != now and bool(was or now))
    for hunk in hunks:
        for sign, text in (("-", was), ("+", now)):
            kept = [line.pieces for line in hunk if line.sign in (" ", sign)]
            assert plain(kept) == text


def test_words_that_differ_are_marked() -> None:
    was, now = "It is cold in Oslo.\nBring a hat.", "It is warm in Oslo.\nBring hats."
    assert compare_side_by_side(was, now) == (
        [
            (TextPiece("It is "), TextPiece("cold", True), TextPiece(" in Oslo.")),
            (TextPiece("Bring "), TextPiece("a hat", True), TextPiece(".")),
        ],
        [
            (TextPiece("It is "), TextPiece("warm", True), TextPiece(" in Oslo.")),
            (TextPiece("Bring "), TextPiece("hats", True), TextPiece(".")),
        ],
    )


@pytest.mark.parametrize(
    ("was", "now", "differ"),
    [
        ("今日は寒い。", "今日は暑い。", "暑"),
        ("यह किताब है", "यह कलम है", "कलम"),
        ("“cold”", "“warm”", "warm"),
    ],
    ids=["ideographs", "vowel signs", "quotation marks"],
)
def test_words_of_all_scripts_are_distinguished(was: str, now: str, differ: str) -> None:
    changed = [stretch.text for stretch in compare_words(was, now) if stretch.kind == "new"]
    assert changed == [differ]


def test_lines_far_from_an_edit_are_left_out() -> None:
    was = [str(number) for number in range(40)]
    now = [*was[:10], "ten", *was[11:30], "thirty", *was[31:]]
    hunks = diff_lines("\n".join(was), "\n".join(now), context=2)
    assert [[line.sign + line.pieces[0].text for line in hunk] for hunk in hunks] == [
        [" 8", " 9", "-10", "+ten", " 11", " 12"],
        [" 28", " 29", "-30", "+thirty", " 31", " 32"],
    ]


def test_what_is_too_long_counts_as_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_diff, "_MAX_PAIRS", 10)
    assert compare_words("a b c d", "e b c f") == [
        Stretch("old", "a b c d"),
        Stretch("new", "e b c f"),
    ]
    (hunk,) = diff_lines("a\nb\nc\nd", "e\nb\nc\nf")
    assert "".join(line.sign for line in hunk) == "----++++"


@given(texts, texts)
def test_both_texts_can_be_read_from_it(was: str, now: str) -> None:
    stretches = compare_words(was, now)
    assert "".join(stretch.text for stretch in stretches if stretch.kind != "new") == was
    assert "".join(stretch.text for stretch in stretches if stretch.kind != "old") == now


def test_changed_words_are_distinguished_from_unchanged_ones() -> None:
    assert compare_words("It is cold today.", "It is warm today.") == [
        Stretch("same", "It is "),
        Stretch("old", "cold"),
        Stretch("new", "warm"),
        Stretch("same", " today."),
    ]


def test_words_that_changed_together_are_read_together() -> None:
    assert compare_words("a very cold day", "a quite warm day") == [
        Stretch("same", "a "),
        Stretch("old", "very cold"),
        Stretch("new", "quite warm"),
        Stretch("same", " day"),
    ]


def test_what_was_added_is_new_alone() -> None:
    assert compare_words("a day", "a cold day") == [
        Stretch("same", "a "),
        Stretch("new", "cold "),
        Stretch("same", "day"),
    ]


def test_a_megabyte_without_a_line_in_common_takes_no_time() -> None:
    was, now = "old word " * 100_000, "\n".join(["new words"] * 100_000)
    begun = time.process_time()
    compare_words(was, now)
    compare_words(now, now.replace("words", "wards", 50_000))
    assert time.process_time() - begun < 5
