"""Messages in passing: their texts may hold names of files, models and tags."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.screen import Screen
from textual.widgets._toast import ToastRack

from evalstore.core.display import safe


class MessageApp(App[None]):
    """An application whose messages show control characters as escapes."""

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing; without colours, a warning begins with a word that says so."""
        severity = options.get("severity", "information")
        is_named = severity == "information" or message.startswith("error: ")
        if self.no_color and not is_named:
            message = f"{severity}: {message}"
        super().notify(safe(message, lines=True), **options)

    def _refresh_notifications(self) -> None:
        """Show the messages, and no gaps in place of those that have gone."""
        super()._refresh_notifications()
        self.call_later(self._remove_frames)

    def _remove_frames(self) -> None:
        """Remove the frames of messages that have gone: each takes lines from the page."""
        shown = {ToastRack._toast_id(message) for message in self._notifications}
        for rack in (it for screen in self.screen_stack for it in screen.query_children(ToastRack)):
            if gone := [frame for frame in rack.children if frame.id not in shown]:
                rack.remove_children(gone)


class MessageScreen(Screen[None]):
    """A screen whose messages go when another one covers it: they say nothing about that one."""

    has_told = False
    """Whether the screen has shown a message since it was covered last."""

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing."""
        self.has_told = True
        super().notify(message, **options)

    def on_screen_suspend(self) -> None:
        """Remove the messages of the screen, unless it is left: then they are about the next."""
        if self.has_told and self in self.app.screen_stack:
            self.has_told = False
            self.app.clear_notifications()
