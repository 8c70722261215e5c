"""Names and texts that hold anything, and terminals of any size: nothing hurts."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from evalstore.core.display import StyledLine, StyledSpan
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Palette
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.text_view import _printable
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, until

pytestmark = pytest.mark.extended

NAME = "a\x1b[31m\u202eשלום\u200b漢字"
TEST = """\
---
tags: ["t\\u202e[bold]"]
replacements:
  - {city: "Os\\nlo \\e[31m\\u202eשלום"}
  - {city: "Ro\\tme\\u200b[/]"}
---

# 👤

How is {{city}}?

---

~~~checks
- contains: warm
~~~
"""
MODEL = 'id: "scripted/\\u202eשלום"\nprovider: scripted\nresponses: [{answer: "\\e[31mwa\\nrm"}]\n'


@pytest.fixture
def hostile(workspace: Path) -> Path:
    (workspace / f"tests/{NAME}.md").write_text(TEST)
    (workspace / "models/hostile.yaml").write_text(MODEL)
    main(["run", "--quiet", "-m", "scripted/\u202eשלום"])
    return workspace


def require_text(pilot: Pilot[None]) -> None:
    """Everything on the screen is text of the width of the screen."""
    for line in screen(pilot).splitlines():
        assert line.isprintable(), repr(line)
        assert cell_len(line) <= pilot.app.size.width


def test_no_screen_draws_emoji_of_which_terminals_disagree_how_wide_they_are(
    workspace: Path,
) -> None:
    answer = "Set \u2699\ufe0f, \u26a0\ufe0f and \U0001f44d\U0001f3fd."
    (workspace / "models/one.yaml").write_text(
        f"id: scripted/one\nprovider: scripted\nresponses: [{{answer: {answer!r}}}]\n",
        encoding="utf-8",
    )
    edit(workspace / "tests/weather.md", "Oslo", "'\u2699\ufe0f Oslo'")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        for keys in (("enter",), ("slash", *"oslo", "enter"), ("enter",), ("F", *"set")):
            await press(pilot, *keys)
            text = screen(pilot)
            assert not set(text) & set("\ufe0f\U0001f3fd"), keys
        assert "Set \u2699, \u26a0 and \U0001f44d." in text
        await press(pilot, "enter", "enter")
        await press(pilot, "Y")
        assert pilot.app.clipboard.strip() == answer, "what is copied is the whole of it"

    drive(scenario)


def test_no_screen_shows_control_characters_of_names(hostile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for keys in (
            *(("down",), ("d",), ("escape", "S"), ("4",), ("escape", "w"), ("escape", "enter")),
            *(("G",), ("t",), ("enter",), ("escape", "G", "v"), ("escape", "p"), ("escape",)),
            *(
                ("y",),
                ("enter",),
                ("escape", "escape", "slash", *"rm"),
            ),
        ):
            await press(pilot, *keys)
            require_text(pilot)
            await resized(pilot, 40, 12)
            require_text(pilot)
            await resized(pilot, 120, 36)

    drive(scenario, size=(120, 36), messages=True)


@pytest.mark.parametrize("typed", ["file שלום", "model שלום", "tag bold"])
def test_the_palette_filters_by_such_names_as_they_are_shown(hostile: Path, typed: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "ctrl+p", *typed)
        await until(pilot, lambda: "show cases" in screen(pilot))
        await press(pilot, "enter")
        if isinstance(pilot.app.screen, Palette):
            await press(pilot, "enter")
        assert {row.file for row in page.listing.rows} >= {f"tests/{NAME}.md"}
        assert page.filter_query.conditions
        require_text(pilot)

    drive(scenario, revision="@")


@pytest.mark.parametrize("width", [1, 3, 5, 12, 19])
def test_the_palette_opens_in_a_terminal_of_any_width(workspace: Path, width: int) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "ctrl+p", "s")
        await until(pilot, lambda: "Search all texts" in screen(pilot))
        await resized(pilot, width, 5)
        await press(pilot, "escape", "ctrl+p", "t")
        await settled(pilot)
        await resized(pilot, 80, 24)

    drive(scenario)


def test_a_text_has_no_control_characters_wherever_it_comes_from() -> None:
    line = _printable(StyledLine((StyledSpan("a\x1b[0m"), StyledSpan("\u202eb", "faint"))))
    assert [span.text for span in line.spans] == ["a\\x1b[0m", "\\u202eb"]
