"""Labels whose long values are cut are found by their full values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.planning.selection import CUT, label_matcher


@pytest.mark.parametrize(
    ("name", "label", "fits"),
    [
        ("question=How warm is Lima in May?", "question=How warm…in May?", True),
        ("How warm is Lima in May?", "question=How warm…in May?", True),
        ("how WARM is\n  Lima in may?", "question=How warm…in May?", True),
        ("How warm is Lima in May?", "question=How warm…in May? #2", True),
        ("a=one or two, b=three or four", "a=one…two, b=three…four", True),
        ("a=one or two, b=four", "a=one…two, b=three…four", False),
        ("How warm in May?", "question=How warm…in May?", True),
        ("How warmin May?", "question=How warm…in May?", False),
        ("How cold is Lima in May?", "question=How warm…in May?", False),
        ("How warm is Lima in May?", "How warm is Lima in May?", False),
        ("anything that ends so", "ends…so", False),
        ("Straße und Weg", "STRASSE…Weg", True),
    ],
)
def test_a_name_fits_the_labels_whose_values_it_has_in_full(
    name: str, label: str, fits: bool
) -> None:
    assert label_matcher(name)(label) is fits


@given(
    st.lists(st.text("ab", max_size=3), min_size=2, max_size=4),
    st.text("ab", max_size=12),
)
def test_each_cut_stands_for_at_least_one_character(parts: list[str], name: str) -> None:
    pattern = re.compile(".+".join(parts))
    assert label_matcher(name)(CUT.join(parts)) is bool(pattern.fullmatch(name))


def test_a_cut_in_the_middle_stands_for_at_least_one_character_too() -> None:
    assert label_matcher("a1b2c")(f"a{CUT}b{CUT}c")
    assert not label_matcher("ab2c")(f"a{CUT}b{CUT}c")
    assert not label_matcher("a1bc")(f"a{CUT}b{CUT}c")
