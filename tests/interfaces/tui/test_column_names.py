"""Names that are too long for their column keep their start and their end."""

from __future__ import annotations

import pytest

from evalstore.core.display import columns_of
from evalstore.interfaces.tui.grid import only_file, shorten_name

QUESTIONS = [
    "question=What is the capital of France?",
    "question=What is the capital of Spain?",
    "question=Who wrote the Iliad?",
]
FILES = ["tests/europe/geography.md", "tests/europe/history.md", "tests/late.md"]
HOSTILE = [
    "key=a\nb" * 9,
    "key=\x1b[31m" * 9,
    "key=שלום \u202e" * 9,
    "key=" + "漢字" * 20,
    "key=\u200b",
]


def test_names_that_fit_are_left_as_they_are() -> None:
    assert [shorten_name(name, 50) for name in QUESTIONS] == QUESTIONS


def test_of_others_the_start_and_the_end_are_left() -> None:
    assert shorten_name(QUESTIONS[0], 20) == "question=…of France?"
    assert shorten_name("tests/europe/geography.md", 14) == "tests/…aphy.md"


@pytest.mark.parametrize("names", [QUESTIONS, FILES, HOSTILE])
@pytest.mark.parametrize("columns", [9, 10, 14, 20])
def test_names_are_distinct_and_fit(names: list[str], columns: int) -> None:
    short = [shorten_name(name, columns) for name in names]
    assert len(set(short)) == len(names)
    assert max(map(columns_of, short)) <= columns
    assert all(name.isprintable() for name in short)


def test_a_file_is_named_when_it_is_the_only_one() -> None:
    assert only_file(["a.md", "a.md"]) == "a.md"
    assert only_file(["a.md", "b.md"]) == only_file([]) == ""
