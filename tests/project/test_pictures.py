"""The pictures of the browser in the docs are those that it draws today."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tools.pictures import SCENES, draw

pytestmark = [pytest.mark.extended, pytest.mark.xdist_group("pictures")]  # they are drawn once
IMAGES = Path(__file__).parent.parent.parent / "docs/images"
ID = re.compile(r"\b[0-9a-f]{8}\b")
DURATION = re.compile(r"\b[0-9]+(\.[0-9]+)? ?(ms|s)\b")


def lines_of(picture: str) -> list[str]:
    """What stands on each line and in which colours, without ids and durations."""
    colours = dict(re.findall(r"\.([\w-]+-r[0-9]+) \{ fill: (#[0-9a-f]+)", picture))

    def parts() -> Iterator[tuple[str, str]]:
        for look, place, text in re.findall(
            r'<text class="([\w-]+)"[^>]* y="([0-9.]+)"[^>]*>([^<]*)</text>', picture
        ):
            said = html.unescape(text).replace("\xa0", " ").strip()
            if said:
                yield place, f"{said} {colours.get(look, '')}"

    lines = (
        "  ".join(part for _, part in line) for _, line in groupby(parts(), lambda one: one[0])
    )
    return [re.sub(" +", " ", DURATION.sub("# s", ID.sub("########", line))) for line in lines]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The lines of the pictures as the browser draws them now."""
    return {name: lines_of(picture) for name, picture in draw(tmp_path_factory.mktemp("drawn"))}


def test_the_pictures_show_what_the_browser_shows(drawn: dict[str, list[str]]) -> None:
    kept = {path.stem: lines_of(path.read_text(encoding="utf-8")) for path in IMAGES.glob("*.svg")}
    assert drawn.keys() == kept.keys() == SCENES.keys()
    for name, lines in drawn.items():
        assert len(lines) > 8
        assert lines == kept[name], f"{name}: draw it again with 'make docs'"


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        pytest.param("history", "(deposits|reasons|shorter|longer|helmets).*\n.*" * 5, id="runs"),
        pytest.param("cases", "verdict:fail euro", id="a filter"),
        pytest.param("session", "(?s)fail .*the judge chose 'cold'", id="a judge's verdict"),
        pytest.param("versions", "(?s)20 euros.*and must give a reason", id="an edit"),
        pytest.param("compare", r"(?s)bikes back\?.*and do you rent helmets", id="a difference"),
    ],
)
def test_the_pictures_show_a_workspace_in_use(
    drawn: dict[str, list[str]], name: str, pattern: str
) -> None:
    assert re.search(pattern, "\n".join(drawn[name]))


def test_a_picture_fetches_nothing() -> None:
    pictures = list(IMAGES.glob("*.svg"))
    assert pictures
    for path in pictures:
        assert not re.search(r"@font-face|url\(\s*[\"']?https?:", path.read_text(encoding="utf-8"))
