"""Names of keys for people."""

from __future__ import annotations

from textual.keys import format_key


def key_name(key: str) -> str:
    """Name a key as people read it: `ctrl+d`, `?`, `enter`, `↑`."""
    *modifiers, last = key.split("+")
    return "+".join((*modifiers, last if last == "enter" else format_key(last)))
