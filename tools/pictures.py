"""Draws the pictures of the browser in docs/images from the example workspace.

`python tools/pictures.py FOLDER`. Ids and times differ each time; all else is what the
program shows.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.cli.main import main as evalstore
from evalstore.operations.orders import Where
from evalstore.tui.app import Browser
from evalstore.tui.source import Workspace

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
    "stats": ("down", "s"),
    "status": ("w",),
    "help": ("down", "enter", "question_mark"),
}
"""By picture: the keys that lead to it."""
_FONTS = re.compile(r"\s*@font-face \{.*?\}\n", re.S)


def main(folder: str) -> None:
    """Draw all of them."""
    target = Path(folder).resolve()
    with tempfile.TemporaryDirectory() as place:
        for name, picture in draw(Path(place)):
            (target / f"{name}.svg").write_text(picture, encoding="utf-8")


def draw(place: Path) -> Iterator[tuple[str, str]]:
    """Names and pictures (SVG), made in an empty folder."""
    workspace = place / "bikes"
    shutil.copytree(_EXAMPLE, workspace, ignore=shutil.ignore_patterns(".evalstore"))
    late = workspace / "tests/late.md"
    text = late.read_text(encoding="utf-8")
    before = Path.cwd()
    os.chdir(workspace)
    try:
        evalstore(["run", "--quiet", "--message", "first"])
        wanted = text.replace('say "20 euros"', 'say "20 euros" and must give a reason')
        late.write_text(wanted, encoding="utf-8")
        evalstore(["run", "--quiet", "--message", "reasons are wanted"])
        greeting = workspace / "tests/greeting.md"
        edited = greeting.read_text(encoding="utf-8").replace("English", "Italian")
        greeting.write_text(edited, encoding="utf-8")
        for name, keys in SCENES.items():
            yield name, asyncio.run(_draw(keys))
    finally:
        os.chdir(before)


async def _draw(keys: tuple[str, ...]) -> str:
    app = Browser(Workspace(Where(Path.cwd())))
    async with app.run_test(size=_SIZE) as pilot:
        await _settle(pilot)
        for key in keys:
            await pilot.press(key)
            await _settle(pilot)
        # Fonts are the reader's own: nothing is fetched to look at a picture.
        return _FONTS.sub("", app.export_screenshot(title="evalstore view"))


async def _settle(pilot: Pilot[None]) -> None:
    while True:
        await pilot.pause()
        if not any(worker.is_running for worker in pilot.app.workers):
            await pilot.pause()
            return


if __name__ == "__main__":
    main(sys.argv[1])
