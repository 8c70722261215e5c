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
EDITS = (
    ("deposits may differ more", "deposit.md", "max: 20,", "max: 60,"),
    ("reasons required", "late.md", 'say "20 euros"', 'say "20 euros" and must give a reason'),
    ("shorter greetings", "greeting.md", "at most ten words", "at most five words"),
    ("greetings may be longer", "greeting.md", "at most five words", "at most twenty words"),
    (
        "helmets on Saturday",
        "saturday.md",
        "must we bring the bikes back",
        "must we bring the bikes back and do you rent helmets",
    ),
)
"""The runs after the first: the message, and the edit before it of a file in `tests/`."""
PENDING = ("greeting.md", "English", "Italian")
"""The edit after the last run."""
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
    before = Path.cwd()
    os.chdir(workspace)
    try:
        evalstore(["run", "--quiet", "--message", "first"])
        for message, *edit in EDITS:
            _edit(workspace, *edit)
            evalstore(["run", "--quiet", "--message", message])
        _edit(workspace, *PENDING)
        for name, keys in SCENES.items():
            yield name, _draw(keys)
    finally:
        os.chdir(before)


def _edit(workspace: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a test file; it must be there."""
    path = workspace / "tests" / name
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"'{old}' is not in {name}")
    write_whole(path, text.replace(old, new).encode())


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
