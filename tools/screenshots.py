"""`python -m tools.screenshots`: draws the screens of the browser, and writes docs/screens.md.

The workspace is the example after some runs. Ids and durations differ each time, and ages are made
up; the rest is what the program shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from unittest import mock

from evalstore.files.atomic_write import write_whole
from evalstore.providers.script import ScriptedProvider
from tests.interfaces.tui.driving import drive, press, screen, settled, until
from tools.example_history import ages_are_made_up, build_history
from tools.headings import DOCS
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
    "cases": Shown("Cases", _TO_ANSWER[:-1], "The cases of a run. The cursor is on a failure."),
    "answer": Shown("Answer", _TO_ANSWER, "An answer, and why it failed."),
    "versions": Shown(
        "Versions",
        (*_TO_CASES, "slash", *"late", "enter", "v"),
        "The versions of a test, with the edit between them and the newest verdicts on each.",
    ),
    "comparison": Shown(
        "Comparison", ("down", "d"), "Two runs. A test was edited between the two."
    ),
    "statistics": Shown("Statistics", ("down", "S"), "The pass rates of a run by candidate."),
    "search": Shown(
        "Search", ("slash", *"helmet"), "Answers, feedback, tests and instructions with a word."
    ),
    "pending": Shown("Pending work", ("w",), "What a run would do, why, and at which price."),
    "plan": Shown("Plan of a run", ("R",), "The same, before you start the run."),
    "run": Shown("Run in progress", ("R", "enter"), "A run in progress.", is_held=True),
    "quit": Shown(
        "Quit during a run",
        ("R", "enter"),
        "The question before the browser quits.",
        is_held=True,
        then=("q",),
    ),
    "help": Shown("Help", (*_TO_CASES, "question_mark"), "The keys of the screen behind it."),
}
HELD = "scripted/hasty"
"""The candidate that does not answer while a run stands still."""
FOLDER = "images/screens"
"""The pictures, in the folder of the docs."""
PAGE = DOCS / "screens.md"
_SIZE = (120, 36)
_ID = re.compile(r"\b[0-9a-f]{8}\b")
_DURATION = re.compile(r"\b[0-9]+(\.[0-9]+)? ?(ms|s)\b")
_TIME = re.compile(r"\b[0-2][0-9]:[0-5][0-9]\b(?: +[0-2][0-9]:[0-5][0-9]\b)*")
"""The axis of a trend has the times of the runs: two if a minute began between them."""
_HEAD = """\
# Screens of the browser

Each screen of [the browser](browser.md) in a terminal of 120 columns and 36 lines.
"""


def draw(screens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield these screens and their pictures (SVG)."""
    at_rest = [name for name in screens if not SCREENS[name].is_held]
    # A run changes the workspace, so each has its own.
    parts = [at_rest, *([name] for name in screens if SCREENS[name].is_held)]
    for part in filter(None, parts):
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(build_history(Path(place))):
            for name in part:
                yield name, _draw(SCREENS[name])


def _draw(shown: Shown) -> str:
    pictures = []

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *shown.keys, awaits_runs=not shown.is_held)
        if shown.is_held:
            await until(pilot, lambda: _is_half_done(pilot))
            await press(pilot, *shown.then, awaits_runs=False)
        pictures.append(pilot.app.export_screenshot(title="evalstore view", simplify=True))
        released.set()
        await settled(pilot)

    released = threading.Event()
    with ages_are_made_up(), _held(released) if shown.is_held else contextlib.nullcontext():
        drive(scenario, size=_SIZE)
    return shrink(pictures[0])


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
        mock.patch("evalstore.interfaces.tui.data_source.BackgroundRun.seconds", 4.0),
    ):
        yield


def lines_of(picture: str) -> list[str]:
    """The text of each line with its colours, without ids and durations."""
    colours = dict(re.findall(r"\.(r[0-9]+) \{ fill: (#[0-9a-f]+)", picture))

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
    patterns = ((_ID, "########"), (_DURATION, "# s"), (_TIME, "##:##"), (re.compile(" +"), " "))
    texts = list(lines)
    for pattern, sign in patterns:
        texts = [pattern.sub(sign, text) for text in texts]
    return texts


def page() -> str:
    """The page with all pictures."""
    return _HEAD + "".join(
        f"\n## {shown.title}\n\n{shown.about}\n\n![{shown.title}]({FOLDER}/{name}.svg)\n"
        for name, shown in SCREENS.items()
    )


def main() -> None:
    """Draw the pictures that differ in more than ids and durations, and write the page."""
    (DOCS / FOLDER).mkdir(exist_ok=True)
    for name, picture in draw(tuple(SCREENS)):
        path = DOCS / FOLDER / f"{name}.svg"
        if not path.exists() or lines_of(path.read_text(encoding="utf-8")) != lines_of(picture):
            write_whole(path, picture.encode())
    write_whole(PAGE, page().encode())


if __name__ == "__main__":
    main()
