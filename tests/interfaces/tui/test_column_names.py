"""Names that are too long for their column keep what distinguishes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalstore.core.display import columns_of
from evalstore.interfaces.tui.grid_columns import ShortenedNames, case_names, only_file

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


def shortened(names: list[str], columns: int) -> list[str]:
    column = ShortenedNames(lambda _: names)
    return [column.shorten(name, columns) for name in names]


def test_names_that_fit_are_left_as_they_are() -> None:
    assert shortened(QUESTIONS, 50) == QUESTIONS


def test_the_fields_that_all_share_are_left_out_first() -> None:
    assert shortened(QUESTIONS, 30) == [
        "What is the capital of France?",
        "What is the capital of Spain?",
        "Who wrote the Iliad?",
    ]


@pytest.mark.parametrize("names", [QUESTIONS, FILES, HOSTILE])
@pytest.mark.parametrize("columns", [9, 10, 14, 20])
def test_names_are_distinct_and_fit(names: list[str], columns: int) -> None:
    short = shortened(names, columns)
    assert len(set(short)) == len(names)
    assert max(map(columns_of, short)) <= columns
    assert all(name.isprintable() for name in short)


def test_of_a_path_that_does_not_fit_the_shared_folders_are_left_out() -> None:
    names = ["tests/availability.md", "tests/late.md", "tests/a folder/availability.md"]
    assert shortened(names, 18) == ["…/availability.md", "tests/late.md", "tes…a folder/avai…"]
    assert shortened(["scripted/careful", "scripted/hasty"], 14) == ["…/careful", "scripted/hasty"]


def test_of_a_path_that_is_too_long_the_file_is_left_unless_another_ends_alike() -> None:
    names = ["tests/booking/change-date.md", "tests/seats/late.md", "tests/trains/late.md"]
    assert shortened([*names, names[0]], 16) == [
        "…/change-date.md",
        "…/seats/late.md",
        "…/trains/late.md",
        "…/change-date.md",
    ]
    assert shortened(names, 15)[2] != "…/late.md"


def test_of_very_many_names_the_shared_start_is_left_out() -> None:
    names = [f"number={number:06} and something long" for number in range(3_001)]
    assert shortened(names, 12)[7] == "000007 and …"


def test_of_names_with_several_fields_each_keeps_its_key() -> None:
    names = [f"lang=en, age={age}, class={rank}" for age in (7, 35) for rank in ("first", "second")]
    assert shortened(names, 20) == [
        "age=7, class=first",
        "age=7, class=second",
        "age=35, class=first",
        "age=35, class=second",
    ]


def test_rows_are_compared_with_those_of_their_file() -> None:
    names = case_names([("a.md", row, "m") for row in QUESTIONS] + [("b.md", "city=Rome", "m")])
    assert names["row"].shorten(QUESTIONS[2], 20, "a.md") == "Who wrote the Iliad?"
    assert names["row"].shorten("city=Rome", 8, "b.md") == "city=Ro…"


def test_wide_letters_take_two_columns() -> None:
    assert shortened(["key=漢字漢字", "key=a"], 10) == ["漢字漢字", "a"]


class Place(tuple[str, str, str]):
    """Counts how often a place is looked at."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        Place.looks += 1
        return super().__iter__()


def test_the_rows_of_all_files_are_found_together() -> None:
    names = case_names([Place((f"{number}.md", "city=Rome", "m")) for number in range(100)])
    for number in range(100):
        names["row"].shorten("city=Rome", 20, f"{number}.md")
    assert 0 < Place.looks <= 300


def test_a_file_is_named_when_it_is_the_only_one() -> None:
    assert only_file(["a.md", "a.md"]) == "a.md"
    assert only_file(["a.md", "b.md"]) == only_file([]) == ""
