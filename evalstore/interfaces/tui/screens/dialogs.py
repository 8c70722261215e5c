"""What is shown above a page: a text with keys, a prompt, a choice of names, and the help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from evalstore.core.display import (
    BLANK,
    LABEL_SIGNS,
    MEANINGS,
    StyledLine,
    StyledSpan,
    heading,
    pad,
    safe,
    text_lines,
)
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.data_source import BackgroundRun
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell
from evalstore.interfaces.tui.page_lines import (
    FooterHint,
    KeyFooter,
    TitleLine,
    key_name,
)
from evalstore.interfaces.tui.render.charts import beside
from evalstore.interfaces.tui.render.verdicts import problem_text, verdict_cell
from evalstore.interfaces.tui.screens.base import HELP_KEYS, Page
from evalstore.interfaces.tui.text_view import FittedView, TextView

_FRAME_LINES = 5
"""Lines of a window that are not its text: the border, the title, a blank one, the keys."""


class Dialog(Page, ModalScreen[None]):
    """A text above the page below, with keys to answer it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Quit", show=False, id="quit")
    ]
    DEFAULT_CSS = """
    Dialog {
        align: center bottom;
        & > #box { height: auto; }
        & > #box { border: round $primary; background: $surface; }
        & TextView { height: auto; margin-bottom: 1; }
        &.-short > #box { height: 100%; border: none; }
        &.-short TextView { height: 1fr; margin-bottom: 0; }
    }
    """

    is_planning = False
    """Whether it reads the whole workspace: pages below it wait for that."""

    def compose(self) -> ComposeResult:
        """Lay out a title, a line for problems, and the text."""
        with Vertical(id="box"):
            yield TitleLine()
            yield Static(classes="problem", markup=False)
            yield TextView(id="body")
            yield KeyFooter()

    def on_resize(self) -> None:
        """Make the window as high as its text, but leave some of the page below it."""
        height = self.size.height
        is_short = height < self.VERTICAL_BREAKPOINTS[-1][0]
        self.body.styles.max_height = None if is_short else height * 6 // 10 - _FRAME_LINES

    @property
    def body(self) -> TextView:
        """Return the text of the window."""
        return self.query_one("#body", TextView)


class PromptDialog(ModalScreen[str | None]):
    """Asks for a line of text; Escape is not an answer, an empty one is.

    With `do` the text is tried on Enter; a problem with it is shown in the prompt.
    """

    TITLE = "A question"
    HELP = "What you type is used as it is."
    awaits_list = False
    """Whether the text that is in the line first is still being read: keys wait for it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="prompt.leave"),
        HELP_KEYS,
    ]
    VERTICAL_BREAKPOINTS = Page.VERTICAL_BREAKPOINTS
    DEFAULT_CSS = """
    PromptDialog {
        align: center bottom;
        &.-above { align: center top; }
        & > Vertical { height: auto; border: round $primary; background: $surface; }
        & Static { height: auto; padding: 0 1; }
        & Input.-textual-compact { padding: 0 1; }
        & .title { text-style: bold; }
        & .hint { color: $faint; }
        &.-tall .hint { margin-top: 1; }
        & .problem { color: $text-error; display: none; }
        & > ToastRack { dock: top; }
    }
    """

    def __init__(
        self,
        title: str,
        hint: str,
        *,
        text: str = "",
        placeholder: str = "",
        do: Callable[[str], object] | None = None,
    ) -> None:
        """`do` may raise `EvalstoreError`, and the prompt stays open."""
        super().__init__()
        self._do = do
        self._title, self._hint = title, hint
        self._text, self._placeholder = text, placeholder

    def compose(self) -> ComposeResult:
        """Lay out the question, the line, and what the keys do."""
        with Vertical():
            yield Static(Content(safe(self._title)), classes="title", markup=False)
            yield Input(
                self._text, placeholder=self._placeholder, select_on_focus=False, compact=True
            )
            yield Static(classes="problem", markup=False)
            yield Static(Content(safe(self._hint)), classes="hint", markup=False)

    def fill(self, text: str) -> None:
        """Put a text into the line; the keys that were typed follow."""
        line = self.query_one(Input)
        line.value, line.cursor_position = text, len(text)
        self.awaits_list = False

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Take what was typed."""
        try:
            if self._do:
                self._do(message.value)
        except EvalstoreError as problem:
            line = self.query_one(".problem", Static)
            line.update(Content(safe(problem_text(problem), lines=True)))
            line.display = True
        else:
            self.dismiss(message.value)


class Choice(ModalScreen[str | None]):
    """Asks for one of these names; Escape is none of them."""

    DEFAULT_CSS = """
    Choice {
        align: center middle;
        & > Vertical {
            width: 60; max-width: 100%; height: auto; max-height: 100%;
            border: round $accent; background: $surface;
        }
        & Static { height: 1; padding: 0 1; text-style: bold; }
        & Static { text-wrap: nowrap; text-overflow: ellipsis; }
        & Grid { height: auto; max-height: 14; }
    }
    """
    TITLE = "A choice"
    HELP = "Choose one of these names."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "dismiss(None)", "Back", id="choice.back"),
        Binding("q", "dismiss(None)", "Close", show=False, id="choice.close"),
        HELP_KEYS,
    ]

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = names

    def compose(self) -> ComposeResult:
        """Lay out the names below what they are for."""
        with Vertical():
            yield Static(Content(safe(self._title)))
            yield Grid(id="names")

    def on_mount(self) -> None:
        """Show them."""
        grid = self.query_one(Grid)
        grid.styles.height = min(len(self._names) + 1, 14)
        cells = [(StyledCell(name),) for name in self._names]
        grid.show((Column("", 10, grows=True),), len(cells), cells.__getitem__)
        grid.focus()

    @on(Grid.Chosen)
    def choose(self, message: Grid.Chosen) -> None:
        """Close the dialog with the chosen name."""
        self.dismiss(self._names[message.row])


class QuitConfirmation(Dialog):
    """How far the run is, and what quitting would do with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Continue", id="page.back"),
        Binding("q", "app.quit", "Stop it and quit", id="quit"),
    ]
    TITLE = "Quit during a run"
    WAY = "{quit} during a run"
    HELP = """\
{quit} asks before it quits during a run. {quit} again stops the run, waits for the calls that have
begun, stores their answers and quits; a third time it quits at once. {page.back} continues the run.
"""

    runner: BackgroundRun
    asks_to_quit = True

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__()
        self.runner = runner

    def on_mount(self) -> None:
        """Show the progress; from now on it is drawn with that of all other screens."""
        self.body.focus()
        self.show_progress()

    def reload(self) -> None:
        """Draw again."""
        self.show_progress()

    def show_progress(self) -> None:
        """Show the progress and what quitting would do."""
        self.set_title("quit")
        self.body.show(self._lines(), stay=True)

    def _lines(self) -> Iterator[StyledLine]:
        key = self.browser.key_of("quit")
        shown = self.runner.shown
        done, total = shown.counts
        progress = f"{done:,} of {total:,} are done" if shown.is_planned else "it is planned"
        if self.runner.is_over:
            yield from text_lines(f"The run has ended meanwhile. {key} quits.")
        elif self.browser.runs.is_leaving:
            yield from text_lines(f"The run is being stopped: {progress}.")
            yield from text_lines(
                "Calls that have begun are finished and stored, then the browser quits; "
                f"{key} once more quits at once."
            )
        else:
            back = self.browser.key_of("page.back")
            yield from text_lines(f"A run is in progress: {progress}.")
            yield from text_lines(
                f"{key} again stops it and quits; what was answered is kept. "
                f"{back} continues the run."
            )

    def action_back(self) -> None:
        """Keep the browser open; a run that is being stopped still ends."""
        self.browser.runs.is_leaving = False
        self.app.pop_screen()


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
    "Read": (
        *("list.open", "cases.", "session.", "history.search", "search.", "stats."),
        *("history.stats", "history.broken", "page.search"),
    ),
    "Judge and label": ("list.mark", "case.pass", "case.fail", "case.unlabel", "case.judge"),
    "Compare": (
        *("history.compare", "cases.compare", "run.compare", "compare.", "session.beside"),
        *("cases.versions", "session.versions", "versions."),
    ),
    "Go": (
        *("page.", "panel.", "help", "quit", "commands", "case.newest"),
        *("run.cases", "run.hide", "prompt.", "choice."),
    ),
    "Copy and save": ("page.copy", "page.save", "case.copy_answer"),
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
    "label": "a verdict that a person gives; it overrules all others",
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
        "help.close",
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
        yield Static(classes="problem", markup=False)
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
        for page in self.browser.pages.values():
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
