"""Keys that edit a line take effect in the order in which they were typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.interfaces.tui.driving import drive, press, settled

BURST = (
    *("s", "u", "n", "ctrl+u", "o", "x", "backspace", "s", "l", "o"),
    *("home", "a", "delete", "end", "y", "ctrl+w", "c", "o", "left", "left", "d"),
)


@pytest.mark.parametrize(
    "opened_by", [("slash",), ("F",), ("ctrl+p",), ("enter", "p")], ids=lambda keys: keys[-1]
)
def test_keys_that_come_at_once_keep_their_order(
    workspace: Path, opened_by: tuple[str, ...]
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *opened_by)
        assert isinstance(pilot.app.focused, Input)
        line = pilot.app.focused
        for key in BURST:
            pilot.app.simulate_key(key)
        await settled(pilot)
        assert (line.value, line.cursor_position) == ("dco", 1)

    drive(scenario, revision="@")


def test_the_key_that_ends_a_line_takes_what_was_typed_before_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"weather")
        for key in ("ctrl+u", *"greeting", "enter"):
            pilot.app.simulate_key(key)
        await settled(pilot)
        line = pilot.app.screen.query_one("#filter", Input)
        assert line.value == "greeting"
        assert not line.has_focus

    drive(scenario, revision="@")
