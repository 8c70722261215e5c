"""The page of screenshots shows exactly the pictures that its tool draws."""

from __future__ import annotations

import re
from pathlib import Path

from tools.browser_docs import IN_ORDER_OF_USE
from tools.screenshots import HELD, SCREENS, SIZES, THEMES, draw, page, picture_name, picture_names

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = "images/screens"


def test_the_page_is_the_one_that_the_tool_writes() -> None:
    assert (DOCS / "screens.md").read_text(encoding="utf-8") == page(FOLDER)


def test_the_page_shows_each_picture_once() -> None:
    text = (DOCS / "screens.md").read_text(encoding="utf-8")
    linked = re.findall(rf"\]\({FOLDER}/([^)]+)\)", text)
    assert linked == picture_names()
    assert len(set(linked)) == len(SCREENS) * len(SIZES) * len(THEMES) == 108


def test_every_screen_of_the_browser_is_drawn() -> None:
    assert [shown.title for shown in SCREENS.values()] == list(IN_ORDER_OF_USE)


def test_there_are_all_pictures_of_the_page_or_none() -> None:
    drawn = {path.name for path in (DOCS / FOLDER).glob("*")}
    assert drawn in (set(), set(picture_names()))


def test_pictures_are_small_and_differ_in_their_colours_alone() -> None:
    size = SIZES[0]
    pictures = dict(draw(("cases",), (size,)))
    assert list(pictures) == [picture_name("cases", size, theme) for theme in THEMES]
    texts, colours = [], []
    for picture in pictures.values():
        assert len(picture.encode()) < 40_000
        assert not re.search(r"@font-face|url\(\s*[\"']?https?:|\d\.\d\d", picture)
        texts.append("".join(re.findall(r">([^<>]*)</text>", picture)))
        colours.append(frozenset(re.findall(r'rect fill="(#[0-9a-f]+)" x="0"', picture)))
    assert "careful" in texts[0]
    assert len({re.sub(r"\s+", "", text) for text in texts}) == 1
    assert len(set(colours)) == len(THEMES)


def test_a_run_stands_still_in_its_pictures() -> None:
    pictures = dict(draw(("run", "quit"), (SIZES[0],)))
    texts = {
        name: re.sub(r"\s+", "", "".join(re.findall(r">([^<>]*)</text>", picture)))
        for name, picture in pictures.items()
    }
    assert list(texts) == [
        picture_name(screen, SIZES[0], theme) for screen in ("run", "quit") for theme in THEMES
    ]
    assert HELD == "scripted/hasty"
    for name, text in texts.items():
        assert "asking" in text
        assert "2/4" in text
        assert ("4of8aredone" in text) == name.startswith("quit")
    for screen in ("run", "quit"):
        shown = {text for name, text in texts.items() if name.startswith(screen)}
        assert len(shown) == 1
