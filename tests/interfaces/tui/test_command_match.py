"""How well names of commands match what is typed."""

from __future__ import annotations

import re

import pytest

from evalstore.interfaces.tui.app import Command

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


def match(name: str, typed: str) -> tuple[float, list[str]] | None:
    kind = name.split()[0]
    command = Command(
        name, "", lambda: None, kind * (kind in ("File", "Case", "Tag", "Model", "Theme"))
    )
    words = [re.compile(re.escape(word), re.IGNORECASE) for word in typed.split()]
    found = command.match(words)
    return found and (found[0], [it[0] for it in found[1]])


def hits(typed: str) -> list[str]:
    rated = [(-found[0], name) for name in NAMES if (found := match(name, typed))]
    return [name for _, name in sorted(rated)]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("sort", ["Sort", "Tag sort"]),
        ("st", ["Statistics"]),
        ("weather", ["File tests/weather.md", "Case tests/weather.md [city=Oslo]"]),
        ("work", ["Pending work", "Run pending work"]),
        ("weather test", ["File tests/weather.md"]),
        ("tests/w", ["File tests/weather.md"]),
        ("NORD", ["Theme nord"]),
        ("mini", ["Model openai/gpt-4o-mini"]),
        ("gpt mini", ["Model openai/gpt-4o-mini"]),
    ],
)
def test_names_that_begin_with_it_come_before_those_that_have_it(
    typed: str, first: list[str]
) -> None:
    assert hits(typed)[: len(first)] == first


@pytest.mark.parametrize("typed", ["theme x", "wthrz", "rpw"])
def test_a_name_has_all_words(typed: str) -> None:
    assert hits(typed) == []


@pytest.mark.parametrize(
    ("name", "typed", "marked"),
    [
        ("File tests/weather.md", "weath", ["weath"]),
        ("Run pending work", "work run", ["work", "Run"]),
        ("Tag İstanbul ß", "ß", ["ß"]),
        ("Tag 漢字 \\u202eשלום", "שלום", ["שלום"]),
    ],
)
def test_the_marked_places_are_those_of_the_name(name: str, typed: str, marked: list[str]) -> None:
    found = match(name, typed)
    assert found
    assert found[1] == marked
