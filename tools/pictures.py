"""`python -m tools.pictures FOLDER`: draws the pictures of docs/images from the example workspace.

Ids and durations differ each time, and ages are made up; the rest is what the program shows.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from evalstore.cli.main import main as evalstore
from evalstore.files.atomic_write import write_whole
from tests.tui.driving import drive, press

if TYPE_CHECKING:
    from textual.pilot import Pilot

_EXAMPLE = Path(__file__).parent.parent / "example"
_SIZE = (104, 32)
SCENES = {
    "history": ("down",),
    "cases": ("down", "enter", "n", "n", "n"),
    "session": ("down", "enter", "n", "n", "n", "enter"),
    "beside": ("down", "enter", "n", "n", "n", "enter", "b"),
    "versions": ("enter", *("n",) * 8, "v"),
    "compare": ("down", "d"),
    "stats": ("down", "S"),
    "status": ("w",),
    "help": ("down", "enter", "question_mark"),
}
"""By picture: the keys that lead to it."""
_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.S)


def main(folder: str) -> None:
    """Draw all pictures."""
    target = Path(folder).resolve()
    with tempfile.TemporaryDirectory() as place:
        for name, picture in draw(Path(place)):
            write_whole(target / f"{name}.svg", picture.encode())


def draw(place: Path) -> Iterator[tuple[str, str]]:
    """Yield names and pictures (SVG); the workspace is created in an empty folder."""
    workspace = place / "bikes"
    shutil.copytree(_EXAMPLE, workspace, ignore=shutil.ignore_patterns(".evalstore"))
    late = workspace / "tests/late.md"
    text = late.read_text(encoding="utf-8")
    before = Path.cwd()
    os.chdir(workspace)
    try:
        write_whole(late, text.replace('say "20 euros"', 'say "25 euros"').encode())
        evalstore(["run", "--quiet", "--message", "first"])
        write_whole(late, text.encode())
        evalstore(["run", "--quiet", "--message", "the right fee"])
        stricter = text.replace('say "20 euros"', 'say "20 euros" and must give a reason')
        write_whole(late, stricter.encode())
        evalstore(["run", "--quiet", "--message", "reasons are wanted"])
        greeting = workspace / "tests/greeting.md"
        edited = greeting.read_text(encoding="utf-8").replace("English", "Italian")
        write_whole(greeting, edited.encode())
        for name, keys in SCENES.items():
            yield name, _draw(keys)
    finally:
        os.chdir(before)


def _draw(keys: tuple[str, ...]) -> str:
    pictures: list[str] = []

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        pictures.append(pilot.app.export_screenshot(title="evalstore view"))

    with (
        mock.patch("evalstore.tui.render.verdicts.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.operations.views.answer_text.ago", return_value="2 minutes ago"),
    ):
        drive(scenario, size=_SIZE)
    # Without these rules no fonts are fetched to show a picture.
    return _FONTS.sub("", pictures[0])


if __name__ == "__main__":
    main(sys.argv[1])
