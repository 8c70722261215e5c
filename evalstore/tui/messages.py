"""Messages in passing: their texts may hold names of files, models and tags."""

from __future__ import annotations

from typing import Any

from textual.app import App

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
