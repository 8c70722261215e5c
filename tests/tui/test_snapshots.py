"""What each screen looks like, in an ordinary terminal and in a tiny one.

`python -m tests.tui.test_snapshots` writes the snapshots again; look at what it changed.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from textual.pilot import Pilot

from tests.tui.conftest import prepare
from tests.tui.driving import drive, press, resized, screen

FOLDER = Path(__file__).parent / "snapshots"
SIZES = ((80, 24), (40, 12))
CUT_ID = re.compile(r"\b[0-9a-f]{3,7}…")
DURATION = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s)\b")


class Scene(NamedTuple):
    """A state, the keys that lead to it from the one before, and what happens outside first."""

    name: str
    keys: tuple[str, ...]
    files: dict[str, str] = {}  # noqa: RUF012 - never changed


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
        Scene("answer", ("g", "n", "enter")),
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
}


@contextlib.contextmanager
def standing_still() -> Iterator[None]:
    with (
        mock.patch("evalstore.tui.render.verdicts.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.operations.views.answer_text.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.operations.views.explanation_text.ago", return_value="2 minutes ago"),
        mock.patch("evalstore.tui.render.export.time.strftime", return_value="120000"),
    ):
        yield


def take(walk: str) -> dict[str, str]:
    """The snapshots of a walk through the workspace in the current folder, by name."""
    found: dict[str, str] = {}

    async def scenario(pilot: Pilot[None]) -> None:
        for scene in WALKS[walk]:
            for path, text in scene.files.items():
                Path(path).write_text(text, encoding="utf-8")
            await press(pilot, *scene.keys)
            for width, height in SIZES:
                await resized(pilot, width, height)
                lines = screen(pilot).split("\n")
                assert len(lines) == height
                shown = CUT_ID.sub("#…", DURATION.sub("# s", "\n".join(lines).rstrip()))
                found[f"{scene.name} {width}x{height}"] = f"{shown}\n"
            await resized(pilot, *SIZES[0])

    with standing_still():
        drive(scenario, size=SIZES[0])
    return found


def workspace_of(walk: str, prepared: Path, folder: Path) -> Path:
    """A folder with what the walk goes through."""
    shutil.copytree(prepared, folder)
    if walk == "beginning":
        shutil.rmtree(folder / ".evalstore")
        shutil.rmtree(folder / "tests")
    return folder


@pytest.mark.parametrize("walk", WALKS)
def test_screens_look_as_they_did(
    walk: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace_of(walk, prepared, tmp_path / "w"))
    for name, shown in take(walk).items():
        kept = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        assert shown == kept, f"{name}: look at it, then 'python -m tests.tui.test_snapshots'"


def test_no_snapshot_is_left_over() -> None:
    names = {
        f"{scene.name} {width}x{height}.txt"
        for scenes in WALKS.values()
        for scene in scenes
        for width, height in SIZES
    }
    assert {path.name for path in FOLDER.iterdir()} == names


def write_again() -> None:
    """Write all snapshots as they are now."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "prepared").mkdir()
        prepared = prepare(root / "prepared")
        for walk in WALKS:
            with contextlib.chdir(workspace_of(walk, prepared, root / walk)):
                for name, shown in take(walk).items():
                    (FOLDER / f"{name}.txt").write_text(shown, encoding="utf-8")


if __name__ == "__main__":
    write_again()
