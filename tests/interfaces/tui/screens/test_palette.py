"""The commands of the browser, which are read while their palette opens and closes."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import OptionList

from evalstore.interfaces.tui.app import Palette
from tests.interfaces.tui.driving import drive, press, settled, until


class Early(Palette):
    """A palette for which commands are read before it is laid out."""

    def compose(self) -> ComposeResult:
        """Search when there is no field to type in yet."""
        self.search_again()
        yield from super().compose()


def test_commands_that_are_read_before_the_palette_is_laid_out_are_found(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.push_screen(Early())
        await settled(pilot)
        await press(pilot, *"reload")
        shown = pilot.app.screen.query_one(OptionList)
        await until(pilot, lambda: "Reload" in str([option.prompt for option in shown.options[:1]]))

    drive(scenario)
