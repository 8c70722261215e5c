"""Help on the screen below: its contents, its keys, and the way to the other screens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from evalstore.core.display import BLANK, StyledLine, StyledSpan, heading, pad, text_lines
from evalstore.interfaces.tui.render.plot import beside
from evalstore.interfaces.tui.render.verdicts import verdict_cell
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.widgets.footer import FooterHint, KeyFooter, TitleLine, key_name
from evalstore.interfaces.tui.widgets.text_view import FittedView
from evalstore.results.verdict_order import LABEL_SIGNS, MEANINGS

_EXAMPLE = re.compile(r"( {4})(\S+(?: \S+)* {2,})\S")
"""An example, and behind at least two blanks what it means."""
_SENTENCE_END = re.compile(r"(?<=[.])\s")
_KEYS = 18
"""Columns for words, and for the names of screens."""
_KEY = 14
"""Columns for keys; as many of an action are named as fit."""
_TWO_COLUMNS = 76
"""The width from which on the keys are in two columns."""
_TASKS = {
    "Read": ("list.open", "cases.", "session.", "history.search", "search.", "stats."),
    "Judge and label": ("list.mark", "case.pass", "case.fail", "case.unlabel", "case.judge"),
    "Compare": (
        *("history.compare", "cases.compare", "run.compare", "compare.", "session.beside"),
        *("cases.versions", "session.versions", "versions."),
    ),
    "Go": (
        *("page.", "panel.", "help", "quit", "commands", "case.newest", "history.stats"),
        *("cases.stats", "history.broken", "run.cases", "run.hide", "prompt.", "choice."),
    ),
    "Run": ("page.run", "plan.", "run.stop", "case.edit", "history.status"),
    "Move": ("list.", "text."),
}
"""What keys are for: the ids of actions, or their beginnings; the longest that fits counts."""
_TYPED = "In the line"

_WORDS = {
    "workspace": "the folder with the tests, as it is now",
    "run": "what was asked and judged at one time; it never changes",
    "test file": "one Markdown file; its cases differ in what is filled in",
    "row": "one way to fill in a test file",
    "case": "one test file filled in with one row",
    "candidate": "a model that is asked",
    "answer": "what a candidate said at the end of one conversation",
    "verdict": "pass, fail or undecided, by a check, a judge or a person",
    "judge": "a model that gives a verdict on an answer",
    "label": "a verdict that a person gives; it overrides all others",
    "choice": "what a judge has chosen from a list that it was given",
}
"""Those that a newcomer cannot guess."""


class HelpPage(Page):
    """Help on another screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "back", "Close", show=False, id="help.close")
    ]
    FOOTER: ClassVar[Sequence[FooterHint | str]] = (
        FooterHint("Scroll", ("text.page_down", "text.page_up")),
    )
    TITLE = "Help"
    WAY = "{help} on any screen"
    HELP = "The keys of the screen you came from, and the way to all others."

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below = below
        self._active = below.active_bindings

    def compose(self) -> ComposeResult:
        """Lay out one long text."""
        yield TitleLine()
        yield self.problem_line()
        yield FittedView(id="help")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show it."""
        self.set_title("help", self._below.TITLE or "")
        reader = self.query_one("#help", FittedView)
        reader.fit(lambda width, _height: self._lines(width))
        reader.focus()

    def _lines(self, width: int) -> Iterator[StyledLine]:
        first, *rest = _SENTENCE_END.split(self.with_keys(self._below.HELP or ""), maxsplit=1)
        yield StyledLine((StyledSpan(" ".join(first.split())),))
        yield BLANK
        yield from _in_columns(list(self._key_blocks()), width)
        if rest:
            yield heading(f"More about {self._below.TITLE}")
            for paragraph in paragraphs(rest[0]):
                yield from map(_hang, text_lines(paragraph))
            yield BLANK
        yield heading("The screens, and the way to each")
        for page in self.browser.pages:
            way = self.with_keys(page.WAY) or "what 'evalstore view' begins with"
            yield _entry(page.TITLE or "", way)
        yield BLANK
        yield heading("Words")
        for word, meaning in _WORDS.items():
            yield _entry(word, meaning)
        yield BLANK
        yield heading("The signs of verdicts")
        for word, meaning in MEANINGS.items():
            cell = verdict_cell(word)
            yield _entry(cell.text, meaning, cell.colour)
        for signs, meaning in LABEL_SIGNS.items():
            yield _entry(signs, meaning)

    def _key_blocks(self) -> Iterator[list[StyledLine]]:
        """Yield the keys of each task."""
        groups: dict[str, dict[str, list[str]]] = {task: {} for task in _TASKS}
        if isinstance(self._below.focused, Input):
            groups = {_TYPED: {"Take what is typed": [key_name("enter")]}, **groups}
        for key, active in self._active.items():
            binding = active.binding
            if binding.description and binding.id:  # else it is Textual's own
                starts = ((start, task) for task, each in _TASKS.items() for start in each)
                fitting = ((len(it), task) for it, task in starts if binding.id.startswith(it))
                group = groups[max(fitting, default=(0, "Go"))[1]]
                group.setdefault(binding.description, []).append(key_name(key))
        for task, keys in groups.items():
            entries: list[StyledLine] = []
            for text, names in keys.items():
                lists = (", ".join(names[:count]) for count in range(len(names), 1, -1))
                fits = next((listed for listed in lists if len(listed) <= _KEY), names[0])
                entries.append(_entry(fits, text, least=_KEY))
            if entries:
                yield [heading(task), *entries, BLANK]


def _entry(name: str, text: str, colour: str = "heading", least: int = _KEYS) -> StyledLine:
    spans = StyledSpan(f"{pad(name, least)} ", colour), StyledSpan(text)
    return StyledLine(spans, indent=2, hang=max(least, len(name)) + 1)


def _in_columns(blocks: Sequence[list[StyledLine]], width: int) -> Iterator[StyledLine]:
    """Yield blocks of lines in two columns of about the same height, if there is room."""
    if width < _TWO_COLUMNS:
        yield from chain(*blocks)
        return

    def height(count: int) -> int:
        return max(sum(map(len, blocks[:count])), sum(map(len, blocks[count:])))

    count = min(range(len(blocks) + 1), key=height)
    left, right = (
        [StyledLine((StyledSpan(" " * line.indent), *line.spans)) for line in chain(*column)]
        for column in (blocks[:count], blocks[count:])
    )
    yield from beside(left, right, width // 2)


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
