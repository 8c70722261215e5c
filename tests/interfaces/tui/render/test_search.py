"""A text that a search has found, with its words marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.style import Style

from evalstore.interfaces.tui.grid import (
    GAP,
    MARGIN,
    Column,
    LineStyle,
    VisibleColumns,
    draw_line,
)
from evalstore.interfaces.tui.screens.search import MATCH, hit_cells, hit_lines
from evalstore.results.grep import FoundText, MarkedText, SearchHit
from evalstore.store.search.index import find_word_places, split_words

HEAD_LINES = 3
HIT = SearchHit("answers", "1" * 32, "a.md", "", (), (), "", ())


def text_of(text: str, pattern: str) -> list[tuple[str, list[str]]]:
    """The lines of a text, each with what is marked in it."""
    marked = MarkedText(text, find_word_places(text, split_words(pattern)))
    lines = list(hit_lines(FoundText(HIT, None), marked))[HEAD_LINES:]
    return [
        (line.text, [span.text for span in line.spans if span.colour == MATCH]) for line in lines
    ]


def test_a_phrase_is_marked_across_the_ends_of_lines() -> None:
    assert text_of("a cold\n\nwinter day, a cold winter", '"cold winter"') == [
        ("a cold", ["cold"]),
        ("", []),
        ("winter day, a cold winter", ["winter", "cold winter"]),
    ]


def test_the_number_of_answers_belongs_to_the_text_and_not_to_the_run() -> None:
    hit = replace(HIT, kind="tests", models=("m",), sessions=("1", "2", "3"))
    _, about, *_ = hit_lines(FoundText(hit, "2" * 32), None)
    assert about.text == "test 11111111, 3 answers  m  run 22222222"


def test_of_a_long_text_the_part_with_the_first_match_is_shown() -> None:
    before, after = "line of text\n" * 5_000, "\nlast line" * 5_000
    lines = text_of(f"{before}a needle{after}", "needle")
    assert lines[0] == ("… 64,012 characters before", [])
    assert lines[1] == ("line of text", [])
    assert [found for _, found in lines if found] == [["needle"]]
    assert lines[-1][0] == "… 30,996 more characters"
    assert sum(len(text) + 1 for text, _ in lines) < 21_000


class Counted(list[tuple[int, int]]):
    """Counts how often a place is looked at."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for place in super().__iter__():
            self.looks += 1
            yield place


def test_the_places_of_a_long_text_are_looked_at_once() -> None:
    text = "x y\n" * 20_000
    places = Counted(find_word_places(text, ["y"]))
    lines = list(hit_lines(FoundText(HIT, None), MarkedText(text, places)))
    assert len(lines) == 5_005
    assert 5_000 < places.looks < 25_000


def test_a_match_behind_a_long_text_without_blanks_is_seen() -> None:
    text = "次の電車は三番線から発車しますので白線の内側までお下がりくださいませ次の電車は14:05。"
    places = tuple(find_word_places(text, ["14:05"]))
    cells = hit_cells(FoundText(replace(HIT, context=text, matches=places), None))
    columns = VisibleColumns((4,), (Column("text", 60),), 0)
    style = LineStyle(Style(), lambda name: Style(bold=name == MATCH))
    drawn = draw_line(cells, columns, None, style, 60 + MARGIN + GAP)
    marked = "".join(part.text for part in drawn if part.style and part.style.bold)
    assert marked == "14:05"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (62, "…must name the cap of the budget, and it does not name it."),
        (40, "…must name the cap of the budget, and i…"),
        (20, "…must name the cap …"),
    ],
)
def test_a_text_begins_shortly_before_the_first_match(width: int, shown: str) -> None:
    text = "The reply must name the cap of the budget, and it does not name it."
    places = tuple(find_word_places(text, ["cap"]))
    cells = hit_cells(FoundText(replace(HIT, context=text, matches=places), None))
    columns = VisibleColumns((4,), (Column("text", width),), 0)
    style = LineStyle(Style(), lambda name: Style(bold=name == MATCH))
    drawn = draw_line(cells, columns, None, style, width + MARGIN + GAP)
    assert drawn.text.strip() == shown
    assert [part.text for part in drawn if part.style and part.style.bold] == ["cap"]
