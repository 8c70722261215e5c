"""The page of screenshots shows exactly the pictures that its tool draws."""

from __future__ import annotations

import re
from pathlib import Path

from tools.screenshots import SCREENS, SIZES, THEMES, draw, page, picture_name, picture_names

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = "images/screens"


def test_the_page_is_the_one_that_the_tool_writes() -> None:
    assert (DOCS / "screens.md").read_text(encoding="utf-8") == page(FOLDER)


def test_the_page_shows_each_picture_once() -> None:
    text = (DOCS / "screens.md").read_text(encoding="utf-8")
    linked = re.findall(rf"\]\({FOLDER}/([^)]+)\)", text)
    assert linked == picture_names()
    assert len(set(linked)) == len(SCREENS) * len(SIZES) * len(THEMES) == 45


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
