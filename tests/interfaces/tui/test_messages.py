"""Messages in passing where there is little room for them."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from tests.interfaces.tui.driving import drive, press, screen, settled


def test_the_newest_of_many_messages_is_seen_to_its_end(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down")
        for number in range(3):
            pilot.app.notify(f"message {number}\n" + "end of it")
            await settled(pilot)
        lines = screen(pilot).splitlines()
        last = next(n for n, line in enumerate(lines) if "message 2" in line)
        assert "end of it" in lines[last + 1]

    drive(scenario, size=(40, 12), messages=True)


def test_messages_that_have_gone_leave_no_gap(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        heights = set()
        for _ in range(3):
            for number in range(3):
                pilot.app.notify(f"message {number}\nwith two lines")
            await settled(pilot)
            assert "message 2" in screen(pilot)
            heights.add(page.query_one("ToastRack").size.height)
            pilot.app.clear_notifications()
            await settled(pilot)
            assert not [*page.query_one("ToastRack").query(Static)]
            assert not page.query_one("ToastRack").children
        assert heights == {6}

    drive(scenario, size=(80, 24), messages=True)
