"""The pictures of the browser in the docs are those that it draws today."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tools.pictures import SCENES, draw

IMAGES = Path(__file__).parent.parent.parent / "docs/images"


def words_of(picture: str) -> list[str]:
    """The words of a picture, without ids, numbers and times, which also move others."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    said = html.unescape(" ".join(texts)).replace("\xa0", " ")
    times = {"just", "second", "seconds", "minute", "minutes"}
    return sorted(set(re.findall(r"\b[A-Za-z]{4,}\b", said)) - times)


def test_the_pictures_show_what_the_browser_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = {name: words_of(picture) for name, picture in draw(tmp_path)}
    kept = {path.stem: words_of(path.read_text(encoding="utf-8")) for path in IMAGES.glob("*.svg")}
    assert drawn.keys() == kept.keys() == SCENES.keys()
    for name, words in drawn.items():
        assert words == kept[name], f"{name}: draw it again with 'python tools/pictures.py'"


def test_a_picture_fetches_nothing() -> None:
    for path in IMAGES.glob("*.svg"):
        assert not re.search(r"@font-face|url\(\s*[\"']?https?:", path.read_text(encoding="utf-8"))
