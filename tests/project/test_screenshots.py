"""The pictures of the browser in the docs are those that it draws today."""

from __future__ import annotations

import re

import pytest

from tools.browser_docs import IN_ORDER_OF_USE
from tools.headings import DOCS
from tools.screenshots import FOLDER, HELD, PAGE, SCREENS, draw, lines_of, page

IMAGES = DOCS / FOLDER


def test_the_page_is_the_one_that_the_tool_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run 'make docs'"


def test_every_screen_of_the_browser_is_drawn() -> None:
    assert [shown.title for shown in SCREENS.values()] == list(IN_ORDER_OF_USE)


def test_every_picture_is_shown_on_a_page() -> None:
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    pictures = [path.relative_to(DOCS) for path in (DOCS / "images").rglob("*.*")]
    assert [path for path in pictures if f"{path.as_posix()})" not in text] == []


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """The pictures as the browser draws them now."""
    return dict(draw(tuple(SCREENS)))


@pytest.mark.extended
@pytest.mark.xdist_group("pictures")  # they are drawn once
def test_the_pictures_show_what_the_browser_shows(drawn: dict[str, str]) -> None:
    assert {path.stem for path in IMAGES.iterdir()} == SCREENS.keys()
    at_rest = [name for name, shown in SCREENS.items() if not shown.is_held]
    for name in at_rest:
        kept = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        lines = lines_of(drawn[name])
        assert len(lines) > 8
        assert lines == lines_of(kept), f"{name}: draw it again with 'make docs'"


@pytest.mark.extended
@pytest.mark.xdist_group("pictures")
@pytest.mark.parametrize("name", ["run", "quit"])
def test_a_run_stands_still_in_its_pictures(drawn: dict[str, str], name: str) -> None:
    assert HELD == "scripted/hasty"
    text = re.sub(r"\s+", "", "".join(re.findall(r">([^<>]*)</text>", drawn[name])))
    assert "asking" in text
    assert "2/4" in text
    assert ("4of8aredone" in text) == (name == "quit")


def test_pictures_are_small_and_fetch_nothing() -> None:
    pictures = list(IMAGES.iterdir())
    assert pictures
    for path in pictures:
        text = path.read_text(encoding="utf-8")
        assert len(text.encode()) < 80_000
        assert not re.search(r"@font-face|url\(\s*[\"']?https?:", text)
