"""A line of text that takes keys in the order in which they were typed, however quickly."""

from __future__ import annotations

from textual import events
from textual.widgets import Input


class TypedLine(Input):
    """A line in which a key that edits takes effect before the letters that were typed after it.

    An `Input` inserts letters at once, while a key such as Ctrl-U takes effect only after it was
    passed on to the program: it would delete letters that were typed after it.
    """

    async def _on_key(self, event: events.Key) -> None:
        """Do what the key does here."""
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
