"""How well names of commands match what is typed."""

from __future__ import annotations

import pytest

from evalstore.interfaces.tui.screens.palette import match_name

NAMES = (
    "Sort",
    "Statistics",
    "Pending work",
    "Run pending work",
    "Run 5a2f91c0 after the test of the weather",
    "File tests/weather.md",
    "Case tests/weather.md [city=Oslo]",
    "Case tests/status.md [at=work]",
    "Tag sort",
    "Model openai/gpt-4o-mini",
    "Theme nord",
)


def test_letters_of_the_kind_are_not_a_part_of_a_scattered_match() -> None:
    assert match_name("File tests/ride.md", "filter", kind_length=5) is None
    assert match_name("File tests/late-filter.md", "filter", kind_length=5)
    assert match_name("File tests/weather.md", "wthr", kind_length=5)


def hits(typed: str) -> list[str]:
    rated = []
    for name in NAMES:
        kind = name.split()[0]
        length = len(kind) + 1 if kind in ("File", "Case", "Tag", "Model", "Theme") else 0
        match = match_name(name, typed, kind_length=length)
        if match:
            rated.append((-match.score, name))
    return [name for _, name in sorted(rated)]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("sort", ["Sort", "Tag sort"]),
        ("st", ["Statistics", "Case tests/status.md [at=work]"]),
        ("weather", ["File tests/weather.md", "Case tests/weather.md [city=Oslo]"]),
        ("work", ["Pending work", "Run pending work"]),
        ("weather test", ["File tests/weather.md"]),
        ("tests/w", ["File tests/weather.md"]),
        ("NORD", ["Theme nord"]),
        ("pw", ["Pending work", "Run pending work"]),
        ("rpw", ["Run pending work"]),
        ("stats", ["Statistics"]),
        ("mini", ["Model openai/gpt-4o-mini"]),
        ("gpt mini", ["Model openai/gpt-4o-mini"]),
    ],
)
def test_exact_names_and_beginnings_come_before_words_and_letters(
    typed: str, first: list[str]
) -> None:
    assert hits(typed)[: len(first)] == first


@pytest.mark.parametrize("typed", ["theme x", "wthrz", "ad", "", " "])
def test_letters_that_are_scattered_do_not_match(typed: str) -> None:
    assert hits(typed) == []


@pytest.mark.parametrize(
    ("name", "typed", "marked"),
    [
        ("File tests/weather.md", "weath", "weath"),
        ("Run pending work", "work run", "Runwork"),
        ("Run pending work", "rpw", "Rpw"),
        ("Tag İstanbul ß", "ß", "ß"),
        ("Tag 漢字 \\u202eשלום", "שלום", "שלום"),
    ],
)
def test_the_places_are_those_of_the_name(name: str, typed: str, marked: str) -> None:
    kind = name.split()[0]
    match = match_name(name, typed, kind_length=0 if kind == "Run" else len(kind) + 1)
    assert match
    assert "".join(name[place] for place in match.places) == marked
