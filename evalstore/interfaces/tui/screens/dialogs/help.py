"""Help on the screen below: its contents, its keys, and the way to the other screens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from evalstore.core.display import pad, widest
from evalstore.core.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    text_lines,
)
from evalstore.interfaces.tui.keys.registry import own_actions
from evalstore.interfaces.tui.render.verdicts import verdict_cell
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.widgets.footer import KeyFooter, key_name
from evalstore.interfaces.tui.widgets.text_view import TextView
from evalstore.results.verdict_order import LABEL_SIGNS, MEANINGS

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import ActiveBinding

_EXAMPLE = re.compile(r"( {4})(\S+(?: \S+)* {2,})\S")
"""An example, and behind at least two blanks what it means."""
_KEYS, _MOST_KEYS = 18, 26
"""Columns for the keys, and for the names of screens: at least, and at most."""
_WIDGET_GROUPS = {"list": "In the list", "text": "In the text"}

_WORDS = {
    "workspace": "the folder with the tests, as it is now",
    "run": "what was asked and judged at one time; it stays as it was",
    "test file": "one Markdown file; its cases differ in what is filled in",
    "row": "one way to fill in a test file",
    "case": "one test file filled in with one row",
    "candidate": "a model that is asked",
    "session": "one conversation with a candidate; its end is the answer",
    "judge": "a model that gives a verdict on an answer",
    "label": "a verdict that a person gives; it overrides all others",
    "choice": "what a judge has chosen from a list that it was given",
}
"""Those that a newcomer cannot guess."""


class HelpPage(Page):
    """Help on another screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "back", "Close", show=False, id="help.close"),
    ]
    TITLE = "Help"
    WAY = "{help} on any screen"
    HELP = "The keys of the screen you came from, and the way to all others."

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below = below
        self._active = below.active_bindings
        self._width = _KEYS
        """Columns of keys, words and signs."""

    def compose(self) -> ComposeResult:
        """Lay out one long text."""
        yield self.title_line()
        yield self.problem_line()
        yield TextView(id="help")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show it."""
        self.set_title("help", self._below.TITLE or "")
        reader = self.query_one("#help", TextView)
        reader.show(self._lines())
        reader.focus()

    def _lines(self) -> Iterator[StyledLine]:
        groups = self._groups()
        names = [", ".join(names) for keys in groups.values() for names in keys.values()]
        self._width = min(_MOST_KEYS, max(_KEYS, widest(names)))
        for title, keys in groups.items():
            yield heading(title)
            for description, names in keys.items():
                yield self._entry(", ".join(names), description)
            yield BLANK
        if self._below.TITLE:
            yield heading(self._below.TITLE)
            for paragraph in paragraphs(self.with_keys(self._below.HELP or "")):
                yield from map(_hang, text_lines(paragraph))
            yield BLANK
        yield heading("The screens, and the way to each")
        yield from self._page_lines()
        yield BLANK
        yield heading("Words")
        for word, meaning in _WORDS.items():
            yield self._entry(word, meaning)
        yield BLANK
        yield heading("The signs of verdicts")
        for word, meaning in MEANINGS.items():
            cell = verdict_cell(word)
            yield self._entry(cell.text, meaning, cell.colour)
        for signs, meaning in LABEL_SIGNS.items():
            yield self._entry(signs, meaning)

    def _entry(self, name: str, text: str, colour: str = "heading") -> StyledLine:
        spans = StyledSpan(f"{pad(name, self._width)} ", colour), StyledSpan(text)
        return StyledLine(spans, indent=2, hang=self._width + 1)

    def _groups(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Map each place where keys work to the descriptions of its actions, and their keys."""
        groups: dict[str, dict[str, list[str]]] = {}
        if isinstance(self._below.focused, Input):
            groups["In the line"] = {"Take what is typed": [key_name("enter")]}
        for key, active in self._active.items():
            if not active.binding.description or not active.binding.id:  # Textual's own
                continue
            group = groups.setdefault(self._group_of(active), {})
            group.setdefault(active.binding.description, []).append(key_name(key))
        order = ["On this screen", *_WIDGET_GROUPS.values(), "In the line", "Everywhere"]
        return {name: groups[name] for name in order if name in groups}

    def _group_of(self, binding: ActiveBinding) -> str:
        if binding.node is self.app:
            return "Everywhere"
        if isinstance(binding.node, Screen):
            shared = {action.id for action in own_actions(Page)}
            is_own = binding.binding.id and binding.binding.id not in shared
            return "On this screen" if is_own else "Everywhere"
        return _WIDGET_GROUPS["text" if (binding.binding.id or "").startswith("text.") else "list"]

    def _page_lines(self) -> Iterator[StyledLine]:
        for page in self.browser.pages:
            way = self.with_keys(page.WAY) or "what 'evalstore view' begins with"
            yield self._entry(page.TITLE or "", way)


def _hang(line: StyledLine) -> StyledLine:
    """Return a line whose further rows begin below its second column, if it has one."""
    columns = _EXAMPLE.match(line.text)
    if columns is None:
        return line
    spans = (StyledSpan(line.text[len(columns[1]) :]),)
    return StyledLine(spans, indent=len(columns[1]), hang=len(columns[2]))


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a text, those that belong together as one; indented ones stay."""
    waiting: list[str] = []
    for line in (*text.split("\n"), ""):
        if line and not line.startswith(" "):
            waiting.append(line)
            continue
        if waiting:
            yield " ".join(waiting)
            waiting = []
        yield line
