"""Messages in passing: their texts may hold names of files, models and tags."""

from __future__ import annotations

from typing import Any

from textual.app import App

from evalstore.display import safe


class MessageApp(App[None]):
    """An application whose messages show control characters as escapes."""

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing; without colours, a warning begins with that word."""
        severity = options.get("severity", "information")
        if self.no_color and severity != "information":
            message = f"{severity}: {message}"
        super().notify(safe(message, lines=True), **options)
