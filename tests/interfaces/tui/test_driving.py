"""What the tests of the browser look at is what is there when all has been done."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.planning.options import Location
from tests.interfaces.tui.driving import drive, painted_lines, press, resized, screen, settled

pytestmark = pytest.mark.extended
_LATE = 20
"""Turns of the timer in which a page below a dialog is not laid out."""


def test_the_page_below_a_dialog_is_waited_for_however_late_it_is_laid_out(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out = Screen._on_timer_update
    turns = _LATE

    def lay_out_late(page: Screen[Any]) -> None:
        nonlocal turns
        if isinstance(page, RunsPage) and page.app.screen is not page and turns:
            turns -= 1
        else:
            lay_out(page)

    monkeypatch.setattr(Screen, "_on_timer_update", lay_out_late)

    async def scenario(pilot: Pilot[None]) -> None:
        nonlocal turns
        await press(pilot, "ctrl+p")
        await resized(pilot, 100, 30)
        turns = _LATE
        await resized(pilot, 40, 12)
        assert turns == 0
        dashboard = pilot.app.screen_stack[-2].query_one("#dashboard")
        assert dashboard.size == (39, 1)
        assert dashboard.vertical_scrollbar not in dashboard.screen._compositor.full_map
        assert painted_lines(pilot.app)[1].text.rstrip() == " pending     nothing to do"

    drive(scenario, size=(100, 30))


def test_what_is_read_for_the_commands_is_waited_for(workspace: Path) -> None:
    class Files(WorkspaceSource):
        begins, may_end = threading.Event(), threading.Event()

        def files(self) -> list[str]:
            self.begins.set()
            self.may_end.wait()
            return super().files()

    source = Files(Location(Path.cwd()))

    async def scenario(pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+p", *"file we")
        assert source.begins.wait(60)
        pilot.app.set_timer(0.05, source.may_end.set)
        await settled(pilot)
        assert "File tests/weather.md" in screen(pilot)

    drive(scenario, source=source)
