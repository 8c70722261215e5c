"""Two texts in one line each: whatever differs can be seen, at any width."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstore.core.display import columns_of
from evalstore.runs.status.status_text import focus

DESK = (
    "You are the desk of a bicycle shop that rents, repairs and sells. Answer in one sentence. "
    "Never promise a price that the list does not have. We also sell lights, locks and magazines."
)
WIDTHS = (28, 48, 60, 80, 100, 200)
words = st.lists(
    st.sampled_from(["rent", "a", "bicycle,", "自転車", "…", "", "x" * 90]), max_size=40
)
texts = words.map(" ".join) | st.text(max_size=120)


@given(texts, texts, texts, texts, st.sampled_from(WIDTHS))
@example("", DESK, "", " Ask first.", 60)
@example(DESK, "", "x", "y", 48)
@example(DESK * 3, "day", "", "s", 28)
def test_texts_that_differ_make_lines_that_differ(
    start: str, end: str, old: str, new: str, width: int
) -> None:
    was, now = start + old + end, start + new + end
    shown = focus(was, now, width)
    assert (shown[0] != shown[1]) == (was != now)
    assert all(columns_of(line) <= width and "\n" not in line for line in shown)


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize(
    ("edits", "old", "new"),
    [
        ({"": "Hello. "}, ("You are",), ("Hello. You are",)),
        ({"one sentence": "two sentences"}, ("one sentence",), ("two sentences",)),
        ({"magazines.": "magazines. Ask."}, ("magazines.",), ("magazines. Ask.",)),
        ({" and magazines.": ""}, ("and magazines.",), ("locks",)),
        ({"desk": "help", "magazines": "maps"}, ("desk",), ("help",)),
    ],
)
def test_the_lines_show_the_first_edit_with_words_around_it(
    edits: dict[str, str], old: tuple[str, ...], new: tuple[str, ...], width: int
) -> None:
    edited = DESK
    for before, after in edits.items():
        edited = edited.replace(before, after, 1)
    was, now = focus(DESK, edited, width)
    assert all(word in was for word in old), was
    assert all(word in now for word in new), now
    assert max(map(len, (was, now))) >= min(width, len(DESK)) * 0.6


@pytest.mark.parametrize(
    ("was", "now", "shown"),
    [
        ("one  two", "one two", ("one ·two", "one two")),
        ("end", "end ", ("end", "end·")),
        ("a b", "a\tb", ("a·b", "a\\tb")),
        ("a b", "a\xa0b", ("a·b", "a\\xa0b")),
    ],
)
def test_white_space_is_visible_where_nothing_else_differs(
    was: str, now: str, shown: tuple[str, str]
) -> None:
    assert focus(was, now, 60) == shown


def test_without_a_width_the_lines_are_whole() -> None:
    assert focus(DESK, f"{DESK} Ask.", None) == (DESK, f"{DESK} Ask.")
