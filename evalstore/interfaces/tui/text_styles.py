"""Named styles of parts of a text, with the colours of the theme.

Component classes can do the same, but each is matched against all rules whenever a widget that
has it is mounted or focused: that took a third of the time in which a screen opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rich.style import Style
from textual.app import App

from evalstore.interfaces.tui.contrast import parse_colour


class TextStyles:
    """Styles by name."""

    def __init__(self, rules: Mapping[str, tuple[str, str]]) -> None:
        """`rules` are names with a variable of the theme, or nothing, and a text style."""
        self._rules = rules
        self.names = frozenset(rules)

    def find(self, app: App[Any], name: str) -> Style:
        """Return a style in the theme of the browser; raises `KeyError` for an unknown name."""
        variable, text_style = self._rules[name]
        return _make_style(app.theme_variables[variable] if variable else "", text_style)


@cache
def _make_style(colour: str, text_style: str) -> Style:
    style = Style.parse(text_style)
    if not colour:
        return style
    parsed = parse_colour(colour)
    return Style(color=parsed.rich_color if parsed.a else None) + style
