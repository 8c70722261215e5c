"""What each screen looks like: its text and its colours in three sizes and three themes.

`python -m tests.interfaces.tui.test_snapshots` writes the snapshots again; look at what it changed.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest import mock

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from evalstore.interfaces.tui.app import PAGES, Browser, Palette
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.page_lines import Appearance
from evalstore.interfaces.tui.screens.dialogs import PromptDialog
from evalstore.interfaces.tui.screens.run import RunPage
from evalstore.planning.options import Location
from tests.interfaces.tui.conftest import prepare
from tests.interfaces.tui.driving import (
    drive,
    painted_lines,
    press,
    resized,
    screen,
    screen_text,
    settled,
    until,
)
from tests.interfaces.tui.held_provider import HeldProvider
from tests.interfaces.tui.styles_text import describe_styles, style_differences, text_differences
from tests.interfaces.tui.themes import NO_COLOUR, set_theme

pytestmark = pytest.mark.extended

FOLDER = Path(__file__).parent / "snapshots"
FIRST_SIZE = (80, 24)
SIZES = (FIRST_SIZE, (200, 60), (40, 12))
"""The sizes in which the styles are kept, too."""
THEMES = ("textual-dark", "textual-light", NO_COLOUR)
CUT_ID = re.compile(r"\b[0-9a-f]{3,7}…")
MOST_LINES = 60
"""Lines of changes that a failure shows."""
DURATION = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s)\b( {2,})?")


class Scene(NamedTuple):
    """A state, the keys that lead to it from the one before, and what happens outside first."""

    name: str
    keys: tuple[str, ...]
    files: dict[str, str | None] = {}  # noqa: RUF012 - never changed
    """Files that are written; None: a folder that is removed."""
    awaits: str = ""
    """A pattern that comes to be on the screen by itself."""
    sizes: tuple[tuple[int, int], ...] = SIZES


HELD = ("running",)
"""Walks whose runs stand still half-way."""
NEW = "# 👤\n\nHow is Lima?\n\n---\n\nThe answer must be warm.\n"
RECORDED = """\
---
answer: |
  # Steps

  1. Ask for a **warm** coat, see [the shop](https://shop.example/coats).
  2. Run `coat()`:

     ```python
     def coat(size):  # any size
         return "warm" if size > 40 else None
     ```

  | size | *price* |
  |------|---------|
  | 38   | 90      |

  > Cold hands, warm heart.
tags: [written]
---

# 👤

What do I need in Lima?

---

~~~checks
- contains: coat
- {regex: "^cold", ignoreCase: true, name: is it cold}
~~~
"""
BROKEN = "---\ntags: [\n---\n"
PAGE_STOPS = r"\A[^\n]*▶ 2/4 stopping"
"""The title of the page below a dialog, which is painted after that of the dialog."""
HALF = r"\A[^\n]*▶ 2/4.*asking .* 1/2\s.*judging .* 1/2\s.*so far   1 ✓ pass\s.*\$0\.0110"
WALKS = {
    "browsing": (
        Scene("history", ("down",)),
        Scene("help", ("question_mark",)),
        Scene("commands", ("escape", "ctrl+p")),
        Scene("cases", ("escape", "enter")),
        Scene("cases filtered", ("slash", *"verdict:fail", "enter")),
        Scene("cases without a match", ("slash", *"x", "enter")),
        Scene("cases grouped", ("escape", "t")),
        Scene("cases marked", ("t", "t", "space", "space")),
        Scene("answer", ("g", "n", "n", "enter")),
        Scene("answer beside another", ("b",)),
        Scene("question about a label", ("b", "f")),
        Scene("question about a file", ("escape", "o")),
        Scene("versions", ("escape", "v")),
        Scene("comparison of candidates", ("escape", "escape", "x")),
        Scene("statistics", ("escape", "S")),
        Scene("statistics by file", ("4",)),
    ),
    "acting": (
        Scene(
            "history of a workspace with something to do",
            ("r",),
            {"tests/new.md": NEW, "tests/recorded.md": RECORDED},
        ),
        Scene("pending work", ("w",)),
        Scene("plan", ("R",)),
        Scene("end of a run", ("enter",)),
        Scene("cases of the workspace", ("escape", "escape", "up", "up", "enter")),
        Scene("cases with an answer in Markdown", ("slash", *"tag:written", "enter", "l", "l")),
        Scene("answer in Markdown", ("enter",)),
        Scene("answer as it is written", ("m",)),
        Scene("comparison of runs", ("escape", "escape", "escape", "down", "d")),
        Scene("nothing to do", ("escape", "R")),
        Scene(
            "error in a file", ("escape", "up", "enter"), {"tests/new.md": "---\ntags: [\n---\n"}
        ),
    ),
    "beginning": (
        Scene("no run", ()),
        Scene("no case", ("enter",)),
    ),
    "finding": (
        Scene("search in all texts", ("slash", *"warm", "enter")),
        Scene("commands for what was typed", ("escape", "ctrl+p", *"weath"), awaits="show cases"),
        Scene("commands without a match", ("escape", "ctrl+p", *"zzz"), awaits="No matches"),
        Scene("themes", ("escape", "ctrl+p", *"theme"), awaits="Theme nord"),
        Scene("terminal that is too small", ("escape",), sizes=((19, 12), (40, 5))),
    ),
    "running": (
        Scene("run in progress", ("R", "enter"), {"tests/new.md": NEW}, HALF),
        Scene("runs during a run", ("escape",), awaits="▶ 2/4"),
        Scene("quit during a run", ("q",)),
        Scene("quit while a run is being stopped", ("q",), awaits=PAGE_STOPS),
        Scene("run that is being stopped", ("escape", "R"), awaits="stopping …"),
        Scene("end of a run that was stopped", (), {HeldProvider.RELEASE: ""}, "interrupted"),
    ),
    "losing": (
        Scene("cases of a store that has gone", ("down", "enter"), {".evalstore": None}, "is gone"),
    ),
}


@contextlib.contextmanager
def standing_still(walk: str) -> Iterator[None]:
    """Let no time pass, and hold a run half-way where the walk is about that."""
    with contextlib.ExitStack() as stack:
        for target in ("interfaces.tui.render.verdicts", "results.answer.answer_text"):
            ago = mock.patch(f"evalstore.{target}.ago", return_value="2 minutes ago")
            stack.enter_context(ago)
        for target, value in (
            (
                "evalstore.interfaces.tui.screens.actions.time.strftime",
                mock.Mock(return_value="120000"),
            ),
            ("evalstore.interfaces.tui.data_source.BackgroundRun.seconds", 0.0),
        ):
            stack.enter_context(mock.patch(target, value))
        blinks = mock.patch.object(Input, "_toggle_cursor")
        stack.enter_context(blinks)
        if walk in HELD:
            opens = mock.patch(
                "evalstore.runs.execution.key_access.open_provider", return_value=HeldProvider()
            )
            stack.enter_context(opens)
            stack.enter_context(mock.patch("evalstore.runs.run_control._GRACE_SECONDS", 99.0))
        yield


async def scenes(pilot: Pilot[None], walk: str) -> AsyncIterator[Scene]:
    """Go from scene to scene, each in the first size."""
    awaits_runs = walk not in HELD
    for scene in WALKS[walk]:
        for path, text in scene.files.items():
            if text is not None:
                Path(path).write_text(text, encoding="utf-8")
        await press(pilot, *scene.keys, awaits_runs=awaits_runs)
        for path, text in scene.files.items():
            if text is None:
                shutil.rmtree(path)
                cast("Browser", pilot.app).check_store()
        if scene.awaits:
            pattern = re.compile(scene.awaits, re.DOTALL)
            await until(pilot, partial(_matches, pilot, pattern))
            await settled(pilot, awaits_runs=awaits_runs)
        yield scene


def _matches(pilot: Pilot[None], pattern: re.Pattern[str]) -> bool:
    return bool(pattern.search(screen(pilot)))


def take(walk: str) -> dict[str, str]:
    """The snapshots of a walk through the workspace in the current folder, by their paths."""
    taken: dict[str, str] = {}

    async def scenario(pilot: Pilot[None]) -> None:
        awaits_runs = walk not in HELD
        async for scene in scenes(pilot, walk):
            for size in scene.sizes:
                await resized(pilot, *size, awaits_runs=awaits_runs)
                if isinstance(pilot.app.screen, RunPage):
                    pilot.app.screen.show_progress()  # it is drawn again after a moment
                    await settled(pilot, awaits_runs=awaits_runs)
                name = file_name(scene, size)
                texts: dict[str, str] = {}
                for theme in themes_of(size):
                    await set_theme(pilot, theme, awaits_runs=awaits_runs)
                    lines = painted_lines(pilot.app)
                    texts[theme] = text_of(lines)
                    if size in SIZES:
                        taken[f"{theme}/{name}"] = styles_of(pilot, lines)
                taken[name] = text = texts[THEMES[0]]
                assert text.count("\n") <= size[1]
                for theme, other in texts.items():
                    assert other == text, f"{name}: {theme}\n{text_differences(text, other)}"
            await set_theme(pilot, THEMES[0], awaits_runs=awaits_runs)
            await resized(pilot, *FIRST_SIZE, awaits_runs=awaits_runs)

    with standing_still(walk):
        # The path of a store that has gone is shown: it is not that of a temporary folder.
        store = ".evalstore/store.db" if walk == "losing" else None
        source = WorkspaceSource(Location(Path.cwd() if store is None else Path(), store=store))
        drive(scenario, size=FIRST_SIZE, source=source)
    return taken


def themes_of(size: tuple[int, int]) -> Sequence[str]:
    """The themes in the order in which they are drawn; the last of a size is the next's first."""
    if size not in SIZES:
        return THEMES[:1]
    return THEMES[::-1] if SIZES.index(size) % 2 else THEMES


def text_of(lines: Sequence[Strip]) -> str:
    """What can be read on the screen."""
    return CUT_ID.sub("#…", DURATION.sub(_any_duration, screen_text(lines).rstrip())) + "\n"


def _any_duration(match: re.Match[str]) -> str:
    """The same for all durations; what stands behind it keeps its column."""
    return "# s".ljust(len(match[0])) if match[1] else "# s"


def styles_of(pilot: Pilot[None], lines: Sequence[Strip]) -> str:
    """The name of the screen, and how each of its cells is painted."""
    return describe_styles(type(pilot.app.screen).__name__, lines)


def file_name(scene: Scene, size: tuple[int, int]) -> str:
    """The file of a snapshot."""
    width, height = size
    return f"{scene.name} {width}x{height}.txt"


def paths() -> Iterator[str]:
    """The path of each snapshot below the folder."""
    for scene in (scene for walk in WALKS.values() for scene in walk):
        for size in scene.sizes:
            name = file_name(scene, size)
            yield name
            yield from (f"{theme}/{name}" for theme in THEMES if size in SIZES)


def workspace_of(walk: str, prepared: Path, folder: Path) -> Path:
    """A folder with what the walk goes through."""
    shutil.copytree(prepared, folder)
    if walk == "beginning":
        shutil.rmtree(folder / ".evalstore")
        shutil.rmtree(folder / "tests")
    return folder


def changes(taken: Mapping[str, str]) -> Iterator[str]:
    """What differs from the snapshots that were kept, screen by screen."""
    for path, shown in taken.items():
        file = FOLDER / path
        kept = file.read_text(encoding="utf-8") if file.exists() else ""
        if shown != kept:
            text = taken[Path(path).name]
            is_text = path == Path(path).name
            yield f"--- {path}"
            yield text_differences(kept, shown) if is_text else style_differences(kept, shown, text)


@pytest.mark.parametrize("walk", WALKS)
def test_screens_look_as_they_did(
    walk: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace_of(walk, prepared, tmp_path / "w"))
    lines = "\n".join(changes(take(walk))).split("\n")
    if lines != [""]:
        more = [f"and {len(lines) - MOST_LINES} more lines"] * (len(lines) > MOST_LINES)
        told = "\n".join([*lines[:MOST_LINES], *more])
        pytest.fail(
            f"{told}\nlook at it, then 'python -m tests.interfaces.tui.test_snapshots'", False
        )


def test_no_snapshot_is_left_over() -> None:
    kept = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.txt")}
    assert kept == set(paths())


def test_every_screen_has_a_snapshot() -> None:
    kept = (FOLDER / THEMES[0]).iterdir()
    names = {path.read_text(encoding="utf-8").partition("\n")[0] for path in kept}
    screens: tuple[type[Screen[Any]], ...] = (*PAGES, PromptDialog, Palette)
    assert {screen.__name__ for screen in screens} <= names


def test_a_theme_that_is_changed_looks_like_one_from_the_start(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walks change the theme of a browser that is open: nothing of another one stays."""
    keys = ("down", "enter", "f")
    changed: dict[str, str] = {}
    fresh: dict[str, str] = {}

    async def change(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        for theme in (*THEMES, *THEMES[::-1]):
            await set_theme(pilot, theme)
            changed[theme] = styles_of(pilot, painted_lines(pilot.app))

    def begin(theme: str) -> None:
        async def look(pilot: Pilot[None]) -> None:
            await press(pilot, *keys)
            fresh[theme] = styles_of(pilot, painted_lines(pilot.app))

        appearance = Appearance(None if theme == NO_COLOUR else theme)
        drive(look, size=FIRST_SIZE, appearance=appearance)

    with standing_still("browsing"):
        drive(change, size=FIRST_SIZE)
        for theme in THEMES:
            with monkeypatch.context() as patch:
                if theme == NO_COLOUR:
                    patch.setenv("NO_COLOR", "1")
                begin(theme)
    for theme in THEMES:
        differences = style_differences(fresh[theme], changed[theme], "")
        assert changed[theme] == fresh[theme], differences


def write_again() -> None:
    """Write all snapshots as they are now."""
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "prepared").mkdir()
        prepared = prepare(root / "prepared")
        for walk in WALKS:
            with contextlib.chdir(workspace_of(walk, prepared, root / walk)):
                for path, shown in take(walk).items():
                    (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
                    (FOLDER / path).write_text(shown, encoding="utf-8")


if __name__ == "__main__":
    write_again()
