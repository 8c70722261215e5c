"""Changes the theme of a browser that is open, also to no colour, as `NO_COLOR` does at its start.

Each screen is reached once and is then drawn in all themes, which is cheaper than to begin again.
"""

from __future__ import annotations

from textual.filter import NoColor
from textual.pilot import Pilot

from tests.interfaces.tui.driving import settled

NO_COLOUR = "no-colour"


async def set_theme(pilot: Pilot[None], theme: str, *, awaits_runs: bool = True) -> None:
    """Draw the screen in a theme, or without colours."""
    app = pilot.app
    is_plain = theme == NO_COLOUR
    if app.no_color != is_plain:
        app.no_color = is_plain
        app._filters = [kept for kept in app._filters if not isinstance(kept, NoColor)]
        if is_plain:
            app._filters.append(NoColor())
        app.ansi_color = True if is_plain else None
        app.refresh_css(animate=False)
        app.stylesheet.update(app.screen)  # lists keep styles that are made before this
    if not is_plain:
        app.theme = theme
    await settled(pilot, awaits_runs=awaits_runs)
