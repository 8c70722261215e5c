"""Texts can be read in every theme: the contrast of what is painted, on every screen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from rich.style import Style
from textual.color import Color
from textual.command import CommandPalette
from textual.notifications import SeverityLevel
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES
from textual.widgets import OptionList

from evalstore.interfaces.tui.text_view import BAR_CONTRAST, TEXT_CONTRAST, contrast, readable
from tests.interfaces.tui.driving import drive, painted_lines, press, resized, settled, until
from tests.interfaces.tui.test_snapshots import (
    HELD,
    SIZES,
    WALKS,
    scenes,
    standing_still,
    workspace_of,
)

pytestmark = pytest.mark.extended

THEMES = sorted(name for name, theme in BUILTIN_THEMES.items() if not theme.ansi)
"""The others have the colours of the terminal, which nobody here knows."""
SEVERITIES: tuple[SeverityLevel, ...] = get_args(SeverityLevel)
_SIZES = ((120, 36), (200, 60), (80, 24))
_DIM = 0.5
"""How much of the colour of a dim text a terminal keeps; the rest is that of the ground."""
_LINES = range(0x2500, 0x2580)
"""Characters of borders, which say nothing."""
_BLOCKS = range(0x2580, 0x25A0)
"""Characters of bars."""


def painted(pilot: Pilot[None]) -> Iterator[tuple[str, Style]]:
    """Each piece of text on the screen with its style."""
    shown = pilot.app.screen
    for y, strip in enumerate(painted_lines(pilot.app)):
        x = 0
        for segment in strip:
            first = x + len(segment.text) - len(segment.text.lstrip())
            x += segment.cell_length
            if not segment.text.strip() or segment.style is None:
                continue
            if shown.is_modal and shown.get_widget_at(first, y)[0] is shown:
                continue  # it is the page below
            yield segment.text.strip(), segment.style


def is_faint(text: str, style: Style) -> bool:
    if not (style.color and style.bgcolor):
        return False
    kinds = {ord(char) for char in text if not unicodedata.category(char).startswith("Z")}
    if all(kind in _LINES for kind in kinds):
        return False
    least = BAR_CONTRAST if all(kind in _BLOCKS for kind in kinds) else TEXT_CONTRAST
    text_colour, ground = map(Color.from_rich_color, (style.color, style.bgcolor))
    if style.dim:
        text_colour = ground.blend(text_colour, _DIM)
    return contrast(text_colour, ground) < least - 0.05


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(
    "parts", [8, pytest.param(1, marks=pytest.mark.slow)], ids=["themes in turn", "all themes"]
)
def test_every_text_of_every_screen_can_be_read(
    walk: str, parts: int, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each screen has one of so many parts of the themes and one size, the next the next ones."""
    monkeypatch.chdir(workspace_of(walk, prepared, tmp_path / "w"))
    hard: dict[str, str] = {}

    async def scenario(pilot: Pilot[None]) -> None:
        number = 0
        async for scene in scenes(pilot, walk):
            number += 1
            size = _SIZES[number // parts % len(_SIZES)]
            if scene.sizes == SIZES:
                await resized(pilot, *size, awaits_runs=walk not in HELD)
            for theme in THEMES[number % parts :: parts]:
                if is_palette := isinstance(pilot.app.screen, CommandPalette):
                    await press(pilot, "escape")
                pilot.app.theme = theme
                await pilot.pause()
                if is_palette:  # choosing a theme closes it
                    await press(pilot, "ctrl+p")
                    await until(
                        pilot, lambda: pilot.app.screen.query_one(OptionList).option_count > 0
                    )
                for text, style in painted(pilot):
                    if is_faint(text, style):
                        hard.setdefault(f"{scene.name}, {theme}, {size}: {style}", text)

    with standing_still(walk):
        drive(scenario, size=(120, 36))
    assert not hard, "\n".join(f"{place} {text!r}" for place, text in hard.items())


def test_every_message_can_be_read_in_every_theme_also_over_a_dialog(
    workspace: Path,
) -> None:
    hard: dict[str, str] = {}
    seen: set[str] = set()

    async def scenario(pilot: Pilot[None]) -> None:
        for keys in ((), ("down", "enter", "f")):
            await press(pilot, *keys)
            for number, theme in enumerate(THEMES):
                await resized(pilot, *_SIZES[number % len(_SIZES)])
                pilot.app.theme = theme
                for severity in SEVERITIES:
                    pilot.app.notify(
                        f"{theme} {severity}",
                        title=f"Title {severity}",
                        severity=severity,
                        markup=False,
                    )
                await settled(pilot)
                for text, style in painted(pilot):
                    seen.add(text)
                    if is_faint(text, style):
                        hard.setdefault(f"{keys}, {theme}: {style}", text)
                pilot.app.clear_notifications()

    drive(scenario, size=_SIZES[0], messages=True)
    assert {f"{theme} {severity}" for theme in THEMES for severity in SEVERITIES} <= seen
    assert not hard, "\n".join(f"{place} {text!r}" for place, text in hard.items())


def test_verdicts_are_strongly_coloured_in_every_theme_also_in_the_line_of_the_cursor(
    workspace: Path,
) -> None:
    weak: list[str] = []

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n")
        for theme in THEMES:
            pilot.app.theme = theme
            await settled(pilot)
            verdicts = [(text, style) for text, style in painted(pilot) if text in SIGNED]
            seen = {(text, Color.from_rich_color(style.color)) for text, style in verdicts}
            if len(seen) != len(SIGNED) or len({style.bgcolor for _, style in verdicts}) < 2:
                weak.append(f"{theme}: {seen}")
            weak.extend(f"{theme}: {text} {colour}" for text, colour in seen if colour.hsl.s < 0.55)

    drive(scenario, revision="@", size=(120, 36))
    assert not weak


SIGNED = ("✓ pass", "✗ fail")


def test_a_dim_text_is_seen_as_it_is_blended() -> None:
    style = Style.parse("#808080 on #000000")
    assert not is_faint("text", style)
    assert is_faint("text", style + Style(dim=True))


def test_a_readable_colour_stays_and_another_is_moved_until_it_is() -> None:
    black, white = Color.parse("#000000"), Color.parse("#ffffff")
    assert contrast(white, black) == pytest.approx(21)
    assert readable(white, [black]) == white
    grey = Color.parse("#777777")
    assert contrast(grey, white) < TEXT_CONTRAST
    moved = readable(grey, [white])
    assert TEXT_CONTRAST <= contrast(moved, white) < TEXT_CONTRAST + 1
    assert contrast(readable(Color.automatic(60), [black]), black) >= TEXT_CONTRAST
