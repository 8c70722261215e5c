"""`python -m tools.screenshots FOLDER`: draws the screens in several sizes and themes.

With `--page FILE` it also writes a page that shows the pictures of FOLDER in tables. The workspace
is the example after two runs. Ids and durations differ each time, and ages are made up.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from unittest import mock

from evalstore.files.atomic_write import write_whole
from evalstore.providers.scripted import ScriptedProvider
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, until
from tests.interfaces.tui.themes import NO_COLOUR, set_theme
from tools.contents import with_contents
from tools.example_history import ages_are_made_up, build_history
from tools.small_svg import shrink

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from evalstore.core.values import Reply, Request
    from evalstore.interfaces.tui.app import Browser


class Shown(NamedTuple):
    """A screen that is drawn."""

    title: str
    keys: tuple[str, ...]
    about: str
    is_held: bool = False
    """Whether a run stands still half-way while it is drawn."""
    then: tuple[str, ...] = ()
    """Keys that are pressed when the run stands still."""


_TO_CASES = ("down", "enter")
_TO_ANSWER = (*_TO_CASES, "n", "n", "n", "n", "enter")
SCREENS = {
    "runs": Shown("Runs", ("down",), "All runs, and what the run under the cursor did."),
    "cases": Shown("Cases", _TO_ANSWER[:-1], "The cases of a run; the cursor is on a failure."),
    "answer": Shown("Answer", _TO_ANSWER, "An answer, and why it failed."),
    "versions": Shown(
        "Versions",
        (*_TO_CASES, "slash", *"late", "enter", "v"),
        "The versions of a test, with the edit between them and the newest verdicts on each.",
    ),
    "comparison": Shown("Comparison", ("down", "d"), "Two runs, between which a test was edited."),
    "statistics": Shown("Statistics", ("down", "S"), "The pass rates of a run by candidate."),
    "search": Shown(
        "Search", ("slash", *"helmet"), "Answers, feedback, tests and instructions with a word."
    ),
    "pending": Shown("Pending work", ("w",), "What a run would do, why, and at which price."),
    "plan": Shown("Plan of a run", ("R",), "The same, before the run is started."),
    "run": Shown(
        "Run in progress", ("R", "enter"), "A run that waits for a candidate.", is_held=True
    ),
    "quit": Shown(
        "Quit during a run",
        ("R", "enter"),
        "The question before it quits.",
        is_held=True,
        then=("q",),
    ),
    "help": Shown("Help", (*_TO_CASES, "question_mark"), "The keys of the screen behind it."),
}
HELD = "scripted/hasty"
"""The candidate that does not answer while a run stands still."""
SIZES = ((80, 24), (120, 36), (200, 60))
THEMES = {"dark": "textual-dark", "light": "textual-light", "no-colour": NO_COLOUR}
_TITLES = {"dark": "dark", "light": "light", "no-colour": "no colour"}
_HEAD = """\
# Screens of the browser

The screens of [the browser](browser.md) in three sizes of the terminal, in a dark theme, in a
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
    at_rest = [name for name in screens if not SCREENS[name].is_held]
    # A run changes the workspace, so each has its own.
    parts = [at_rest, *([name] for name in screens if SCREENS[name].is_held)]
    for part in filter(None, parts):
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(build_history(Path(place))):
            for name in part:
                yield from _draw(name, sizes)


def _draw(name: str, sizes: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    pictures = []
    shown = SCREENS[name]

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *shown.keys, awaits_runs=not shown.is_held)
        if shown.is_held:
            await until(pilot, lambda: _is_half_done(pilot))
            await press(pilot, *shown.then, awaits_runs=False)
        for size in sizes:
            await resized(pilot, *size, awaits_runs=not shown.is_held)
            for theme, value in THEMES.items():
                await set_theme(pilot, value, awaits_runs=not shown.is_held)
                svg = pilot.app.export_screenshot(title="evalstore view", simplify=True)
                pictures.append((picture_name(name, size, theme), shrink(svg)))
        released.set()
        await settled(pilot)

    released = threading.Event()
    with ages_are_made_up(), _held(released) if shown.is_held else contextlib.nullcontext():
        drive(scenario, size=sizes[0])
    return pictures


def _is_half_done(pilot: Pilot[None]) -> bool:
    """Return whether the page of a run of two candidates shows what one of them had to do."""
    runner = cast("Browser", pilot.app).runs.runner
    if runner is None:
        return False
    progress = runner.shown
    done, total = progress.counts
    if not progress.is_planned or 2 * done < total:
        return False
    shown = [f"{progress.done[kind]}/{total}" for kind, total in progress.totals.items()]
    text = screen(pilot)
    return all(text.count(count) >= shown.count(count) for count in shown)


@contextlib.contextmanager
def _held(released: threading.Event) -> Iterator[None]:
    """Let one candidate not answer before it is released, and no time pass."""
    answer = ScriptedProvider.ask

    async def ask(provider: ScriptedProvider, request: Request, *, timeout: float) -> Reply:
        while request.code == HELD and not released.is_set():
            await asyncio.sleep(0.01)
        return await answer(provider, request, timeout=timeout)

    with (
        mock.patch.object(ScriptedProvider, "ask", ask),
        mock.patch("evalstore.interfaces.tui.state.background_run.BackgroundRun.seconds", 4.0),
    ):
        yield


def page(folder: str) -> str:
    """A page with all pictures, which are in a folder beside it."""
    parts = [_HEAD]
    for name, shown in SCREENS.items():
        parts.append(f"\n## {shown.title}\n\n{shown.about}\n")
        for size in SIZES:
            width, height = size
            parts.append(f"\n{width} columns and {height} lines:\n\n")
            parts.append(f"| {' | '.join(_TITLES[theme] for theme in THEMES)} |\n")
            parts.append(f"|{'---|' * len(THEMES)}\n")
            images = (
                f"![{shown.title}, {_TITLES[theme]}]({folder}/{picture_name(name, size, theme)})"
                for theme in THEMES
            )
            parts.append(f"| {' | '.join(images)} |\n")
    return with_contents("".join(parts))


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
