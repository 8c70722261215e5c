"""`python -m tools.pictures FOLDER`: draws the pictures of docs/images from the example workspace.

Ids and durations differ each time, and ages are made up; the rest is what the program shows.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.files.atomic_write import write_whole
from tests.interfaces.tui.driving import drive, press
from tools.example_history import ages_are_made_up, build_history
from tools.small_svg import without_fonts

if TYPE_CHECKING:
    from textual.pilot import Pilot

_SIZE = (104, 32)
_CASES = ("down", "enter")


def _filtered(text: str) -> tuple[str, ...]:
    """The keys that list the cases of the newest run that match a filter, while it is typed."""
    keys = {" ": "space", ":": "colon"}
    return (*_CASES, "slash", *(keys.get(letter, letter) for letter in text))


SCENES = {
    "history": ("down",),
    "cases": _filtered("verdict:fail euro"),
    "session": (*_filtered("complaint"), "enter", "down", "right", "enter"),
    "beside": (*_filtered("booking"), "enter", "enter", "b"),
    "versions": (*_filtered("late"), "enter", "v"),
    "compare": ("down", "d"),
    "stats": ("down", "S"),
    "status": ("w",),
    "help": (*_CASES, "question_mark"),
}
"""By picture: the keys that lead to it."""


def main(folder: str) -> None:
    """Draw all pictures."""
    target = Path(folder).resolve()
    with tempfile.TemporaryDirectory() as place:
        for name, picture in draw(Path(place)):
            write_whole(target / f"{name}.svg", picture.encode())


def draw(place: Path) -> Iterator[tuple[str, str]]:
    """Yield names and pictures (SVG); the workspace is created in an empty folder."""
    with contextlib.chdir(build_history(place)):
        for name, keys in SCENES.items():
            yield name, _draw(keys)


def _draw(keys: tuple[str, ...]) -> str:
    pictures: list[str] = []

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        pictures.append(pilot.app.export_screenshot(title="evalstore view"))

    with ages_are_made_up():
        drive(scenario, size=_SIZE)
    return without_fonts(pictures[0])


if __name__ == "__main__":
    main(sys.argv[1])
