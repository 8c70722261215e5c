"""Labels that begin alike are shortened so that they can still be distinguished."""

from __future__ import annotations

import pytest

from evalstore.core.display import columns_of, shorten_label, shorten_labels

CAPITALS = [
    f"tests/a/long/folder/geography.md [question=What is the capital of {country}?]"
    for country in ("France", "Spain", "the United Kingdom of Great Britain")
]


def test_a_shared_start_is_cut_and_the_end_is_kept() -> None:
    assert [*shorten_labels(CAPITALS, 40)] == [
        "tests/a/long/folder…capital of France?]",
        "tests/a/long/folder…e capital of Spain?]",
        "tests/a/l…the United Kingdom of Great B…",
    ]


def test_labels_that_differ_at_once_are_cut_at_their_end() -> None:
    labels = ["who wrote Hamlet, the play?", "what is the capital of Norway?"]
    assert [*shorten_labels(labels, 20)] == ["who wrote Hamlet, t…", "what is the capital…"]


@pytest.mark.parametrize("columns", [10, 20, 24, 60, 80, 120])
@pytest.mark.parametrize(
    "labels",
    [
        CAPITALS,
        [f"{'very-' * 30}long-name-{number}.md" for number in (1, 2, 10, 11)],
        [f"question={'x' * 200}{ending}" for ending in ("", "a", "ab", "b" * 90)],
        [f"質問={'漢字' * 40}{ending}" for ending in "一二三"],
        ["same.md " + "a b " * 60, "same.md " + "a b " * 60 + "c"],
    ],
    ids=["rows", "files", "no words", "wide letters", "one is the start of another"],
)
def test_labels_remain_distinct_in_their_columns(labels: list[str], columns: int) -> None:
    shown = shorten_labels(labels, columns)
    assert len(set(shown)) == len(labels)
    assert all(columns_of(text) <= columns for text in shown)


def test_a_label_is_one_line_without_control_characters() -> None:
    assert [*shorten_labels(["a\nb\x1b[31m"], 40)] == ["a b\\x1b[31m"]
    assert shorten_label("x" * 30, 1) == "…"


GRID = [
    f"tests/greeting.md [language={language}, time={time}]"
    for language in ("English", "French")
    for time in ("morning", "evening")
]


def test_of_labels_that_differ_in_two_places_the_end_is_kept() -> None:
    assert [*shorten_labels(GRID, 32)] == [
        "…language=English, time=morning]",
        "…language=English, time=evening]",
        "…[language=French, time=morning]",
        "…[language=French, time=evening]",
    ]


@pytest.mark.parametrize("columns", [32, 40, 60])
def test_a_grid_of_rows_remains_distinct(columns: int) -> None:
    prompts = [f"{label} ({name})" for label in GRID for name in ("brief", "friendly")]
    for labels in (GRID, prompts):
        shown = shorten_labels(labels, columns)
        assert len(set(shown)) == len(labels)
        assert all(columns_of(text) <= columns for text in shown)
