"""Pages with panels: each has a title, and a frame where there is room; the focus has a sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import events, on
from textual.content import Content

from evalstore.interfaces.tui.screens.base import Page

_FRAMED = 110
"""The width from which on panels have frames, with an empty column on both sides of a text."""
_BROAD = 150
"""The width from which on panels stand side by side."""


class PanelPage(Page):
    """A page that may have panels; in a terminal of few lines they have no titles.

    Those in a container `panels` stand side by side where the page is `-broad`, else below each
    other.
    """

    PANELS: ClassVar[Mapping[str, str]] = {}
    """The titles of the panels by the ids of their widgets."""
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        *Page.HORIZONTAL_BREAKPOINTS,
        (_FRAMED, "-framed"),
        (_BROAD, "-broad"),
    ]
    DEFAULT_CSS = """
    PanelPage {
        & > #panels { height: 1fr; layout: vertical; }
        & > #panels > Grid { height: 1fr; }
        & > #panels > .detail { height: 1fr; }
        &.-broad > #panels { layout: horizontal; }
        &.-broad > #panels > * { width: 1fr; height: 1fr; }
        &.-broad > #panels > Grid { width: auto; min-width: 50%; max-width: 60%; }
        &.-broad > #panels > .detail { margin-left: 1; }
        & .panel {
            border-top: solid $faint;
            border-title-color: $foreground;
            border-title-background: $surface;
            border-title-style: none;
        }
        & .panel:focus {
            border-top: heavy $text-primary;
            border-title-color: $text-primary;
            border-title-style: bold;
        }
        &.-short .panel, &.-tiny .panel { border-top: none; }
        &.-framed.-tall .panel, &.-broad.-tall .panel { border: round $faint; }
        &.-framed.-tall .panel:focus, &.-broad.-tall .panel:focus { border: round $text-primary; }
        &.-framed.-tall TextView.panel, &.-broad.-tall TextView.panel { padding: 0 1; }
    }
    """

    @property
    def panel_titles(self) -> Mapping[str, str]:
        """Return the titles of the panels by the ids of widgets; `PANELS` unless they change."""
        return self.PANELS

    def on_mount(self) -> None:
        """Show the titles; Textual calls this and the methods of that name of other classes."""
        self.show_panels()

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def show_panels(self) -> None:
        """Show the title of each panel, with a sign before that of the one with the focus."""
        for id, title in self.panel_titles.items():
            panel = self.query_one(f"#{id}")
            panel.add_class("panel")
            panel.border_title = Content(f" ▸ {title} " if panel.has_focus else f" {title} ")
