"""`python -m tools.screenshots FOLDER`: draws the main screens in several sizes and themes.

With `--page FILE` it also writes a page that shows the pictures of FOLDER in tables. The workspace
is the example after two runs. Ids and durations differ each time, and ages are made up.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalstore.files.atomic_write import write_whole
from tests.tui.driving import drive, press, resized
from tests.tui.themes import NO_COLOUR, set_theme
from tools.example_history import ages_are_made_up, build_history
from tools.small_svg import shrink

if TYPE_CHECKING:
    from textual.pilot import Pilot


class Shown(NamedTuple):
    """A screen that is drawn."""

    title: str
    keys: tuple[str, ...]
    about: str


_TO_ANSWER = ("down", "enter", "n", "n", "n", "n", "enter")
SCREENS = {
    "runs": Shown("Runs", ("down",), "All runs, and what the run under the cursor did."),
    "cases": Shown("Cases", _TO_ANSWER[:-1], "The cases of a run; the cursor is on a failure."),
    "answer": Shown("Answer", _TO_ANSWER, "An answer, and why it failed."),
    "comparison": Shown("Comparison", ("down", "d"), "Two runs, between which a test was edited."),
    "statistics": Shown("Statistics", ("down", "S"), "The pass rates of a run by candidate."),
}
SIZES = ((80, 24), (120, 36), (200, 60))
THEMES = {"dark": "textual-dark", "light": "textual-light", "no-colour": NO_COLOUR}
_TITLES = {"dark": "dark", "light": "light", "no-colour": "no colour"}
_HEAD = """\
# Screens of the browser

The main screens of [the browser](browser.md) in three sizes of the terminal, in a dark theme, in a
light one, and without colours (`NO_COLOR`). `make docs` draws them from the example workspace.
"""


def picture_name(screen: str, size: tuple[int, int], theme: str) -> str:
    """The name of a picture's file."""
    width, height = size
    return f"{screen}-{width}x{height}-{theme}.svg"


def picture_names() -> list[str]:
    """The names of all pictures."""
    return [
        picture_name(screen, size, theme)
        for screen in SCREENS
        for size in SIZES
        for theme in THEMES
    ]


def draw(
    screens: Sequence[str], sizes: Sequence[tuple[int, int]] = SIZES
) -> Iterator[tuple[str, str]]:
    """Yield the names and the pictures (SVG) of these screens."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(build_history(Path(place))):
        for screen in screens:
            yield from _draw(screen, sizes)


def _draw(screen: str, sizes: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    pictures = []

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *SCREENS[screen].keys)
        for size in sizes:
            await resized(pilot, *size)
            for theme, name in THEMES.items():
                await set_theme(pilot, name)
                svg = pilot.app.export_screenshot(title="evalstore view", simplify=True)
                pictures.append((picture_name(screen, size, theme), shrink(svg)))

    with ages_are_made_up():
        drive(scenario, size=sizes[0])
    return pictures


def page(folder: str) -> str:
    """A page with all pictures, which are in a folder beside it."""
    parts = [_HEAD]
    for screen, shown in SCREENS.items():
        parts.append(f"\n## {shown.title}\n\n{shown.about}\n")
        for size in SIZES:
            width, height = size
            parts.append(f"\n### {shown.title}, {width} columns and {height} lines\n\n")
            parts.append(f"| {' | '.join(_TITLES[theme] for theme in THEMES)} |\n")
            parts.append(f"|{'---|' * len(THEMES)}\n")
            images = (
                f"![{shown.title}, {_TITLES[theme]}]({folder}/{picture_name(screen, size, theme)})"
                for theme in THEMES
            )
            parts.append(f"| {' | '.join(images)} |\n")
    return "".join(parts)


def main() -> None:
    """Draw all pictures, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots")
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    parser.add_argument("--page", type=Path, help="a page (Markdown) that shows them")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in draw(tuple(SCREENS)):
        write_whole(folder / name, picture.encode())
    if arguments.page:
        target = arguments.page.resolve()
        write_whole(target, page(Path(os.path.relpath(folder, target.parent)).as_posix()).encode())


if __name__ == "__main__":
    main()
