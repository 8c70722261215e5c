"""Messages in passing: their texts may hold names of files, models and tags."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.screen import Screen

from evalstore.display import safe


class MessageApp(App[None]):
    """An application whose messages show control characters as escapes."""

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing; without colours, a warning begins with a word that says so."""
        severity = options.get("severity", "information")
        is_named = severity == "information" or message.startswith("error: ")
        if self.no_color and not is_named:
            message = f"{severity}: {message}"
        super().notify(safe(message, lines=True), **options)


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
