"""Collects the texts of a part of the report, each once."""

from __future__ import annotations

from evalstore.display import safe
from evalstore.html_report.markdown import markdown_tree
from evalstore.values import Json

LONGEST = 100_000
"""The most characters of a text; the rest is left out, which the report says."""


class TextTable:
    """Texts by number: a text, or a list of a text and its tree if it has Markdown."""

    def __init__(self) -> None:
        self.entries: list[Json] = []
        self._numbers: dict[tuple[str, bool], int] = {}

    def add(self, text: str, *, markdown: bool = True) -> int:
        """Return the number of a text; without `markdown` it is only shown as it is."""
        key = text, markdown
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            shown = shown_text(text)
            tree = markdown_tree(text) if markdown else None
            self.entries.append([shown, tree] if tree is not None else shown)
        return self._numbers[key]


def shown_text(text: str) -> str:
    """Return a text with control characters as escapes; a very long one is cut, with a note."""
    rest = len(text) - LONGEST
    if rest <= 0:
        return safe(text, lines=True)
    cut = safe(text[:LONGEST], lines=True)
    return f"{cut}\n\n[{rest:,} more characters are left out of this report]"
