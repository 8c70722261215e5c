from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from evalstore.reports.line_diff import Stretch, compare_words

texts = st.text(st.sampled_from("ab ,\n漢"), max_size=40)


@given(texts, texts)
def test_both_texts_can_be_read_from_it(was: str, now: str) -> None:
    found = compare_words(was, now)
    assert "".join(stretch.text for stretch in found if stretch.kind != "new") == was
    assert "".join(stretch.text for stretch in found if stretch.kind != "old") == now


def test_words_that_changed_are_told_apart_from_those_that_did_not() -> None:
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
